//! Adds handlers and indexes to an informer, at any time.

use std::any::{Any, TypeId};
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument as _;

use super::{Core, InformerShared, Lifecycle, SharedInformer};
use crate::health::InformerError;
use crate::object::Object;
use crate::processor::{
    AnyHandler, AsyncEventHandler, BatchReason, Delivery, Event, EventHandler, EventStream, Events, HandlerHandle,
    Listener, ResyncWarning,
};
use crate::store::{Index, IndexError, IndexFunction, IndexValues, function_identity, index_function};

/// How often an index is filled while commits continue, before commits have to wait.
const ATTEMPTS: usize = 3;

/// Configures a handler, and registers it; see [`SharedInformer::register`].
///
/// ```
/// use kube_informer::Delivery;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::{Event, SharedInformer};
/// # use kube_informer::parts::KubeSource;
/// # doc_server::with(async |server| {
/// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
/// let mut count = 0;
/// let handle = maps.register().name("audit").delivery(Delivery::Latest).on_event_async(move |event| {
///     count += 1; // State is kept from call to call.
///     async move { println!("{count}: {event:?}") }
/// });
/// assert_eq!(handle.name(), "audit");
/// # Ok(()) });
/// ```
#[derive(Debug)]
#[must_use = "it does nothing until it is given a handler"]
pub struct Registration<'i, T: Object> {
    informer: &'i SharedInformer<T>,
    name: String,
    delivery: Delivery,
    resync_period: Option<Duration>,
}

impl<T: Object> SharedInformer<T> {
    /// Returns a builder that registers a handler of any form.
    #[track_caller]
    pub fn register(&self) -> Registration<'_, T> {
        let place = Location::caller();
        let name = format!("{}:{}", place.file(), place.line());
        Registration { informer: self, name, delivery: Delivery::default(), resync_period: None }
    }

    /// Calls a closure with every event. It runs on the runtime, and must be brief.
    #[track_caller]
    pub fn on_event<F>(&self, handler: F) -> HandlerHandle
    where
        F: FnMut(Event<T>) + Send + 'static,
    {
        self.register().on_event(handler)
    }

    /// Returns all events as a stream.
    #[track_caller]
    pub fn events(&self) -> EventStream<T> {
        self.register().events()
    }

    /// Adds a named index, which finds objects by the values that a function returns: one string, or any number of
    /// strings.
    ///
    /// An index can be added at any time. The same name with the same function returns the same index, if the function
    /// captures nothing. Closures with captures cannot be compared.
    ///
    /// # Errors
    ///
    /// [`IndexError::Exists`] if the name is used by another function.
    pub fn add_index<F, V, M>(&self, name: &str, function: F) -> Result<Index<T>, IndexError>
    where
        F: Fn(&T) -> V + Send + Sync + 'static,
        V: IndexValues<M>,
    {
        let function = index_function(move |object: &T, add: &mut dyn FnMut(&str)| function(object).each_value(add));
        self.shared.core.add_index(name, function_identity::<F>(), function)?;
        self.index(name)
    }

    /// Adds an index with a function that passes borrowed strings to its second argument, so that values need no
    /// allocation.
    ///
    /// # Errors
    ///
    /// The same as [`SharedInformer::add_index`].
    pub fn add_index_with<F>(&self, name: &str, function: F) -> Result<Index<T>, IndexError>
    where
        F: Fn(&T, &mut dyn FnMut(&str)) + Send + Sync + 'static,
    {
        self.shared.core.add_index(name, function_identity::<F>(), index_function(function))?;
        self.index(name)
    }

    fn index(&self, name: &str) -> Result<Index<T>, IndexError> {
        self.store().index(name).ok_or_else(|| IndexError::Exists(name.to_owned()))
    }
}

