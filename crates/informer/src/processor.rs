//! Tells handlers what changed: each in order, each at its own pace.
//!
//! # What a handler may rely on
//!
//! **Order.** A handler is told of the changes of one object in the order in which they happened: an addition first, then
//! updates, of which each begins where the last one ended, then a deletion; then perhaps an addition again. Between objects
//! the order is that of the server's stream. Two handlers have nothing to do with each other: one may be far ahead.
//!
//! **The store is first.** Whatever a handler is told has been in the store before. A handler that reads the store may find
//! it further on than what it is told of.
//!
//! **Replay.** A handler may come at any time. It is told of everything that is there as additions with `initial` set, and
//! then of every change: nothing twice, nothing missing, and nobody waits for it. Once all that was there is told,
//! [`HandlerHandle::synced`] says so.
//!
//! **Deletions.** Every deletion of an object that a handler was told of is told, also of one that nobody saw happen: a
//! relist finds it missing, and the handler gets the last state known ([`Deleted::Unknown`]). An object that was deleted and
//! made again while nobody watched is an update whose uids differ.
//!
//! **What is not told.** What changes nothing: an event of a state that is known already, the deletion of something unknown.
//! An object that cannot be read is an error (see [`Health`](crate::Health)), and no event.
//!
//! **One call at a time.** Calls to one handler never overlap. Plain closures and [`EventHandler`]s run on the runtime and
//! must be brief; those that wait are async; those that block have a thread of their own
//! ([`Registration::on_event_blocking`](crate::informer::Registration::on_event_blocking)).
//!
//! **Slow handlers.** What waits for a handler is bounded. Beyond its bound ([`Delivery`]) its mailbox *folds*: of each object
//! only the difference between what it was told last and what is there now is kept. An addition and an update are one
//! addition; an addition and a deletion are nothing; updates become one that begins where the handler is; a deletion followed
//! by an addition stay two. So a folded history is shorter, and never wrong. [`HandlerHandle::folds`] counts how often that
//! happened. Other handlers, and the cache, are not held up.
//!
//! **Resync.** A handler that asked for it is shown the whole cache from time to time, as [`Event::Resynced`], in line with
//! the changes. It never hides a change, and asks the server nothing.
//!
//! **Panics.** A panic in a handler is caught, reported and counted, and the event counts as delivered.
//!
//! **Removal.** Dropping a [`HandlerHandle`] changes nothing. [`HandlerHandle::remove`] takes the handler away and waits until
//! its last call has returned; after it nothing is told. From inside the handler itself that is an error, not a deadlock.
//!
//! **The end.** When the informer stops, what waits is dropped, and `stop` waits for the calls that run.

mod event;
mod filtered;
mod handle;
mod handler;
mod listener;
mod mailbox;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

pub use self::event::Event;
pub use self::filtered::Filtered;
pub use self::handle::{HandlerGuard, HandlerHandle, HandlerHealth, Removal, RemoveError};
pub(crate) use self::handler::{AnyHandler, AsyncCalls, AsyncClosure};
pub use self::handler::{AsyncEventHandler, EventHandler, Handlers};
pub(crate) use self::listener::Listener;
pub use self::mailbox::Delivery;
pub use self::stream::EventStream;
use crate::object::Object;
pub use crate::queue::Deleted;
use crate::store::Snapshot;
use crate::time::after;

/// The shortest time between two resyncs.
const SHORTEST_RESYNC: Duration = Duration::from_secs(1);

/// All listeners of one informer.
pub(crate) struct Processor<T> {
    listeners: Vec<Arc<Listener<T>>>,
    /// Those that were taken off the list, and of which a call may still run.
    leaving: Vec<Arc<Listener<T>>>,
    /// How often it is looked who is to be shown the cache again; `None` if nobody ever is. Fixed once started.
    resync_check: Option<Duration>,
    started: bool,
    /// True once the first list is in the store.
    synced: bool,
    closed: bool,
}

impl<T: Object> Processor<T> {
    pub(crate) fn new(resync_check: Option<Duration>) -> Self {
        let resync_check = resync_check.map(|period| period.max(SHORTEST_RESYNC));
        let (listeners, leaving) = (Vec::new(), Vec::new());
        Self { listeners, leaving, resync_check, started: false, synced: false, closed: false }
    }

    /// From now on the time between resync checks is fixed; gives it.
    pub(crate) fn start(&mut self) -> Option<Duration> {
        self.started = true;
        let now = Instant::now();
        self.listeners.iter().for_each(|listener| self.plan_resync(listener, now));
        self.resync_check
    }

