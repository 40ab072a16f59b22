//! Configures informers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::tasks::CoreSink;
use super::verify::{TakeInventory, take_inventory};
use super::{Core, Lifecycle, Shared, SharedInformer, short_type_name};
use crate::apply::{Applier, Changes};
use crate::health::HealthBoard;
use crate::lister::NAMESPACE_INDEX;
use crate::object::{Object, ResourceType};
use crate::queue::{QueueOrder, Scope};
use crate::reflector::{BackoffOptions, Reflector, ReflectorOptions};
use crate::source::ListWatch;
use crate::source::transform::{Transform, Transformed};
use crate::store::{Store, index_function};

/// Configures a [`SharedInformer`]; see [`SharedInformer::builder`].
///
/// ```
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::{SharedInformer, source::kube::KubeSource};
/// # use serde_json::json;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
/// let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client()))
///     .name("settings")
///     .page_size(500)
///     .resync_period(Duration::from_secs(600))
///     .transform(|mut map: ConfigMap| {
///         map.binary_data = None;
///         Ok::<_, String>(map)
///     })
///     .build();
/// assert_eq!(maps.name(), "settings");
/// assert!(!maps.has_started());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct InformerBuilder<T> {
    name: String,
    resource: Option<ResourceType>,
    sources: Vec<(Scope, BoxedSource<T>)>,
    transform: Option<Transform<T>>,
    order: QueueOrder,
    resync_period: Option<Duration>,
    options: ReflectorOptions,
}

