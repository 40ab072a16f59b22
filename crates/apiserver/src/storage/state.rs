//! The state of the whole server: one revision for all resources, one collection for each.

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::kinds::{Catalog, Resource};
use crate::storage::collection::{Collection, HistoryLimits, Objects, Recoding, between};
use crate::storage::event::StoredEvent;
use crate::storage::key::{StoreKey, namespace_end};
use crate::storage::object::{Draft, StoredObject, WriteKind};
use crate::storage::owners::{ObjectPlace, OwnerIndex};

/// The whole storage, behind one lock that is held only briefly.
///
/// A revision is taken and its event recorded under the same lock. The current revision is therefore never ahead of the
/// visible events, and the events of a collection are in the order of their revisions.
#[derive(Debug)]
pub(crate) struct Storage {
    state: Mutex<LockedState>,
    /// Notified whenever the revision grows.
    advanced: Notify,
}

/// The locked state. Long work unlocks it from time to time with `bump`.
pub(crate) type Locked<'a> = MutexGuard<'a, LockedState>;

/// The data behind the lock.
#[derive(Debug, Clone)]
pub(crate) struct LockedState {
    pub(crate) revision: u64,
    /// The revision at the start of the server. Earlier revisions are unknown.
    pub(crate) base: u64,
    pub(crate) catalog: Catalog,
    /// Incremented when all watches must end with a broken connection.
    pub(crate) connection_epoch: u64,
    collections: BTreeMap<String, Collection>,
    /// The number of collections ever created.
    opened: u64,
    /// The resources with a closed collection.
    closed: BTreeSet<String>,
    pub(crate) limits: HistoryLimits,
    /// The index of owners, if garbage collection is enabled.
    pub(crate) owners: Option<OwnerIndex>,
}

/// What happened to the CRD of a resource since a write started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CrdChange {
    /// Its versions or its schema changed.
    Changed,
    /// It was deleted.
    Removed,
}

impl Storage {
    pub(crate) fn new(base: u64, catalog: Catalog, limits: HistoryLimits) -> Self {
        let (collections, closed) = (BTreeMap::new(), BTreeSet::new());
        let state = LockedState {
            revision: base,
            base,
            catalog,
            connection_epoch: 0,
            collections,
            opened: 0,
            closed,
            limits,
            owners: None,
        };
        Self { state: Mutex::new(state), advanced: Notify::new() }
    }

    pub(crate) fn lock(&self) -> Locked<'_> {
        self.state.lock()
    }

    pub(crate) fn revision(&self) -> u64 {
        self.state.lock().revision
    }

    /// Waits until the revision is at least `revision`. Cancel safe.
    pub(crate) async fn reached(&self, revision: u64) {
        loop {
            let advanced = self.advanced.notified();
            if self.revision() >= revision {
                return;
            }
            advanced.await;
        }
    }

    /// Encodes an object that is to be written. Call it before the state is locked.
    pub(crate) fn draft(&self, resource: &Resource, key: &StoreKey, object: &Value, change: WriteKind) -> Draft {
        Draft::encode(resource, key.clone(), object, change, self.revision() + 1)
    }

    /// Writes one object. The caller has checked that the write is allowed.
    pub(crate) fn commit(&self, state: &mut LockedState, resource: &Resource, draft: Draft) -> Arc<StoredObject> {
        let key = draft.key().clone();
        let is_known = state.collection(resource).objects().contains_key(&key);
        let change = if is_known { WriteKind::Modified } else { WriteKind::Added };
        let after = Arc::new(draft.at(state.revision + 1, change));
        self.record(state, resource, &key, Some(after.clone()));
        after
    }

    /// Encodes and writes a namespace. Other objects can be large, so they are encoded before the state is locked.
    pub(crate) fn commit_namespace(
        &self,
        state: &mut LockedState,
        resource: &Resource,
        key: &StoreKey,
        object: &Value,
    ) -> Arc<StoredObject> {
        debug_assert!(resource.storage == "namespaces", "{} is encoded under the lock", resource.id);
        let draft = Draft::encode(resource, key.clone(), object, WriteKind::Modified, state.revision + 1);
        self.commit(state, resource, draft)
    }

    /// Removes one object and returns the revision of the delete. The caller has checked that the write is allowed.
    pub(crate) fn remove(&self, state: &mut LockedState, resource: &Resource, key: &StoreKey) -> u64 {
        self.record(state, resource, key, None).revision
    }

    fn record(
        &self,
        state: &mut LockedState,
        resource: &Resource,
        key: &StoreKey,
        after: Option<Arc<StoredObject>>,
    ) -> Arc<StoredEvent> {
        state.revision += 1;
        let (revision, limits) = (state.revision, state.limits);
        let collection = state.collection(resource);
        let before = collection.objects().get(key).cloned();
        let event = collection.record(key, StoredEvent::new(revision, Instant::now(), before, after), limits);
        if let Some(owners) = &mut state.owners {
            owners.record(&resource.storage, event.before.as_deref(), event.after.as_deref());
        }
        self.advanced.notify_waiters();
        event
    }

    /// Drops all history up to now.
    pub(crate) fn compact(&self) {
        let mut state = self.state.lock();
        let revision = state.revision;
        state.base = revision;
        for collection in state.collections.values_mut() {
            collection.compact(revision);
            collection.wake();
        }
    }

    /// Breaks every open watch, as a connection reset would.
    pub(crate) fn disconnect(&self) {
        let mut state = self.state.lock();
        state.connection_epoch += 1;
        state.wake_all();
    }

    /// Replaces the state with an older or newer one, and breaks every open watch.
    pub(crate) fn replace(&self, mut with: LockedState) {
        with.collections.values_mut().for_each(Collection::part_from_watches);
        let mut state = self.state.lock();
        with.connection_epoch = state.connection_epoch + 1;
        let old = std::mem::replace(&mut *state, with);
        old.wake_all();
        self.advanced.notify_waiters();
    }
}

