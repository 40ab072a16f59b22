//! Adds handlers and indexes to an informer, at any time.

use std::any::{Any, TypeId};
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument as _;

use super::{Core, Lifecycle, Shared, SharedInformer};
use crate::health::InformerError;
use crate::object::Object;
use crate::processor::{
    AnyHandler, AsyncCalls, AsyncClosure, AsyncEventHandler, Delivery, Event, EventHandler, EventStream, HandlerHandle,
    Listener,
};
use crate::store::{Index, IndexError, IndexValues, index_function};

/// How often an index is filled while others write, before they have to wait.
const ATTEMPTS: usize = 3;

/// How a handler is registered; see [`SharedInformer::register`].
///
/// ```
/// use kube_informer::Delivery;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::{Event, SharedInformer, source::kube::KubeSource};
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
    /// Registers a handler in whatever form, under whatever conditions.
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

    /// Every event, as a stream.
    #[track_caller]
    pub fn events(&self) -> EventStream<T> {
        self.register().events()
    }

    /// Adds a named index: finds objects by the values that a function gives, one text or any number of them.
    ///
    /// It may be added at any time. The same name with the same function gives the same index.
    ///
    /// # Errors
    ///
    /// [`IndexError::Exists`] if the name is taken by another function.
    pub fn add_index<F, V, M>(&self, name: &str, function: F) -> Result<Index<T>, IndexError>
    where
        F: Fn(&T) -> V + Send + Sync + 'static,
        V: IndexValues<M>,
    {
        self.index_by(name, TypeId::of::<F>(), move |object, add| function(object).each_value(add))
    }

    /// The same with a function that hands over each value by itself, borrowed: nothing is allocated.
    ///
    /// # Errors
    ///
    /// As [`SharedInformer::add_index`].
    pub fn add_index_with<F>(&self, name: &str, function: F) -> Result<Index<T>, IndexError>
    where
        F: Fn(&T, &mut dyn FnMut(&str)) + Send + Sync + 'static,
    {
        self.index_by(name, TypeId::of::<F>(), function)
    }

    fn index_by(
        &self,
        name: &str,
        kind: TypeId,
        function: impl Fn(&T, &mut dyn FnMut(&str)) + Send + Sync + 'static,
    ) -> Result<Index<T>, IndexError> {
        let Core { health, writing, store, .. } = &*self.shared.core;
        let function = index_function(function);
        for attempt in 1.. {
            // It is filled on a copy, with nobody held off, unless others were always quicker.
            let patient = attempt <= ATTEMPTS;
            let held = (!patient).then(|| writing.lock());
            let transaction = held.as_ref().map_or_else(|| writing.lock().writer.begin(), |held| held.writer.begin());
            let Some(filled) = transaction.add_index(name, kind, function.clone())? else { break };
            let mut writing = held.unwrap_or_else(|| writing.lock());
            if writing.writer.commit(filled) {
                let failures = writing.writer.take_failures();
                drop(writing);
                failures.into_iter().for_each(|failure| health.report(&InformerError::from(failure)));
                break;
            }
        }
        store.index(name).ok_or_else(|| IndexError::Exists(name.to_owned()))
    }
}

impl<T: Object> Registration<'_, T> {
    /// The name that logs, messages and metrics use; the place in the program that registers it unless given.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// What happens when changes come faster than the handler takes them.
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// How often it is shown the cache again; that of the informer unless given, zero for never.
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = Some(period);
        self
    }

    /// Calls a closure with every event. It runs on the runtime, and must be brief.
    pub fn on_event<F>(self, handler: F) -> HandlerHandle
    where
        F: FnMut(Event<T>) + Send + 'static,
    {
        self.add(AnyHandler::Sync(Box::new(handler)))
    }

    /// Calls a closure with every event, and waits for what it gives before the next.
    ///
    /// What the future needs of the closure's state it takes along: `move |event| { let to = to.clone(); async move { … } }`.
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
        self.add(AnyHandler::Async(Box::new(AsyncClosure(handler))))
    }

    /// Calls a closure with every event, on a thread where it may block.
    pub fn on_event_blocking<F>(self, handler: F) -> HandlerHandle
    where
        F: FnMut(Event<T>) + Send + 'static,
    {
        self.add(AnyHandler::Blocking(Some(Box::new(handler))))
    }

    /// Calls a handler with every event. It runs on the runtime, and must be brief.
    pub fn handler<H: EventHandler<T>>(self, mut handler: H) -> HandlerHandle {
        self.add(AnyHandler::Sync(Box::new(move |event| handler.on_event(event))))
    }

    /// Calls a handler with every event, and waits for it before the next.
    pub fn async_handler<H: AsyncEventHandler<T>>(self, handler: H) -> HandlerHandle {
        self.add(AnyHandler::Async(Box::new(AsyncCalls(handler))))
    }

    /// Every event, as a stream.
    pub fn events(self) -> EventStream<T> {
        let informer: Arc<dyn Any + Send + Sync> = self.informer.shared.clone();
        self.stream(informer)
    }

    /// The same, but it does not keep the informer running.
    pub(super) fn events_without_informer(self) -> EventStream<T> {
        self.stream(Arc::new(()))
    }

    fn stream(self, keeps: Arc<dyn Any + Send + Sync>) -> EventStream<T> {
        let core = self.informer.shared.core.clone();
        let listener = self.listen();
        listener.starts();
        EventStream::new(listener, core.unlist(), keeps)
    }

    /// From this moment on the listener is told of changes, behind a replay of what is known: both under one lock.
    fn listen(self) -> Arc<Listener<T>> {
        let core = &self.informer.shared.core;
        let resync = self.resync_period.or(core.resync_period).filter(|period| !period.is_zero());
        let mut writing = core.writing.lock();
        let known = core.store.snapshot();
        writing.processor.add(self.name, known, |name| Listener::new(name, self.delivery, resync))
    }

    fn add(self, handler: AnyHandler<T>) -> HandlerHandle {
        let shared = self.informer.shared.clone();
        let Shared { core, cancel, lifecycle, .. } = &*shared;
        let mut lifecycle = lifecycle.lock();
        let listener = self.listen();
        match &mut *lifecycle {
            _ if cancel.is_cancelled() => listener.never_runs(),
            Lifecycle::New { handlers, .. } => {
                handlers.push((listener.clone(), Box::pin(listener.clone().run(handler, core.health.clone()))));
            }
            Lifecycle::Running { tasks, runtime } => {
                while tasks.try_join_next().is_some() {} // Handlers that were removed meanwhile.
                listener.starts();
                let delivery = listener.clone().run(handler, core.health.clone());
                tasks.spawn_on(delivery.instrument(core.span()), runtime);
            }
            Lifecycle::Stopped => listener.never_runs(),
        }
        drop(lifecycle);
        let informer: Arc<dyn Any + Send + Sync> = shared.clone();
        HandlerHandle::new(listener, core.unlist(), Arc::downgrade(&informer))
    }
}

impl<T: Object> Core<T> {
    /// Takes a listener off the list.
    fn unlist(self: &Arc<Self>) -> impl Fn(u64) + Send + Sync + use<T> {
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
}
