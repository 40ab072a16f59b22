//! Handlers, the tasks that call them, and the handles to both.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::mailbox::{Delivery, Mailbox, Parcel};
use super::{Deleted, Event};
use crate::health::{HealthBoard, InformerError};
use crate::object::Object;

tokio::task_local! {
    /// The handler whose callback is running, so that it cannot wait for itself.
    static CURRENT: u64;
}

/// Told of changes by callbacks. Each may be left out.
///
/// Calls to one handler never overlap, and come in order. They run on the runtime and must be brief.
pub trait EventHandler<T>: Send + 'static {
    /// An object appeared. `initial`: it was there already when the informer, or this handler, started.
    fn on_add(&mut self, object: Arc<T>, initial: bool) {
        let _ = (object, initial);
    }

    /// An object changed.
    fn on_update(&mut self, old: Arc<T>, new: Arc<T>) {
        let _ = (old, new);
    }

    /// An object is gone.
    fn on_delete(&mut self, gone: Deleted<T>) {
        let _ = gone;
    }

    /// The cache is shown again. Taken for an update unless said otherwise, as in client-go.
    fn on_resync(&mut self, object: Arc<T>) {
        self.on_update(object.clone(), object);
    }

    /// All of the above: calls one of them.
    fn on_event(&mut self, event: Event<T>) {
        match event {
            Event::Added { object, initial } => self.on_add(object, initial),
            Event::Updated { old, new } => self.on_update(old, new),
            Event::Resynced(object) => self.on_resync(object),
            Event::Deleted(gone) => self.on_delete(gone),
        }
    }
}

/// A handler in whatever form it came.
pub(crate) enum AnyHandler<T> {
    Sync(Box<dyn FnMut(Event<T>) + Send>),
    Async(Box<dyn FnMut(Event<T>) -> BoxFuture<'static, ()> + Send>),
}

impl<T: Object> AnyHandler<T> {
    /// Calls it with one event. A panic is caught and handed back as text.
    async fn call(&mut self, event: Event<T>) -> Result<(), String> {
        let outcome = match self {
            Self::Sync(handler) => catch_unwind(AssertUnwindSafe(|| handler(event))),
            Self::Async(handler) => match catch_unwind(AssertUnwindSafe(|| handler(event))) {
                Ok(future) => AssertUnwindSafe(future).catch_unwind().await,
                Err(panic) => Err(panic),
            },
        };
        outcome.map_err(|panic| crate::panic_text(&*panic))
    }
}

/// One registered handler: what waits for it and how far it has come.
pub(crate) struct Listener<T> {
    pub(crate) id: u64,
    pub(crate) mailbox: Mailbox<T>,
    status: Arc<ListenerStatus>,
}

/// The part of a listener that a handle reads.
#[derive(Debug)]
struct ListenerStatus {
    name: String,
    /// Events of the parcel in hand that are still to be delivered.
    in_hand: AtomicUsize,
    phase: watch::Sender<ListenerPhase>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ListenerPhase {
    Starting,
    Synced,
    /// Its task has ended, or never started and never will.
    Ended,
}

impl<T: Object> Listener<T> {
    pub(crate) fn new(id: u64, name: String, delivery: Delivery) -> Self {
        let phase = watch::Sender::new(ListenerPhase::Starting);
        let status = Arc::new(ListenerStatus { name, in_hand: AtomicUsize::new(0), phase });
        Self { id, mailbox: Mailbox::new(delivery), status }
    }

    pub(crate) fn wants_resync(&self) -> bool {
        false
    }

    /// It was added to an informer that has ended.
    pub(crate) fn never_runs(&self) {
        self.status.phase.send_replace(ListenerPhase::Ended);
    }

    /// Delivers what comes, one at a time, until the mailbox is closed and empty.
    pub(crate) async fn run(self: Arc<Self>, mut handler: AnyHandler<T>, health: HealthBoard) {
        // Also if the task is aborted: whoever waits for its end must not wait for ever.
        let _ended = EndsOnDrop(self.status.clone());
        CURRENT.scope(self.id, self.deliver_all(&mut handler, &health)).await;
    }

    async fn deliver_all(&self, handler: &mut AnyHandler<T>, health: &HealthBoard) {
        while let Some(parcel) = self.mailbox.next().await {
            match parcel {
                Parcel::Replay(known) => {
                    self.status.in_hand.store(known.len(), Ordering::Relaxed);
                    for object in known.iter() {
                        let event = Event::Added { object: object.clone(), initial: true };
                        self.deliver(handler, event, health).await;
                    }
                }
                Parcel::Events(events) => {
                    self.status.in_hand.store(events.len(), Ordering::Relaxed);
                    for event in events.iter() {
                        self.deliver(handler, event.clone(), health).await;
                    }
                }
                Parcel::Synced => {
                    self.status.phase.send_if_modified(|phase| {
                        std::mem::replace(phase, ListenerPhase::Synced) != ListenerPhase::Synced
                    });
                }
            }
        }
    }

