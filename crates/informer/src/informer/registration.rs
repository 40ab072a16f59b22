//! Adds handlers and indexes to an informer, at any time.

use std::any::{Any, TypeId};
use std::future::Future;
use std::sync::Arc;

use tracing::{Instrument as _, info_span};

use super::{Core, Lifecycle, Shared, SharedInformer, short_type_name};
use crate::health::InformerError;
use crate::object::{KeyRef, Object};
use crate::processor::{
    AnyHandler, AsyncCalls, AsyncClosure, AsyncEventHandler, Event, EventHandler, EventStream, HandlerHandle,
    HandlerOptions, Listener,
};
use crate::store::{Index, IndexError, IndexValues, index_function};

/// Adds one handler to an informer with options; see [`SharedInformer::with`].
#[derive(Debug)]
pub struct Registration<'i, T: Object> {
    informer: &'i SharedInformer<T>,
    options: HandlerOptions,
}

impl<T: Object> SharedInformer<T> {
    /// Adds the next handler with options:
    ///
    /// ```no_run
    /// # use kube_informer::{HandlerOptions, SharedInformer};
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use std::time::Duration;
    /// # fn example(pods: SharedInformer<Pod>) {
    /// let options = HandlerOptions::new().name("audit").resync_period(Duration::from_secs(600));
    /// pods.with(options).on_event(|event| println!("{event:?}"));
    /// # }
    /// ```
    pub fn with(&self, options: HandlerOptions) -> Registration<'_, T> {
        Registration { informer: self, options }
    }

    /// Calls a closure with each event. It must be brief: it runs on the runtime.
    pub fn on_event<F>(&self, handler: F) -> HandlerHandle
    where
        F: FnMut(Event<T>) + Send + 'static,
    {
        self.with(HandlerOptions::default()).on_event(handler)
    }

    /// Calls an async closure with each event, one at a time. Each call is made on a clone of the closure: what it captures
    /// is cloned. To keep state across events, use [`AsyncEventHandler`].
    pub fn on_event_async<F, R>(&self, handler: F) -> HandlerHandle
    where
        F: FnOnce(Event<T>) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.with(HandlerOptions::default()).on_event_async(handler)
    }

    /// Calls a closure with each event, on a thread where it may block.
    pub fn on_event_blocking<F>(&self, handler: F) -> HandlerHandle
    where
        F: FnMut(Event<T>) + Send + 'static,
    {
        self.with(HandlerOptions::default()).on_event_blocking(handler)
    }

    /// Adds a handler. It may be added at any time: a late one is told of everything there is, then of every change.
    pub fn add_handler<H: EventHandler<T>>(&self, handler: H) -> HandlerHandle {
        self.with(HandlerOptions::default()).add_handler(handler)
    }

    /// Adds a handler whose callbacks may wait.
    pub fn add_async_handler<H: AsyncEventHandler<T>>(&self, handler: H) -> HandlerHandle {
        self.with(HandlerOptions::default()).add_async_handler(handler)
    }

    /// The events as a stream: everything there is, then every change.
    pub fn events(&self) -> EventStream<T> {
        self.with(HandlerOptions::default()).events()
    }

    /// Adds a named index, filled from what is there, and kept in step from then on.
    ///
    /// The function depends on the object only, and returns none, one or many values. Added again with the same function
    /// it gives the same index. Values that borrow from the object: see [`SharedInformer::add_index_with`].
    ///
    /// # Errors
    ///
    /// [`IndexError::Exists`] if the name is taken by another function. `"namespace"` is taken from the start.
    pub fn add_index<F, V>(&self, name: &str, function: F) -> Result<Index<T>, IndexError>
    where
        F: Fn(&T) -> V + Send + Sync + 'static,
        V: IndexValues,
    {
        self.index_by(name, TypeId::of::<F>(), move |object, add| function(object).for_each(add))
    }

    /// [`SharedInformer::add_index`] for a value that is borrowed from the object.
    ///
    /// # Errors
    ///
    /// [`IndexError::Exists`] if the name is taken by another function.
    pub fn add_index_ref<F>(&self, name: &str, function: F) -> Result<Index<T>, IndexError>
    where
        F: for<'a> Fn(&'a T) -> Option<&'a str> + Send + Sync + 'static,
    {
        self.index_by(name, TypeId::of::<F>(), move |object, add| function(object).into_iter().for_each(add))
    }

    /// [`SharedInformer::add_index`] for any number of values that are borrowed from the object: each is handed to the second
    /// argument.
    ///
    /// # Errors
    ///
    /// [`IndexError::Exists`] if the name is taken by another function.
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
        let Core { health, applier, .. } = &*self.shared.core;
        let (health, index) = (health.clone(), name.to_owned());
        let report = move |key: KeyRef<'_>, message| {
            health.note(InformerError::Index { index: index.clone(), key: key.into(), message });
        };
        let added = applier.lock().writer().add_index(name, kind, index_function(function, report));
        self.shared.core.health.report_noted();
        added
    }
}

