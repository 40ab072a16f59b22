//! What can be said of all informers of a factory, of those of one type, and of one.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube_client::Client;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::{Shared, SharedInformerFactory};
use crate::informer::InformerBuilder;
use crate::object::{ManagedFields, Object};
use crate::queue::QueueOrder;
use crate::source::kube::{KubeSource, Selection};
use crate::source::transform::Transform;

/// How many first lists run at once unless said otherwise.
const FIRST_LISTS: usize = 10;

/// What does not make another informer, but must be the same for all who share one. `None` is what nobody said.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Settings {
    resync_period: Option<Duration>,
    relist_period: Option<Duration>,
    page_size: Option<usize>,
    watch_timeout: Option<Duration>,
    streaming: Option<bool>,
    order: Option<QueueOrder>,
    managed_fields: Option<ManagedFields>,
    object_limit: Option<usize>,
}

impl Settings {
    /// These, and those of another where nothing was said.
    pub(super) fn or(self, other: &Self) -> Self {
        Self {
            resync_period: self.resync_period.or(other.resync_period),
            relist_period: self.relist_period.or(other.relist_period),
            page_size: self.page_size.or(other.page_size),
            watch_timeout: self.watch_timeout.or(other.watch_timeout),
            streaming: self.streaming.or(other.streaming),
            order: self.order.or(other.order),
            managed_fields: self.managed_fields.or(other.managed_fields),
            object_limit: self.object_limit.or(other.object_limit),
        }
    }

    pub(super) fn configure<T: Object>(&self, mut builder: InformerBuilder<T>) -> InformerBuilder<T> {
        if let Some(period) = self.resync_period {
            builder = builder.resync_period(period);
        }
        if let Some(period) = self.relist_period {
            builder = builder.relist_period(period);
        }
        if let Some(page_size) = self.page_size {
            builder = builder.page_size(page_size);
        }
        if let Some(timeout) = self.watch_timeout {
            builder = builder.watch_timeout(timeout);
        }
        if let Some(streaming) = self.streaming {
            builder = builder.streaming(streaming);
        }
        if let Some(order) = self.order {
            builder = builder.queue_order(order);
        }
        builder
    }

    pub(super) fn configure_source<T: Object>(&self, mut source: KubeSource<T>) -> KubeSource<T> {
        if let Some(managed_fields) = self.managed_fields {
            source = source.managed_fields(managed_fields);
        }
        if let Some(limit) = self.object_limit {
            source = source.object_limit(limit);
        }
        source
    }
}

/// What was said of all informers of one type.
#[derive(Default)]
pub(super) struct TypeSettings {
    pub(super) settings: Settings,
    /// A [`NamedTransform`] of the type.
    pub(super) transform: Option<Box<dyn Any + Send + Sync>>,
}

/// The name is what makes two transforms the same.
pub(super) type NamedTransform<T> = (String, Transform<T>);

