//! What an informer is doing, how well, and since when.

mod metrics;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::error;

pub(crate) use self::metrics::Metrics;
use crate::object::{DecodeError, KeyRef, ObjectKey, ResourceType, ResourceVersion};
use crate::queue::Scope;
use crate::reflector::{ListReason, ReflectorError};
use crate::source::{BadObject, Status};

/// The state of one informer, at the moment of asking.
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
/// let health = maps.health_changes().wait_for(|health| health.is_watching()).await?.clone();
/// assert_eq!(health.to_string(), "watching");
/// assert!(health.age().is_some_and(|age| age.as_secs() < 60));
/// assert!(health.undecodable.is_empty());
/// # maps.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Health {
    /// What each part is doing: one row, or one per namespace of a set.
    pub parts: Vec<PartHealth>,
    /// True once every first list is applied. It stays true.
    pub synced: bool,
    /// Objects that came but could not be read, with why. Of those the cache holds an older state, or none.
    pub undecodable: BTreeMap<ObjectKey, String>,
    /// True once the informer has ended.
    pub stopped: bool,
}

/// What one reflector is doing.
///
/// An informer of some namespaces has one for each:
///
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::SharedInformerFactory;
/// # use serde_json::json;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
/// let factory = SharedInformerFactory::builder(server.client()).namespaces(["web", "shop"]).build();
/// let maps = factory.informer::<ConfigMap>()?;
/// factory.start()?;
/// factory.synced().await?;
/// let parts = maps.health().parts;
/// let namespaces: Vec<_> = parts.iter().filter_map(|part| part.scope.as_deref()).collect();
/// assert_eq!(namespaces, ["shop", "web"]);
/// assert!(parts.iter().all(|part| part.failures == 0 && part.last_contact.is_some()));
/// factory.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct PartHealth {
    /// The namespace it follows; `None` for everything.
    pub scope: Scope,
    /// What it is doing now.
    pub phase: Phase,
    /// When something was last heard from the server; `None` if never.
    pub last_contact: Option<Instant>,
    /// The last failure, if there was one since the phase before the last.
    pub last_error: Option<ReflectorError>,
    /// How often it failed since it started.
    pub failures: u64,
    /// True if the last list held objects of which not even the key could be read: deletions may be missing.
    pub inconclusive: bool,
}

/// What a reflector can be doing.
///
/// ```
/// use kube_informer::Phase;
///
/// let phase = Phase::Listing { received: 500, remaining: Some(1500) };
/// assert_eq!(phase.to_string(), "listing, 500 received, 1500 to come");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Not started.
    New,
    /// Asking for everything by list, page by page.
    Listing {
        /// Objects that have come.
        received: u64,
        /// Objects still to come, if the server says so.
        remaining: Option<u64>,
    },
    /// Asking for everything by a watch that starts with the present state.
    Streaming {
        /// Objects that have come.
        received: u64,
    },
    /// Following changes as they happen.
    Watching,
    /// Waiting to try again.
    BackingOff {
        /// Until when.
        until: Instant,
        /// Why.
        why: String,
    },
    /// Ended.
    Stopped,
}

impl Health {
    /// How long ago the part that heard nothing for the longest heard something; `None` if one never did.
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
    /// # let things = SharedInformer::builder(source).build();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    /// # runtime.unwrap().block_on(async {
    /// things.start()?;
    /// things.synced().await?;
    /// tokio::time::sleep(Duration::from_secs(40)).await;
    /// assert_eq!(things.health().age().unwrap().as_secs(), 40, "nothing was heard since the list");
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn age(&self) -> Option<Duration> {
        let ages = self.parts.iter().map(|part| part.last_contact.map(|contact| contact.elapsed()));
        ages.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// True if the cache is synced and every part is following changes.
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
    /// assert!(!maps.health().is_watching());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn is_watching(&self) -> bool {
        self.synced && !self.stopped && self.parts.iter().all(|part| part.phase == Phase::Watching)
    }
}