    /// Makes a listener under a name that nobody has, and adds it. What is distributed from now on reaches it, behind a
    /// replay of what is known already.
    pub(crate) fn add(
        &mut self,
        name: String,
        known: Snapshot<T>,
        make: impl FnOnce(String) -> Listener<T>,
    ) -> Arc<Listener<T>> {
        let taken = |name: &str| self.listeners.iter().any(|listener| listener.name() == name);
        let numbered = (2..).map(|number| format!("{name}#{number}"));
        let name = std::iter::once(name.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(name);
        let listener = Arc::new(make(name));
        if self.closed {
            listener.mailbox.close(false);
            return listener;
        }
        listener.mailbox.replay(known);
        if self.synced {
            listener.mailbox.push_synced();
        }
        self.negotiate_resync(&listener);
        self.listeners.push(listener.clone());
        listener
    }

    /// Lowers the time between checks for a listener that wants to be shown the cache more often, before the start only.
    fn negotiate_resync(&mut self, listener: &Listener<T>) {
        let requested = listener.resync.lock().requested.map(|period| period.max(SHORTEST_RESYNC));
        match (requested, self.resync_check) {
            (Some(_), None) => {
                warn!(handler = listener.name(), "the informer does no resyncs; its resync period must be set")
            }
            (Some(requested), Some(check)) if requested < check && !self.started => {
                self.resync_check = Some(requested);
                let now = Instant::now();
                self.listeners.iter().for_each(|listener| self.plan_resync(listener, now));
            }
            (Some(requested), Some(check)) if requested < check => {
                warn!(
                    handler = listener.name(),
                    ?requested,
                    ?check,
                    "resync period is raised to what was fixed at the start"
                );
            }
            _ => {}
        }
        self.plan_resync(listener, Instant::now());
    }

    fn plan_resync(&self, listener: &Listener<T>, now: Instant) {
        let mut resync = listener.resync.lock();
        let period = |(requested, check): (Duration, Duration)| requested.max(check).max(SHORTEST_RESYNC);
        resync.period = resync.requested.zip(self.resync_check).map(period);
        resync.next = resync.period.map(|period| after(now, period));
    }

    /// Marks who is to be shown the cache again now. True if anybody is.
    pub(crate) fn mark_due(&self) -> bool {
        let now = Instant::now();
        let mut any = false;
        for listener in &self.listeners {
            let mut resync = listener.resync.lock();
            if let (Some(next), Some(period)) = (resync.next, resync.period)
                && next <= now
            {
                resync.next = Some(after(now, period));
                resync.due = true;
                any = true;
            }
        }
        any
    }

    /// Takes a listener off the list, and gives its name.
    pub(crate) fn remove(&mut self, id: u64) -> Option<String> {
        let at = self.listeners.iter().position(|listener| listener.id == id)?;
        let removed = self.listeners.remove(at);
        let name = removed.name().to_owned();
        self.leaving.push(removed);
        self.leaving.retain(|listener| !listener.has_ended());
        Some(name)
    }

    /// Tells everybody of changes that took so many bytes on the wire, in a store of so many objects.
    pub(crate) fn distribute(&self, events: Vec<Event<T>>, bytes: u64, live: usize) {
        if events.is_empty() {
            return;
        }
        // An update's old state, or a deleted one, is in the store no longer: about as large as what came.
        let bytes = if events.iter().any(|event| !matches!(event, Event::Added { .. })) { bytes } else { 0 };
        let events: Arc<[Event<T>]> = events.into();
        for listener in &self.listeners {
            listener.mailbox.push(&events, bytes, live);
        }
    }

    /// Shows objects of a store of so many to those who are due.
    pub(crate) fn resync<'a>(&self, objects: impl Iterator<Item = &'a Arc<T>>, live: usize) {
        let events: Arc<[Event<T>]> = objects.cloned().map(Event::Resynced).collect();
        for listener in self.listeners.iter().filter(|listener| listener.resync.lock().due) {
            listener.mailbox.push(&events, 0, live);
        }
    }

    /// Those who were due have been shown everything.
    pub(crate) fn resync_done(&self) {
        for listener in &self.listeners {
            listener.resync.lock().due = false;
        }
    }

    /// True inside a callback of one of these listeners.
    pub(crate) fn is_called_from_one(&self) -> bool {
        listener::current().is_some_and(|current| self.all().any(|listener| listener.id == current))
    }

    /// Ends all listeners, also those that come later; what waits is dropped.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        for listener in self.all() {
            listener.mailbox.close(false);
        }
    }

    /// The first list is in the store: whoever was told of it has been told of everything that was there.
    pub(crate) fn synced(&mut self) {
        if !std::mem::replace(&mut self.synced, true) {
            self.listeners.iter().for_each(|listener| listener.mailbox.push_synced());
        }
    }

    /// Every listener, and how it does.
    pub(crate) fn handlers(&self) -> Vec<HandlerHealth> {
        self.listeners.iter().map(|listener| listener.health()).collect()
    }

    /// The names of those whose callback has not returned.
    pub(crate) fn running(&self) -> Vec<String> {
        let running = self.all().filter(|listener| !listener.has_ended());
        running.map(|listener| listener.name().to_owned()).collect()
    }

    /// Those on the list, and those who leave.
    fn all(&self) -> impl Iterator<Item = &Arc<Listener<T>>> {
        self.listeners.iter().chain(&self.leaving)
    }
}
