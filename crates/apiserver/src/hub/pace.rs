//! The pace of lists and initial events.

use std::time::Duration;
use tokio::time::Instant;

/// The longest pause, so that a deadline does not overflow.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A number of objects, and the pause after each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PauseRate {
    objects: usize,
    pause: Duration,
}

impl PauseRate {
    pub(crate) fn new(objects: usize, pause: Duration) -> Self {
        Self { objects: objects.max(1), pause: pause.min(LONGEST) }
    }
}

/// The progress of one answer. Without a pace it never pauses.
#[derive(Debug, Clone)]
pub(crate) struct Paced {
    pace: Option<PauseRate>,
    /// How many objects may be sent before the next pause.
    left: usize,
    /// When the current pause ends.
    resumes_at: Option<Instant>,
}

impl Paced {
    pub(crate) fn new(pace: Option<PauseRate>) -> Self {
        Self { pace, left: pace.map_or(usize::MAX, |pace| pace.objects), resumes_at: None }
    }

    /// Returns how many objects may be sent now.
    pub(crate) fn room(&self) -> usize {
        self.left
    }

    /// Counts sent objects, at most as many as [`room`](Self::room) allows. The last of them starts a pause.
    pub(crate) fn count(&mut self, objects: usize) {
        let Some(pace) = self.pace else { return };
        self.left = self.left.saturating_sub(objects);
        if self.left == 0 {
            self.left = pace.objects;
            self.resumes_at = Some(Instant::now() + pace.pause);
        }
    }

    /// Returns when the current pause ends, if there is one.
    pub(crate) fn resumes_at(&mut self) -> Option<Instant> {
        self.resumes_at.take_if(|at| *at <= Instant::now());
        self.resumes_at
    }

    /// Waits for the end of the current pause, if there is one. Cancel safe.
    pub(crate) async fn resumed(&mut self) {
        if let Some(at) = self.resumes_at() {
            tokio::time::sleep_until(at).await;
        }
    }
}
