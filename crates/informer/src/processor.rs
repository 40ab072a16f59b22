//! Calls handlers with changes. Each handler receives them in order and at its own pace. [`EventHandler`] lists the
//! guarantees.

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

pub use self::event::{BatchReason, Event};
pub use self::filtered::FilteringEventHandler;
pub use self::handle::{HandlerGuard, HandlerHandle, RemoveError, RemoveMode};
pub(crate) use self::handler::{AnyHandler, SharedHandler, Turn};
pub use self::handler::{AsyncEventHandler, EventHandler, EventHandlerFuncs};
pub(crate) use self::listener::{Listener, new_caller};
pub use self::mailbox::Delivery;
pub(crate) use self::mailbox::{EventBatch, drop_in_pieces};
pub use self::stream::EventStream;
pub(crate) use self::stream::Events;
use crate::object::Object;
pub use crate::queue::Deleted;
use crate::store::Snapshot;
use crate::time::after;

/// The shortest resync period.
const SHORTEST_RESYNC: Duration = Duration::from_secs(1);

/// All listeners of one informer.
pub(crate) struct Processor {
    /// Shared with the applier, which waits for the listeners after each batch.
    listeners: Listeners,
    /// Listeners that were removed, of which a call may still run.
    leaving: Vec<Arc<Listener>>,
    /// The time between two checks for due resyncs; `None` without resyncs. It is fixed at the start.
    resync_check: Option<Duration>,
    started: bool,
    /// True once the first list is in the store.
    synced: bool,
    closed: bool,
}

/// The listeners on the list, in the order in which they were added.
pub(crate) type Listeners = Arc<Vec<Arc<Listener>>>;

/// A problem with the resync period that a handler asked for.
#[derive(Debug)]
pub(crate) enum ResyncWarning {
    /// The informer does no resyncs.
    Never { handler: String },
    /// The informer checks less often than that.
    Raised { handler: String, requested: Duration, check: Duration },
}

impl ResyncWarning {
    /// Logs the warning. The caller must not hold a lock: a tracing subscriber is user code.
    pub(crate) fn log(&self) {
        match self {
            Self::Never { handler } => {
                warn!(handler, "the informer does no resyncs; its resync period must be set");
            }
            Self::Raised { handler, requested, check } => {
                warn!(handler, ?requested, ?check, "resync period is raised to what was fixed at the start");
            }
        }
    }
}

impl Processor {
    pub(crate) fn new(resync_check: Option<Duration>) -> Self {
        let resync_check = resync_check.map(|period| period.max(SHORTEST_RESYNC));
        let (listeners, leaving) = (Arc::default(), Vec::new());
        Self { listeners, leaving, resync_check, started: false, synced: false, closed: false }
    }

    /// Fixes the time between resync checks, and returns it.
    pub(crate) fn start(&mut self) -> Option<Duration> {
        self.started = true;
        let now = Instant::now();
        self.listeners.iter().for_each(|listener| self.plan_resync(listener, now));
        self.resync_check
    }

