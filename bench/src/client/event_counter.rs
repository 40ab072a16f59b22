//! Counts the events that a handler receives, and waits for them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The value while no task waits.
const NEVER: u64 = u64::MAX;

/// Counts the events of a handler. It is as cheap as possible, so that mostly the delivery is measured.
pub(super) struct EventCounter {
    events: AtomicU64,
    newest: AtomicU64,
    /// Wakes the task that waits for this number of events, or for this version.
    awaited_events: AtomicU64,
    awaited_version: AtomicU64,
    reached: Notify,
}

impl Default for EventCounter {
    fn default() -> Self {
        let [events, newest] = [const { AtomicU64::new(0) }; 2];
        let [awaited_events, awaited_version] = [const { AtomicU64::new(NEVER) }; 2];
        Self { events, newest, awaited_events, awaited_version, reached: Notify::new() }
    }
}

impl EventCounter {
    /// Records an event, with the version of its object.
    pub(super) fn record(&self, version: &str) {
        let version = version.bytes().fold(0, |number: u64, digit| number * 10 + u64::from(digit - b'0'));
        let events = self.events.fetch_add(1, Relaxed) + 1;
        self.newest.fetch_max(version, Relaxed);
        if events >= self.awaited_events.load(Relaxed) || version >= self.awaited_version.load(Relaxed) {
            self.reached.notify_one();
        }
    }

    pub(super) fn events(&self) -> u64 {
        self.events.load(Relaxed)
    }

    /// Waits until this many events were received.
    pub(super) async fn until_events(&self, events: u64) {
        self.awaited_events.store(events, Relaxed);
        while self.events() < events {
            self.reached.notified().await;
        }
        self.awaited_events.store(NEVER, Relaxed);
    }

    /// Waits until this version was received.
    pub(super) async fn until_version(&self, version: u64) {
        self.awaited_version.store(version, Relaxed);
        while self.newest.load(Relaxed) < version {
            self.reached.notified().await;
        }
        self.awaited_version.store(NEVER, Relaxed);
    }
}

/// A histogram of the times from sending to receiving an event.
pub(super) struct Latency(Mutex<Histogram<u64>>);

impl Default for Latency {
    fn default() -> Self {
        Self(Mutex::new(Histogram::new(3).expect("three digits are allowed")))
    }
}

impl Latency {
    /// Records the annotation with the time at which the event was sent. It is zero before the first event.
    pub(super) fn record(&self, sent: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        if let Some(sent) = sent.parse().ok().filter(|sent| *sent > 0) {
            // Cannot fail: the histogram resizes itself.
            let _ = self.0.lock().record(now.saturating_sub(sent));
        }
    }

    /// Removes all recorded times.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }

    pub(super) fn count(&self) -> u64 {
        self.0.lock().len()
    }

    /// Returns a percentile in microseconds.
    pub(super) fn percentile(&self, percent: f64) -> f64 {
        self.0.lock().value_at_percentile(percent) as f64 / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiting_ends_with_the_awaited_event() {
        let received = EventCounter::default();
        received.record("1000000007");
        received.until_events(1).await;
        let later = async {
            tokio::task::yield_now().await;
            received.record("1000000009");
        };
        tokio::join!(received.until_version(1_000_000_008), later);
        assert_eq!(received.events(), 2);
    }
}
