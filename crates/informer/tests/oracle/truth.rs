//! The state of the server, and whether a cache agrees with it.

use std::collections::{BTreeMap, BTreeSet};

use kube_informer::{Index, Object, ObjectKey, Snapshot};
use serde_json::Value;

/// The objects on the server that an informer follows.
pub(crate) struct Truth {
    readable: BTreeMap<ObjectKey, Value>,
    unreadable: BTreeSet<ObjectKey>,
}

/// The state of an object: uid and version.
pub(super) type State = (String, String);

impl Truth {
    /// Takes these objects, some of which are undecodable.
    pub(crate) fn new(objects: impl IntoIterator<Item = Value>, is_readable: impl Fn(&Value) -> bool) -> Self {
        let (mut readable, mut unreadable) = (BTreeMap::new(), BTreeSet::new());
        for object in objects {
            let key = format!("{}/{}", text(&object, "namespace"), text(&object, "name")).parse().unwrap();
            if is_readable(&object) {
                readable.insert(key, object);
            } else {
                unreadable.insert(key);
            }
        }
        Self { readable, unreadable }
    }

    /// Returns the decodable objects.
    pub(crate) fn readable(&self) -> &BTreeMap<ObjectKey, Value> {
        &self.readable
    }

    /// Returns the keys of the undecodable objects.
    pub(crate) fn unreadable(&self) -> &BTreeSet<ObjectKey> {
        &self.unreadable
    }

    /// Returns the first difference to a cache that has marked these objects as undecodable.
    ///
    /// For an undecodable object the cache may hold an older state or nothing, but must mark the object. The cache must
    /// also mark every object that it holds and that the server does not have.
    pub(crate) fn difference<T: Object>(
        &self,
        cache: &Snapshot<T>,
        marked: &BTreeMap<ObjectKey, kube_informer::Undecodable>,
    ) -> Option<String> {
        for (key, there) in &self.readable {
            let (uid, version) = (text(there, "uid"), text(there, "resourceVersion"));
            match cache.get(key) {
                Some(here) if here.id().uid == uid && here.id().version == version => {}
                Some(here) => {
                    return Some(format!("{key} is at {} in the cache, at {version} on the server", here.id().version));
                }
                None => return Some(format!("{key} is at {version} on the server, and not in the cache")),
            }
        }
        let unknown = |key: &&ObjectKey| !self.readable.contains_key(*key) && !marked.contains_key(*key);
        if let Some(key) = cache.iter().map(|object| ObjectKey::of(object).unwrap()).find(|key| unknown(&key)) {
            return Some(format!("{key} is in the cache, and not on the server"));
        }
        if let Some(key) = self.unreadable.iter().find(|key| !marked.contains_key(*key)) {
            return Some(format!("{key} is undecodable, and not marked"));
        }
        // The comparison of whole objects comes last because it takes longest.
        self.readable.iter().find_map(|(key, there)| {
            let here = plain(cache.get(key)?.to_json()?);
            let there = plain(there.clone());
            (here != there).then(|| format!("{key}: cache {here}, server {there}"))
        })
    }
}

/// Returns the states of the objects in a cache.
pub(super) fn cached<T: Object>(cache: &Snapshot<T>) -> BTreeMap<ObjectKey, State> {
    cache.iter().map(|object| (object.id().key.into(), state(object))).collect()
}

pub(super) fn state(object: &impl Object) -> State {
    (object.id().uid.to_owned(), object.id().version.to_owned())
}

/// Returns the first difference between an index and the objects of its snapshot. `values` returns the values of an
/// object.
pub(crate) fn index_difference<T: Object>(
    cache: &Snapshot<T>,
    index: &Index<T>,
    values: impl Fn(&T) -> Vec<String>,
) -> Option<String> {
    let name = index.name();
    let mut expected: BTreeMap<String, BTreeSet<ObjectKey>> = BTreeMap::new();
    for object in cache {
        for value in values(object) {
            expected.entry(value).or_default().insert(object.id().key.into());
        }
    }
    for (value, keys) in &expected {
        let found: BTreeSet<ObjectKey> = cache.by_index(&name, value).map(|object| object.id().key.into()).collect();
        if found != *keys {
            return Some(format!("index {name}, value {value}: {found:?}, the objects have {keys:?}"));
        }
    }
    None
}

/// Returns the first difference between the handle of an index and the objects. No task may write meanwhile, because
/// the handle reads the current state.
pub(crate) fn handle_difference<T: Object>(cache: &Snapshot<T>, index: &Index<T>) -> Option<String> {
    let keys = |objects: &mut dyn Iterator<Item = &T>| -> BTreeSet<ObjectKey> {
        objects.map(|object| object.id().key.into()).collect()
    };
    index.values().iter().find_map(|value| {
        let here = index.get(value);
        let here = keys(&mut here.iter().map(|object| &**object));
        let there = keys(&mut cache.by_index(&index.name(), value));
        (here.is_empty() || here != there || index.count(value) != here.len())
            .then(|| format!("index {}, value {value}: handle {here:?}, snapshot {there:?}", index.name()))
    })
}

fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object["metadata"][field].as_str().unwrap()
}

/// Removes the fields that are not compared: API version, kind and managed fields.
fn plain(mut value: Value) -> Value {
    if let Some(object) = value.as_object_mut() {
        object.remove("kind");
        object.remove("apiVersion");
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    }
    value
}
