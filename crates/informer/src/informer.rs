//! One informer: a cache that keeps itself in step with the server, and tells everybody who asked.

mod builder;
mod error;
mod registration;
mod tasks;
mod verify;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, info, info_span};

use self::builder::ReflectorStart;
use self::tasks::{apply_all, keep_time, supervised};
use self::verify::TakeInventory;
use crate::apply::{Applier, Changes, Progress};
use crate::health::{Health, HealthBoard, InformerError};
use crate::lister::Lister;
use crate::object::{KeyRef, Object, ObjectKey, ResourceType, ResourceVersion};
use crate::processor::Listener;
use crate::source::ListWatch;
use crate::store::{Index, Store};

pub use self::builder::InformerBuilder;
pub use self::error::{NotSynced, StartError, Stopped, VerifyError, WaitError};
pub use self::registration::Registration;
pub use self::verify::Difference;

/// How long [`SharedInformer::verify`] gives the cache to catch up with the list it is compared with.
const CATCH_UP: Duration = Duration::from_secs(5);

/// A cache of one collection that keeps itself in step with the server, and tells any number of handlers of every change.
///
/// Cloning gives another handle to the same informer. Its tasks live as long as one of them, or the factory it came
/// from, does; [`SharedInformer::stop`] ends it earlier and waits for the end.
///
/// client-go's `SharedIndexInformer`. What differs: it is typed, and it is started by one call, once.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::{SharedInformer, source::kube::KubeSource};
/// # use serde_json::json;
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// # let client = server.client();
/// let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(client).namespace("default")).build();
/// maps.start()?;
/// maps.synced().await?;
///
/// server.create("configmaps", Some("default"), json!({"metadata": {"name": "a"}, "data": {"k": "v"}}))?;
/// let map = maps.wait_for("default/a", |map| map.is_some()).await?;
/// assert_eq!(map.unwrap().data.as_ref().unwrap()["k"], "v");
///
/// assert!(maps.verify().await?.is_empty());
/// maps.stop().await;
/// assert!(maps.store().contains("default/a"), "the cache stays readable");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct SharedInformer<T> {
    shared: Arc<Shared<T>>,
}

/// Ends the informer's tasks when the last handle is gone: it owns them.
struct Shared<T> {
    core: Arc<Core<T>>,
    cancel: CancellationToken,
    lifecycle: Mutex<Lifecycle<T>>,
    /// Tasks that were told to end and are not joined yet. Held by who joins them: others who stop it wait here.
    ending: tokio::sync::Mutex<JoinSet<()>>,
}

/// What the informer's tasks share. None of them keeps the informer itself alive.
struct Core<T> {
    name: String,
    /// The collection, if it is one of an API server: a label of metrics.
    resource: Option<ResourceType>,
    store: Store<T>,
    changes: Changes<T>,
    applier: Mutex<Applier<T>>,
    health: HealthBoard,
    progress: watch::Receiver<Progress>,
    /// Counts requests to ask the server for everything again.
    relists: watch::Sender<u64>,
    /// What lists the sources to compare them with the cache. Empty once stopped: connections are given back.
    inventories: Mutex<Vec<TakeInventory>>,
    resync_period: Option<Duration>,
}