    async fn deliver(&self, handler: &mut AnyHandler<T>, event: Event<T>, health: &HealthBoard) {
        // What was discarded while a parcel was in hand is not delivered any more.
        if self.mailbox.is_discarded() {
            return;
        }
        if let Err(message) = handler.call(event).await {
            health.report(&InformerError::HandlerPanicked { handler: self.status.name.clone(), message });
        }
        self.status.in_hand.fetch_sub(1, Ordering::Relaxed);
        // A handler with much to do leaves room for others.
        tokio::task::coop::consume_budget().await;
    }
}

struct EndsOnDrop(Arc<ListenerStatus>);

impl Drop for EndsOnDrop {
    fn drop(&mut self) {
        self.0.phase.send_replace(ListenerPhase::Ended);
    }
}

/// What becomes of events that wait when a handler is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Removal {
    /// They are still delivered.
    Drain,
    /// They are thrown away.
    Discard,
}

/// Why a handler could not be removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// A handler cannot wait for its own callback to end.
    #[error("handler {0:?} cannot be removed from inside its own callback; do it from another task")]
    FromItself(String),
}

/// A registered handler. Dropping it leaves the handler in place.
pub struct HandlerHandle {
    id: u64,
    status: Arc<ListenerStatus>,
    control: Arc<dyn Control>,
}

/// What a handle does with its listener and its informer, whatever their type.
trait Control: Send + Sync {
    fn close(&self, removal: Removal);
    fn backlog(&self) -> usize;
    fn folds(&self) -> u64;
}

struct ListenerControl<T, F> {
    listener: Arc<Listener<T>>,
    unlist: F,
}

impl<T: Object, F: Fn(u64) + Send + Sync> Control for ListenerControl<T, F> {
    fn close(&self, removal: Removal) {
        (self.unlist)(self.listener.id);
        self.listener.mailbox.close(removal == Removal::Drain);
    }

    fn backlog(&self) -> usize {
        self.listener.mailbox.len()
    }

    fn folds(&self) -> u64 {
        self.listener.mailbox.folds()
    }
}

impl HandlerHandle {
    /// A handle to a listener; `unlist` takes it off the informer's list.
    pub(crate) fn new<T: Object>(listener: Arc<Listener<T>>, unlist: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self {
            id: listener.id,
            status: listener.status.clone(),
            control: Arc::new(ListenerControl { listener, unlist }),
        }
    }

    /// The name it was registered under.
    pub fn name(&self) -> &str {
        &self.status.name
    }

    /// True once everything that was there at the start has been delivered. It stays true.
    pub fn is_synced(&self) -> bool {
        *self.status.phase.borrow() == ListenerPhase::Synced
    }

    /// Waits until everything that was there at the start has been delivered: true then, false if the handler ended
    /// before.
    ///
    /// # Cancel safety
    ///
    /// Waiting again is fine.
    pub async fn synced(&self) -> bool {
        let mut phase = self.status.phase.subscribe();
        let reached = phase.wait_for(|phase| *phase >= ListenerPhase::Synced).await;
        reached.is_ok_and(|phase| *phase == ListenerPhase::Synced)
    }

    /// How many events wait to be delivered.
    pub fn backlog(&self) -> usize {
        self.control.backlog() + self.status.in_hand.load(Ordering::Relaxed)
    }

    /// How often the handler was so slow that only the latest of each object was kept for it.
    pub fn folds(&self) -> u64 {
        self.control.folds()
    }

    /// Takes the handler away, and waits until its last call has returned.
    ///
    /// # Errors
    ///
    /// [`RemoveError::FromItself`] inside the handler's own callback: it would wait for itself.
    pub async fn remove(self, removal: Removal) -> Result<(), RemoveError> {
        if CURRENT.try_with(|current| *current == self.id).unwrap_or(false) {
            return Err(RemoveError::FromItself(self.status.name.clone()));
        }
        self.control.close(removal);
        let mut phase = self.status.phase.subscribe();
        // An error means that all is gone, which is as good as ended.
        let _ = phase.wait_for(|phase| *phase == ListenerPhase::Ended).await;
        Ok(())
    }
}

impl fmt::Debug for HandlerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerHandle")
            .field("name", &self.status.name)
            .field("backlog", &self.backlog())
            .finish_non_exhaustive()
    }
}
