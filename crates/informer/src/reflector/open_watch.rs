//! A watch under way, and how long it may stay silent.

use std::time::Duration;

use tokio::time::Instant;

use super::GRACE;
use crate::source::{Events, WatchEvent};

/// How many bookmarks in a row may be missed before a watch is taken for dead.
const MISSED_BOOKMARKS: u32 = 4;

/// A watch under way.
pub(super) struct OpenWatch<T> {
    pub(super) events: Events<T>,
    pub(super) opened: Instant,
    /// When the server is to end it.
    pub(super) agreed: Duration,
    /// How many events and bookmarks have come.
    pub(super) heard: u64,
    /// True on a watch without a version until its first change: it begins with the present state, in no order.
    pub(super) unordered: bool,
    pub(super) last_bookmark: Option<Instant>,
    /// The longest time between two bookmarks so far.
    pub(super) rhythm: Option<Duration>,
}

impl<T> OpenWatch<T> {
    pub(super) fn heard(&mut self, event: &WatchEvent<T>) {
        self.heard += 1;
        self.unordered &= matches!(event, WatchEvent::Added(_));
        if matches!(event, WatchEvent::Bookmark { .. }) {
            let now = Instant::now();
            let gap = self.last_bookmark.replace(now).map(|last| now - last);
            self.rhythm = self.rhythm.max(gap);
        }
    }

    /// How long it may stay silent from now on.
    pub(super) fn deadline(&self) -> Duration {
        let at_most = (self.agreed + GRACE).saturating_sub(self.opened.elapsed());
        match self.rhythm {
            Some(rhythm) => at_most.min((rhythm * MISSED_BOOKMARKS).max(GRACE)),
            None => at_most,
        }
    }
}
