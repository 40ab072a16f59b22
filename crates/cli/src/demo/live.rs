//! The demo as a screen.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::event_log::EventLog;
use super::faults::{self, Record};
use super::program::Program;
use crate::ending;
use crate::failure::Failure;
use crate::view::{Board, Key, Palette, Picture, Screen, span};

/// How often the screen is drawn.
const FRAME: Duration = Duration::from_millis(200);

/// Everything that the screen or the lines show.
pub(super) struct DemoView<'s> {
    pub(super) program: &'s Program,
    /// The name of the cluster.
    pub(super) world: &'s str,
    /// The URL of the live page.
    pub(super) address: Option<String>,
    pub(super) event_log: &'s EventLog,
    /// Each message asks for one fault.
    pub(super) ask: mpsc::Sender<()>,
    /// The faults so far; `None` on a real cluster.
    pub(super) injected: Option<Record>,
    pub(super) duration: Option<Duration>,
}

/// Draws the screen until the user ends the demo, or the time is over.
pub(super) async fn show(demo_view: DemoView<'_>) -> Result<(), Failure> {
    let cannot =
        |error| Failure::new("cannot draw on the terminal", error).hint("`informer demo --plain` prints lines");
    let mut screen = Screen::enter().map_err(cannot)?;
    let palette = Palette::from_environment();
    let (mut board, mut chosen, mut help) = (Board::default(), 0_usize, false);
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = ending::after(demo_view.duration);
    tokio::pin!(end);
    loop {
        tokio::select! {
            biased;
            () = &mut end => return Ok(()),
            key = screen.key() => match key {
                Key::Quit | Key::Interrupt => return Ok(()),
                Key::Next => chosen = (chosen + 1) % board.rows.len().max(1),
                Key::Previous => chosen = (chosen + board.rows.len().saturating_sub(1)) % board.rows.len().max(1),
                Key::Pause => if let Some(mut tail) = demo_view.event_log.tail() { tail.pause() },
                // A full channel means that faults are already requested.
                Key::Fault => { let _ = demo_view.ask.try_send(()); }
                Key::Help => help = !help,
                Key::Resized => {}
            },
            _ = frames.tick() => {
                let (readings, queues) = demo_view.program.readings();
                board.update(readings, queues, Instant::now());
            }
        }
        let tail = demo_view.event_log.tail();
        let left = demo_view.duration.map(|duration| format!(" of {}", span(duration))).unwrap_or_default();
        let picture = Picture {
            title: "informer demo",
            subtitle: &format!("{} · {}{left}", demo_view.world, span(demo_view.event_log.elapsed())),
            address: demo_view.address.as_deref(),
            trouble: None,
            board: &board,
            chosen,
            tail: tail.as_deref(),
            note: &demo_view.injected.as_ref().map(|record| faults::note(&record.lock())).unwrap_or_default(),
            groups: &demo_view.program.groups(),
            help,
            faults: demo_view.injected.is_some(),
            palette,
        };
        screen.draw(|frame| picture.draw(frame)).map_err(cannot)?;
    }
}
