//! Prints events as they happen: on stdout, or in the tail of a screen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use crate::say::say;
use crate::view::{Mark, Tail};

/// Prints lines with the time since the start. A clone shares the output.
#[derive(Clone)]
pub(super) struct EventLog {
    started: Instant,
    /// The tail to append to; `None` for stdout.
    tail: Option<Arc<Mutex<Tail>>>,
    /// True once `close` was called.
    closed: Arc<AtomicBool>,
}

impl EventLog {
    pub(super) fn to_stdout() -> Self {
        Self { started: Instant::now(), tail: None, closed: Arc::default() }
    }

    pub(super) fn to_tail() -> Self {
        Self { started: Instant::now(), tail: Some(Arc::default()), closed: Arc::default() }
    }

    pub(super) fn log(&self, mark: Mark, text: String) {
        if self.closed.load(Ordering::SeqCst) {
            return;
        }
        let at = self.elapsed();
        match &self.tail {
            Some(tail) => tail.lock().push(at, mark, text),
            None => say(&format!("{:6.2} s  {} {text}", at.as_secs_f64(), mark.sign())),
        }
    }

    /// Ends the output: later lines would stand between the lines of the summary.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the last lines, if they go to a screen.
    pub(super) fn tail(&self) -> Option<MutexGuard<'_, Tail>> {
        self.tail.as_ref().map(|tail| tail.lock())
    }
}