enum Lifecycle<T> {
    New { reflectors: Vec<ReflectorStart<T>>, handlers: Vec<(Arc<Listener<T>>, BoxFuture<'static, ()>)> },
    Running { tasks: JoinSet<()>, runtime: Handle },
    Stopped,
}

impl<T: Object> SharedInformer<T> {
    /// Configures an informer over any source, with no Kubernetes client needed.
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
    /// let things = SharedInformer::builder(source).name("things").build();
    /// things.start()?;
    /// things.synced().await?;
    /// assert_eq!((things.name(), things.store().len()), ("things", 1));
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn builder(source: impl ListWatch<T>) -> InformerBuilder<T> {
        InformerBuilder::new([(None, source)])
    }

    /// True if both are handles to one informer.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let factory = SharedInformerFactory::new(server.client());
    /// let (first, second) = (factory.informer::<ConfigMap>()?, factory.informer::<ConfigMap>()?);
    /// assert!(first.is_same(&second));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The name that logs and messages use.
    pub fn name(&self) -> &str {
        &self.shared.core.name
    }

    /// Starts the informer. A second start does nothing.
    ///
    /// # Errors
    ///
    /// [`StartError::NoRuntime`] outside of a tokio runtime, [`StartError::Stopped`] if it has been stopped.
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
    /// # let things = SharedInformer::builder(source).build();
    /// use kube_informer::informer::StartError;
    ///
    /// assert_eq!(things.start(), Err(StartError::NoRuntime));
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// things.start()?;
    /// things.start()?; // Does nothing.
    /// assert!(things.has_started());
    /// things.stop().await;
    /// assert!(matches!(things.start(), Err(StartError::Stopped(_))));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn start(&self) -> Result<(), StartError> {
        let Shared { core, cancel, lifecycle, .. } = &*self.shared;
        let mut lifecycle = lifecycle.lock();
        match &*lifecycle {
            Lifecycle::Running { .. } => return Ok(()),
            Lifecycle::Stopped => return Err(StartError::Stopped(core.name.clone())),
            Lifecycle::New { .. } => {}
        }
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let started = Lifecycle::Running { tasks: JoinSet::new(), runtime: runtime.clone() };
        let Lifecycle::New { reflectors, handlers } = std::mem::replace(&mut *lifecycle, started) else {
            return Ok(());
        };
        let Lifecycle::Running { tasks, .. } = &mut *lifecycle else { return Ok(()) };
        core.health.take_metrics(&core.name, core.resource.as_ref());
        let resync_check = core.applier.lock().processor.start();
        let span = info_span!("informer", name = %core.name);
        let mut spawn = |part, work: BoxFuture<'static, ()>| {
            tasks.spawn_on(supervised(part, work, core.clone(), cancel.clone()).instrument(span.clone()), &runtime);
        };
        for reflector in reflectors {
            spawn("the reflector", reflector(core.clone(), cancel.clone()));
        }
        spawn("the applier", Box::pin(apply_all(core.clone(), cancel.clone())));
        spawn("the clock", Box::pin(keep_time(core.clone(), resync_check, cancel.clone())));
        for (_, delivery) in handlers.into_iter().filter(|(listener, _)| listener.starts()) {
            tasks.spawn_on(delivery.instrument(span.clone()), &runtime);
        }
        info!(name = %core.name, "informer started");
        Ok(())
    }