/// The methods that a factory's and an informer's options share.
macro_rules! settings_methods {
    () => {
        /// Follows these namespaces only, in one cache. None at all means all of them.
        ///
        /// ```
        /// # use k8s_openapi::api::core::v1::ConfigMap;
        /// # use kube_informer::{SharedInformerFactory, factory::InformerOptions};
        /// # use serde_json::json;
        /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        /// # let server = kube_embedded_apiserver::ApiServer::new();
        /// # let map = |name| json!({"metadata": {"name": name, "labels": {"app": name}}});
        /// # server.create("configmaps", Some("web"), map("a"))?;
        /// # server.create("configmaps", Some("shop"), map("b"))?;
        /// # let builder = SharedInformerFactory::builder(server.client());
        /// # let options = InformerOptions::<ConfigMap>::new();
        /// let factory = builder.namespaces(["web", "shop"]).build(); // For all its informers.
        /// let maps = factory.informer::<ConfigMap>()?;
        /// let web = factory.informer_with(options.namespaces(["web"]))?; // For this one.
        /// # factory.start()?;
        /// # factory.synced().await?;
        /// assert_eq!((maps.store().len(), web.store().len()), (2, 1));
        /// # factory.stop().await;
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        #[must_use]
        pub fn namespaces<S: Into<String>>(mut self, namespaces: impl IntoIterator<Item = S>) -> Self {
            namespaces.into_iter().for_each(|namespace| self.push_namespace(namespace.into()));
            self
        }

        /// Follows this namespace, and others that are given.
        ///
        /// ```
        /// # use k8s_openapi::api::core::v1::ConfigMap;
        /// # use kube_informer::{SharedInformerFactory, factory::InformerOptions};
        /// # use serde_json::json;
        /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        /// # let server = kube_embedded_apiserver::ApiServer::new();
        /// # let map = |name| json!({"metadata": {"name": name, "labels": {"app": name}}});
        /// # server.create("configmaps", Some("web"), map("a"))?;
        /// # server.create("configmaps", Some("shop"), map("b"))?;
        /// # let builder = SharedInformerFactory::builder(server.client());
        /// # let options = InformerOptions::<ConfigMap>::new();
        /// let factory = builder.namespace("web").build(); // For all its informers.
        /// let maps = factory.informer::<ConfigMap>()?;
        /// let shop = factory.informer_with(options.namespace("shop"))?; // For this one.
        /// # factory.start()?;
        /// # factory.synced().await?;
        /// assert!(maps.store().contains("web/a") && !maps.store().contains("shop/b"));
        /// assert!(shop.store().contains("shop/b") && !shop.store().contains("web/a"));
        /// # factory.stop().await;
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        #[must_use]
        pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
            self.push_namespace(namespace.into());
            self
        }

        /// Follows objects that match a label selector only.
        ///
        /// ```
        /// # use k8s_openapi::api::core::v1::ConfigMap;
        /// # use kube_informer::{SharedInformerFactory, factory::InformerOptions};
        /// # use serde_json::json;
        /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        /// # let server = kube_embedded_apiserver::ApiServer::new();
        /// # let map = |name| json!({"metadata": {"name": name, "labels": {"app": name}}});
        /// # server.create("configmaps", Some("web"), map("a"))?;
        /// # server.create("configmaps", Some("shop"), map("b"))?;
        /// # let builder = SharedInformerFactory::builder(server.client());
        /// # let options = InformerOptions::<ConfigMap>::new();
        /// let factory = builder.labels("app=a").build(); // For all its informers.
        /// let maps = factory.informer::<ConfigMap>()?;
        /// let others = factory.informer_with(options.labels("app!=a"))?; // For this one.
        /// # factory.start()?;
        /// # factory.synced().await?;
        /// assert!(maps.store().contains("web/a") && others.store().contains("shop/b"));
        /// assert_eq!((maps.store().len(), others.store().len()), (1, 1));
        /// # factory.stop().await;
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        #[must_use]
        pub fn labels(mut self, selector: impl Into<String>) -> Self {
            self.selection.labels = Some(selector.into());
            self
        }

        /// Follows objects that match a field selector only.
        ///
        /// ```
        /// # use k8s_openapi::api::core::v1::ConfigMap;
        /// # use kube_informer::{SharedInformerFactory, factory::InformerOptions};
        /// # use serde_json::json;
        /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        /// # let server = kube_embedded_apiserver::ApiServer::new();
        /// # let map = |name| json!({"metadata": {"name": name, "labels": {"app": name}}});
        /// # server.create("configmaps", Some("web"), map("a"))?;
        /// # server.create("configmaps", Some("shop"), map("b"))?;
        /// # let builder = SharedInformerFactory::builder(server.client());
        /// # let options = InformerOptions::<ConfigMap>::new();
        /// let factory = builder.fields("metadata.name=a").build(); // For all its informers.
        /// let maps = factory.informer::<ConfigMap>()?;
        /// let others = factory.informer_with(options.fields("metadata.name!=a"))?; // For this one.
        /// # factory.start()?;
        /// # factory.synced().await?;
        /// assert!(maps.store().contains("web/a") && others.store().contains("shop/b"));
        /// assert_eq!((maps.store().len(), others.store().len()), (1, 1));
        /// # factory.stop().await;
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        #[must_use]
        pub fn fields(mut self, selector: impl Into<String>) -> Self {
            self.selection.fields = Some(selector.into());
            self
        }

        /// Sends one more query parameter with each request.
        ///
        /// ```
        /// # use k8s_openapi::api::core::v1::ConfigMap;
        /// # use kube_informer::{SharedInformerFactory, factory::InformerOptions};
        /// # use serde_json::json;
        /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        /// # let server = kube_embedded_apiserver::ApiServer::new();
        /// # let map = |name| json!({"metadata": {"name": name, "labels": {"app": name}}});
        /// # server.create("configmaps", Some("web"), map("a"))?;
        /// # server.create("configmaps", Some("shop"), map("b"))?;
        /// # let builder = SharedInformerFactory::builder(server.client());
        /// # let options = InformerOptions::<ConfigMap>::new();
        /// let factory = builder.build();
        /// let _maps = factory.informer_with(options.query("pretty", "true"))?;
        /// # factory.start()?;
        /// # factory.synced().await?;
        /// assert!(server.requests().iter().all(|request| request.query.contains("pretty=true")));
        /// # factory.stop().await;
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        #[must_use]
        pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
            self.selection.extra.push((name.into(), value.into()));
            self
        }

        /// How often handlers are shown the cache again, unless they ask for another period. Never unless given.
        ///
        /// ```
        /// # use futures_util::StreamExt as _;
        /// # use std::time::Duration;
        /// # use k8s_openapi::api::core::v1::ConfigMap;
        /// # use kube_informer::{SharedInformerFactory, factory::InformerOptions};
        /// # use serde_json::json;
        /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        /// # runtime.unwrap().block_on(async {
        /// # let server = kube_embedded_apiserver::ApiServer::new();
        /// # let map = |name| json!({"metadata": {"name": name, "labels": {"app": name}}});
        /// # server.create("configmaps", Some("web"), map("a"))?;
        /// # server.create("configmaps", Some("shop"), map("b"))?;
        /// # let builder = SharedInformerFactory::builder(server.client());
        /// # let options = InformerOptions::<ConfigMap>::new();
        /// use kube_informer::Event;
        ///
        /// let factory = builder.resync_period(Duration::from_secs(3600)).build(); // For all its informers.
        /// let options = options.namespace("web").resync_period(Duration::from_secs(60)); // For this one.
        /// let maps = factory.informer_with(options)?;
        /// let mut events = maps.events();
        /// # factory.start()?;
        /// # factory.synced().await?;
        /// assert!(matches!(events.next().await, Some(Event::Added { .. })));
        /// assert!(matches!(events.next().await, Some(Event::Resynced(_))), "a minute later");
        /// # factory.stop().await;
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        #[must_use]
        pub fn resync_period(mut self, period: Duration) -> Self {
            self.settings.resync_period = Some(period);
            self
        }

        /// How often the server is asked for everything again though nothing is wrong. Never unless given.
        ///
        /// ```
        /// # use std::time::Duration;
        /// # use k8s_openapi::api::core::v1::ConfigMap;
        /// # use kube_informer::{SharedInformerFactory, factory::InformerOptions};
        /// # use serde_json::json;
        /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        /// # runtime.unwrap().block_on(async {
        /// # let server = kube_embedded_apiserver::ApiServer::new();
        /// # let map = |name| json!({"metadata": {"name": name, "labels": {"app": name}}});
        /// # server.create("configmaps", Some("web"), map("a"))?;
        /// # server.create("configmaps", Some("shop"), map("b"))?;
        /// # let builder = SharedInformerFactory::builder(server.client());
        /// # let options = InformerOptions::<ConfigMap>::new();
        /// let factory = builder.streaming(false).build();
        /// let _maps = factory.informer_with(options.relist_period(Duration::from_secs(60)))?;
        /// # factory.start()?;
        /// # factory.synced().await?;
        /// tokio::time::sleep(Duration::from_secs(90)).await;
        /// let lists = server.requests().iter().filter(|request| request.verb.as_str() == "list").count();
        /// assert_eq!(lists, 2, "the first, and one after a minute");
        /// # factory.stop().await;
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        #[must_use]
        pub fn relist_period(mut self, period: Duration) -> Self {
            self.settings.relist_period = Some(period);
            self
        }

        /// How many objects a list asks for at a time.
        ///
        /// ```
        /// # use k8s_openapi::api::core::v1::ConfigMap;
        /// # use kube_informer::{SharedInformerFactory, factory::InformerOptions};
        /// # use serde_json::json;
        /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        /// # let server = kube_embedded_apiserver::ApiServer::new();
        /// # let map = |name| json!({"metadata": {"name": name, "labels": {"app": name}}});
        /// # server.create("configmaps", Some("web"), map("a"))?;
        /// # server.create("configmaps", Some("shop"), map("b"))?;
        /// # let builder = SharedInformerFactory::builder(server.client());
        /// # let options = InformerOptions::<ConfigMap>::new();
        /// let factory = builder.streaming(false).build();
        /// let _maps = factory.informer_with(options.page_size(50))?;
        /// # factory.start()?;
        /// # factory.synced().await?;
        /// assert!(server.requests()[0].query.contains("limit=50"));
        /// # factory.stop().await;
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        #[must_use]
        pub fn page_size(mut self, page_size: usize) -> Self {
            self.settings.page_size = Some(page_size);
            self
        }

        /// The shortest time a watch is asked to last; the longest is twice that.
        ///
        /// ```
        /// # use std::time::Duration;
        /// # use k8s_openapi::api::core::v1::ConfigMap;
        /// # use kube_informer::{SharedInformerFactory, factory::InformerOptions};
        /// # use serde_json::json;
        /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        /// # let server = kube_embedded_apiserver::ApiServer::new();
        /// # let map = |name| json!({"metadata": {"name": name, "labels": {"app": name}}});
        /// # server.create("configmaps", Some("web"), map("a"))?;
        /// # server.create("configmaps", Some("shop"), map("b"))?;
        /// # let builder = SharedInformerFactory::builder(server.client());
        /// # let options = InformerOptions::<ConfigMap>::new();
        /// let factory = builder.build();
        /// let _maps = factory.informer_with(options.watch_timeout(Duration::from_secs(1800)))?;
        /// # factory.start()?;
        /// # factory.synced().await?;
        /// let query = &server.requests()[0].query;
        /// let asked = query.split('&').find_map(|part| part.strip_prefix("timeoutSeconds=")).unwrap();
        /// assert!((1800..=3600).contains(&asked.parse::<u64>()?));
        /// # factory.stop().await;
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        #[must_use]
        pub fn watch_timeout(mut self, timeout: Duration) -> Self {
            self.settings.watch_timeout = Some(timeout);
            self
        }

        /// Whether to ask for the initial state by a watch. On unless said otherwise.
        ///
        /// ```
        /// # use k8s_openapi::api::core::v1::ConfigMap;
        /// # use kube_informer::SharedInformerFactory;
        /// # use serde_json::json;
        /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        /// # let server = kube_embedded_apiserver::ApiServer::new();
        /// # let map = |name| json!({"metadata": {"name": name, "labels": {"app": name}}});
        /// # server.create("configmaps", Some("web"), map("a"))?;
        /// # server.create("configmaps", Some("shop"), map("b"))?;
        /// # let builder = SharedInformerFactory::builder(server.client());
        /// let factory = builder.streaming(false).build();
        /// let _maps = factory.informer::<ConfigMap>()?;
        /// # factory.start()?;
        /// # factory.synced().await?;
        /// assert_eq!(server.requests()[0].verb.as_str(), "list", "not a watch");
        /// # factory.stop().await;
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        #[must_use]
        pub fn streaming(mut self, streaming: bool) -> Self {
            self.settings.streaming = Some(streaming);
            self
        }

        /// Which queue changes pass through on their way to the cache.
        ///
        /// ```
        /// # use k8s_openapi::api::core::v1::ConfigMap;
        /// # use kube_informer::{SharedInformerFactory, factory::InformerOptions};
        /// # use serde_json::json;
        /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        /// # let server = kube_embedded_apiserver::ApiServer::new();
        /// # let map = |name| json!({"metadata": {"name": name, "labels": {"app": name}}});
        /// # server.create("configmaps", Some("web"), map("a"))?;
        /// # server.create("configmaps", Some("shop"), map("b"))?;
        /// # let builder = SharedInformerFactory::builder(server.client());
        /// # let options = InformerOptions::<ConfigMap>::new();
        /// use kube_informer::QueueOrder;
        ///
        /// let factory = builder.build();
        /// let maps = factory.informer_with(options.queue_order(QueueOrder::PerObject))?;
        /// # factory.start()?;
        /// # factory.synced().await?;
        /// assert_eq!(maps.store().len(), 2);
        /// # factory.stop().await;
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        #[must_use]
        pub fn queue_order(mut self, order: QueueOrder) -> Self {
            self.settings.order = Some(order);
            self
        }

        /// Whether managed fields are decoded; they are not unless asked for.
        ///
        /// ```
        /// # use k8s_openapi::api::core::v1::ConfigMap;
        /// # use kube_informer::{SharedInformerFactory, factory::InformerOptions};
        /// # use serde_json::json;
        /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        /// # let server = kube_embedded_apiserver::ApiServer::new();
        /// # let map = |name| json!({"metadata": {"name": name, "labels": {"app": name}}});
        /// # server.create("configmaps", Some("web"), map("a"))?;
        /// # server.create("configmaps", Some("shop"), map("b"))?;
        /// # let builder = SharedInformerFactory::builder(server.client());
        /// # let options = InformerOptions::<ConfigMap>::new();
        /// use kube_informer::object::ManagedFields;
        ///
        /// let fields = json!([{"manager": "kubectl", "operation": "Apply", "fieldsType": "FieldsV1"}]);
        /// server.patch("configmaps", Some("web"), "a", json!({"metadata": {"managedFields": fields}}))?;
        /// let factory = builder.build();
        /// let maps = factory.informer_with(options.managed_fields(ManagedFields::Keep))?;
        /// # factory.start()?;
        /// # factory.synced().await?;
        /// assert!(maps.store().get("web/a").unwrap().metadata.managed_fields.is_some());
        /// # factory.stop().await;
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        #[must_use]
        pub fn managed_fields(mut self, managed_fields: ManagedFields) -> Self {
            self.settings.managed_fields = Some(managed_fields);
            self
        }

        /// The largest object that is accepted, in bytes.
        ///
        /// ```
        /// # use std::time::Duration;
        /// # use k8s_openapi::api::core::v1::ConfigMap;
        /// # use kube_informer::{SharedInformerFactory, factory::InformerOptions};
        /// # use serde_json::json;
        /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        /// # runtime.unwrap().block_on(async {
        /// # let server = kube_embedded_apiserver::ApiServer::new();
        /// # let map = |name| json!({"metadata": {"name": name, "labels": {"app": name}}});
        /// # server.create("configmaps", Some("web"), map("a"))?;
        /// # server.create("configmaps", Some("shop"), map("b"))?;
        /// # let builder = SharedInformerFactory::builder(server.client());
        /// # let options = InformerOptions::<ConfigMap>::new();
        /// let factory = builder.build();
        /// let maps = factory.informer_with(options.object_limit(64))?;
        /// factory.start()?;
        /// let error = maps.synced_within(Duration::from_secs(5)).await.unwrap_err();
        /// assert!(error.to_string().contains("larger than the limit of 64 bytes"), "{error}");
        /// # factory.stop().await;
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        #[must_use]
        pub fn object_limit(mut self, bytes: usize) -> Self {
            self.settings.object_limit = Some(bytes);
            self
        }
    };
}

