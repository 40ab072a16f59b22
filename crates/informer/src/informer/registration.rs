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
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::{SharedInformer, source::kube::KubeSource};
/// # use serde_json::json;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
/// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
/// # maps.start()?;
/// # maps.synced().await?;
/// use kube_informer::{Delivery, HandlerOptions, Handlers};
///
/// let options = HandlerOptions::new().delivery(Delivery::Latest);
/// let audit = maps.with(options.clone().name("audit")).on_event(|_| {});
/// let count = maps.with(options.name("count")).add_handler(Handlers::new());
/// assert!(audit.synced().await && count.synced().await);
/// # maps.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct Registration<'i, T: Object> {
    informer: &'i SharedInformer<T>,
    options: HandlerOptions,
}

impl<T: Object> SharedInformer<T> {
    /// Adds the next handler with options:
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kube_informer::SharedInformer;
    /// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
    /// # let source = ListWatchFns::new(
    /// #     |_: ListOptions| async {
    /// #         let thing = Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "7".to_owned() };
    /// #         Ok(Items::complete([thing], ListEnd { version: Some("7".into()), ..ListEnd::default() }))
    /// #     },
    /// #     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
    /// # );
    /// use kube_informer::HandlerOptions;
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    /// # runtime.unwrap().block_on(async {
    /// # let things = SharedInformer::builder(source).resync_period(Duration::from_secs(3600)).build();
    /// let options = HandlerOptions::new().name("audit").resync_period(Duration::from_secs(600));
    /// let audit = things.with(options).on_event(|event| println!("{event:?}"));
    /// assert_eq!(audit.name(), "audit");
    /// # things.start()?;
    /// # things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn with(&self, options: HandlerOptions) -> Registration<'_, T> {
        Registration { informer: self, options }
    }

    /// Calls a closure with each event. It must be brief: it runs on the runtime.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    /// maps.on_event(move |event| { let _ = sender.send(event.key().to_string()); });
    /// assert_eq!(told.recv().await.as_deref(), Some("web/a"));
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn on_event<F>(&self, handler: F) -> HandlerHandle
    where
        F: FnMut(Event<T>) + Send + 'static,
    {
        self.with(HandlerOptions::default()).on_event(handler)
    }

    /// Calls an async closure with each event, one at a time. Each call is made on a clone of the closure: what it captures
    /// is cloned. To keep state across events, use [`AsyncEventHandler`].
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// let (sender, mut told) = tokio::sync::mpsc::channel(1);
    /// maps.on_event_async(async move |event| { let _ = sender.send(event.key().to_string()).await; });
    /// assert_eq!(told.recv().await.as_deref(), Some("web/a"));
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn on_event_async<F, R>(&self, handler: F) -> HandlerHandle
    where
        F: FnOnce(Event<T>) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.with(HandlerOptions::default()).on_event_async(handler)
    }

    /// Calls a closure with each event, on a thread where it may block.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// let (sender, mut told) = tokio::sync::mpsc::channel(1);
    /// maps.on_event_blocking(move |event| { let _ = sender.blocking_send(event.key().to_string()); });
    /// assert_eq!(told.recv().await.as_deref(), Some("web/a"));
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn on_event_blocking<F>(&self, handler: F) -> HandlerHandle
    where
        F: FnMut(Event<T>) + Send + 'static,
    {
        self.with(HandlerOptions::default()).on_event_blocking(handler)
    }

    /// Adds a handler. It may be added at any time: a late one is told of everything there is, then of every change.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// use kube_informer::Handlers;
    ///
    /// let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    /// let send = move |map, initial| { let _ = sender.send((map, initial)); };
    /// let handle = maps.add_handler(Handlers::new().on_add(send));
    /// assert!(handle.synced().await);
    /// server.create("configmaps", Some("web"), json!({"metadata": {"name": "b"}}))?;
    /// assert!(matches!(told.recv().await, Some((_, true))), "a was there");
    /// assert!(matches!(told.recv().await, Some((_, false))), "b is new");
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn add_handler<H: EventHandler<T>>(&self, handler: H) -> HandlerHandle {
        self.with(HandlerOptions::default()).add_handler(handler)
    }

    /// Adds a handler whose callbacks may wait.
    ///
    /// ```
    /// # use tokio::sync::mpsc;
    /// use kube_informer::{AsyncEventHandler, Deleted};
    ///
    /// struct Undertaker(mpsc::Sender<String>);
    ///
    /// impl AsyncEventHandler<ConfigMap> for Undertaker {
    ///     async fn on_delete(&mut self, gone: Deleted<ConfigMap>) {
    ///         let _ = self.0.send(gone.key().to_string()).await;
    ///     }
    /// }
    ///
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// let (sender, mut gone) = mpsc::channel(1);
    /// maps.add_async_handler(Undertaker(sender));
    /// server.delete("configmaps", Some("web"), "a")?;
    /// assert_eq!(gone.recv().await.as_deref(), Some("web/a"));
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn add_async_handler<H: AsyncEventHandler<T>>(&self, handler: H) -> HandlerHandle {
        self.with(HandlerOptions::default()).add_async_handler(handler)
    }

    /// The events as a stream: everything there is, then every change.
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// let keys: Vec<_> = maps.events().take(1).map(|event| event.key().to_string()).collect().await;
    /// assert_eq!(keys, ["web/a"]);
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
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
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// use kube_informer::store::IndexError;
    ///
    /// let by_color = maps.add_index("color", |map: &ConfigMap| map.data.as_ref()?.get("color").cloned())?;
    /// server.patch("configmaps", Some("web"), "a", json!({"data": {"color": "red"}}))?;
    /// maps.wait_for("web/a", |map| map.unwrap().data.is_some()).await?;
    /// assert_eq!(by_color.get("red").len(), 1);
    ///
    /// let taken = maps.add_index("namespace", |_: &ConfigMap| "");
    /// assert!(matches!(taken, Err(IndexError::Exists(_))));
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
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
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// let by_name = maps.add_index_ref("name", |map: &ConfigMap| map.metadata.name.as_deref())?;
    /// assert_eq!(by_name.values(), ["a"]);
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
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
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// let by_data = maps.add_index_with("data", |map: &ConfigMap, add| {
    ///     map.data.iter().flat_map(|data| data.keys()).for_each(|key| add(key));
    /// })?;
    /// server.patch("configmaps", Some("web"), "a", json!({"data": {"color": "red", "size": "small"}}))?;
    /// maps.wait_for("web/a", |map| map.unwrap().data.is_some()).await?;
    /// assert_eq!(by_data.values(), ["color", "size"]);
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
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
    ///
    /// ```
    /// # use kube_informer::HandlerOptions;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// let handle = maps.with(HandlerOptions::new().name("audit")).on_event(|_| {});
    /// assert_eq!(handle.name(), "audit");
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn on_event<F>(self, handler: F) -> HandlerHandle
    where
        F: FnMut(Event<T>) + Send + 'static,
    {
        self.add(short_type_name::<F>, AnyHandler::Sync(Box::new(handler)))
    }

    /// See [`SharedInformer::on_event_async`].
    ///
    /// ```
    /// # use kube_informer::HandlerOptions;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// let options = HandlerOptions::new().name("audit");
    /// let handle = maps.with(options).on_event_async(async |_| tokio::task::yield_now().await);
    /// assert!(handle.synced().await);
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn on_event_async<F, R>(self, handler: F) -> HandlerHandle
    where
        F: FnOnce(Event<T>) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.add(short_type_name::<F>, AnyHandler::Async(Box::new(AsyncClosure(handler))))
    }

    /// See [`SharedInformer::on_event_blocking`].
    ///
    /// ```
    /// # use kube_informer::HandlerOptions;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// let handle = maps.with(HandlerOptions::new().name("audit")).on_event_blocking(|event| println!("{event:?}"));
    /// assert!(handle.synced().await);
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn on_event_blocking<F>(self, handler: F) -> HandlerHandle
    where
        F: FnMut(Event<T>) + Send + 'static,
    {
        self.add(short_type_name::<F>, AnyHandler::Blocking(Some(Box::new(handler))))
    }

    /// See [`SharedInformer::add_handler`].
    ///
    /// ```
    /// # use kube_informer::{HandlerOptions, Handlers};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// let handle = maps.with(HandlerOptions::new().name("audit")).add_handler(Handlers::new());
    /// assert!(handle.synced().await);
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn add_handler<H: EventHandler<T>>(self, mut handler: H) -> HandlerHandle {
        self.add(short_type_name::<H>, AnyHandler::Sync(Box::new(move |event| handler.on_event(event))))
    }

    /// See [`SharedInformer::add_async_handler`].
    ///
    /// ```
    /// # use kube_informer::{AsyncEventHandler, HandlerOptions};
    /// # struct Nothing;
    /// # impl AsyncEventHandler<ConfigMap> for Nothing {}
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// let handle = maps.with(HandlerOptions::new().name("nothing")).add_async_handler(Nothing);
    /// assert!(handle.synced().await);
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn add_async_handler<H: AsyncEventHandler<T>>(self, handler: H) -> HandlerHandle {
        self.add(short_type_name::<H>, AnyHandler::Async(Box::new(AsyncCalls(handler))))
    }

    /// See [`SharedInformer::events`].
    ///
    /// ```
    /// # use kube_informer::{Delivery, HandlerOptions};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// let events = maps.with(HandlerOptions::new().delivery(Delivery::Latest)).events();
    /// assert_eq!(events.backlog(), 1);
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
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
