//! Handlers: the callbacks that programs write to receive changes, in all their forms.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::listener::ListenerEndGuard;
use super::{BatchReason, Event};
use crate::object::Object;
use crate::queue::Deleted;

/// Receives changes through callbacks. Each callback has a default, so write only those that you need.
///
/// client-go's `ResourceEventHandler`. The difference: a resync has a callback of its own.
///
/// # Guarantees for handlers
///
/// They hold for every handler: closures, traits, async handlers and streams.
///
/// **Order.** A handler receives the changes of one object in the order in which they happened: an addition, then
/// updates, of which each begins with the state that ended the one before, then a deletion, and perhaps an addition
/// again. Changes of different objects come in the order of the watch. Two handlers are independent: one may be far
/// ahead of the other.
///
/// **Store first.** A change is in the store before a handler receives it. A handler that reads the store may find a
/// newer state there.
///
/// **Replay.** A handler can be added at any time. It first receives every object in the cache as an addition with
/// `initial` set, and then every later change. It misses nothing and receives nothing twice, and nothing waits for it.
/// [`HandlerHandle::synced`](crate::HandlerHandle::synced) waits until all those objects are delivered.
///
/// **Deletions.** A handler that received an object also receives its deletion, even if no watch reported it. A relist
/// then finds that the object is missing, and the handler receives the last known state ([`Deleted::Unknown`]). If an
/// object was deleted and created again between two watches, the handler receives an update whose uids differ.
///
/// **No event.** An event with a state that the cache has already, and the deletion of an unknown object, are not
/// delivered. An object that cannot be decoded is an error (see [`Health`](crate::Health)), not an event.
///
/// **One call at a time.** Calls of one handler never overlap. Closures and [`EventHandler`]s run on the runtime and
/// must be brief. Handlers that wait are async. Handlers that block run on a thread of their own
/// ([`Registration::on_event_blocking`](crate::Registration::on_event_blocking)).
///
/// **Fast handlers.** A handler that keeps up receives every event, however fast events come: before it applies the
/// next batch of changes, the informer waits until its handlers have taken their events. It waits at most 5 ms for a
/// handler that is still busy, and does not wait for one that awaits or blocks.
///
/// **Slow handlers.** The events that wait for a handler are bounded. Above the bound ([`Delivery`](crate::Delivery))
/// its mailbox *folds*: for each object it keeps only the difference between the state that was delivered last and the
/// current one. An addition and an update become one addition. An addition and a deletion cancel out. Several updates
/// become one, which begins with the state that was delivered last. A deletion followed by an addition stays two
/// events. So a folded history is shorter and still correct. [`HandlerHandle::folds`](crate::HandlerHandle::folds)
/// counts the folds. Other handlers and the cache do not wait.
///
/// **Resync.** A handler that asked for resyncs receives every cached object at each period, as [`Event::Resynced`], in
/// line with the changes. A resync never hides a change and sends no request to the API server.
///
/// **Panics.** A panic in a handler is caught, reported and counted, and the event counts as delivered.
///
/// **Removal.** Dropping a [`HandlerHandle`](crate::HandlerHandle) does not remove the handler.
/// [`HandlerHandle::remove`](crate::HandlerHandle::remove) removes it and waits until its last call has returned.
/// Inside the handler's own callback it returns an error; it does not deadlock.
///
/// **Stop.** When the informer stops, waiting events are dropped, and `stop` waits for the calls in progress.
pub trait EventHandler<T>: Send + 'static {
    /// Handles a new object. `initial` is true if the object existed when the informer, or this handler, started.
    fn on_add(&mut self, object: Arc<T>, initial: bool) {
        let _ = (object, initial);
    }

    /// Handles a changed object. If the uids differ, it was deleted and created again in between.
    fn on_update(&mut self, old: Arc<T>, new: Arc<T>) {
        let _ = (old, new);
    }

    /// Handles a deleted object.
    fn on_delete(&mut self, gone: Deleted<T>) {
        let _ = gone;
    }

    /// Handles a resync. The default calls `on_update`, as in client-go.
    fn on_resync(&mut self, object: Arc<T>) {
        self.on_update(object.clone(), object);
    }

    /// Handles any event. The default calls one of the callbacks above.
    fn on_event(&mut self, event: Event<T>) {
        match event {
            Event::Added { object, initial } => self.on_add(object, initial),
            Event::Updated { old, new } => self.on_update(old, new),
            Event::Resynced(object) => self.on_resync(object),
            Event::Deleted(gone) => self.on_delete(gone),
        }
    }
}