/// Options of one informer. What is not said is as the factory has it.
///
/// ```
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::SharedInformerFactory;
/// # use serde_json::json;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
/// use kube_informer::factory::InformerOptions;
///
/// let factory = SharedInformerFactory::new(server.client());
/// let options = InformerOptions::<ConfigMap>::new()
///     .namespace("web")
///     .fields("metadata.name!=a")
///     .resync_period(Duration::from_secs(600));
/// let maps = factory.informer_with(options)?;
/// factory.start()?;
/// factory.synced().await?;
/// assert!(maps.store().is_empty());
/// factory.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct InformerOptions<T> {
    pub(super) namespaces: Option<Vec<String>>,
    pub(super) selection: Selection,
    pub(super) settings: Settings,
    pub(super) transform: Option<NamedTransform<T>>,
}

impl<T: Object> InformerOptions<T> {
    /// As the factory has them.
    pub fn new() -> Self {
        Self { namespaces: None, selection: Selection::default(), settings: Settings::default(), transform: None }
    }

    settings_methods!();

    /// Changes every object on its way in, once; see [`InformerBuilder::transform`]. The name tells transforms apart: two
    /// requests with the same name share an informer.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// use kube_informer::factory::InformerOptions;
    ///
    /// let factory = SharedInformerFactory::new(server.client());
    /// let bare = || InformerOptions::new().transform("bare", |mut map: ConfigMap| {
    ///     map.metadata.labels = None;
    ///     Ok::<_, String>(map)
    /// });
    /// let maps = factory.informer_with(bare())?;
    /// assert!(maps.is_same(&factory.informer_with(bare())?), "the same name");
    /// assert!(!maps.is_same(&factory.informer::<ConfigMap>()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn transform<F, E>(mut self, name: impl Into<String>, transform: F) -> Self
    where
        F: Fn(T) -> Result<T, E> + Send + Sync + 'static,
        E: fmt::Display,
    {
        self.transform = Some(named_transform(name, transform));
        self
    }

