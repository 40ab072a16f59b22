//! The stream of one watch: the initial events, then the events in the log, then new events.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::{BookmarkMark, Start, WatchQuery, bookmark_line};
use crate::api::selector::ObjectSelector;
use crate::hub::Hub;
use crate::hub::pace::Paced;
use crate::kinds::Resource;
use crate::status::Status;
use crate::storage::collection::{Collection, Legacy, Objects, between};
use crate::storage::key::StoreKey;
use crate::storage::object::{Form, WriteKind};

/// The size of a chunk of initial events, in bytes.
const CHUNK: usize = 32 * 1024;
/// How many events are read from the log at a time.
const BATCH: usize = 64;
/// How long before the end the last bookmark is sent, so that the client can resume from it.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// One watch. It holds a position in the log, not a queue: an idle watch costs nothing for writes to other resources.
pub(super) struct WatchLines {
    hub: Arc<Hub>,
    resource: Arc<Resource>,
    selector: ObjectSelector,
    form: Form,
    deadline: Instant,
    /// When the next bookmark is due; `None` if no more follow.
    next_bookmark: Option<Instant>,
    /// The objects of the initial state that are not sent yet.
    initial: Option<Initial>,
    /// Lines that are ready to be sent.
    ready: VecDeque<Bytes>,
    /// The revision up to which everything has been sent, or is in `ready`.
    position: u64,
    /// Bookmarks must be newer than this.
    started_at: u64,
    /// The revision when the watch was opened. A client that still reads earlier events is catching up, not slow.
    opened_at: u64,
    connection_epoch: u64,
    /// The id of the collection in which the watch started.
    collection: u64,
    changed: Arc<Notify>,
    /// The rest of the log, if the collection was closed.
    legacy: Legacy,
}

struct Initial {
    objects: Objects,
    /// The last object already sent.
    after: Option<StoreKey>,
    /// Whether a bookmark marks the end.
    marked: bool,
    /// The pace of the initial events.
    paced: Paced,
}

