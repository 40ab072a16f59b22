//! An informer without its type: for those who list, inspect and probe informers of every kind.

use std::fmt;
use std::sync::{Arc, Weak};

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use serde_json::Value;

use super::{Core, InformerShared};
use crate::health::Health;
use crate::object::{KeyRef, Object, ObjectKey, ResourceType, ResourceVersion};
use crate::processor::{Delivery, Event};
use crate::reflector::Phase;
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
    shared: Weak<InformerShared>,
    /// Its health when this handle was made: what is known of it once it is gone.
    last: Arc<Health>,
    secret: Secret,
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

/// Whether an informer follows Secrets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Secret {
    Yes,
    No,
    /// Who made it by hand did not say what it follows.
    Unknown,
}

fn any_event(event: &Event<dyn Object>, secret: Secret) -> AnyEvent {
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
fn shown(object: &dyn Object, secret: Secret) -> Option<Value> {
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
    pub(crate) fn new(shared: &Arc<InformerShared>) -> Self {
        let core = &shared.core;
        let secret = match core.resource.as_ref().map(ResourceType::is_secret) {
            Some(true) => Secret::Yes,
            Some(false) => Secret::No,
            None => Secret::Unknown,
        };
        Self {
            name: core.name.as_str().into(),
            number: core.number,
            resource: core.resource.clone().map(Arc::new),
            shared: Arc::downgrade(shared),
            last: Arc::new(core.health.health()),
            secret,
        }
    }

    fn core(&self) -> Option<Arc<Core>> {
        self.shared.upgrade().map(|shared| shared.core.clone())
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
        match self.core() {
            Some(core) => core.health(),
            None => {
                let mut last = Health::clone(&self.last);
                last.parts.iter_mut().for_each(|part| part.phase = Phase::Stopped);
                Health { stopped: true, objects: 0, queued: 0, handlers: Vec::new(), ..last }
            }
        }
    }

    /// False once it has stopped, or nobody holds it any more.
    pub fn is_running(&self) -> bool {
        self.shared.upgrade().is_some_and(|shared| !shared.is_stopped())
    }

    /// The version up to which the cache reflects every change; `None` before the first list, and once it is gone.
    pub fn version(&self) -> Option<ResourceVersion> {
        self.core()?.store.version()
    }

    /// True if the cache holds an object of this key.
    pub fn contains<'k>(&self, key: impl Into<KeyRef<'k>>) -> bool {
        self.core().is_some_and(|core| core.store.contains(key))
    }

    /// The keys of everything in the cache, sorted.
    pub fn keys(&self) -> Vec<ObjectKey> {
        let Some(core) = self.core() else { return Vec::new() };
        let mut keys: Vec<ObjectKey> = core.store.snapshot().iter().map(|object| object.id().key.into()).collect();
        keys.sort_unstable();
        keys
    }

    /// The names of its indexes.
    pub fn index_names(&self) -> Vec<Arc<str>> {
        self.core().map_or_else(Vec::new, |core| core.store.index_names())
    }

    /// Every value that some object has in an index, sorted; none if there is no such index.
    pub fn index_values(&self, index: &str) -> Vec<String> {
        let index = self.core().and_then(|core| core.store.index(index));
        index.map_or_else(Vec::new, |index| index.values())
    }

    /// The keys of the objects that have a value in an index, sorted; none if there is no such index.
    pub fn keys_by_index(&self, index: &str, value: &str) -> Vec<ObjectKey> {
        let Some(core) = self.core() else { return Vec::new() };
        let snapshot = core.store.snapshot();
        let mut keys: Vec<ObjectKey> = snapshot.by_index(index, value).map(|object| object.id().key.into()).collect();
        keys.sort_unstable();
        keys
    }

    /// One object as JSON, if the cache holds it and it can be written so.
    pub fn object<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<Value> {
        shown(&*self.core()?.store.get(key)?, self.secret)
    }

    /// Everything there is, and then what happens, until the informer ends.
    pub fn events(&self) -> BoxStream<'static, AnyEvent> {
        let Some(core) = self.core() else { return stream::empty().boxed() };
        let (events, secret) = (core.events("tail".to_owned(), Delivery::default(), None), self.secret);
        events.map(move |event| any_event(&event, secret)).boxed()
    }

    /// What happens from now on, until the informer ends: the first list, or what is there already, is left out.
    pub fn changes(&self) -> BoxStream<'static, AnyEvent> {
        let Some(core) = self.core() else { return stream::empty().boxed() };
        let (events, secret) = (core.events("changes".to_owned(), Delivery::default(), None), self.secret);
        // Objects that were there before are passed over before they are written as JSON, which is what costs.
        let change = move |event: Event<dyn Object>| {
            let known = matches!(event, Event::Added { initial: true, .. });
            std::future::ready((!known).then(|| any_event(&event, secret)))
        };
        events.filter_map(change).boxed()
    }

    /// Ends it, for everybody who holds it.
    pub async fn stop(&self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.stop().await;
        }
    }
}

impl fmt::Debug for AnyInformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyInformer").field("name", &self.name).finish_non_exhaustive()
    }
}
