//! An open watch, and how long it may be silent.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::Instant;

use super::GRACE;
use super::progress::Pace;
use crate::object::Object;
use crate::source::{Decoded, SourceError, WatchEvent, WatchStream};
use crate::time::after;

/// How often a server that supports streaming lists sends bookmarks, about.
const USUAL_RHYTHM: Duration = Duration::from_secs(60);
/// The shortest interval that is assumed: the last bookmark of a watch may come soon after the one before.
const QUICKEST_RHYTHM: Duration = Duration::from_secs(30);

/// The longest interval between bookmarks. It is kept from watch to watch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rhythm(Option<Duration>);

impl Rhythm {
    /// Records that the API server sends bookmarks.
    pub(super) fn expect(&mut self) {
        self.0.get_or_insert(USUAL_RHYTHM);
    }

    /// Records the interval between two bookmarks.
    fn record(&mut self, gap: Duration) {
        self.0 = Some(self.0.unwrap_or(QUICKEST_RHYTHM).max(gap));
    }

    /// Returns how long a watch may be silent: two and a half intervals.
    fn patience(self) -> Option<Duration> {
        self.0.map(|beat| beat.saturating_mul(5) / 2)
    }
}

/// An open watch.
pub(super) struct OpenWatch<T: ?Sized> {
    pub(super) events: WatchStream<Arc<T>>,
    /// When the request was sent.
    opened: Instant,
    /// When the API server must have ended the watch.
    ends: Instant,
    /// When the changes began: after the initial state, if there was one.
    pub(super) began: Instant,
    /// How many changes and bookmarks arrived since then.
    pub(super) received: u64,
    /// True if the watch began with the initial state.
    pub(super) after_initial_state: bool,
    /// True while versions do not show which changes are missing, because the API server may send an initial state that
    /// was not requested.
    pub(super) unordered: bool,
    last_heard: Instant,
    last_bookmark: Option<Instant>,
    /// How many bytes are already counted.
    counted: u64,
    pub(super) pace: Pace,
}

impl<T: Object + ?Sized> OpenWatch<T> {
    pub(super) fn new(
        events: WatchStream<Arc<T>>,
        opened: Instant,
        agreed: Duration,
        unordered: bool,
        deadline: Duration,
    ) -> Self {
        let (now, pace) = (Instant::now(), Pace::new(deadline, events.meter()));
        Self {
            opened,
            ends: after(after(opened, agreed), GRACE),
            began: now,
            received: 0,
            after_initial_state: false,
            unordered,
            last_heard: now,
            last_bookmark: None,
            counted: 0,
            pace,
            events,
        }
    }

    /// Marks the initial state as complete. The bookmark at its end does not count as an interval.
    pub(super) fn initial_state_is_over(&mut self) {
        self.began = Instant::now();
        (self.received, self.after_initial_state) = (0, true);
        self.last_bookmark = None;
    }

    /// Returns the next event, or `None` if the watch has ended.
    pub(super) async fn next(&mut self) -> Option<Result<WatchEvent<Arc<T>>, SourceError>> {
        self.events.next().await
    }

    /// Records that an event arrived.
    pub(super) fn record<O>(&mut self, event: &WatchEvent<O>, rhythm: &mut Rhythm, now: Instant) {
        self.received += 1;
        self.last_heard = now;
        self.unordered &= matches!(event, WatchEvent::Added(_));
        if matches!(event, WatchEvent::Bookmark { .. })
            && let Some(last) = self.last_bookmark.replace(now)
        {
            rhythm.record(now - last);
        }
    }

    /// Returns how many bytes arrived since the event before this one. For a source that does not count bytes, the size
    /// of the object is a lower bound.
    pub(super) fn bytes(&mut self, event: &WatchEvent<Arc<T>>) -> u64 {
        let received = self.events.meter().received();
        let bytes = received - std::mem::replace(&mut self.counted, received);
        match event {
            _ if received > 0 => bytes,
            WatchEvent::Added(Decoded::Object(object))
            | WatchEvent::Modified(Decoded::Object(object))
            | WatchEvent::Deleted(Decoded::Object(object)) => size_of_val(&**object) as u64,
            _ => 0,
        }
    }

    /// Returns when the watch is considered dead if nothing arrives.
    pub(super) fn dead_at(&self, rhythm: Rhythm) -> Instant {
        let patience = rhythm.patience().map(|patience| after(self.last_heard, patience));
        patience.map_or(self.ends, |patience| patience.min(self.ends))
    }

    /// Returns how long the watch has been silent.
    pub(super) fn silent_for(&self) -> Duration {
        if self.received == 0 && !self.after_initial_state { self.opened.elapsed() } else { self.last_heard.elapsed() }
    }
}
