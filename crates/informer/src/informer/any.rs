//! An informer without its type: for those who list, inspect and probe informers of every kind.

use std::fmt;
use std::sync::{Arc, Weak};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use serde_json::Value;

use super::{Shared, SharedInformer};
use crate::health::Health;
use crate::object::{KeyRef, Object, ObjectKey, ResourceType, ResourceVersion};
use crate::processor::Event;
use crate::representation::LAST_APPLIED;

/// What can be said of an informer without its type. It does not keep the informer running; cloning gives another handle.
///
/// Of Secrets no data is shown; nor of objects of which neither the informer nor they themselves say what they are.
///
/// ```
/// # use k8s_openapi::api::core::v1::Secret;
/// # use kube_informer::SharedInformerFactory;
/// # doc_server::with(async |server| {
/// let factory = SharedInformerFactory::new(server.client());
/// let secrets = factory.informer::<Secret>()?;
/// factory.start()?;
/// factory.synced().await?;
/// for informer in factory.informers() {
///     println!("{}: {} objects, {}", informer.name(), informer.health().objects, informer.health());
///     let object = informer.object("web/a").expect("it was listed");
///     assert_eq!(object["metadata"]["name"], "a");
///     assert!(object["data"].is_null());
/// }
/// # Ok(()) });
/// ```
#[derive(Clone)]
pub struct AnyInformer {
    name: Arc<str>,
    number: u64,
    resource: Option<Arc<ResourceType>>,
    /// What it was like when it was looked at while it lived.
    inner: Arc<dyn Erased>,
}

/// What happened to one object, without its type.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AnyEvent {
    /// What happened.
    pub kind: EventKind,
    /// To which object.
    pub key: ObjectKey,
    /// The version it has now, or had last.
    pub version: String,
    /// The object, if it can be written as JSON.
    pub object: Option<Value>,
    /// What it was before, if it changed.
    pub old: Option<Value>,
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// It appeared.
    Added,
    /// It changed.
    Updated,
    /// It was shown again.
    Resynced,
    /// It is gone.
    Deleted,
}

trait Erased: Send + Sync {
    fn health(&self) -> Health;
    fn is_running(&self) -> bool;
    fn version(&self) -> Option<ResourceVersion>;
    fn contains(&self, key: KeyRef<'_>) -> bool;
    fn keys(&self) -> Vec<ObjectKey>;
    fn index_names(&self) -> Vec<Arc<str>>;
    fn index_values(&self, index: &str) -> Vec<String>;
    fn keys_by_index(&self, index: &str, value: &str) -> Vec<ObjectKey>;
    fn object(&self, key: KeyRef<'_>) -> Option<Value>;
    fn events(&self) -> BoxStream<'static, AnyEvent>;
    fn changes(&self) -> BoxStream<'static, AnyEvent>;
    fn stop(&self) -> BoxFuture<'static, ()>;
}

struct Of<T> {
    shared: Weak<Shared<T>>,
    last: Health,
    secret: Secret,
}

/// Whether an informer follows Secrets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Secret {
    Yes,
    No,
    /// Who made it by hand did not say what it follows.
    Unknown,
}

impl<T: Object> Of<T> {
    fn informer(&self) -> Option<SharedInformer<T>> {
        self.shared.upgrade().map(|shared| SharedInformer { shared })
    }
}

impl<T: Object> Erased for Of<T> {
    fn health(&self) -> Health {
        let gone = || Health { stopped: true, objects: 0, queued: 0, handlers: Vec::new(), ..self.last.clone() };
        self.informer().map_or_else(gone, |informer| informer.health())
    }

    fn is_running(&self) -> bool {
        self.informer().is_some_and(|informer| !informer.is_stopped())
    }

    fn version(&self) -> Option<ResourceVersion> {
        self.informer()?.store().version()
    }

    fn contains(&self, key: KeyRef<'_>) -> bool {
        self.informer().is_some_and(|informer| informer.store().contains(key))
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let Some(informer) = self.informer() else { return Vec::new() };
        let mut keys: Vec<ObjectKey> =
            informer.store().snapshot().iter().map(|object| object.id().key.into()).collect();
        keys.sort_unstable();
        keys
    }

    fn index_names(&self) -> Vec<Arc<str>> {
        self.informer().map_or_else(Vec::new, |informer| informer.store().index_names())
    }

    fn index_values(&self, index: &str) -> Vec<String> {
        let index = self.informer().and_then(|informer| informer.store().index(index));
        index.map_or_else(Vec::new, |index| index.values())
    }

    fn keys_by_index(&self, index: &str, value: &str) -> Vec<ObjectKey> {
        let Some(informer) = self.informer() else { return Vec::new() };
        let snapshot = informer.store().snapshot();
        let mut keys: Vec<ObjectKey> = snapshot.by_index(index, value).map(|object| object.id().key.into()).collect();
        keys.sort_unstable();
        keys
    }

    fn object(&self, key: KeyRef<'_>) -> Option<Value> {
        shown(&*self.informer()?.store().get(key)?, self.secret)
    }

