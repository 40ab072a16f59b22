//! Measures how long workers have had their items.

use std::time::Duration;

use tokio::time::Instant;

/// The items that workers have, with their start times. Only [`end`](Self::end) searches the list.
pub(super) struct Running {
    /// Tickets and start times, sorted by ticket. Tickets increase with time, so the first entry has run for longest.
    /// There are at most as many entries as workers.
    since: Vec<(u64, Instant)>,
    epoch: Instant,
    /// The sum of the durations from `epoch` to each start.
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

    /// Removes a ticket, and returns how long its worker had the item.
    pub(super) fn end(&mut self, ticket: u64, now: Instant) -> Duration {
        let Ok(at) = self.since.binary_search_by_key(&ticket, |(ticket, _)| *ticket) else { return Duration::ZERO };
        let (_, since) = self.since.remove(at);
        self.starts = self.starts.saturating_sub(since.saturating_duration_since(self.epoch));
        now.saturating_duration_since(since)
    }

    /// Returns the sum of the durations for which workers have had their items.
    pub(super) fn unfinished(&self, now: Instant) -> Duration {
        let count = u32::try_from(self.len()).unwrap_or(u32::MAX);
        now.saturating_duration_since(self.epoch).saturating_mul(count).saturating_sub(self.starts)
    }

    /// Returns the longest duration for which a worker has had its item.
    pub(super) fn longest(&self, now: Instant) -> Duration {
        self.since.first().map_or(Duration::ZERO, |(_, since)| now.saturating_duration_since(*since))
    }
}
