//! The state of the whole server: one revision for all resources, one collection for each.

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::collection::{Collection, HistoryLimits, between};
use crate::event::Event;
use crate::object::{Change, Key, StoredObject};
use crate::resource::{Catalog, Resource};
use crate::selector::namespace_end;

/// Everything that is stored, behind one short lock.
///
/// A revision is taken and its event recorded under the same lock, so the current revision is never ahead of an event
/// that cannot be seen yet, and events of a collection are in the order of their revisions.
#[derive(Debug)]
pub(crate) struct Storage {
    state: Mutex<State>,
    /// Woken whenever the revision grows.
    advanced: Notify,
}

/// What the lock guards.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) revision: u64,
    /// The revision the server started with: everything before it is unknown.
    pub(crate) base: u64,
    pub(crate) catalog: Catalog,
    /// Grows when all watches must end with a broken connection.
    pub(crate) connection_epoch: u64,
    collections: BTreeMap<String, Collection>,
    /// The last collection of each resource that was closed: its watches still read it to the end.
    closed: BTreeMap<String, Collection>,
    pub(crate) limits: HistoryLimits,
}

impl Storage {
    pub(crate) fn new(base: u64, catalog: Catalog, limits: HistoryLimits) -> Self {
        let (collections, closed) = (BTreeMap::new(), BTreeMap::new());
        let state = State { revision: base, base, catalog, connection_epoch: 0, collections, closed, limits };
        Self { state: Mutex::new(state), advanced: Notify::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
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

    /// Writes one object: `Some` puts it, `None` removes it. The caller has checked that the write is allowed.
    pub(crate) fn commit(
        &self,
        state: &mut State,
        resource: &Resource,
        key: &Key,
        object: Option<&Value>,
    ) -> Arc<Event> {
        state.revision += 1;
        let (revision, limits) = (state.revision, state.limits);
        let collection = state.collection(resource);
        let before = collection.objects().get(key).cloned();
        let change = if before.is_some() { Change::Modified } else { Change::Added };
        let after =
            object.map(|object| Arc::new(StoredObject::encode(resource, key.clone(), object, revision, change)));
        let event = collection.record(key, Event::new(revision, Instant::now(), before, after), limits);
        self.advanced.notify_waiters();
        event
    }

    /// Forgets all history up to now.
    pub(crate) fn compact(&self) {
        let mut state = self.state.lock();
        let revision = state.revision;
        state.base = revision;
        for collection in state.collections.values_mut() {
            collection.compact(revision);
            collection.wake();
        }
    }

    /// Cuts every open watch as a reset connection would.
    pub(crate) fn disconnect(&self) {
        let mut state = self.state.lock();
        state.connection_epoch += 1;
        state.wake_all();
    }

    /// Puts an older or newer state in place of the current one, and cuts every open watch.
    pub(crate) fn replace(&self, mut with: State) {
        let mut state = self.state.lock();
        with.connection_epoch = state.connection_epoch + 1;
        let old = std::mem::replace(&mut *state, with);
        old.wake_all();
        self.advanced.notify_waiters();
    }
}

impl State {
    /// The collection of a resource; an empty one from the first time it is asked for.
    pub(crate) fn collection(&mut self, resource: &Resource) -> &mut Collection {
        if !self.collections.contains_key(&resource.storage) {
            // What was there under this name before is another collection: its versions mean nothing here.
            let horizon = if self.closed.contains_key(&resource.storage) { self.revision } else { self.base };
            self.collections.insert(resource.storage.clone(), Collection::new(horizon));
        }
        self.collections.get_mut(&resource.storage).expect("inserted above")
    }

    /// The collection as it is asked for a version: what has grown too old is gone.
    pub(crate) fn collection_now(&mut self, resource: &Resource) -> &mut Collection {
        let limits = self.limits;
        let collection = self.collection(resource);
        collection.trim(limits, Instant::now());
        collection
    }

    /// The collection that a watch began in, and whether it is still open.
    pub(crate) fn collection_of_watch(
        &self,
        resource: &Resource,
        changed: &Arc<Notify>,
    ) -> Option<(&Collection, bool)> {
        let began_in = |collection: &&Collection| Arc::ptr_eq(collection.changed(), changed);
        let open = self.collections.get(&resource.storage).filter(began_in).map(|collection| (collection, true));
        open.or_else(|| self.closed.get(&resource.storage).filter(began_in).map(|collection| (collection, false)))
    }

    /// The object at `key`, if there is one.
    pub(crate) fn object(&self, resource: &Resource, key: &Key) -> Option<Arc<StoredObject>> {
        self.collections.get(&resource.storage)?.objects().get(key).cloned()
    }

    /// The keys of a resource in a namespace.
    pub(crate) fn keys_in(&self, resource: &Resource, namespace: &str) -> Vec<Key> {
        self.keys_from(resource, namespace).cloned().collect()
    }

    /// Whether a resource has an object in a namespace.
    pub(crate) fn has_key_in(&self, resource: &Resource, namespace: &str) -> bool {
        self.keys_from(resource, namespace).next().is_some()
    }

    fn keys_from(&self, resource: &Resource, namespace: &str) -> impl Iterator<Item = &Key> + use<'_> {
        let (first, end) = (format!("{namespace}/"), namespace_end(namespace));
        let objects = self.collections.get(&resource.storage).map(Collection::objects);
        let keys = objects.map(|objects| between(objects, Bound::Included(&first), Some(&end)));
        keys.into_iter().flatten().map(|(key, _)| key)
    }

    /// Opens the collection of a resource anew after its rules have changed: objects stay, watches end, and everything
    /// older has expired.
    pub(crate) fn reopen(&mut self, resource: &Resource) {
        let revision = self.revision;
        if let Some(collection) = self.collections.get_mut(&resource.storage) {
            let closed = collection.reopen(resource, revision);
            closed.wake();
            self.closed.insert(resource.storage.clone(), closed);
        }
    }

    /// Removes the collection of a resource that is no longer served; its watches end.
    pub(crate) fn drop_collection(&mut self, resource: &Resource) {
        if let Some(closed) = self.collections.remove(&resource.storage) {
            closed.wake();
            self.closed.insert(resource.storage.clone(), closed);
        }
    }

    fn wake_all(&self) {
        self.collections.values().for_each(Collection::wake);
    }
}