    fn events(&self) -> BoxStream<'static, AnyEvent> {
        let Some(informer) = self.informer() else { return stream::empty().boxed() };
        let secret = self.secret;
        informer.register().name("tail").events_without_informer().map(move |event| any_event(&event, secret)).boxed()
    }

    fn changes(&self) -> BoxStream<'static, AnyEvent> {
        let Some(informer) = self.informer() else { return stream::empty().boxed() };
        let secret = self.secret;
        // What was there is passed over before it is written as JSON, which is what costs.
        let events = informer.register().name("changes").events_without_informer();
        let change = move |event: Event<T>| {
            let known = matches!(event, Event::Added { initial: true, .. });
            std::future::ready((!known).then(|| any_event(&event, secret)))
        };
        events.filter_map(change).boxed()
    }

    fn stop(&self) -> BoxFuture<'static, ()> {
        let informer = self.informer();
        Box::pin(async move {
            if let Some(informer) = informer {
                informer.stop().await;
            }
        })
    }
}

fn any_event<T: Object>(event: &Event<T>, secret: Secret) -> AnyEvent {
    let (kind, old) = match event {
        Event::Added { .. } => (EventKind::Added, None),
        Event::Updated { old, .. } => (EventKind::Updated, shown(&**old, secret)),
        Event::Resynced(_) => (EventKind::Resynced, None),
        Event::Deleted(_) => (EventKind::Deleted, None),
    };
    let version = event.object().id().version.to_owned();
    AnyEvent { kind, key: event.key(), version, object: shown(&**event.object(), secret), old }
}

/// An object as JSON, without what is nobody's business.
fn shown<T: Object>(object: &T, secret: Secret) -> Option<Value> {
    let mut value = object.to_json()?;
    let may_be_secret = match value["kind"].as_str() {
        // Metadata alone may be that of a secret.
        Some(kind) => kind == "Secret" || kind == "PartialObjectMetadata",
        None => secret == Secret::Unknown,
    };
    if (secret == Secret::Yes || may_be_secret)
        && let Some(fields) = value.as_object_mut()
    {
        fields.remove("data");
        fields.remove("stringData");
        let annotations = fields.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            annotations.remove(LAST_APPLIED);
        }
    }
    Some(value)
}

impl AnyInformer {
    pub(super) fn new<T: Object>(shared: &Arc<Shared<T>>) -> Self {
        let core = &shared.core;
        let secret = match core.resource.as_ref().map(ResourceType::is_secret) {
            Some(true) => Secret::Yes,
            Some(false) => Secret::No,
            None => Secret::Unknown,
        };
        let of = Of { shared: Arc::downgrade(shared), last: core.health.health(), secret };
        Self {
            name: core.name.as_str().into(),
            number: core.number,
            resource: core.resource.clone().map(Arc::new),
            inner: Arc::new(of),
        }
    }

    /// The name that logs, messages and metrics use.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which of the informers of this program it is, counted as they were made. Several may have one name; none have one number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Which collection it follows, if that is known.
    pub fn resource(&self) -> Option<&ResourceType> {
        self.resource.as_deref()
    }

    /// What it is doing, and how well; once it is gone, that it has stopped.
    pub fn health(&self) -> Health {
        self.inner.health()
    }

    /// False once it has stopped, or nobody holds it any more.
    pub fn is_running(&self) -> bool {
        self.inner.is_running()
    }

    /// The version up to which the cache reflects every change; `None` before the first list, and once it is gone.
    pub fn version(&self) -> Option<ResourceVersion> {
        self.inner.version()
    }

    /// True if the cache holds an object of this key.
    pub fn contains<'k>(&self, key: impl Into<KeyRef<'k>>) -> bool {
        self.inner.contains(key.into())
    }

    /// The keys of everything in the cache, sorted.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.inner.keys()
    }

    /// The names of its indexes.
    pub fn index_names(&self) -> Vec<Arc<str>> {
        self.inner.index_names()
    }

    /// Every value that some object has in an index, sorted; none if there is no such index.
    pub fn index_values(&self, index: &str) -> Vec<String> {
        self.inner.index_values(index)
    }

    /// The keys of the objects that have a value in an index, sorted; none if there is no such index.
    pub fn keys_by_index(&self, index: &str, value: &str) -> Vec<ObjectKey> {
        self.inner.keys_by_index(index, value)
    }

    /// One object as JSON, if the cache holds it and it can be written so.
    pub fn object<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<Value> {
        self.inner.object(key.into())
    }

    /// Everything there is, and then what happens, until the informer ends.
    pub fn events(&self) -> BoxStream<'static, AnyEvent> {
        self.inner.events()
    }

    /// What happens from now on, until the informer ends: the first list, or what is there already, is left out.
    pub fn changes(&self) -> BoxStream<'static, AnyEvent> {
        self.inner.changes()
    }

    /// Ends it, for everybody who holds it.
    pub async fn stop(&self) {
        self.inner.stop().await;
    }
}

impl fmt::Debug for AnyInformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyInformer").field("name", &self.name).finish_non_exhaustive()
    }
}