    /// Adds a listener, and makes its name unique. It receives a replay of all known objects first, then every event
    /// that is distributed from now on.
    pub(crate) fn add(
        &mut self,
        name: String,
        delivery: Delivery,
        resync: Option<Duration>,
        known: Snapshot<dyn Object>,
    ) -> (Arc<Listener>, Option<ResyncWarning>) {
        let taken = |name: &str| self.listeners.iter().any(|listener| listener.name() == name);
        let numbered = (2..).map(|number| format!("{name}#{number}"));
        let name = std::iter::once(name.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(name);
        let listener = Arc::new(Listener::new(name, delivery, resync));
        if self.closed {
            listener.mailbox.close(false);
            return (listener, None);
        }
        listener.mailbox.push_replay(known);
        if self.synced {
            listener.mailbox.push_synced();
        }
        let warning = self.negotiate_resync(&listener);
        Arc::make_mut(&mut self.listeners).push(listener.clone());
        (listener, warning)
    }

    /// Shortens the time between checks for a listener that asks for a shorter period. This is possible before the
    /// start only.
    fn negotiate_resync(&mut self, listener: &Listener) -> Option<ResyncWarning> {
        let requested = listener.resync.lock().requested.map(|period| period.max(SHORTEST_RESYNC));
        let handler = || listener.name().to_owned();
        let warning = match (requested, self.resync_check) {
            (Some(_), None) => Some(ResyncWarning::Never { handler: handler() }),
            (Some(requested), Some(check)) if requested < check && !self.started => {
                self.resync_check = Some(requested);
                let now = Instant::now();
                self.listeners.iter().for_each(|listener| self.plan_resync(listener, now));
                None
            }
            (Some(requested), Some(check)) if requested < check => {
                Some(ResyncWarning::Raised { handler: handler(), requested, check })
            }
            _ => None,
        };
        self.plan_resync(listener, Instant::now());
        warning
    }

    fn plan_resync(&self, listener: &Listener, now: Instant) {
        let mut resync = listener.resync.lock();
        let period = |(requested, check): (Duration, Duration)| requested.max(check).max(SHORTEST_RESYNC);
        resync.period = resync.requested.zip(self.resync_check).map(period);
        resync.next = resync.period.map(|period| after(now, period));
    }

    /// Sends `Resynced` to every listener whose resync is due. A listener with a folded mailbox stays due.
    pub(crate) fn resync(&self, known: &Snapshot<dyn Object>) {
        let now = Instant::now();
        for listener in self.listeners.iter() {
            let mut resync = listener.resync.lock();
            if let (Some(next), Some(period)) = (resync.next, resync.period)
                && next <= now
                && listener.mailbox.push_resync(known.clone())
            {
                resync.next = Some(after(now, period));
            }
        }
    }

    /// Removes a listener from the list, and returns its name.
    pub(crate) fn remove(&mut self, id: u64) -> Option<String> {
        let at = self.listeners.iter().position(|listener| listener.id == id)?;
        let removed = Arc::make_mut(&mut self.listeners).remove(at);
        let name = removed.name().to_owned();
        self.leaving.push(removed);
        self.leaving.retain(|listener| !listener.has_ended());
        Some(name)
    }

    /// Puts events into every mailbox. `bytes` estimates the memory of states that only these events keep alive. `live`
    /// is the number of objects in the store.
    pub(crate) fn distribute(&self, events: &EventBatch, reason: BatchReason, bytes: u64, live: usize) {
        // The clock is read once, because that costs as much as the rest of a push.
        let now = Instant::now();
        for listener in self.listeners.iter() {
            listener.mailbox.push(events, reason, bytes, live, now);
        }
    }

    /// Returns the listeners, in the order in which they were added.
    pub(crate) fn listeners(&self) -> Listeners {
        self.listeners.clone()
    }

    /// Returns true inside a callback of one of these listeners.
    pub(crate) fn is_called_from_one(&self) -> bool {
        self.all().any(|listener| listener.is_running_here())
    }

    /// Closes the processor, and returns all listeners for the caller to close. A listener that is added later is
    /// closed at once.
    pub(crate) fn close(&mut self) -> Vec<Arc<Listener>> {
        self.closed = true;
        self.all().cloned().collect()
    }

    /// Marks the first list as applied, and puts the mark into every mailbox.
    pub(crate) fn synced(&mut self) {
        if !std::mem::replace(&mut self.synced, true) {
            self.listeners.iter().for_each(|listener| listener.mailbox.push_synced());
        }
    }

    /// Returns true if there is no listener, and no removed one whose call still runs.
    #[cfg(feature = "kube")]
    pub(crate) fn is_idle(&self) -> bool {
        self.all().all(|listener| listener.has_ended())
    }

    /// Returns the names of the listeners whose callback has not returned.
    pub(crate) fn running(&self) -> Vec<String> {
        let running = self.all().filter(|listener| !listener.has_ended());
        running.map(|listener| listener.name().to_owned()).collect()
    }

    /// Iterates over the listeners on the list, and over the removed ones that have not ended.
    fn all(&self) -> impl Iterator<Item = &Arc<Listener>> {
        self.listeners.iter().chain(&self.leaving)
    }
}
