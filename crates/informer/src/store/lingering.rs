//! Deleted objects that stay readable for some time.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;
use tokio::time::Instant;

use super::Store;
use super::index::{IndexState, Values};
use super::slots::{Slot, Slots};
use super::table::Table;
use crate::object::{Cached, KeyRef, Object};
use crate::time::after;

/// Reads the objects that were deleted a short time ago. A clone is another handle.
///
/// An informer keeps them only if [`InformerOptions::linger`](crate::InformerOptions::linger) is set, and this finds
/// nothing otherwise. A log agent uses it: its lines may be from a pod that is gone, and another pod may have the name
/// of that pod already.
///
/// ```
/// # use std::sync::Arc;
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_client::{Api, api::DeleteParams};
/// # use kube_informer::{InformerOptions, SharedInformerFactory};
/// # doc_server::with(async |server| {
/// # let client = server.client();
/// let options = InformerOptions::new().linger(Duration::from_secs(60));
/// let factory = SharedInformerFactory::builder(client.clone()).options(options).build();
/// let maps = factory.informer::<ConfigMap>()?;
/// factory.start()?;
/// factory.synced().await?;
/// let map: Arc<ConfigMap> = maps.store().get("web/a").expect("it was listed");
/// let uid = map.metadata.uid.as_deref().unwrap();
///
/// Api::<ConfigMap>::namespaced(client, "web").delete("a", &DeleteParams::default()).await?;
/// maps.wait_for("web/a", |map| map.is_none()).await?;
/// assert!(maps.store().get("web/a").is_none());
/// assert_eq!(maps.lingering().by_uid(uid).unwrap().data, map.data);
/// # Ok(()) });
/// ```
///
/// **What lingers.** The last state of each object that was deleted, also of one whose deletion a relist found, and of
/// one that was replaced by an object with the same name and another uid. Handlers receive the deletion at once. An
/// object that left the scope ([`Deleted::OutOfScope`](crate::Deleted::OutOfScope)) was not deleted, and does not
/// linger.
///
/// **Read the cache first.** A deleted object begins to linger in the same commit that removes it from the cache. So a
/// program that reads the cache first and this afterwards finds the object. An object that comes back with its uid,
/// because it matches a label selector again, is in both for some time. The cache has its current state.
///
/// **How long.** At least for the time that was set, unless more objects or bytes linger than
/// [`InformerOptions::linger_at_most`](crate::InformerOptions::linger_at_most) allows. Then those that were deleted first
/// are dropped, and [`Health::lingering`](crate::Health::lingering) counts them. After that time the memory is freed,
/// even if nothing else happens.
pub struct Lingering<T: ?Sized> {
    store: Store<T>,
}

impl<T: Cached + ?Sized> Lingering<T> {
    pub(crate) fn new(store: Store<T>) -> Self {
        Self { store }
    }

    /// Returns the last state of the deleted object with a uid.
    pub fn by_uid(&self, uid: &str) -> Option<Arc<T>> {
        self.find(|state| state.with_uid(uid)).into_iter().next()
    }

    /// Returns the last states of the deleted objects with a key, the last deleted object first.
    pub fn by_key<'k>(&self, key: impl Into<KeyRef<'k>>) -> Vec<Arc<T>> {
        let key = key.into();
        self.find(|state| state.with_key(key))
    }

    /// Returns the last states of the deleted objects with a value in an index, the last deleted object first. There are
    /// none if no index has this name.
    pub fn by_index(&self, index: &str, value: &str) -> Vec<Arc<T>> {
        self.find(|state| state.members(index, value))
    }

    /// Returns the number of lingering objects.
    pub fn len(&self) -> usize {
        self.store.read(|state| state.lingering.as_ref().map_or(0, |state| state.objects.len()))
    }

    /// Returns true if no object lingers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn find(&self, look: impl FnOnce(&LingeringState) -> Vec<Arc<dyn Object>>) -> Vec<Arc<T>> {
        // The lock is released before the objects are collected.
        let Some(state) = self.store.read(|state| state.lingering.clone()) else { return Vec::new() };
        look(&state).into_iter().map(T::typed).collect()
    }
}

impl<T: ?Sized> Clone for Lingering<T> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone() }
    }
}