impl LockedState {
    /// Returns the collection of a resource, and creates it if it is missing.
    pub(crate) fn collection(&mut self, resource: &Resource) -> &mut Collection {
        if !self.collections.contains_key(&resource.storage) {
            // An earlier collection of this name is a different one: its versions are not valid here.
            let horizon = if self.closed.contains(&resource.storage) { self.revision } else { self.base };
            self.opened += 1;
            self.collections.insert(resource.storage.clone(), Collection::new(self.opened, horizon));
        }
        self.collections.get_mut(&resource.storage).expect("inserted above")
    }

    /// Returns the collection after dropping the history that is too old.
    pub(crate) fn collection_now(&mut self, resource: &Resource) -> &mut Collection {
        let limits = self.limits;
        let collection = self.collection(resource);
        collection.trim(limits, Instant::now());
        collection
    }

    /// Returns the collection in which a watch started, if it is still open.
    pub(crate) fn collection_of_watch(&self, resource: &Resource, id: u64) -> Option<&Collection> {
        self.collections.get(&resource.storage).filter(|collection| collection.id == id)
    }

    /// Returns the object at `key`, if there is one.
    pub(crate) fn object(&self, resource: &Resource, key: &StoreKey) -> Option<Arc<StoredObject>> {
        self.collections.get(&resource.storage)?.objects().get(key).cloned()
    }

    /// Checks that the resource of a write is still served with the same rules as at its start.
    pub(crate) fn check_current(&self, resource: &Resource) -> Result<(), CrdChange> {
        if !resource.rules.custom || self.catalog.iter().any(|known| std::ptr::eq(&**known, resource)) {
            return Ok(());
        }
        Err(if self.catalog.of_definition(&resource.id).is_some() { CrdChange::Changed } else { CrdChange::Removed })
    }

    /// Returns where the object with this uid is, if owners are indexed.
    pub(crate) fn place_of(&self, uid: &str) -> Option<ObjectPlace> {
        self.owners.as_ref()?.place_of(uid)
    }