impl<T: Object> Registration<'_, T> {
    /// Sets the name in logs, messages and metrics. The default is the line of code that registers the handler.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets what happens if changes arrive faster than the handler takes them.
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// Sets how often the handler receives a resync. The default is the period of the informer; zero means never.
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = Some(period);
        self
    }

    /// Calls a closure with every event. It runs on the runtime, and must be brief.
    pub fn on_event<F>(self, handler: F) -> HandlerHandle
    where
        F: FnMut(Event<T>) + Send + 'static,
    {
        self.add(AnyHandler::sync(handler))
    }

    /// Calls a closure with every event, and awaits its future before the next event.
    ///
    /// The future owns the state that it needs: `move |event| { let to = to.clone(); async move { … } }`.
    /// An async closure that changes what it has captured does not compile, since its futures would outlive its calls:
    ///
    /// ```compile_fail
    /// # fn register<T: kube_informer::Object>(informer: &kube_informer::SharedInformer<T>) {
    /// let mut count = 0;
    /// informer.register().on_event_async(async move |_event| count += 1);
    /// # }
    /// ```
    pub fn on_event_async<F, R>(self, handler: F) -> HandlerHandle
    where
        F: FnMut(Event<T>) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.add(AnyHandler::async_closure(handler))
    }

    /// Calls a closure with every event, on a thread where it may block.
    pub fn on_event_blocking<F>(self, handler: F) -> HandlerHandle
    where
        F: FnMut(Event<T>) + Send + 'static,
    {
        self.add(AnyHandler::blocking(handler))
    }

    /// Calls a closure with several events at a time, and with the reason why they are one batch. It runs on the
    /// runtime, and must be brief.
    ///
    /// A list is one batch, and so is a resync: a closure that computes something from all objects does that once per
    /// list, and not once per object. A live batch has all events that wait at that moment; no event waits for another.
    /// A batch is never empty. Its events have the order and the other [guarantees](EventHandler) of single events.
    ///
    /// A mailbox that [folds](Delivery) joins a list and the changes after it to a live batch. With
    /// [`QueueOrder::PerObject`](crate::QueueOrder::PerObject) a list arrives in pieces, which are live batches.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformer;
    /// # use kube_informer::parts::KubeSource;
    /// # doc_server::with(async |server| {
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// let store = maps.store();
    /// maps.register().name("census").on_batch(move |events, reason| {
    ///     println!("{} changes ({reason:?}): {} config maps", events.len(), store.len());
    /// });
    /// # Ok(()) });
    /// ```
    pub fn on_batch<F>(self, handler: F) -> HandlerHandle
    where
        F: FnMut(&[Event<T>], BatchReason) + Send + 'static,
    {
        self.add(AnyHandler::batch(handler))
    }

    /// Calls a handler with every event. It runs on the runtime, and must be brief.
    pub fn handler<H: EventHandler<T>>(self, mut handler: H) -> HandlerHandle {
        self.add(AnyHandler::sync(move |event| handler.on_event(event)))
    }

    /// Calls a handler with every event, and awaits its future before the next event.
    pub fn async_handler<H: AsyncEventHandler<T>>(self, handler: H) -> HandlerHandle {
        self.add(AnyHandler::async_calls(handler))
    }

    /// Returns all events as a stream.
    pub fn events(self) -> EventStream<T> {
        let Self { informer, name, delivery, resync_period } = self;
        let events = informer.shared.core.events(name, delivery, resync_period);
        let shared: Arc<InformerShared> = informer.shared.0.clone();
        EventStream::new(events, shared)
    }

    /// Returns a function that registers a handler like this, with another name.
    pub(super) fn detached(self) -> impl FnOnce(&str, AnyHandler) -> HandlerHandle + Send + use<T> {
        let Self { informer, name: _, delivery, resync_period } = self;
        let informer = informer.clone();
        move |name, handler| informer.shared.add_handler(name.to_owned(), delivery, resync_period, handler)
    }

    fn add(self, handler: AnyHandler) -> HandlerHandle {
        let Self { informer, name, delivery, resync_period } = self;
        informer.shared.add_handler(name, delivery, resync_period, handler)
    }
}

impl<'i, T: Object> From<&'i SharedInformer<T>> for Registration<'i, T> {
    #[track_caller]
    fn from(informer: &'i SharedInformer<T>) -> Self {
        informer.register()
    }
}

