//! Runs the command on a terminal, and keeps its screen for the test.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::command::DEADLINE;

/// A command on a terminal. A drop kills it.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    shown: Arc<TerminalOutput>,
}

/// The output of the command.
struct TerminalOutput {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    parser: vt100::Parser,
    /// All bytes, with control sequences.
    raw: Vec<u8>,
    ended: bool,
}

/// Which streams are the terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    /// All of them.
    Everything,
    /// Only stderr, as when stdout is a file or a pipe.
    Stderr,
}

impl Terminal {
    /// Starts `informer` on a terminal of this size.
    pub(crate) fn start(arguments: &[&str], (rows, columns): (u16, u16)) -> Self {
        Self::start_on(On::Everything, arguments, (rows, columns), &[])
    }

    /// Starts `informer` with some streams on a terminal of this size, and with these environment variables.
    pub(crate) fn start_on(
        on: On,
        arguments: &[&str],
        (rows, columns): (u16, u16),
        variables: &[(&str, &str)],
    ) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = || Stdio::from(File::options().read(true).write(true).open(&path).unwrap());

        let mut command: Command = crate::command::informer(arguments).into_std();
        command.env("TERM", "xterm-256color").envs(variables.iter().copied()).stderr(slave());
        match on {
            On::Everything => command.stdin(slave()).stdout(slave()),
            On::Stderr => command.stdin(Stdio::null()).stdout(Stdio::null()),
        };
        let child = command.spawn().unwrap();
        // The command holds the other end of the terminal; a copy here would keep it open.
        drop(command);

        let size = |number| NonZeroU16::new(number).unwrap();
        let state =
            State { parser: vt100::Parser::new(size(rows), size(columns), 1000), raw: Vec::new(), ended: false };
        let shown = Arc::new(TerminalOutput { state: Mutex::new(state), changed: Condvar::new() });
        std::thread::spawn({
            let (reader, shown) = (File::from(master.try_clone().unwrap()), shown.clone());
            move || shown.read(reader)
        });
        Self { child, keyboard: File::from(master), shown }
    }

    /// Types these keys.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Returns the whole output, with control sequences.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.shown.state.lock().unwrap().raw).into_owned()
    }

    /// Waits until the screen meets a condition, and returns the screen.
    pub(crate) fn wait(&self, what: &str, until: impl Fn(&str) -> bool) -> String {
        let state = self.shown.state.lock().unwrap();
        let (state, waited) = self
            .shown
            .changed
            .wait_timeout_while(state, DEADLINE, |state| !state.ended && !until(&state.screen()))
            .unwrap();
        let screen = state.screen();
        assert!(
            until(&screen),
            "{what}; timed out: {}, ended: {}, on the screen:\n{screen}",
            waited.timed_out(),
            state.ended
        );
        screen
    }

    /// Waits until this text is on the screen, and returns the screen.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        self.wait(&format!("{text:?} is shown"), |screen| screen.contains(text))
    }

    /// Changes the size of the terminal.
    pub(crate) fn resize(&self, (rows, columns): (u16, u16)) {
        let size = |number| NonZeroU16::new(number).unwrap();
        self.shown.state.lock().unwrap().parser.screen_mut().set_size(size(rows), size(columns));
        tcsetwinsize(&self.keyboard, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        // The terminal is not the controlling terminal of the command, so that it sends no SIGWINCH.
        self.signal("WINCH");
    }

    /// Sends a signal, such as `INT`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// Waits for the end, and returns the exit code and the last screen.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let state = self.shown.state.lock().unwrap();
        let (state, _) = self.shown.changed.wait_timeout_while(state, DEADLINE, |state| !state.ended).unwrap();
        assert!(state.ended, "the command ends; on the screen:\n{}", state.screen());
        let screen = state.screen();
        drop(state);
        // The command has closed the terminal, so that it ends soon.
        (self.child.wait().unwrap().code(), screen)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Ignored: the command may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl TerminalOutput {
    fn read(&self, mut reader: File) {
        let mut buffer = [0; 4096];
        // Reading fails when the last process closes its end.
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            let mut state = self.state.lock().unwrap();
            state.parser.process(&buffer[..count]);
            state.raw.extend_from_slice(&buffer[..count]);
            self.changed.notify_all();
        }
        self.state.lock().unwrap().ended = true;
        self.changed.notify_all();
    }
}

impl State {
    fn screen(&self) -> String {
        let (_, columns) = self.parser.screen().size();
        let rows = self.parser.screen().rows(0, columns.get());
        let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }
}