/// An [`EventHandler`] with async callbacks. The next callback starts after the one before has ended.
pub trait AsyncEventHandler<T: Object>: Send + 'static {
    /// Handles a new object. `initial` is true if the object existed when the informer, or this handler, started.
    fn on_add(&mut self, object: Arc<T>, initial: bool) -> impl Future<Output = ()> + Send {
        let _ = (object, initial);
        async {}
    }

    /// Handles a changed object. If the uids differ, it was deleted and created again in between.
    fn on_update(&mut self, old: Arc<T>, new: Arc<T>) -> impl Future<Output = ()> + Send {
        let _ = (old, new);
        async {}
    }

    /// Handles a deleted object.
    fn on_delete(&mut self, gone: Deleted<T>) -> impl Future<Output = ()> + Send {
        let _ = gone;
        async {}
    }

    /// Handles a resync. The default calls `on_update`, as in client-go.
    fn on_resync(&mut self, object: Arc<T>) -> impl Future<Output = ()> + Send {
        self.on_update(object.clone(), object)
    }
}

/// An [`EventHandler`] made of closures, each of them optional.
pub struct EventHandlerFuncs<T> {
    add: Option<BoxedCallback<(Arc<T>, bool)>>,
    update: Option<BoxedCallback<(Arc<T>, Arc<T>)>>,
    delete: Option<BoxedCallback<Deleted<T>>>,
    resync: Option<BoxedCallback<Arc<T>>>,
}

type BoxedCallback<A> = Box<dyn FnMut(A) + Send>;

impl<T: Object> EventHandlerFuncs<T> {
    /// Makes a handler without callbacks. It ignores every event.
    pub fn new() -> Self {
        Self { add: None, update: None, delete: None, resync: None }
    }

    /// Sets the callback for new objects. Its second argument is true if the object existed from the start.
    #[must_use]
    pub fn on_add(mut self, mut f: impl FnMut(Arc<T>, bool) + Send + 'static) -> Self {
        self.add = Some(Box::new(move |(object, initial)| f(object, initial)));
        self
    }

    /// Sets the callback for changed objects, with their old and their new state.
    #[must_use]
    pub fn on_update(mut self, mut f: impl FnMut(Arc<T>, Arc<T>) + Send + 'static) -> Self {
        self.update = Some(Box::new(move |(old, new)| f(old, new)));
        self
    }

    /// Sets the callback for deleted objects.
    #[must_use]
    pub fn on_delete(mut self, f: impl FnMut(Deleted<T>) + Send + 'static) -> Self {
        self.delete = Some(Box::new(f));
        self
    }

    /// Sets the callback for resyncs. Without it, the callback for updates is called.
    #[must_use]
    pub fn on_resync(mut self, f: impl FnMut(Arc<T>) + Send + 'static) -> Self {
        self.resync = Some(Box::new(f));
        self
    }
}

impl<T: Object> Default for EventHandlerFuncs<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Object> EventHandler<T> for EventHandlerFuncs<T> {
    fn on_add(&mut self, object: Arc<T>, initial: bool) {
        if let Some(add) = &mut self.add {
            add((object, initial));
        }
    }

    fn on_update(&mut self, old: Arc<T>, new: Arc<T>) {
        if let Some(update) = &mut self.update {
            update((old, new));
        }
    }

    fn on_delete(&mut self, gone: Deleted<T>) {
        if let Some(delete) = &mut self.delete {
            delete(gone);
        }
    }

    fn on_resync(&mut self, object: Arc<T>) {
        match &mut self.resync {
            Some(resync) => resync(object),
            None => self.on_update(object.clone(), object),
        }
    }
}

/// A handler of any form, without the type of its objects.
pub(crate) enum AnyHandler {
    Sync(BoxedHandler),
    Async(Box<dyn DynAsyncHandler>),
    /// A handler that is called on a thread where it may block; `None` while it is on that thread.
    Blocking(Option<BoxedHandler>),
    /// A handler that receives several events in one call.
    Batch(BoxedBatchHandler),
    /// A handler of batches that shares its state with handlers of other informers.
    Shared(Box<dyn SharedHandler>),
}

pub(crate) type BoxedHandler = Box<dyn FnMut(Event<dyn Object>) + Send>;
pub(crate) type BoxedBatchHandler = Box<dyn FnMut(Vec<Event<dyn Object>>, BatchReason) + Send>;

/// An [`AsyncEventHandler`] or an async closure, behind one pointer.
pub(crate) trait DynAsyncHandler: Send {
    fn call(&mut self, event: Event<dyn Object>) -> BoxFuture<'_, ()>;
}

/// A handler of batches that shares its state with handlers of other informers. Only one of them is called at a time.
pub(crate) trait SharedHandler: Send {
    /// Returns a number that all handlers of the same state have, and no other.
    fn group(&self) -> u64;

    /// Waits until no handler of the same state is called. Those that wait take turns in the order of their waits.
    fn turn(&mut self) -> BoxFuture<'_, Box<dyn Turn + '_>>;
}

/// The turn of a handler of batches.
pub(crate) trait Turn: Send {
    fn deliver(&mut self, events: Vec<Event<dyn Object>>, reason: BatchReason);

    /// Called once, after all objects of the initial state are delivered.
    fn synced(&mut self) {}
}

impl Turn for BoxedBatchHandler {
    fn deliver(&mut self, events: Vec<Event<dyn Object>>, reason: BatchReason) {
        self(events, reason);
    }
}