    /// Returns where the dependents of this uid are, if owners are indexed.
    pub(crate) fn owned_by<'a>(&'a self, uid: &str) -> impl Iterator<Item = &'a ObjectPlace> + use<'a> {
        self.owners.as_ref().and_then(|owners| owners.owned_by(uid)).into_iter().flatten()
    }

    /// Returns all keys of a resource.
    pub(crate) fn keys(&self, resource: &Resource) -> impl Iterator<Item = &StoreKey> + use<'_> {
        self.collections.get(&resource.storage).into_iter().flat_map(|collection| collection.objects().keys())
    }

    /// Returns whether a resource has an object in a namespace.
    pub(crate) fn has_key_in(&self, resource: &Resource, namespace: &str) -> bool {
        self.keys_after(resource, namespace, None).next().is_some()
    }

    /// Returns the keys of a resource in a namespace, optionally only those after a key.
    pub(crate) fn keys_after(
        &self,
        resource: &Resource,
        namespace: &str,
        last: Option<&StoreKey>,
    ) -> impl Iterator<Item = &StoreKey> + use<'_> {
        let (start, end) = (format!("{namespace}/"), namespace_end(namespace));
        let first = last.map_or(Bound::Included(start.as_str()), |last| Bound::Excluded(last.as_str()));
        let objects = self.collections.get(&resource.storage).map(Collection::objects);
        let keys = objects.map(|objects| between(objects, first, Some(&end)));
        keys.into_iter().flatten().map(|(key, _)| key)
    }

    /// Reopens the collection of a resource whose rules have changed, with its objects encoded by the new rules. Open
    /// watches end, and older versions expire.
    pub(crate) fn reopen(&mut self, resource: &Resource, objects: Objects) {
        let revision = self.revision;
        if let Some(collection) = self.collections.get_mut(&resource.storage) {
            self.opened += 1;
            collection.reopen(self.opened, objects, revision).close();
            self.closed.insert(resource.storage.clone());
        }
    }

    /// Removes the collection of a resource that is no longer served; its watches end.
    pub(crate) fn drop_collection(&mut self, resource: &Resource) {
        if let Some(collection) = self.collections.remove(&resource.storage) {
            collection.close();
            self.closed.insert(resource.storage.clone());
        }
    }

    fn wake_all(&self) {
        self.collections.values().for_each(Collection::wake);
    }
}

/// How many times changed objects are encoded again before writers must wait.
const ROUNDS: usize = 4;

/// Returns the objects of a resource, encoded by its new rules. The state is unlocked meanwhile, and writes in that
/// time are included.
pub(crate) fn recoded(state: &mut Locked<'_>, before: &Resource, resource: &Resource) -> Objects {
    let mut objects = state.collection(resource).objects().clone();
    // Other rules do not change the encoding of objects.
    if before.version == resource.version && before.rules.fields == resource.rules.fields {
        return objects;
    }
    let mut recoding = Recoding::default();
    for _ in 0..ROUNDS {
        Locked::unlocked(state, || recoding.follow(resource, &objects));
        objects = state.collection(resource).objects().clone();
        if recoding.is_of(&objects) {
            return recoding.into_objects();
        }
    }
    recoding.follow(resource, &objects);
    recoding.into_objects()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Weak;

    const PLENTY: HistoryLimits = HistoryLimits { max_events: 10_000, max_bytes: usize::MAX, max_age: None };

    /// Returns a storage with one object, and whether its closed collection is still kept.
    fn with_one() -> (Storage, Arc<Resource>, Weak<StoredObject>) {
        let catalog = Catalog::built_in();
        let resource = catalog.named("namespaces").unwrap().clone();
        let storage = Storage::new(100, catalog, PLENTY);
        let (object, key) = (json!({"metadata": {"name": "a"}}), StoreKey::new(None, "a"));
        let kept = Arc::downgrade(&storage.commit_namespace(&mut storage.lock(), &resource, &key, &object));
        (storage, resource, kept)
    }

    #[test]
    fn closed_collection_is_kept_while_a_watch_reads_it() {
        let (storage, resource, kept) = with_one();
        let mut state = storage.lock();
        let legacy = state.collection(&resource).legacy().clone();
        state.drop_collection(&resource);
        let log = legacy.lock().clone().unwrap();
        assert_eq!((log.unseen(100, 9).len(), log.count_after(101)), (1, 0));
        assert!(kept.upgrade().is_some());
        drop((log, legacy));
        assert!(kept.upgrade().is_none());
        assert_eq!(state.collection(&resource).horizon(), 101, "what was before is known no more");
    }

    #[test]
    fn closed_collection_without_watches_is_dropped_at_once() {
        let (storage, resource, kept) = with_one();
        storage.lock().drop_collection(&resource);
        assert!(kept.upgrade().is_none());
    }

    #[test]
    fn restored_state_keeps_closed_collections_of_the_current_one() {
        let (storage, resource, _) = with_one();
        let saved = storage.lock().clone();
        storage.lock().drop_collection(&resource);
        storage.replace(saved.clone());
        let mut state = storage.lock();
        assert_eq!(state.collection(&resource).objects().len(), 1);
        assert!(state.collection(&resource).legacy().lock().is_none());
    }
}