    /// Starts the informer, waits until cancelled, and stops it: for programs that keep their tasks themselves.
    ///
    /// # Errors
    ///
    /// As [`SharedInformer::start`].
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
    /// # let things = SharedInformer::builder(source).build();
    /// use kube_informer::CancellationToken;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// let cancel = CancellationToken::new();
    /// let work = async {
    ///     things.synced().await?;
    ///     cancel.cancel();
    ///     Ok::<(), kube_informer::informer::Stopped>(())
    /// };
    /// let (ran, worked) = tokio::join!(things.run(cancel.clone()), work);
    /// assert!(ran.is_ok() && worked.is_ok() && things.is_stopped());
    /// # });
    /// ```
    pub async fn run(&self, cancel: CancellationToken) -> Result<(), StartError> {
        self.start()?;
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            () = self.shared.cancel.cancelled() => {}
        }
        self.stop().await;
        Ok(())
    }

    /// Ends the informer and waits until nothing of it runs any more. The cache stays readable.
    ///
    /// Callbacks under way are waited for; events that were not delivered yet are dropped. From inside one of its own
    /// callbacks it only ends the informer and does not wait: that would be for itself.
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
    /// maps.stop().await;
    /// server.delete("configmaps", Some("web"), "a")?;
    /// assert!(maps.store().contains("web/a"), "as it was when the informer ended");
    /// assert!(maps.relist().await.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn stop(&self) {
        let Shared { core, cancel, lifecycle, ending } = &*self.shared;
        cancel.cancel();
        if core.applier.lock().processor.is_called_from_one() {
            core.applier.lock().processor.close();
            return;
        }
        let mut ending = ending.lock().await;
        let before = std::mem::replace(&mut *lifecycle.lock(), Lifecycle::Stopped);
        // From here on nobody is added, so that none is missed and waited for without end.
        core.applier.lock().processor.close();
        if let Lifecycle::Running { tasks, .. } = before {
            *ending = tasks;
        }
        while ending.join_next().await.is_some() {}
        core.inventories.lock().clear();
        info!(name = %core.name, "informer stopped");
        core.health.stopped();
    }

    /// True once it has been started, and also after it was stopped.
    pub fn has_started(&self) -> bool {
        !matches!(*self.shared.lifecycle.lock(), Lifecycle::New { .. })
    }

    /// True once it has been stopped.
    pub fn is_stopped(&self) -> bool {
        self.shared.cancel.is_cancelled()
    }

    /// The cache.
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
    /// let store = maps.store();
    /// assert!(store.contains("web/a"));
    /// server.delete("configmaps", Some("web"), "a")?;
    /// maps.wait_for("web/a", |map| map.is_none()).await?;
    /// assert!(store.is_empty(), "it is kept in step");
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn store(&self) -> Store<T> {
        self.shared.core.store.clone()
    }

    /// The cache, by namespace and labels.
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
    /// use kube_informer::Selector;
    ///
    /// let lister = maps.lister();
    /// assert_eq!(lister.namespace("web").list(&Selector::everything()).len(), 1);
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn lister(&self) -> Lister<T> {
        Lister::new(self.store())
    }

    /// The index of that name, or `None` if nobody added it.
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
    /// let by_namespace = maps.index("namespace").expect("every informer has it");
    /// assert_eq!(by_namespace.get("web").len(), 1);
    /// assert!(maps.index("color").is_none());
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn index(&self, name: &str) -> Option<Index<T>> {
        self.shared.core.store.index(name)
    }

    /// True once the first list is applied. It stays true.
    pub fn is_synced(&self) -> bool {
        self.shared.core.progress.borrow().synced
    }

    /// Waits until the first list is applied. Any number of tasks may wait.
    ///
    /// # Errors
    ///
    /// [`Stopped`] if the informer ended before.
    ///
    /// # Cancel safety
    ///
    /// Waiting again is fine.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// maps.start()?;
    /// assert!(!maps.is_synced());
    /// maps.synced().await?;
    /// assert!(maps.is_synced() && maps.store().contains("web/a"));
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn synced(&self) -> Result<(), Stopped> {
        self.reach(|progress| progress.synced.then_some(())).await
    }

    /// Waits until the first list is applied, for so long at most.
    ///
    /// # Errors
    ///
    /// [`NotSynced`] says what the informer was doing instead: a refused request, a kind the server does not know.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_embedded_apiserver::{ApiServer, Fault};
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use std::time::Duration;
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    /// # runtime.unwrap().block_on(async {
    /// let server = ApiServer::new();
    /// server.faults().add(Fault::status(403));
    /// let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// maps.start()?;
    /// let error = maps.synced_within(Duration::from_secs(5)).await.unwrap_err();
    /// assert!(error.to_string().contains("server answered 403"), "{error}");
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn synced_within(&self, within: Duration) -> Result<(), NotSynced> {
        match tokio::time::timeout(within, self.synced()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => {
                Err(NotSynced { within, waiting: vec![(self.name().to_owned(), self.health().to_string())] })
            }
        }
    }

    /// The version up to which the cache reflects every change; `None` before the first list.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// assert_eq!(maps.last_sync_version(), None);
    /// maps.start()?;
    /// maps.synced().await?;
    /// assert_eq!(maps.last_sync_version(), Some(server.revision().into()));
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn last_sync_version(&self) -> Option<ResourceVersion> {
        self.shared.core.store.version()
    }

    /// Waits until the cache reflects every change up to a version, such as that of an object just written.
    ///
    /// On a quiet collection that can take until the server's next bookmark, about a minute.
    ///
    /// # Errors
    ///
    /// [`WaitError::Stopped`] if the informer ended before, [`WaitError::VersionsRestarted`] if the server was restored
    /// to an older state meanwhile.
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
    /// use kube_informer::ResourceVersion;
    ///
    /// let written = server.create("configmaps", Some("web"), json!({"metadata": {"name": "b"}}))?;
    /// let version = ResourceVersion::from(written["metadata"]["resourceVersion"].as_str().unwrap());
    /// maps.wait_for_version(&version).await?;
    /// assert!(maps.store().contains("web/b"), "what was written can be read");
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn wait_for_version(&self, version: &ResourceVersion) -> Result<(), WaitError> {
        let epoch = self.shared.core.progress.borrow().epoch;
        let reached = self.reach(|progress| {
            if progress.epoch != epoch {
                return Some(Err(WaitError::VersionsRestarted));
            }
            progress.version.as_ref().is_some_and(|now| now.is_at_least(version)).then_some(Ok(()))
        });
        reached.await.unwrap_or_else(|Stopped(name)| Err(WaitError::Stopped(name)))
    }

    /// Waits until an object is as it should be, or is gone: whatever the predicate says of its present state.
    ///
    /// # Errors
    ///
    /// [`Stopped`] if the informer ended before.
    ///
    /// # Cancel safety
    ///
    /// Waiting again is fine.
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
    /// server.patch("configmaps", Some("web"), "a", json!({"data": {"ready": "yes"}}))?;
    /// let ready = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["ready"] == "yes");
    /// let map = maps.wait_for("web/a", |map| map.is_some_and(|map| ready(map))).await?;
    /// assert!(map.is_some());
    ///
    /// server.delete("configmaps", Some("web"), "a")?;
    /// assert!(maps.wait_for("web/a", |map| map.is_none()).await?.is_none());
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn wait_for<'k>(
        &self,
        key: impl Into<KeyRef<'k>>,
        mut predicate: impl FnMut(Option<&Arc<T>>) -> bool,
    ) -> Result<Option<Arc<T>>, Stopped> {
        let key = ObjectKey::from(key.into());
        self.reach(|_| {
            let object = self.shared.core.store.get(&key);
            predicate(object.as_ref()).then_some(object)
        })
        .await
    }

    /// Asks the server for everything again, and waits until the answer is applied. What is unchanged is not announced.
    ///
    /// # Errors
    ///
    /// [`Stopped`] if the informer ended before.
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
    /// let before = server.requests().len();
    /// maps.relist().await?;
    /// assert!(server.requests().len() > before, "the server was asked");
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn relist(&self) -> Result<(), Stopped> {
        let mut request = 0;
        self.shared.core.relists.send_modify(|requests| {
            *requests += 1;
            request = *requests;
        });
        self.reach(|progress| (progress.relists >= request).then_some(())).await
    }

    /// Compares the cache with the server, by keys and versions, and gives what is not the same.
    ///
    /// A healthy informer has no differences: what changes meanwhile is told apart by asking twice.
    ///
    /// # Errors
    ///
    /// [`VerifyError`] if the server could not be asked.
    ///
    /// A cache whose server never told it of a change:
    ///
    ///
    /// ```
    /// # use kube_informer::SharedInformer;
    /// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
    /// # use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
    /// use kube_informer::informer::Difference;
    ///
    /// # let deleted = Arc::new(AtomicBool::new(false));
    /// # let is_deleted = deleted.clone();
    /// # let source = ListWatchFns::new(
    /// #     move |_: ListOptions| {
    /// #         let thing = Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "7".to_owned() };
    /// #         let things = Some(thing).filter(|_| !is_deleted.load(Ordering::Relaxed));
    /// #         let end = ListEnd { version: Some("7".into()), ..ListEnd::default() };
    /// #         async { Ok(Items::complete(things, end)) }
    /// #     },
    /// #     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
    /// # );
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let things = SharedInformer::builder(source).build();
    /// # things.start()?;
    /// # things.synced().await?;
    /// assert_eq!(things.verify().await?, []);
    /// deleted.store(true, Ordering::Relaxed); // The source lists it no more, and its watch is silent.
    /// assert!(matches!(&things.verify().await?[..], [Difference::Extra { key, .. }] if key.as_str() == "web/a"));
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn verify(&self) -> Result<Vec<Difference>, VerifyError> {
        let first = self.differences().await?;
        if first.is_empty() {
            return Ok(first);
        }
        let second = self.differences().await?;
        Ok(first.into_iter().filter(|difference| second.contains(difference)).collect())
    }

    async fn differences(&self) -> Result<Vec<Difference>, VerifyError> {
        let mut differences = Vec::new();
        let inventories = self.shared.core.inventories.lock().clone();
        if self.is_stopped() {
            return Err(VerifyError::Stopped(self.name().to_owned()));
        }
        for inventory in inventories {
            let inventory = inventory().await?;
            let mut found = inventory.compare(&self.shared.core.store.snapshot());
            if let (false, Some(version)) = (found.is_empty(), &inventory.version) {
                // It may only be behind. A cache that does not catch up is compared as it is.
                let _ = tokio::time::timeout(CATCH_UP, self.wait_for_version(version)).await;
                found = inventory.compare(&self.shared.core.store.snapshot());
            }
            differences.append(&mut found);
        }
        differences.sort_unstable();
        Ok(differences)
    }

    /// What the informer is doing, and how well.
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
    /// let health = maps.health();
    /// assert!(health.synced && !health.stopped);
    /// assert_eq!(health.parts.len(), 1, "one for all namespaces");
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn health(&self) -> Health {
        self.shared.core.health.health()
    }

    /// The same, as it changes.
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
    /// let mut changes = maps.health_changes();
    /// changes.wait_for(|health| health.is_watching()).await?;
    /// maps.stop().await;
    /// assert!(changes.wait_for(|health| health.stopped).await?.to_string().contains("stopped"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn health_changes(&self) -> watch::Receiver<Health> {
        self.shared.core.health.subscribe()
    }

    /// How many changes came and wait to be applied.
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
    /// assert_eq!(maps.queued(), 0, "what came has been applied");
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn queued(&self) -> usize {
        self.shared.core.changes.len()
    }

    /// Calls a function with everything that goes wrong. The last one set is called.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_embedded_apiserver::{ApiServer, Fault};
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// let server = ApiServer::new();
    /// server.faults().add(Fault::status(403));
    /// let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// let (sender, mut codes) = tokio::sync::mpsc::unbounded_channel();
    /// maps.on_error(move |error| { let _ = sender.send(error.status().map(|status| status.code)); });
    /// maps.start()?;
    /// assert_eq!(codes.recv().await, Some(Some(403)));
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn on_error(&self, hook: impl Fn(&InformerError) + Send + Sync + 'static) {
        self.shared.core.health.set_error_hook(Arc::new(hook));
    }

    /// Waits until `look` finds what it looks for.
    async fn reach<R>(&self, mut look: impl FnMut(&Progress) -> Option<R>) -> Result<R, Stopped> {
        let mut progress = self.shared.core.progress.clone();
        let found = async {
            loop {
                let now = progress.borrow_and_update().clone();
                if let Some(found) = look(&now) {
                    return Some(found);
                }
                if progress.changed().await.is_err() {
                    return None;
                }
            }
        };
        let found = tokio::select! {
            biased;
            found = found => found,
            () = self.shared.cancel.cancelled() => None,
        };
        found.ok_or_else(|| Stopped(self.name().to_owned()))
    }
}

/// The last part of a type's name: enough to tell handlers apart.
fn short_type_name<K>() -> String {
    let name = std::any::type_name::<K>();
    let name = name.split('<').next().unwrap_or(name);
    name.rsplit("::").find(|part| !part.starts_with("{{")).unwrap_or(name).to_owned()
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl<T> Clone for SharedInformer<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T: Object> fmt::Debug for SharedInformer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformer")
            .field("name", &self.name())
            .field("store", &self.store())
            .finish_non_exhaustive()
    }
}