impl AnyHandler {
    /// Returns true if the handler receives batches.
    pub(super) fn takes_batches(&self) -> bool {
        matches!(self, Self::Batch(_) | Self::Shared(_))
    }

    /// Returns the number of the handlers that share a state with this one.
    pub(super) fn group(&self) -> Option<u64> {
        match self {
            Self::Shared(handler) => Some(handler.group()),
            _ => None,
        }
    }

    pub(crate) fn sync<T: Object>(mut handler: impl FnMut(Event<T>) + Send + 'static) -> Self {
        Self::Sync(Box::new(move |event| handler(event.typed())))
    }

    pub(crate) fn blocking<T: Object>(mut handler: impl FnMut(Event<T>) + Send + 'static) -> Self {
        Self::Blocking(Some(Box::new(move |event| handler(event.typed()))))
    }

    pub(crate) fn batch<T: Object>(mut handler: impl FnMut(&[Event<T>], BatchReason) + Send + 'static) -> Self {
        Self::Batch(Box::new(move |events, reason| {
            let events: Vec<Event<T>> = events.into_iter().map(Event::typed).collect();
            handler(&events, reason);
        }))
    }

    pub(crate) fn async_closure<T, F, R>(handler: F) -> Self
    where
        T: Object,
        F: FnMut(Event<T>) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        Self::Async(Box::new(AsyncClosure(handler, PhantomData)))
    }

    pub(crate) fn async_calls<T: Object>(handler: impl AsyncEventHandler<T>) -> Self {
        Self::Async(Box::new(AsyncCalls(handler, PhantomData)))
    }
}

/// The callbacks of an [`AsyncEventHandler`].
struct AsyncCalls<T, H>(H, PhantomData<fn(T)>);

impl<T: Object, H: AsyncEventHandler<T>> DynAsyncHandler for AsyncCalls<T, H> {
    fn call(&mut self, event: Event<dyn Object>) -> BoxFuture<'_, ()> {
        match event.typed() {
            Event::Added { object, initial } => self.0.on_add(object, initial).boxed(),
            Event::Updated { old, new } => self.0.on_update(old, new).boxed(),
            Event::Resynced(object) => self.0.on_resync(object).boxed(),
            Event::Deleted(gone) => self.0.on_delete(gone).boxed(),
        }
    }
}

/// A closure that returns a future for each event.
struct AsyncClosure<T, F>(F, PhantomData<fn(T)>);

impl<T, F, R> DynAsyncHandler for AsyncClosure<T, F>
where
    T: Object,
    F: FnMut(Event<T>) -> R + Send,
    R: Future<Output = ()> + Send + 'static,
{
    fn call(&mut self, event: Event<dyn Object>) -> BoxFuture<'_, ()> {
        (self.0)(event.typed()).boxed()
    }
}

impl AnyHandler {
    /// Calls the handler with one event. Catches a panic and returns its message as the error.
    pub(super) async fn call(&mut self, event: Event<dyn Object>, ended: &Arc<ListenerEndGuard>) -> Result<(), String> {
        match self {
            Self::Sync(handler) => call_caught(handler, event),
            Self::Batch(handler) => call_batch_caught(handler, vec![event], BatchReason::Live),
            Self::Shared(handler) => call_batch_caught(&mut *handler.turn().await, vec![event], BatchReason::Live),
            Self::Async(handler) => match catch_unwind(AssertUnwindSafe(|| handler.call(event))) {
                Ok(future) => {
                    AssertUnwindSafe(future).catch_unwind().await.map_err(|panic| crate::panic_message(&*panic))
                }
                Err(panic) => Err(crate::panic_message(&*panic)),
            },
            Self::Blocking(slot) => {
                let Some(mut handler) = slot.take() else { return Err("handler is gone".to_owned()) };
                let (current, ended) = (super::listener::current(), ended.clone());
                let call = move || {
                    let _ended = ended; // Dropped when the call returns, even if the task that waits is gone.
                    let outcome = super::listener::within(current, || call_caught(&mut handler, event));
                    (handler, outcome)
                };
                let (handler, outcome) = tokio::task::spawn_blocking(call).await.map_err(|error| error.to_string())?;
                *slot = Some(handler);
                outcome
            }
        }
    }
}

/// Calls a handler that does not wait. Catches a panic and returns its message as the error.
pub(super) fn call_caught(handler: &mut BoxedHandler, event: Event<dyn Object>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| handler(event))).map_err(|panic| crate::panic_message(&*panic))
}

/// Calls a handler of batches, as [`call_caught`] does.
pub(super) fn call_batch_caught(
    turn: &mut dyn Turn,
    events: Vec<Event<dyn Object>>,
    reason: BatchReason,
) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| turn.deliver(events, reason))).map_err(|panic| crate::panic_message(&*panic))
}

/// Notifies a handler that the initial state is delivered, as [`call_caught`] does.
pub(super) fn call_synced_caught(turn: &mut dyn Turn) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| turn.synced())).map_err(|panic| crate::panic_message(&*panic))
}

impl<T> fmt::Debug for EventHandlerFuncs<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventHandlerFuncs")
    }
}