impl<T: Cached + ?Sized> std::fmt::Debug for Lingering<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lingering").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// How long deleted objects linger, and how many at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LingerLimits {
    pub(crate) time: Duration,
    pub(crate) objects: usize,
    pub(crate) bytes: u64,
}

/// When objects are deleted, and how many bytes each of them is assumed to take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Departure {
    pub(crate) at: Instant,
    pub(crate) bytes: u64,
}

/// Figures of the lingering objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LingeringCounts {
    pub(crate) objects: usize,
    pub(crate) bytes: u64,
    pub(crate) dropped: u64,
}

/// The lingering objects of a store: a list from the object that was deleted first to the one that was deleted last,
/// and indexes. It is part of the state of the store, so that an object moves into it in one step.
#[derive(Clone)]
pub(super) struct LingeringState {
    limits: LingerLimits,
    hasher: FixedState,
    objects: Slots<LingeringObject>,
    /// The slots of the objects, by the hashes of their uids and keys.
    by_uid: Table,
    by_key: Table,
    /// The indexes of the store, in their order.
    indexes: Vec<IndexState>,
    oldest: Option<Slot>,
    newest: Option<Slot>,
    /// The departure of the objects that are added next.
    departure: Departure,
    /// How many objects were added so far.
    added: u64,
    bytes: u64,
    /// How many objects were dropped because of the limits.
    dropped: u64,
    /// Objects that do not linger any more. They must be freed outside of every lock.
    freed: Vec<Arc<dyn Object>>,
}

#[derive(Clone)]
struct LingeringObject {
    object: Arc<dyn Object>,
    number: u64,
    departure: Departure,
    posted: Arc<[(u32, Slot)]>,
    /// The object that was deleted after this one.
    next: Option<Slot>,
}

impl LingeringState {
    pub(super) fn new(limits: LingerLimits, hasher: FixedState, now: Instant) -> Self {
        Self {
            limits,
            hasher,
            objects: Slots::new(),
            by_uid: Table::new(),
            by_key: Table::new(),
            indexes: Vec::new(),
            oldest: None,
            newest: None,
            departure: Departure { at: now, bytes: 0 },
            added: 0,
            bytes: 0,
            dropped: 0,
            freed: Vec::new(),
        }
    }

    pub(super) fn departs(&mut self, departure: Departure) {
        self.departure = departure;
    }