impl Drop for WatchLines {
    fn drop(&mut self) {
        self.hub.open_watches.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The outcome of a look at the log.
enum Look {
    Events,
    Quiet { revision: u64 },
    Ended,
    Broken,
}

impl WatchLines {
    /// Opens a watch and finds its start position.
    pub(super) fn open(
        hub: &Arc<Hub>,
        resource: &Arc<Resource>,
        selector: ObjectSelector,
        options: &WatchQuery,
        form: Form,
        deadline: Instant,
    ) -> Result<Self, Status> {
        let mut state = hub.storage.lock();
        let (revision, connection_epoch) = (state.revision, state.connection_epoch);
        let collection = state.collection_now(resource);
        let (position, initial) = match options.start {
            Start::Now => (revision, None),
            Start::After(asked) if asked < collection.horizon() => {
                return Err(Status::watch_expired(asked, collection.horizon()));
            }
            Start::After(asked) => (asked, None),
            Start::Initial { marked, .. } => {
                let objects = collection.objects().clone();
                let (marked, paced) = (marked && options.bookmarks, Paced::new(hub.settings.initial_pace));
                (revision, Some(Initial { objects, after: None, marked, paced }))
            }
        };
        let (changed, legacy, id) = (collection.changed().clone(), collection.legacy().clone(), collection.id);
        drop(state);
        hub.open_watches.fetch_add(1, Ordering::Relaxed);
        let mut stream = Self {
            hub: hub.clone(),
            resource: resource.clone(),
            selector,
            form,
            deadline,
            next_bookmark: None,
            initial,
            ready: VecDeque::new(),
            position,
            started_at: position,
            opened_at: revision,
            connection_epoch,
            collection: id,
            changed,
            legacy,
        };
        // kube-apiserver sends no bookmarks without a watch cache.
        if options.bookmarks && !resource.rules.uncached {
            stream.schedule_bookmark(Instant::now());
        }
        Ok(stream)
    }

    /// Returns the next bytes. Cancel safe: nothing is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(Ok(line));
            }
            if let Some(resumes_at) = self.initial.as_mut().and_then(|initial| initial.paced.resumes_at()) {
                let changed = self.changed.clone().notified_owned();
                if self.is_cut() {
                    return Some(Err(cut()));
                }
                if Instant::now() >= self.deadline {
                    return None;
                }
                tokio::select! {
                    biased;
                    () = changed => {}
                    () = sleep_until(resumes_at.min(self.deadline)) => {}
                }
                continue;
            }
            if let Some(chunk) = self.next_initial() {
                return Some(Ok(chunk));
            }
            // Registered before the look at the log, so that a write in between is not missed.
            let changed = self.changed.clone().notified_owned();
            let revision = match self.look() {
                Look::Events => continue,
                Look::Ended => return None,
                Look::Broken => return Some(Err(cut())),
                Look::Quiet { revision } => revision,
            };
            let now = Instant::now();
            if now >= self.deadline {
                return None;
            }
            if self.next_bookmark.is_some_and(|due| now >= due) {
                self.schedule_bookmark(now);
                if revision > self.started_at {
                    return Some(Ok(self.bookmark(revision, false)));
                }
            }
            let wake = self.next_bookmark.map_or(self.deadline, |due| due.min(self.deadline));
            tokio::select! {
                biased;
                () = changed => {}
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Returns the next chunk of the initial state. The end mark is a line of its own.
    fn next_initial(&mut self) -> Option<Bytes> {
        let initial = self.initial.as_mut()?;
        let prefix = self.selector.key_prefix();
        let first = match &initial.after {
            Some(key) => Bound::Excluded(key.as_str()),
            None => Bound::Included(prefix.as_str()),
        };
        let mut chunk = BytesMut::new();
        let (mut sent, mut last) = (0, None);
        let end = self.selector.key_end();
        for (key, object) in between(&initial.objects, first, end.as_deref()) {
            if self.selector.matches(object) {
                object.shown_by(&self.resource).write_line(WriteKind::Added, self.form, object.revision, &mut chunk);
                sent += 1;
            }
            last = Some(key.clone());
            if chunk.len() >= CHUNK || sent >= initial.paced.room() {
                break;
            }
        }
        if !chunk.is_empty() {
            initial.after = last;
            initial.paced.count(sent);
            return Some(chunk.freeze());
        }
        let marked = initial.marked;
        self.initial = None;
        marked.then(|| self.bookmark(self.position, true))
    }

    /// Returns whether a fault has broken the connection.
    fn is_cut(&self) -> bool {
        self.hub.storage.lock().connection_epoch != self.connection_epoch
    }

    /// Reads new events from the log.
    fn look(&mut self) -> Look {
        let state = self.hub.storage.lock();
        let revision = state.revision;
        if state.connection_epoch != self.connection_epoch {
            return Look::Broken;
        }
        let open = state.collection_of_watch(&self.resource, self.collection);
        let left = if open.is_none() { self.legacy.lock().clone() } else { None };
        let Some(log) = open.map(Collection::log).or(left.as_deref()) else {
            return Look::Ended;
        };
        let is_open = open.is_some();
        let lag = self.hub.settings.max_watch_lag;
        let too_slow = lag.is_some_and(|lag| log.count_after(self.position.max(self.opened_at)) > lag);
        if too_slow || log.has_lost(self.position) {
            self.hub.faults.record_server("slow_watch");
            return Look::Ended;
        }
        let events = log.unseen(self.position, BATCH);
        drop(state);
        if events.is_empty() {
            return if is_open { Look::Quiet { revision } } else { Look::Ended };
        }
        for event in &events {
            if let Some(change) = event.seen_by(|object| self.selector.matches(object)) {
                // The client asks again, and its request converts the object or says why not.
                if event.shown(change).is_some_and(|object| object.unconverted(&self.resource).is_some()) {
                    return if self.ready.is_empty() { Look::Ended } else { Look::Events };
                }
                self.ready.push_back(event.line(change, &self.resource, self.form));
            }
            self.position = event.revision;
        }
        Look::Events
    }

    fn bookmark(&self, revision: u64, ends_initial_events: bool) -> Bytes {
        let null_creation = self.hub.settings.minor_version < 34;
        bookmark_line(&self.resource, self.form, revision, BookmarkMark { ends_initial_events, null_creation })
    }

    fn schedule_bookmark(&mut self, now: Instant) {
        let last = self.deadline.checked_sub(LAST_BOOKMARK);
        let due = now.checked_add(self.hub.settings.bookmark_interval).unwrap_or(self.deadline);
        let next = due.min(last.unwrap_or(now));
        self.next_bookmark = (next > now).then_some(next);
    }
}

/// Returns the error of a broken connection.
fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer")
}
