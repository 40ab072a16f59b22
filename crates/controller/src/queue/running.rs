//! How long workers have been busy.

use std::time::Duration;

use tokio::time::Instant;

/// What is being worked on, and since when. All but the end of a work is answered without looking at each.
pub(super) struct Running {
    /// By the number of the work, which rises with time: the first has been going on for longest. As many as there are
    /// workers.
    since: Vec<(u64, Instant)>,
    epoch: Instant,
    /// The sum of the times from `epoch` to each start.
    starts: Duration,
}

impl Running {
    pub(super) fn new() -> Self {
        Self { since: Vec::new(), epoch: Instant::now(), starts: Duration::ZERO }
    }

    pub(super) fn len(&self) -> usize {
        self.since.len()
    }

    pub(super) fn begin(&mut self, ticket: u64, now: Instant) {
        self.since.push((ticket, now));
        self.starts = self.starts.saturating_add(now.saturating_duration_since(self.epoch));
    }

    /// Ends a work, and says how long it took.
    pub(super) fn end(&mut self, ticket: u64, now: Instant) -> Duration {
        let Ok(at) = self.since.binary_search_by_key(&ticket, |(ticket, _)| *ticket) else { return Duration::ZERO };
        let (_, since) = self.since.remove(at);
        self.starts = self.starts.saturating_sub(since.saturating_duration_since(self.epoch));
        now.saturating_duration_since(since)
    }

    /// How long all together have been going on.
    pub(super) fn unfinished(&self, now: Instant) -> Duration {
        let count = u32::try_from(self.len()).unwrap_or(u32::MAX);
        now.saturating_duration_since(self.epoch).saturating_mul(count).saturating_sub(self.starts)
    }

    /// How long the longest of them has been going on.
    pub(super) fn longest(&self, now: Instant) -> Duration {
        self.since.first().map_or(Duration::ZERO, |(_, since)| now.saturating_duration_since(*since))
    }
}