    fn push_namespace(&mut self, namespace: String) {
        push_sorted(self.namespaces.get_or_insert_default(), namespace);
    }
}

impl<T: Object> Default for InformerOptions<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Configures a [`SharedInformerFactory`].
///
/// ```
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::SharedInformerFactory;
/// # use serde_json::json;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
/// let factory = SharedInformerFactory::builder(server.client())
///     .name("shop")
///     .namespaces(["web", "db"])
///     .resync_period(Duration::from_secs(600))
///     .transform_of("bare", |mut map: ConfigMap| {
///         map.metadata.annotations = None;
///         Ok::<_, String>(map)
///     })
///     .build();
/// let maps = factory.informer::<ConfigMap>()?;
/// assert_eq!(maps.name(), "shop/configmaps");
/// factory.start()?;
/// factory.synced().await?;
/// assert!(maps.store().contains("web/a"));
/// factory.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct FactoryBuilder {
    client: Client,
    name: Option<String>,
    namespaces: Vec<String>,
    selection: Selection,
    settings: Settings,
    by_type: HashMap<TypeId, TypeSettings>,
    seed: Option<u64>,
    first_lists: usize,
}

impl FactoryBuilder {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            name: None,
            namespaces: Vec::new(),
            selection: Selection::default(),
            settings: Settings::default(),
            by_type: HashMap::new(),
            seed: None,
            first_lists: FIRST_LISTS,
        }
    }

    /// A name that goes before those of the informers in logs, messages and metrics.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let factory = SharedInformerFactory::builder(server.client()).name("east").build();
    /// assert_eq!(factory.informer::<ConfigMap>()?.name(), "east/configmaps");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    settings_methods!();

    /// How often handlers of one type's informers are shown the cache again.
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// # use kube_informer::Event;
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    /// # runtime.unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), serde_json::json!({"metadata": {"name": "a"}}))?;
    /// let builder = SharedInformerFactory::builder(server.client());
    /// let factory = builder.resync_period_of::<ConfigMap>(Duration::from_secs(60)).build();
    /// let mut events = factory.informer::<ConfigMap>()?.events();
    /// factory.start()?;
    /// assert!(matches!(events.next().await, Some(Event::Added { .. })));
    /// assert!(matches!(events.next().await, Some(Event::Resynced(_))), "a minute later");
    /// factory.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn resync_period_of<T: Object>(mut self, period: Duration) -> Self {
        self.by_type.entry(TypeId::of::<T>()).or_default().settings.resync_period = Some(period);
        self
    }

    /// Changes every object of one type on its way in, once; see [`InformerOptions::transform`].
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let builder = SharedInformerFactory::builder(server.client());
    /// let factory = builder
    ///     .transform_of("bare", |mut map: ConfigMap| {
    ///         map.metadata.creation_timestamp = None;
    ///         Ok::<_, String>(map)
    ///     })
    ///     .build();
    /// let maps = factory.informer::<ConfigMap>()?;
    /// factory.start()?;
    /// factory.synced().await?;
    /// assert!(maps.store().get("web/a").unwrap().metadata.creation_timestamp.is_none());
    /// factory.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn transform_of<T, F, E>(mut self, name: impl Into<String>, transform: F) -> Self
    where
        T: Object,
        F: Fn(T) -> Result<T, E> + Send + Sync + 'static,
        E: fmt::Display,
    {
        let transform: NamedTransform<T> = named_transform(name, transform);
        self.by_type.entry(TypeId::of::<T>()).or_default().transform = Some(Box::new(transform));
        self
    }

    /// How many first lists may run at once: ten unless said otherwise, and at least one.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Secret;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// // One after the other, for a server that must not be asked for everything at once.
    /// let factory = SharedInformerFactory::builder(server.client()).first_lists(1).build();
    /// let (maps, secrets) = (factory.informer::<ConfigMap>()?, factory.informer::<Secret>()?);
    /// factory.start()?;
    /// factory.synced().await?;
    /// assert!(maps.is_synced() && secrets.is_synced());
    /// factory.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn first_lists(mut self, first_lists: usize) -> Self {
        self.first_lists = first_lists.max(1);
        self
    }

    /// Where all chance comes from, so that a run can be repeated.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// for _ in 0..2 {
    ///     let factory = SharedInformerFactory::builder(server.client()).seed(42).build();
    ///     let _maps = factory.informer::<ConfigMap>()?;
    ///     factory.start()?;
    ///     factory.synced().await?;
    ///     factory.stop().await;
    /// }
    /// let requests = server.requests();
    /// assert_eq!(requests[0].query, requests[1].query, "how long a watch is to last is chance, too");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The factory.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let factory = SharedInformerFactory::builder(server.client()).build();
    /// assert_eq!(factory.informer::<ConfigMap>()?.name(), "configmaps");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn build(self) -> SharedInformerFactory {
        let Self { client, name, namespaces, selection, settings, by_type, seed, first_lists } = self;
        let first_lists = Arc::new(Semaphore::new(first_lists.min(Semaphore::MAX_PERMITS)));
        let state = Mutex::default();
        let shared = Shared { client, name, namespaces, selection, settings, by_type, seed, first_lists, state };
        SharedInformerFactory { shared: Arc::new(shared) }
    }

    fn push_namespace(&mut self, namespace: String) {
        push_sorted(&mut self.namespaces, namespace);
    }
}

/// Sorted and without doubles: the same set is the same informer, however it was said.
fn push_sorted(namespaces: &mut Vec<String>, namespace: String) {
    if let Err(at) = namespaces.binary_search(&namespace) {
        namespaces.insert(at, namespace);
    }
}

fn named_transform<T, F, E>(name: impl Into<String>, transform: F) -> NamedTransform<T>
where
    F: Fn(T) -> Result<T, E> + Send + Sync + 'static,
    E: fmt::Display,
{
    (name.into(), Arc::new(move |object| transform(object).map_err(|error| error.to_string())))
}

impl<T> fmt::Debug for InformerOptions<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("InformerOptions");
        debug.field("selection", &self.selection).field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder").field("namespaces", &self.namespaces).finish_non_exhaustive()
    }
}