impl InformerShared {
    fn add_handler(
        self: &Arc<Self>,
        name: String,
        delivery: Delivery,
        resync_period: Option<Duration>,
        handler: AnyHandler,
    ) -> HandlerHandle {
        let Self { core, lifecycle, given_up, .. } = &**self;
        let mut lifecycle = lifecycle.lock();
        let (listener, warning) = core.listen(name, delivery, resync_period);
        let delivery = listener.clone().run(handler, core.health.clone(), given_up.clone());
        match &mut *lifecycle {
            _ if self.is_stopped() => listener.never_runs(),
            Lifecycle::New { handlers, .. } => {
                handlers.push((listener.clone(), Box::pin(delivery)));
            }
            Lifecycle::Running { tasks, runtime } => {
                while tasks.try_join_next().is_some() {} // Joins the tasks of handlers that were removed meanwhile.
                listener.starts();
                tasks.spawn_on(delivery.instrument(core.span()), runtime);
            }
            Lifecycle::Stopped => listener.never_runs(),
        }
        drop(lifecycle);
        if let Some(warning) = warning {
            warning.log();
        }
        let informer: Arc<dyn Any + Send + Sync> = self.clone();
        HandlerHandle::new(listener, self.unlist(), Arc::downgrade(&informer))
    }

    /// Returns a function that removes a listener. A listener that waits for the start is dropped.
    fn unlist(self: &Arc<Self>) -> impl Fn(u64) + Send + Sync + use<> {
        let (shared, unlist) = (Arc::downgrade(self), self.core.unlist());
        move |id| {
            unlist(id);
            let Some(shared) = shared.upgrade() else { return };
            let waiter = match &mut *shared.lifecycle.lock() {
                Lifecycle::New { handlers, .. } => {
                    let at = handlers.iter().position(|(listener, _)| listener.id == id);
                    at.map(|at| handlers.remove(at))
                }
                _ => None,
            };
            drop(waiter); // Outside the lock: a handler is user code.
        }
    }
}

impl Core {
    /// Adds a listener. Under one lock it receives a snapshot of the cache, and from then on every change.
    fn listen(
        &self,
        name: String,
        delivery: Delivery,
        resync_period: Option<Duration>,
    ) -> (Arc<Listener>, Option<ResyncWarning>) {
        let resync = resync_period.or(self.resync_period).filter(|period| !period.is_zero());
        let mut state = self.writing.lock();
        let known = self.store.snapshot();
        state.processor.add(name, delivery, resync, known)
    }

    /// Returns every event as a stream that does not keep the informer running.
    pub(super) fn events(
        self: &Arc<Self>,
        name: String,
        delivery: Delivery,
        resync_period: Option<Duration>,
    ) -> Events {
        let (listener, warning) = self.listen(name, delivery, resync_period);
        if let Some(warning) = warning {
            warning.log();
        }
        listener.starts();
        Events::new(listener, self.unlist())
    }

    /// Returns a function that removes a listener from the list.
    fn unlist(self: &Arc<Self>) -> impl Fn(u64) + Send + Sync + use<> {
        let core = Arc::downgrade(self);
        move |id| {
            if let Some(core) = core.upgrade() {
                let removed = core.writing.lock().processor.remove(id);
                if let Some((metrics, name)) = core.health.metrics().zip(removed) {
                    metrics.forget_handler(&name);
                }
            }
        }
    }

    /// Adds an index, unless the same one exists already.
    fn add_index(&self, name: &str, identity: Option<TypeId>, function: IndexFunction) -> Result<(), IndexError> {
        for attempt in 1.. {
            // The index is filled on a copy while commits continue, and no lock is held. If commits always overtake it,
            // they are paused.
            let _paused = (attempt > ATTEMPTS).then(|| self.writing.pause());
            let transaction = self.writing.lock().writer.begin();
            let Some(filled) = transaction.add_index(name, identity, function.clone())? else { break };
            let committed = self.writing.lock().writer.commit(filled);
            if let Ok((replaced, failures)) = committed {
                drop(replaced);
                failures.into_iter().for_each(|failure| self.health.report(&InformerError::from(failure)));
                break;
            }
        }
        Ok(())
    }
}
