//! Wall time as objects show it, moved by the tokio clock.

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// The wall clock of one server: a starting point plus what the tokio clock has counted since.
///
/// On a paused clock, with a fixed starting point, every timestamp can be repeated.
#[derive(Debug)]
pub(crate) struct Clock {
    started_at: Timestamp,
    started: Instant,
    skew: Mutex<SignedDuration>,
}

impl Clock {
    /// A clock that shows `started_at` now.
    pub(crate) fn starting_at(started_at: Timestamp) -> Self {
        Self { started_at, started: Instant::now(), skew: Mutex::new(SignedDuration::ZERO) }
    }

    /// The time now.
    pub(crate) fn now(&self) -> Timestamp {
        self.after(Duration::ZERO)
    }

    /// The time now, as an object's `creationTimestamp` shows it.
    pub(crate) fn now_text(&self) -> String {
        self.text_after(Duration::ZERO)
    }

    /// The time now, as a `Date` header shows it.
    pub(crate) fn http_date(&self) -> String {
        self.after(Duration::ZERO).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    /// The time `delay` from now, as a `deletionTimestamp` shows it.
    pub(crate) fn text_after(&self, delay: Duration) -> String {
        self.after(delay).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    fn after(&self, delay: Duration) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.started.elapsed() + delay).unwrap_or(SignedDuration::MAX);
        let shown = self.started_at.saturating_add(elapsed).and_then(|time| time.saturating_add(*self.skew.lock()));
        shown.unwrap_or(self.started_at)
    }

    /// Makes the clock show a time that is off by `seconds` from now on.
    pub(crate) fn set_skew(&self, seconds: i64) {
        *self.skew.lock() = SignedDuration::from_secs(seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_wall_clock_follows_the_tokio_clock() {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        assert_eq!(clock.now_text(), "1970-01-01T00:00:00Z");
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(clock.now_text(), "1970-01-01T00:01:01Z");
        assert_eq!(clock.http_date(), "Thu, 01 Jan 1970 00:01:01 GMT");
        clock.set_skew(-60);
        assert_eq!(clock.now_text(), "1970-01-01T00:00:01Z");
    }
}
