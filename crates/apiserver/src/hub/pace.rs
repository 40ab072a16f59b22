//! How fast whole states are sent.

use std::time::Duration;
use tokio::time::Instant;

/// The longest pause: a time to wait until must be one that there is.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// So many objects, then a pause, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    objects: usize,
    pause: Duration,
}

impl Pace {
    pub(crate) fn new(objects: usize, pause: Duration) -> Self {
        Self { objects: objects.max(1), pause: pause.min(LONGEST) }
    }
}

/// Where one answer stands. Without a pace it never pauses.
#[derive(Debug, Clone)]
pub(crate) struct Paced {
    pace: Option<Pace>,
    /// How many objects may be sent before the next pause.
    left: usize,
    /// When the pause ends that was begun last.
    resumes_at: Option<Instant>,
}

impl Paced {
    pub(crate) fn new(pace: Option<Pace>) -> Self {
        Self { pace, left: pace.map_or(usize::MAX, |pace| pace.objects), resumes_at: None }
    }

    /// How many objects may be sent now.
    pub(crate) fn room(&self) -> usize {
        self.left
    }

    /// Counts objects that were sent, no more than there was room for. The last of them begins a pause.
    pub(crate) fn count(&mut self, objects: usize) {
        let Some(pace) = self.pace else { return };
        self.left = self.left.saturating_sub(objects);
        if self.left == 0 {
            self.left = pace.objects;
            self.resumes_at = Some(Instant::now() + pace.pause);
        }
    }

    /// When the pause ends, if there is one.
    pub(crate) fn resumes_at(&mut self) -> Option<Instant> {
        self.resumes_at.take_if(|at| *at <= Instant::now());
        self.resumes_at
    }

    /// Waits for the end of the pause, if there is one. Cancel safe.
    pub(crate) async fn resumed(&mut self) {
        if let Some(at) = self.resumes_at() {
            tokio::time::sleep_until(at).await;
        }
    }
}