/// One line for people: what it is doing, and what went wrong last.
impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.parts.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            if let Some(namespace) = &part.scope {
                write!(f, "namespace {namespace}: ")?;
            }
            write!(f, "{}", part.phase)?;
            if let Some(error) = &part.last_error {
                write!(f, ", last error: {error}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("not started"),
            Self::Listing { received, remaining: Some(remaining) } => {
                write!(f, "listing, {received} received, {remaining} to come")
            }
            Self::Listing { received, remaining: None } => write!(f, "listing, {received} received"),
            Self::Streaming { received } => write!(f, "streaming, {received} received"),
            Self::Watching => f.write_str("watching"),
            Self::BackingOff { until, why } => {
                let left = until.saturating_duration_since(Instant::now()).as_secs_f64();
                write!(f, "backing off for {left:.1} s: {why}")
            }
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// Where the parts of an informer write what they do. Cloning gives another handle.
#[derive(Clone)]
pub(crate) struct HealthBoard {
    sender: Arc<watch::Sender<Health>>,
    error_hook: Arc<Mutex<Option<ErrorHook>>>,
    /// Failures that came up under a lock, to be reported once it is released.
    noted: Arc<Mutex<Vec<InformerError>>>,
    /// Taken when the informer starts: a recorder installed before that is found.
    metrics: Arc<OnceLock<Metrics>>,
}

/// What is called with every failure.
pub(crate) type ErrorHook = Arc<dyn Fn(&InformerError) + Send + Sync>;

/// Everything that can go wrong inside a running informer. None of it ends the informer.
///
/// ```
/// use kube_informer::InformerError;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::{SharedInformer, source::kube::KubeSource};
/// # use serde_json::json;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
/// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
/// # maps.start()?;
/// # maps.synced().await?;
/// let (sender, mut errors) = tokio::sync::mpsc::unbounded_channel();
/// maps.on_error(move |error| { let _ = sender.send(error.clone()); });
/// maps.on_event(|_| panic!("not my day"));
/// let error = errors.recv().await.unwrap();
/// assert!(matches!(&error, InformerError::HandlerPanicked { message, .. } if message == "not my day"));
/// assert!(error.status().is_none(), "it was not the server");
/// # maps.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum InformerError {
    /// A list or watch failed; it is tried again.
    #[error("{}{error}", scope_name(scope))]
    Reflector {
        /// Which part.
        scope: Scope,
        /// What happened.
        error: ReflectorError,
    },
    /// An object could not be read; the last good copy stays.
    #[error("object {} could not be read: {}", key_name(bad), bad.error)]
    Undecodable {
        /// What is known of it.
        bad: BadObject,
    },
    /// An index function failed on an object; the object is not in that index.
    #[error("index {index:?} failed on {key}: {message}")]
    Index {
        /// Which index.
        index: String,
        /// Which object.
        key: ObjectKey,
        /// What it said.
        message: String,
    },
    /// Code that the informer was given, such as a source or an object's own methods, panicked. The informer ends.
    #[error("{part} panicked, and the informer ends: {message}")]
    Panicked {
        /// Which part of the informer.
        part: &'static str,
        /// What it said.
        message: String,
    },
    /// A handler panicked; the event counts as handled.
    #[error("handler {handler:?} panicked: {message}")]
    HandlerPanicked {
        /// Which handler.
        handler: String,
        /// What it said.
        message: String,
    },
}

impl InformerError {
    /// What the server answered, if it was the server.
    ///
    /// ```
    /// use kube_informer::InformerError;
    /// use kube_informer::reflector::ReflectorError;
    /// use kube_informer::source::{SourceError, Status};
    ///
    /// let forbidden = Status { code: 403, reason: "Forbidden".to_owned(), ..Status::default() };
    /// let error = ReflectorError::List(SourceError::Status(forbidden));
    /// let error = InformerError::Reflector { scope: Some("web".into()), error };
    /// assert_eq!(error.status().unwrap().code, 403);
    /// assert_eq!(error.to_string(), r#"namespace "web": list failed: server answered 403 Forbidden"#);
    /// ```
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Reflector { error, .. } => error.source_error()?.status(),
            _ => None,
        }
    }
}

fn scope_name(scope: &Scope) -> String {
    scope.as_ref().map_or_else(String::new, |namespace| format!("namespace {namespace:?}: "))
}

fn key_name(bad: &BadObject) -> String {
    bad.key.as_ref().map_or_else(|| "of unknown name".to_owned(), ToString::to_string)
}

impl HealthBoard {
    pub(crate) fn new(scopes: impl IntoIterator<Item = Scope>) -> Self {
        let parts = scopes.into_iter().map(|scope| PartHealth {
            scope,
            phase: Phase::New,
            last_contact: None,
            last_error: None,
            failures: 0,
            inconclusive: false,
        });
        let health = Health { parts: parts.collect(), synced: false, undecodable: BTreeMap::new(), stopped: false };
        Self {
            sender: Arc::new(watch::Sender::new(health)),
            error_hook: Arc::default(),
            noted: Arc::default(),
            metrics: Arc::default(),
        }
    }

