//! A watch under way, and how long it may stay silent.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::Instant;

use super::GRACE;
use super::progress::Pace;
use crate::object::Object;
use crate::source::{Decoded, SourceError, WatchEvent, WatchStream};
use crate::time::after;

/// A server that marks the end of an initial state sends bookmarks about so often.
const USUAL_RHYTHM: Duration = Duration::from_secs(60);
/// No rhythm is taken to be quicker: the last bookmark of a watch may come soon after the one before.
const QUICKEST_RHYTHM: Duration = Duration::from_secs(30);

/// How often a server sends bookmarks, carried from watch to watch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rhythm(Option<Duration>);

impl Rhythm {
    /// The server has shown that it sends bookmarks.
    pub(super) fn expect(&mut self) {
        self.0.get_or_insert(USUAL_RHYTHM);
    }

    /// Two bookmarks came so far apart.
    fn hear(&mut self, gap: Duration) {
        self.0 = Some(self.0.unwrap_or(QUICKEST_RHYTHM).max(gap));
    }

    /// How long silence is believed: two and a half beats.
    fn patience(self) -> Option<Duration> {
        self.0.map(|beat| beat.saturating_mul(5) / 2)
    }
}

/// A watch under way.
pub(super) struct OpenWatch<T: ?Sized> {
    pub(super) events: WatchStream<Arc<T>>,
    /// When it was asked for.
    opened: Instant,
    /// When the server is to end it, at the latest.
    ends: Instant,
    /// When the changes began: behind the initial state, if there was one.
    pub(super) began: Instant,
    /// How many changes and bookmarks came since then.
    pub(super) heard: u64,
    /// True if the initial state came first.
    pub(super) after_initial_state: bool,
    /// True as long as versions do not tell what is missing: an initial state that nobody asked for may come first.
    pub(super) unordered: bool,
    last_heard: Instant,
    last_bookmark: Option<Instant>,
    /// How many bytes were accounted for.
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
            heard: 0,
            after_initial_state: false,
            unordered,
            last_heard: now,
            last_bookmark: None,
            counted: 0,
            pace,
            events,
        }
    }

    /// The initial state is over; what comes now are changes. Its end is no beat.
    pub(super) fn initial_state_is_over(&mut self) {
        self.began = Instant::now();
        (self.heard, self.after_initial_state) = (0, true);
        self.last_bookmark = None;
    }

    /// Returns the next event, or `None` if the watch has ended.
    pub(super) async fn next(&mut self) -> Option<Result<WatchEvent<Arc<T>>, SourceError>> {
        self.events.next().await
    }

    /// Records that an event arrived.
    pub(super) fn hear<O>(&mut self, event: &WatchEvent<O>, rhythm: &mut Rhythm, now: Instant) {
        self.heard += 1;
        self.last_heard = now;
        self.unordered &= matches!(event, WatchEvent::Added(_));
        if matches!(event, WatchEvent::Bookmark { .. })
            && let Some(last) = self.last_bookmark.replace(now)
        {
            rhythm.hear(now - last);
        }
    }

    /// Returns how many bytes came since the event before this one. A source that does not count sends at least what the object takes.
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

    /// When it is taken for dead if nothing comes.
    pub(super) fn dead_at(&self, rhythm: Rhythm) -> Instant {
        let patience = rhythm.patience().map(|patience| after(self.last_heard, patience));
        patience.map_or(self.ends, |patience| patience.min(self.ends))
    }

    /// How long it has been silent.
    pub(super) fn silent_for(&self) -> Duration {
        if self.heard == 0 && !self.after_initial_state { self.opened.elapsed() } else { self.last_heard.elapsed() }
    }
}