/// Starts a reflector whose source and whose type of source are no longer of interest.
pub(super) type ReflectorStart<T> = Box<dyn FnOnce(Arc<Core<T>>, CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// Makes the start of a reflector, given its options; and what lists the source to compare it with the cache.
type BoxedSource<T> =
    Box<dyn FnOnce(ReflectorOptions, Option<Transform<T>>) -> (ReflectorStart<T>, TakeInventory) + Send>;

impl<T: Object> InformerBuilder<T> {
    pub(crate) fn new<L: ListWatch<T>>(sources: impl IntoIterator<Item = (Scope, L)>) -> Self {
        Self {
            name: short_type_name::<T>(),
            resource: None,
            sources: sources.into_iter().map(|(scope, source)| (scope, boxed(source))).collect(),
            transform: None,
            order: QueueOrder::default(),
            resync_period: None,
            options: ReflectorOptions::default(),
        }
    }

    /// The name that logs, messages and metrics use; the type's name unless given.
    ///
    /// ```
    /// # use kube_informer::SharedInformer;
    /// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
    /// # let source = ListWatchFns::new(
    /// #     |_: ListOptions| async {
    /// #         let thing = Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "7".to_owned() };
    /// #         Ok(Items::complete([thing], ListEnd { version: Some("7".into()), ..ListEnd::default() }))
    /// #     },
    /// #     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
    /// # );
    /// let things = SharedInformer::builder(source).name("rooms").build();
    /// assert_eq!(things.name(), "rooms");
    /// ```
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Whether to ask for the initial state by a watch where the source can. On unless said otherwise.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let source = KubeSource::<ConfigMap>::new(server.client());
    /// let maps = SharedInformer::builder(source).streaming(false).build();
    /// maps.start()?;
    /// maps.synced().await?;
    /// assert_eq!(server.requests()[0].verb.as_str(), "list", "not a watch");
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.options.streaming = streaming;
        self
    }

    /// How many objects a list asks for at a time.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let source = KubeSource::<ConfigMap>::new(server.client());
    /// let maps = SharedInformer::builder(source).streaming(false).page_size(50).build();
    /// maps.start()?;
    /// maps.synced().await?;
    /// assert!(server.requests()[0].query.contains("limit=50"));
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn page_size(mut self, page_size: usize) -> Self {
        self.options.page_size = Some(page_size);
        self
    }

    /// The shortest time a watch is asked to last; the longest is twice that.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let source = KubeSource::<ConfigMap>::new(server.client());
    /// let maps = SharedInformer::builder(source).watch_timeout(Duration::from_secs(1800)).build();
    /// maps.start()?;
    /// maps.synced().await?;
    /// let query = &server.requests()[0].query;
    /// let asked = query.split('&').find_map(|part| part.strip_prefix("timeoutSeconds=")).unwrap();
    /// assert!((1800..=3600).contains(&asked.parse::<u64>()?));
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn watch_timeout(mut self, timeout: Duration) -> Self {
        self.options.watch_timeout = timeout;
        self
    }

    /// How long a list or an initial stream may stand still before it is given up.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kube_informer::SharedInformer;
    /// # use kube_informer::source::{Events, Identity, Items, ListOptions, ListWatchFns, WatchOptions};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    /// # runtime.unwrap().block_on(async {
    /// // A list of which nothing ever comes.
    /// let source = ListWatchFns::new(
    ///     |_: ListOptions| async { Ok(Items::<Identity>::new(futures_util::stream::pending())) },
    ///     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
    /// );
    /// let things = SharedInformer::builder(source).progress_deadline(Duration::from_secs(5)).build();
    /// things.start()?;
    /// tokio::time::sleep(Duration::from_secs(6)).await;
    /// assert_eq!(things.health().parts[0].failures, 1, "it has been given up, to be tried again");
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn progress_deadline(mut self, deadline: Duration) -> Self {
        self.options.progress_deadline = deadline;
        self
    }

    /// How long to wait between attempts.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kube_informer::{SharedInformer, source::*};
    /// use kube_informer::reflector::BackoffOptions;
    ///
    /// # let source = ListWatchFns::new(
    /// #     |_: ListOptions| async { Err::<Items<Identity>, _>(SourceError::CutOff) },
    /// #     |_: WatchOptions| async { Err::<Events<Identity>, _>(SourceError::CutOff) },
    /// # );
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    /// # runtime.unwrap().block_on(async {
    /// let patient = BackoffOptions { initial: Duration::from_secs(60), ..BackoffOptions::default() };
    /// let things = SharedInformer::builder(source).backoff(patient).build();
    /// things.start()?;
    /// tokio::time::sleep(Duration::from_secs(59)).await;
    /// assert_eq!(things.health().parts[0].failures, 1, "it has not tried again");
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn backoff(mut self, backoff: BackoffOptions) -> Self {
        self.options.backoff = backoff;
        self
    }

    /// Which queue changes pass through on their way to the cache.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// use kube_informer::QueueOrder;
    ///
    /// let source = KubeSource::<ConfigMap>::new(server.client());
    /// let maps = SharedInformer::builder(source).queue_order(QueueOrder::PerObject).build();
    /// maps.start()?;
    /// maps.synced().await?;
    /// assert!(maps.store().contains("web/a"));
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn queue_order(mut self, order: QueueOrder) -> Self {
        self.order = order;
        self
    }

    /// How often handlers are shown the cache again, unless they ask for another period. Never unless given.
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
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
    /// use kube_informer::Event;
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    /// # runtime.unwrap().block_on(async {
    /// let things = SharedInformer::builder(source).resync_period(Duration::from_secs(600)).build();
    /// let mut events = things.events();
    /// things.start()?;
    /// assert!(matches!(events.next().await, Some(Event::Added { .. })));
    /// assert!(matches!(events.next().await, Some(Event::Resynced(_))), "ten minutes later");
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = Some(period).filter(|period| !period.is_zero());
        self
    }

    /// How often the server is asked for everything again though nothing is wrong. Never unless given.
    ///
    /// ```
    /// # use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
    /// # use std::time::Duration;
    /// # use kube_informer::SharedInformer;
    /// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
    /// # let lists = Arc::new(AtomicUsize::new(0));
    /// # let counted = lists.clone();
    /// # let source = ListWatchFns::new(
    /// #     move |_: ListOptions| {
    /// #         counted.fetch_add(1, Ordering::Relaxed);
    /// #         let end = ListEnd { version: Some("7".into()), ..ListEnd::default() };
    /// #         async { Ok(Items::<Identity>::complete([], end)) }
    /// #     },
    /// #     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
    /// # );
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    /// # runtime.unwrap().block_on(async {
    /// let things = SharedInformer::builder(source).relist_period(Duration::from_secs(60)).build();
    /// things.start()?;
    /// tokio::time::sleep(Duration::from_secs(130)).await;
    /// assert_eq!(lists.load(Ordering::Relaxed), 3, "the source counts how often it is listed");
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn relist_period(mut self, period: Duration) -> Self {
        self.options.relist_period = Some(period).filter(|period| !period.is_zero());
        self
    }

    /// Changes every object on its way in, once: to drop what is not needed, say.
    ///
    /// It must leave name, namespace, uid and version alone. What it fails on is treated like an object that could not be
    /// decoded: the last good copy stays, and the error is reported.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// server.patch("configmaps", Some("web"), "a", json!({"data": {"color": "red", "essay": "much text"}}))?;
    /// let source = KubeSource::<ConfigMap>::new(server.client());
    /// let maps = SharedInformer::builder(source)
    ///     .transform(|mut map: ConfigMap| {
    ///         let data = map.data.as_mut().ok_or("there is no data")?;
    ///         data.remove("essay");
    ///         Ok::<_, &str>(map)
    ///     })
    ///     .build();
    /// maps.start()?;
    /// maps.synced().await?;
    /// assert_eq!(maps.store().get("web/a").unwrap().data.as_ref().unwrap().len(), 1);
    ///
    /// server.create("configmaps", Some("web"), json!({"metadata": {"name": "b"}}))?;
    /// maps.health_changes().wait_for(|health| !health.undecodable.is_empty()).await?;
    /// assert_eq!(maps.health().undecodable[&"web/b".parse()?], "transform failed: there is no data");
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn transform<F, E>(mut self, transform: F) -> Self
    where
        F: Fn(T) -> Result<T, E> + Send + Sync + 'static,
        E: fmt::Display,
    {
        self.transform = Some(Arc::new(move |object| transform(object).map_err(|error| error.to_string())));
        self
    }

    /// The collection that is followed: a label of metrics.
    ///
    /// ```
    /// # use kube_informer::SharedInformer;
    /// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
    /// # let source = ListWatchFns::new(
    /// #     |_: ListOptions| async {
    /// #         let thing = Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "7".to_owned() };
    /// #         Ok(Items::complete([thing], ListEnd { version: Some("7".into()), ..ListEnd::default() }))
    /// #     },
    /// #     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
    /// # );
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, SharedString, Unit};
    /// use kube_informer::object::Kind as _;
    /// # /// Knows which collection each metric is of.
    /// # #[derive(Default)]
    /// # struct Recorder(std::sync::Mutex<Vec<(String, String)>>);
    /// # impl Recorder {
    /// #     fn note(&self, key: &Key) {
    /// #         let resource = key.labels().find(|label| label.key() == "resource").unwrap().value();
    /// #         self.0.lock().unwrap().push((key.name().to_owned(), resource.to_owned()));
    /// #     }
    /// #     fn resource_of(&self, metric: &str) -> String {
    /// #         self.0.lock().unwrap().iter().find(|(name, _)| name == metric).unwrap().1.clone()
    /// #     }
    /// # }
    /// # impl metrics::Recorder for Recorder {
    /// #     fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    /// #     fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    /// #     fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    /// #     fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter { self.note(key); Counter::noop() }
    /// #     fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge { self.note(key); Gauge::noop() }
    /// #     fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram { Histogram::noop() }
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let recorder = Recorder::default();
    /// let things = SharedInformer::builder(source).resource(ConfigMap::resource_type()).build();
    /// metrics::with_local_recorder(&recorder, || things.start())?;
    /// assert_eq!(recorder.resource_of("informer_queued_items"), "configmaps");
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn resource(mut self, resource: ResourceType) -> Self {
        self.resource = Some(resource);
        self
    }

    #[cfg(feature = "kube")]
    pub(crate) fn boxed_transform(mut self, transform: Option<Transform<T>>) -> Self {
        self.transform = transform;
        self
    }

    /// So many first lists may run at once, of all informers that share this.
    ///
    /// ```
    /// # use kube_informer::SharedInformer;
    /// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
    /// # let source = ListWatchFns::new(
    /// #     |_: ListOptions| async {
    /// #         let thing = Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "7".to_owned() };
    /// #         Ok(Items::complete([thing], ListEnd { version: Some("7".into()), ..ListEnd::default() }))
    /// #     },
    /// #     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
    /// # );
    /// # use std::sync::Arc;
    /// use tokio::sync::Semaphore;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// let turns = Arc::new(Semaphore::new(0));
    /// let things = SharedInformer::builder(source).first_lists(turns.clone()).build();
    /// things.start()?;
    /// # for _ in 0..100 { tokio::task::yield_now().await }
    /// assert!(!things.is_synced(), "it is nobody's turn");
    /// turns.add_permits(1);
    /// things.synced().await?;
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn first_lists(mut self, first_lists: Arc<Semaphore>) -> Self {
        self.options.first_lists = Some(first_lists);
        self
    }

    /// Where all chance comes from, so that a run can be repeated.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// for _ in 0..2 {
    ///     let source = KubeSource::<ConfigMap>::new(server.client());
    ///     let maps = SharedInformer::builder(source).seed(42).build();
    ///     maps.start()?;
    ///     maps.synced().await?;
    ///     maps.stop().await;
    /// }
    /// let requests = server.requests();
    /// assert_eq!(requests[0].query, requests[1].query, "how long a watch is to last is chance, too");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// The informer, not started yet.
    ///
    /// ```
    /// # use kube_informer::SharedInformer;
    /// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
    /// # let source = ListWatchFns::new(
    /// #     |_: ListOptions| async {
    /// #         let thing = Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "7".to_owned() };
    /// #         Ok(Items::complete([thing], ListEnd { version: Some("7".into()), ..ListEnd::default() }))
    /// #     },
    /// #     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
    /// # );
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// let things = SharedInformer::builder(source).build();
    /// assert!(!things.has_started());
    /// things.start()?;
    /// things.synced().await?;
    /// assert!(things.store().contains("web/a"));
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn build(self) -> SharedInformer<T> {
        let Self { name, resource, sources, transform, order, resync_period, mut options } = self;
        let relists = watch::Sender::new(0);
        options.relist_requests = Some(relists.subscribe());
        let scopes: Vec<Scope> = sources.iter().map(|(scope, _)| scope.clone()).collect();
        let health = HealthBoard::new(scopes.clone());
        let (store, mut writer) = Store::new(options.seed);
        let by_namespace =
            |object: &T, add: &mut dyn FnMut(&str)| object.id().key.namespace().into_iter().for_each(add);
        // The first index of a new store: its name cannot be taken.
        let _ = writer.add_index(
            NAMESPACE_INDEX,
            std::any::TypeId::of::<Store<T>>(),
            index_function(by_namespace, |_, _| {}),
        );
        let applier = Applier::new(writer, scopes, health.clone(), resync_period);
        let progress = applier.progress();
        let (mut reflectors, mut inventories) = (Vec::new(), Vec::new());
        for ((scope, source), number) in sources.into_iter().zip(0..) {
            let seed = options.seed.wrapping_add(number);
            let (start, inventory) = source(ReflectorOptions { scope, seed, ..options.clone() }, transform.clone());
            reflectors.push(start);
            inventories.push(inventory);
        }
        let core = Core {
            name,
            resource,
            changes: Changes::boxed(order.queue(), store.clone()),
            store,
            applier: Mutex::new(applier),
            health,
            progress,
            relists,
            inventories: Mutex::new(inventories),
            resync_period,
        };
        let lifecycle = Mutex::new(Lifecycle::New { reflectors, handlers: Vec::new() });
        let (core, cancel, ending) = (Arc::new(core), CancellationToken::new(), tokio::sync::Mutex::default());
        SharedInformer { shared: Arc::new(Shared { core, cancel, lifecycle, ending }) }
    }
}

fn boxed<T: Object, L: ListWatch<T>>(source: L) -> BoxedSource<T> {
    let source = Arc::new(source);
    Box::new(move |options: ReflectorOptions, transform| {
        let inventory = take_inventory(source.clone(), options.scope.clone());
        let start: ReflectorStart<T> = Box::new(move |core, cancel| {
            let sink = CoreSink { core, scope: options.scope.clone() };
            match transform {
                Some(transform) => {
                    Box::pin(Reflector::new(Transformed::new(source, transform), sink, options).run(cancel))
                }
                None => Box::pin(Reflector::new(source, sink, options).run(cancel)),
            }
        });
        (start, inventory)
    })
}

impl<T> fmt::Debug for InformerBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerBuilder")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