    pub(crate) fn health(&self) -> Health {
        self.sender.borrow().clone()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Health> {
        self.sender.subscribe()
    }

    pub(crate) fn set_error_hook(&self, hook: ErrorHook) {
        *self.error_hook.lock() = Some(hook);
    }

    pub(crate) fn take_metrics(&self, name: &str, resource: Option<&ResourceType>) {
        let _ = self.metrics.set(Metrics::new(name, resource));
    }

    pub(crate) fn metrics(&self) -> Option<&Metrics> {
        self.metrics.get()
    }

    pub(crate) fn store_version(&self, version: Option<&ResourceVersion>) {
        if let Some((metrics, version)) = self.metrics().zip(version) {
            metrics.store_version(version);
        }
    }

    pub(crate) fn listing(&self, reason: ListReason) {
        if let Some(metrics) = self.metrics() {
            metrics.listing(reason);
        }
    }

    /// Reports a failure to whoever asked to hear of them.
    pub(crate) fn report(&self, error: &InformerError) {
        // The hook runs outside the lock: it may take as long as it likes, and may call back.
        let hook = self.error_hook.lock().clone();
        if let Some(hook) = hook
            && let Err(panic) = catch_unwind(AssertUnwindSafe(|| hook(error)))
        {
            // Whoever reports has more to do than to report.
            error!(%error, panic = crate::panic_text(&*panic), "error hook panicked");
        }
        match (self.metrics(), error) {
            (Some(metrics), InformerError::Undecodable { .. }) => metrics.undecodable(),
            (Some(metrics), _) => metrics.failed(),
            (None, _) => {}
        }
        if let InformerError::Reflector { scope, error } = error {
            self.part(scope, |part| {
                part.failures += 1;
                part.last_error = Some(error.clone());
            });
        }
    }

    /// Keeps a failure for [`HealthBoard::report_noted`]: for where a lock is held that the hook may want.
    pub(crate) fn note(&self, error: InformerError) {
        self.noted.lock().push(error);
    }

    /// Reports what was noted.
    pub(crate) fn report_noted(&self) {
        let noted = std::mem::take(&mut *self.noted.lock());
        noted.iter().for_each(|error| self.report(error));
    }

    pub(crate) fn phase(&self, scope: &Scope, phase: Phase) {
        if let (Some(metrics), Phase::Watching) = (self.metrics(), &phase) {
            metrics.watching();
        }
        self.part(scope, |part| part.phase = phase);
    }

    pub(crate) fn listed(&self, scope: &Scope, conclusive: bool) {
        self.part(scope, |part| part.inconclusive = !conclusive);
    }

    pub(crate) fn contact(&self, scope: &Scope) {
        // Contact is noted with each event; nobody is woken for it.
        self.sender.send_if_modified(|health| {
            if let Some(part) = health.parts.iter_mut().find(|part| part.scope == *scope) {
                part.last_contact = Some(Instant::now());
            }
            false
        });
    }

    pub(crate) fn synced(&self) {
        self.sender.send_modify(|health| health.synced = true);
    }

    pub(crate) fn stopped(&self) {
        if let Some(metrics) = self.metrics() {
            metrics.zero();
        }
        self.sender.send_modify(|health| {
            health.stopped = true;
            health.parts.iter_mut().for_each(|part| part.phase = Phase::Stopped);
        });
    }

    /// Notes that an object could not be read.
    pub(crate) fn undecodable(&self, bad: &BadObject) {
        // What is of another kind is not an object of this collection, whatever its name.
        let foreign = matches!(bad.error, DecodeError::WrongKind { .. });
        if let Some(key) = bad.key.clone().filter(|_| !foreign) {
            self.sender.send_modify(|health| {
                health.undecodable.insert(key, bad.error.to_string());
            });
        }
        self.note(InformerError::Undecodable { bad: bad.clone() });
    }

    /// A good copy came, or the object is gone.
    pub(crate) fn decodable(&self, key: KeyRef<'_>) {
        if !self.sender.borrow().undecodable.is_empty() {
            self.sender.send_if_modified(|health| health.undecodable.remove(&ObjectKey::from(key)).is_some());
        }
    }

    fn part(&self, scope: &Scope, change: impl FnOnce(&mut PartHealth)) {
        self.sender.send_modify(|health| {
            if let Some(part) = health.parts.iter_mut().find(|part| part.scope == *scope) {
                change(part);
            }
        });
    }
}

impl fmt::Debug for HealthBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HealthBoard")
    }
}