    /// Adds a deleted object with its index values, and drops the oldest ones beyond the limits.
    pub(super) fn add<'v>(&mut self, object: Arc<dyn Object>, values: impl Iterator<Item = (u32, &'v str)>) {
        let (departure, number) = (self.departure, self.added);
        let (uid, key) = self.hashes(&*object);
        let added = LingeringObject { object, number, departure, posted: Arc::default(), next: None };
        let slot = self.objects.add(added);
        if let Some(uid) = uid {
            self.by_uid.add(uid, slot);
        }
        self.by_key.add(key, slot);
        let Self { indexes, hasher, .. } = self;
        let posted: Arc<[_]> = values.map(|(at, value)| (at, indexes[at as usize].join(hasher, value, slot))).collect();
        if !posted.is_empty()
            && let Some(added) = self.objects.get_mut(slot)
        {
            added.posted = posted;
        }
        match self.newest.and_then(|newest| self.objects.get_mut(newest)) {
            Some(newest) => newest.next = Some(slot),
            None => self.oldest = Some(slot),
        }
        self.newest = Some(slot);
        self.added += 1;
        self.bytes += departure.bytes;
        while self.objects.len() > self.limits.objects || self.bytes > self.limits.bytes {
            if !self.remove_oldest() {
                break;
            }
            self.dropped += 1;
        }
    }

    /// Removes the object that was deleted first. Returns false if no object lingers.
    fn remove_oldest(&mut self) -> bool {
        let Some((slot, oldest)) = self.oldest.and_then(|slot| Some((slot, self.objects.remove(slot)?))) else {
            return false;
        };
        let (uid, key) = self.hashes(&*oldest.object);
        if let Some(uid) = uid {
            self.by_uid.remove(uid, |known| known == slot);
        }
        self.by_key.remove(key, |known| known == slot);
        for &(at, value) in oldest.posted.iter() {
            self.indexes[at as usize].leave(&self.hasher, value, slot);
        }
        self.oldest = oldest.next;
        if self.oldest.is_none() {
            self.newest = None;
        }
        self.bytes -= oldest.departure.bytes;
        self.freed.push(oldest.object);
        true
    }

    /// Returns when the time of the object that was deleted first is over.
    pub(super) fn ends(&self) -> Option<Instant> {
        let oldest = self.objects.get(self.oldest?)?;
        Some(after(oldest.departure.at, self.limits.time))
    }

    /// Removes objects whose time is over, at most this many.
    pub(super) fn expire(&mut self, now: Instant, most: usize) {
        for _ in 0..most {
            if self.ends().is_none_or(|ends| ends > now) || !self.remove_oldest() {
                break;
            }
        }
    }

    /// Returns the objects that do not linger any more, to be freed outside of every lock.
    pub(super) fn take_freed(&mut self) -> Vec<Arc<dyn Object>> {
        std::mem::take(&mut self.freed)
    }

    pub(super) fn has_freed(&self) -> bool {
        !self.freed.is_empty()
    }

    /// Adds an index of the store, with the values of every lingering object.
    pub(super) fn add_index(&mut self, name: &str, mut values: impl FnMut(&dyn Object, &mut Values)) {
        let at = self.indexes.len() as u32;
        let mut index = IndexState::new(name, None);
        let Self { objects, hasher, .. } = self;
        let slots: Vec<Slot> = objects.iter().map(|(slot, _)| slot).collect();
        let mut of_object = Values::default();
        for slot in slots {
            let Some(lingering) = objects.get_mut(slot) else { continue };
            of_object.clear();
            values(&*lingering.object, &mut of_object);
            let new = of_object.iter().map(|(_, value)| (at, index.join(hasher, value, slot)));
            lingering.posted = lingering.posted.iter().copied().chain(new).collect();
        }
        self.indexes.push(index);
    }

    pub(super) fn counts(&self) -> LingeringCounts {
        LingeringCounts { objects: self.objects.len(), bytes: self.bytes, dropped: self.dropped }
    }

    /// Returns the hashes of the uid and of the key. An unknown uid has none.
    fn hashes(&self, object: &dyn Object) -> (Option<u32>, u32) {
        let id = object.id();
        let uid = Some(id.uid).filter(|uid| !uid.is_empty());
        (uid.map(|uid| self.hasher.hash_one(uid) as u32), self.hasher.hash_one(id.key) as u32)
    }

    fn with_uid(&self, uid: &str) -> Vec<Arc<dyn Object>> {
        self.hashed(&self.by_uid, self.hasher.hash_one(uid) as u32, |object| object.id().uid == uid)
    }

    fn with_key(&self, key: KeyRef<'_>) -> Vec<Arc<dyn Object>> {
        self.hashed(&self.by_key, self.hasher.hash_one(key) as u32, |object| object.id().key == key)
    }

    /// Returns the objects with a hash for which a condition is true, the last deleted one first.
    fn hashed(&self, table: &Table, hash: u32, condition: impl Fn(&dyn Object) -> bool) -> Vec<Arc<dyn Object>> {
        let found = RefCell::new(Vec::new());
        // The table stops at the first result, so there is none, and it visits every object with this hash.
        table.get(hash, |slot| {
            let lingering = self.objects.get(slot).filter(|lingering| condition(&*lingering.object));
            found.borrow_mut().extend(lingering);
            None::<()>
        });
        newest_first(found.into_inner())
    }

    /// Returns the objects with a value in an index, the last deleted one first.
    fn members(&self, index: &str, value: &str) -> Vec<Arc<dyn Object>> {
        let Some(index) = self.indexes.iter().find(|known| known.is_named(index)) else { return Vec::new() };
        newest_first(index.slots(&self.hasher, value).filter_map(|slot| self.objects.get(slot)).collect())
    }
}

fn newest_first(mut found: Vec<&LingeringObject>) -> Vec<Arc<dyn Object>> {
    found.sort_unstable_by_key(|lingering| Reverse(lingering.number));
    found.into_iter().map(|lingering| lingering.object.clone()).collect()
}

#[cfg(test)]
mod tests;