impl<T: Object> Registration<'_, T> {
    /// See [`SharedInformer::on_event`].
    pub fn on_event<F>(self, handler: F) -> HandlerHandle
    where
        F: FnMut(Event<T>) + Send + 'static,
    {
        self.add(short_type_name::<F>, AnyHandler::Sync(Box::new(handler)))
    }

    /// See [`SharedInformer::on_event_async`].
    pub fn on_event_async<F, R>(self, handler: F) -> HandlerHandle
    where
        F: FnOnce(Event<T>) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.add(short_type_name::<F>, AnyHandler::Async(Box::new(AsyncClosure(handler))))
    }

    /// See [`SharedInformer::on_event_blocking`].
    pub fn on_event_blocking<F>(self, handler: F) -> HandlerHandle
    where
        F: FnMut(Event<T>) + Send + 'static,
    {
        self.add(short_type_name::<F>, AnyHandler::Blocking(Some(Box::new(handler))))
    }

    /// See [`SharedInformer::add_handler`].
    pub fn add_handler<H: EventHandler<T>>(self, mut handler: H) -> HandlerHandle {
        self.add(short_type_name::<H>, AnyHandler::Sync(Box::new(move |event| handler.on_event(event))))
    }

    /// See [`SharedInformer::add_async_handler`].
    pub fn add_async_handler<H: AsyncEventHandler<T>>(self, handler: H) -> HandlerHandle {
        self.add(short_type_name::<H>, AnyHandler::Async(Box::new(AsyncCalls(handler))))
    }

    /// See [`SharedInformer::events`].
    pub fn events(self) -> EventStream<T> {
        let Shared { core, lifecycle, .. } = &*self.informer.shared;
        let listener = self.listener(|| "stream".to_owned());
        match &*lifecycle.lock() {
            Lifecycle::Stopped => listener.mailbox.close(false),
            Lifecycle::New { .. } | Lifecycle::Running { .. } => core.listen(listener.clone()),
        }
        listener.starts();
        let informer: Arc<dyn Any + Send + Sync> = self.informer.shared.clone();
        listener.into_stream(core.unlist(), informer)
    }

    fn listener(&self, name: impl FnOnce() -> String) -> Arc<Listener<T>> {
        let core = &self.informer.shared.core;
        let resync = self.options.requested_resync().or(core.resync_period).filter(|period| !period.is_zero());
        Arc::new(Listener::new(self.options.name_or(name), &self.options, resync))
    }

    fn add(self, name: impl FnOnce() -> String, handler: AnyHandler<T>) -> HandlerHandle {
        let Shared { core, lifecycle, .. } = &*self.informer.shared;
        let listener = self.listener(name);
        match &mut *lifecycle.lock() {
            Lifecycle::New { handlers, .. } => {
                core.listen(listener.clone());
                handlers.push((listener.clone(), Box::pin(listener.clone().run(handler, core.health.clone()))));
            }
            Lifecycle::Running { tasks, runtime } => {
                while tasks.try_join_next().is_some() {} // Handlers that were removed meanwhile.
                core.listen(listener.clone());
                listener.starts();
                let span = info_span!("informer", name = %core.name);
                tasks.spawn_on(listener.clone().run(handler, core.health.clone()).instrument(span), runtime);
            }
            Lifecycle::Stopped => listener.never_runs(),
        }
        let informer: Arc<dyn Any + Send + Sync> = self.informer.shared.clone();
        HandlerHandle::new(listener, core.unlist(), Arc::downgrade(&informer))
    }
}

impl<T: Object> Core<T> {
    /// From this moment on the listener is told of changes, behind a replay of what is known: both under one lock.
    fn listen(&self, listener: Arc<Listener<T>>) {
        let mut applier = self.applier.lock();
        let (known, synced) = (self.store.snapshot(), applier.is_synced());
        applier.processor.add(listener, known, synced);
    }

    /// Takes a listener off the list.
    fn unlist(self: &Arc<Self>) -> impl Fn(u64) + Send + Sync + use<T> {
        let core = Arc::downgrade(self);
        move |id| {
            if let Some(core) = core.upgrade() {
                core.applier.lock().processor.remove(id);
            }
        }
    }
}
