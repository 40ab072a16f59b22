//! The terminal. It is restored at the end in any case.

use std::io::{self, IsTerminal as _, Stdout};
use std::panic::{self, PanicHookInfo};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::crossterm::{event, execute};
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};
use tokio::sync::mpsc;

use super::keys::Key;

/// How often the thread that reads keys checks whether it should end.
const LOOK: Duration = Duration::from_millis(100);

/// True while the terminal shows the screen.
static TAKEN: AtomicBool = AtomicBool::new(false);

type Hook = Arc<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// Returns true if there is a terminal to draw on and to read keys from.
pub(crate) fn is_possible() -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && io::stdin().is_terminal() && !dumb
}

/// The terminal while it shows the screen. A drop or a panic restores it.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// The area that the terminal was created for.
    area: Rect,
    keys: mpsc::UnboundedReceiver<Key>,
    ended: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    hook: Hook,
    /// Messages of panics in other threads. They are printed after the terminal is restored.
    said: Arc<Mutex<Vec<String>>>,
}

impl Screen {
    /// Takes the terminal: raw mode, alternate screen, no cursor.
    pub(crate) fn enter() -> io::Result<Self> {
        let hook: Hook = Arc::from(panic::take_hook());
        let said = Arc::new(Mutex::new(Vec::new()));
        let (drawer, before, words) = (thread::current().id(), hook.clone(), said.clone());
        panic::set_hook(Box::new(move |info| {
            if thread::current().id() == drawer {
                give_back();
                before(info);
            } else {
                words.lock().push(info.to_string());
            }
        }));
        // From here on a drop restores the terminal, also if one of the next steps fails.
        let (sender, keys) = mpsc::unbounded_channel();
        let mut screen = Self {
            terminal: terminal(Rect::default())?,
            area: Rect::default(),
            keys,
            ended: Arc::default(),
            reader: None,
            hook,
            said,
        };
        TAKEN.store(true, Ordering::SeqCst);
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Clear(ClearType::All), Hide)?;
        let ended = screen.ended.clone();
        screen.reader = Some(thread::Builder::new().name("keys".into()).spawn(move || read(&ended, &sender))?);
        Ok(screen)
    }

    /// Draws a frame; only what has changed is written.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let (width, height) = size()?;
        let area = Rect::new(0, 0, width.max(1), height.max(1));
        if area != self.area {
            execute!(io::stdout(), Clear(ClearType::All))?;
            (self.terminal, self.area) = (terminal(area)?, area);
        }
        self.terminal.draw(draw).map(|_| ())
    }

    /// Returns the next key that has a meaning. Cancel safe.
    pub(crate) async fn key(&mut self) -> Key {
        loop {
            match self.keys.recv().await {
                // The signal does what Ctrl-C does without raw mode; a second one ends the process at once.
                Some(Key::Interrupt) if interrupt() => {}
                Some(Key::Interrupt) => return Key::Quit,
                Some(key) => return key,
                // The thread that reads keys has ended: the terminal is gone.
                None => return Key::Quit,
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        if let Some(reader) = self.reader.take() {
            // The thread ends within `LOOK`.
            let _ = reader.join();
        }
        give_back();
        if !thread::panicking() {
            let hook = self.hook.clone();
            panic::set_hook(Box::new(move |info| hook(info)));
        }
        for words in self.said.lock().drain(..) {
            crate::say::remark(words);
        }
    }
}

/// Returns a terminal of a fixed size. A terminal that resizes itself asks for the position of the cursor; the thread
/// that reads keys would take the answer.
fn terminal(area: Rect) -> io::Result<Terminal<CrosstermBackend<Stdout>>> {
    let options = TerminalOptions { viewport: Viewport::Fixed(area) };
    Terminal::with_options(CrosstermBackend::new(io::stdout()), options)
}

/// Sends SIGINT to this process; returns false if this fails.
#[cfg(unix)]
fn interrupt() -> bool {
    use rustix::process::{Signal, getpid, kill_process};
    kill_process(getpid(), Signal::INT).is_ok()
}

#[cfg(not(unix))]
fn interrupt() -> bool {
    false
}

/// Restores the terminal, once.
pub(crate) fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // Ignored: if the terminal is gone, there is nothing to restore.
        let _ = disable_raw_mode();
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    }
}

/// Reads keys until `ended` is set.
fn read(ended: &AtomicBool, keys: &mpsc::UnboundedSender<Key>) {
    while !ended.load(Ordering::SeqCst) {
        match event::poll(LOOK) {
            Ok(false) => {}
            Ok(true) => match event::read() {
                Ok(event) => {
                    if let Some(key) = Key::of(&event) {
                        let _ = keys.send(key);
                    }
                }
                Err(_) => return,
            },
            Err(_) => return,
        }
    }
}
