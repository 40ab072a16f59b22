//! Informers without their type, to list, inspect and probe informers of all kinds.

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

/// An informer without its type. It does not keep the informer running. A clone is another handle.
///
/// It shows no data of Secrets, and no data of objects whose kind is unknown.
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
    /// The health when this handle was made, for the time after the informer is dropped.
    last: Arc<Health>,
    secret: Secret,
}

/// A change of one object, without its type.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AnyEvent {
    /// The kind of change.
    pub kind: EventKind,
    /// The key of the object.
    pub key: ObjectKey,
    /// The current version, or the last one.
    pub version: String,
    /// The object, if it can be written as JSON.
    pub object: Option<Value>,
    /// The old state of an update.
    pub old: Option<Value>,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The object was added.
    Added,
    /// The object was updated.
    Updated,
    /// The object was sent by a resync.
    Resynced,
    /// The object was deleted.
    Deleted,
}

/// Whether an informer follows Secrets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Secret {
    Yes,
    No,
    /// The informer was built by hand, without a resource.
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

/// Returns an object as JSON, without the data of Secrets.
fn shown(object: &dyn Object, secret: Secret) -> Option<Value> {
    let mut value = object.to_json()?;
    let may_be_secret = match value["kind"].as_str() {
        // A `PartialObjectMetadata` may be that of a Secret.
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

    /// Returns the name in logs, messages and metrics.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of the informer in this process. Several informers may have the same name, and each has its
    /// own number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the resource, if it is known.
    pub fn resource(&self) -> Option<&ResourceType> {
        self.resource.as_deref()
    }

    /// Returns the health. After the informer is dropped, it is stopped.
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

    /// Returns false once the informer has stopped or was dropped.
    pub fn is_running(&self) -> bool {
        self.shared.upgrade().is_some_and(|shared| !shared.is_stopped())
    }

    /// Returns the version up to which the cache has every change; `None` before the first list, and after the informer
    /// was dropped.
    pub fn version(&self) -> Option<ResourceVersion> {
        self.core()?.store.version()
    }

    /// Returns true if the cache holds an object with this key.
    pub fn contains<'k>(&self, key: impl Into<KeyRef<'k>>) -> bool {
        self.core().is_some_and(|core| core.store.contains(key))
    }

    /// Returns the keys of all cached objects, sorted.
    pub fn keys(&self) -> Vec<ObjectKey> {
        let Some(core) = self.core() else { return Vec::new() };
        let mut keys: Vec<ObjectKey> = core.store.snapshot().iter().map(|object| object.id().key.into()).collect();
        keys.sort_unstable();
        keys
    }

    /// Returns the names of the indexes.
    pub fn index_names(&self) -> Vec<Arc<str>> {
        self.core().map_or_else(Vec::new, |core| core.store.index_names())
    }

    /// Returns all values of an index, sorted; none if no index has this name.
    pub fn index_values(&self, index: &str) -> Vec<String> {
        let index = self.core().and_then(|core| core.store.index(index));
        index.map_or_else(Vec::new, |index| index.values())
    }

    /// Returns the keys of the objects with a value in an index, sorted; none if no index has this name.
    pub fn keys_by_index(&self, index: &str, value: &str) -> Vec<ObjectKey> {
        let Some(core) = self.core() else { return Vec::new() };
        let snapshot = core.store.snapshot();
        let mut keys: Vec<ObjectKey> = snapshot.by_index(index, value).map(|object| object.id().key.into()).collect();
        keys.sort_unstable();
        keys
    }

    /// Returns one object as JSON, if the cache holds it and its representation can be written as JSON.
    pub fn object<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<Value> {
        shown(&*self.core()?.store.get(key)?, self.secret)
    }

    /// Returns a stream of all cached objects and then all changes, until the informer stops.
    pub fn events(&self) -> BoxStream<'static, AnyEvent> {
        let Some(core) = self.core() else { return stream::empty().boxed() };
        let (events, secret) = (core.events("tail".to_owned(), Delivery::default(), None), self.secret);
        events.map(move |event| any_event(&event, secret)).boxed()
    }

    /// Returns a stream of all changes from now on, until the informer stops. It leaves out the first list and the
    /// cached objects.
    pub fn changes(&self) -> BoxStream<'static, AnyEvent> {
        let Some(core) = self.core() else { return stream::empty().boxed() };
        let (events, secret) = (core.events("changes".to_owned(), Delivery::default(), None), self.secret);
        // Known objects are skipped first, because writing them as JSON is expensive.
        let change = move |event: Event<dyn Object>| {
            let known = matches!(event, Event::Added { initial: true, .. });
            std::future::ready((!known).then(|| any_event(&event, secret)))
        };
        events.filter_map(change).boxed()
    }

    /// Stops the informer for all its users.
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
