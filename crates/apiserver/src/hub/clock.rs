//! The wall clock for timestamps of objects, driven by the tokio clock.

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// The wall clock of one server: a start time plus the time that the tokio clock has counted since.
///
/// On a paused clock with a fixed start time, every timestamp is reproducible.
#[derive(Debug)]
pub(crate) struct Clock {
    started_at: Timestamp,
    started: Instant,
    skew: Mutex<SignedDuration>,
}

impl Clock {
    /// Returns a clock that shows `started_at` now.
    pub(crate) fn starting_at(started_at: Timestamp) -> Self {
        Self { started_at, started: Instant::now(), skew: Mutex::new(SignedDuration::ZERO) }
    }

    /// Returns the current time.
    pub(crate) fn now(&self) -> Timestamp {
        self.after(Duration::ZERO)
    }

    /// Returns the current time in the format of `creationTimestamp`.
    pub(crate) fn now_text(&self) -> String {
        self.text_after(Duration::ZERO)
    }

    /// Returns the current time in the format of a `Date` header.
    pub(crate) fn http_date(&self) -> String {
        self.after(Duration::ZERO).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    /// Returns the time `delay` from now in the format of `deletionTimestamp`.
    pub(crate) fn text_after(&self, delay: Duration) -> String {
        self.after(delay).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Returns the time `delay` from now.
    pub(crate) fn after(&self, delay: Duration) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.started.elapsed() + delay).unwrap_or(SignedDuration::MAX);
        let shown = self.started_at.saturating_add(elapsed).and_then(|time| time.saturating_add(*self.skew.lock()));
        shown.unwrap_or(self.started_at)
    }

    /// Skews the clock by `seconds` from now on.
    pub(crate) fn set_skew(&self, seconds: i64) {
        *self.skew.lock() = SignedDuration::from_secs(seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn wall_clock_follows_tokio_clock() {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        assert_eq!(clock.now_text(), "1970-01-01T00:00:00Z");
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(clock.now_text(), "1970-01-01T00:01:01Z");
        assert_eq!(clock.http_date(), "Thu, 01 Jan 1970 00:01:01 GMT");
        clock.set_skew(-60);
        assert_eq!(clock.now_text(), "1970-01-01T00:00:01Z");
    }
}
