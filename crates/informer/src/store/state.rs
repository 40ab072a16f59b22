//! The state of a store: objects, indexes and version, which are shared, cloned and replaced together.

use std::collections::HashSet;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use super::index::{FEW, IndexState, Values};
use super::lingering::{Departure, LingeringState};
use super::slots::{Slot, Slots};
use super::table::Table;
use crate::object::{KeyRef, Object, ResourceVersion};

/// The revision of a cache's content; see [`Store::revision`](super::Store::revision).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(u64);

/// One state of a store. Cloning takes constant time.
pub(super) struct StoreState {
    hasher: FixedState,
    entries: Slots<Entry>,
    /// The slot of each object, by the hash of its key.
    by_key: Table,
    pub(super) indexes: Arc<Vec<IndexState>>,
    pub(super) version: Option<ResourceVersion>,
    /// Grows with each object that is put in or removed.
    pub(super) revision: Revision,
    /// The objects that were deleted a short time ago; `None` if none may linger.
    pub(super) lingering: Option<Arc<LingeringState>>,
}

/// An object, its key and its index values, so that they are computed only once.
pub(super) struct Entry {
    /// Namespace, a slash, and name. Stored inline if it fits: separate strings would lie between the objects, each in
    /// another memory page.
    key: SmallVec<[u8; 48]>,
    object: Arc<dyn Object>,
    posted: Posted,
}

/// The index values of an object, each as the number of an index and the number of a value in it.
type Posted = Arc<[(u32, Slot)]>;

impl StoreState {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            hasher: FixedState::with_seed(seed),
            entries: Slots::new(),
            by_key: Table::new(),
            indexes: Arc::default(),
            version: None,
            revision: Revision(0),
            lingering: None,
        }
    }

    pub(super) fn hasher(&self) -> &FixedState {
        &self.hasher
    }

    /// Returns the same state without the lingering objects, so that it does not keep them in memory.
    pub(super) fn without_lingering(&self) -> Self {
        Self {
            hasher: self.hasher.clone(),
            entries: self.entries.clone(),
            by_key: self.by_key.clone(),
            indexes: self.indexes.clone(),
            version: self.version.clone(),
            revision: self.revision,
            lingering: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(super) fn get(&self, key: KeyRef<'_>) -> Option<&Arc<dyn Object>> {
        // In one step: the key for the comparison is next to the object.
        self.by_key.get(self.hash(key), |slot| self.entry(slot, key)).map(|entry| &entry.object)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Object>> {
        self.entries.iter().map(|(_, entry)| &entry.object)
    }

    /// Returns the objects with a value.
    pub(super) fn members<'s>(
        &'s self,
        index: &'s IndexState,
        value: &str,
    ) -> impl Iterator<Item = &'s Arc<dyn Object>> + use<'s> {
        index.slots(&self.hasher, value).filter_map(|slot| self.entries.get(slot)).map(|entry| &entry.object)
    }

    pub(super) fn member_count(&self, index: &IndexState, value: &str) -> usize {
        index.count(&self.hasher, value)
    }

    /// Returns an object and its slot.
    pub(super) fn find(&self, key: KeyRef<'_>) -> Option<(Slot, &Arc<dyn Object>)> {
        self.by_key.get(self.hash(key), |slot| self.entry(slot, key).map(|entry| (slot, &entry.object)))
    }

    /// Puts in an object with its index values, and returns the one that it replaces. If `likely` is its slot, no
    /// search is needed.
    pub(super) fn put(
        &mut self,
        object: Arc<dyn Object>,
        values: &Values,
        likely: Option<Slot>,
    ) -> Option<Arc<dyn Object>> {
        self.revision.0 += 1;
        let key = object.id().key;
        let likely = likely.filter(|slot| self.entry(*slot, key).is_some());
        let Some(slot) = likely.or_else(|| self.slot(self.hash(key), key)) else {
            let hash = self.hash(key);
            let (key, posted) = (key_text(key), Arc::default());
            let slot = self.entries.add(Entry { key, object, posted });
            self.by_key.add(hash, slot);
            if !values.is_empty() {
                self.post(slot, values);
            }
            return None;
        };
        if self.lingering.is_some() {
            self.linger_replaced(slot, &*object);
        }
        if !self.is_posted(slot, values) {
            self.post(slot, values);
        }
        self.entries.get_mut(slot).map(|entry| std::mem::replace(&mut entry.object, object))
    }

    pub(super) fn remove(&mut self, key: KeyRef<'_>) -> Option<Arc<dyn Object>> {
        let hash = self.hash(key);
        let slot = self.slot(hash, key)?;
        self.revision.0 += 1;
        self.by_key.remove(hash, |known| known == slot);
        let Entry { object, posted, .. } = self.entries.remove(slot)?;
        if !posted.is_empty() {
            let indexes = Arc::make_mut(&mut self.indexes);
            posted.iter().for_each(|&(index, number)| indexes[index as usize].leave(&self.hasher, number, slot));
        }
        Some(object)
    }

    /// Removes an object that was deleted, and returns it. If deleted objects may linger, `last` lingers with its index
    /// values, or without it the state in the store.
    pub(super) fn delete(
        &mut self,
        key: KeyRef<'_>,
        last: Option<(&Arc<dyn Object>, &Values)>,
    ) -> Option<Arc<dyn Object>> {
        if self.lingering.is_some() {
            self.linger(|state, lingering| {
                let Some((slot, known)) = state.find(key) else { return };
                match last {
                    Some((last, values)) => lingering.add(last.clone(), values.iter()),
                    None => lingering.add(known.clone(), state.values(slot)),
                }
            });
        }
        self.remove(key)
    }

    /// Sets when the objects that are deleted from now on were deleted.
    pub(super) fn departs(&mut self, departure: Departure) {
        if let Some(lingering) = &mut self.lingering {
            Arc::make_mut(lingering).departs(departure);
        }
    }

    /// Takes out the objects that do not linger any more, to be dropped outside of any lock.
    pub(super) fn take_freed(&mut self) -> Vec<Arc<dyn Object>> {
        match &mut self.lingering {
            Some(lingering) if lingering.has_freed() => Arc::make_mut(lingering).take_freed(),
            _ => Vec::new(),
        }
    }

    /// Lets the object in a slot linger if the new one is another object of the same name.
    fn linger_replaced(&mut self, slot: Slot, new: &dyn Object) {
        self.linger(|state, lingering| {
            let Some(Entry { object: old, .. }) = state.entries.get(slot) else { return };
            let (before, after) = (old.id().uid, new.id().uid);
            if before != after && !before.is_empty() && !after.is_empty() {
                lingering.add(old.clone(), state.values(slot));
            }
        });
    }

    fn linger(&mut self, add: impl FnOnce(&Self, &mut LingeringState)) {
        let Some(mut lingering) = self.lingering.take() else { return };
        add(self, Arc::make_mut(&mut lingering));
        self.lingering = Some(lingering);
    }

    /// Iterates over the index values of the object in a slot.
    fn values(&self, slot: Slot) -> impl Iterator<Item = (u32, &str)> {
        let posted = self.entries.get(slot).into_iter().flat_map(|entry| entry.posted.iter());
        posted.filter_map(|&(index, number)| Some((index, self.indexes[index as usize].value(number)?)))
    }

    /// Adds an index with the values of every object.
    pub(super) fn add_index(&mut self, index: IndexState, mut values: impl FnMut(&dyn Object, u32, &mut Values)) {
        let at = self.indexes.len() as u32;
        if let Some(lingering) = &mut self.lingering {
            Arc::make_mut(lingering).add_index(index.name(), |object, of_object| values(object, at, of_object));
        }
        Arc::make_mut(&mut self.indexes).push(index);
        let slots: Vec<Slot> = self.entries.iter().map(|(slot, _)| slot).collect();
        let mut of_object = Values::default();
        for slot in slots {
            let Some(entry) = self.entries.get(slot) else { continue };
            of_object.clear();
            values(&*entry.object, at, &mut of_object);
            if of_object.is_empty() {
                continue;
            }
            let known = entry.posted.iter().copied();
            let index = &mut Arc::make_mut(&mut self.indexes)[at as usize];
            let new = of_object.iter().map(|(_, value)| (at, index.join(&self.hasher, value, slot)));
            let posted = known.chain(new).collect();
            if let Some(entry) = self.entries.get_mut(slot) {
                entry.posted = posted;
            }
        }
    }

    #[inline]
    fn hash(&self, key: KeyRef<'_>) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    fn slot(&self, hash: u32, key: KeyRef<'_>) -> Option<Slot> {
        self.by_key.get(hash, |slot| self.entry(slot, key).map(|_| slot))
    }

    /// Returns the entry, if it has this key.
    #[inline]
    fn entry(&self, slot: Slot, key: KeyRef<'_>) -> Option<&Entry> {
        self.entries.get(slot).filter(|entry| is_key(&entry.key, key))
    }

    /// Returns true if an object has exactly these index values already. Most changes leave them unchanged.
    fn is_posted(&self, slot: Slot, values: &Values) -> bool {
        let Some(entry) = self.entries.get(slot) else { return false };
        entry.posted.len() == values.len()
            && entry.posted.iter().zip(values.iter()).all(|(&(index, number), (of, value))| {
                index == of && self.indexes[index as usize].value(number) == Some(value)
            })
    }

    /// Replaces the index values of an object.
    fn post(&mut self, slot: Slot, values: &Values) {
        let indexes = Arc::make_mut(&mut self.indexes);
        let before = self.entries.get(slot).map(|entry| entry.posted.clone()).unwrap_or_default();
        let had = Among::new(&before);
        let posted: Posted = values
            .iter()
            .map(|(of, value)| {
                let index = &mut indexes[of as usize];
                let known = index.find(&self.hasher, value).filter(|number| had.contains(&(of, *number)));
                (of, known.unwrap_or_else(|| index.join(&self.hasher, value, slot)))
            })
            .collect();
        let has = Among::new(&posted);
        for known in before.iter().filter(|known| !has.contains(known)) {
            indexes[known.0 as usize].leave(&self.hasher, known.1, slot);
        }
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.posted = posted;
        }
    }
}

/// A set of index values.
enum Among<'a> {
    Few(&'a [(u32, Slot)]),
    Many(HashSet<(u32, Slot)>),
}

impl<'a> Among<'a> {
    fn new(posted: &'a [(u32, Slot)]) -> Self {
        if posted.len() <= FEW { Self::Few(posted) } else { Self::Many(posted.iter().copied().collect()) }
    }

    fn contains(&self, wanted: &(u32, Slot)) -> bool {
        match self {
            Self::Few(posted) => posted.contains(wanted),
            Self::Many(posted) => posted.contains(wanted),
        }
    }
}

fn key_text(key: KeyRef<'_>) -> SmallVec<[u8; 48]> {
    let parts = [key.namespace().unwrap_or_default(), "/", key.name()];
    parts.iter().flat_map(|part| part.bytes()).collect()
}

#[inline]
fn is_key(text: &[u8], key: KeyRef<'_>) -> bool {
    let (namespace, name) = (key.namespace().unwrap_or_default().as_bytes(), key.name().as_bytes());
    text.strip_prefix(namespace).and_then(|rest| rest.strip_prefix(b"/")) == Some(name)
}

impl Clone for StoreState {
    fn clone(&self) -> Self {
        Self { lingering: self.lingering.clone(), ..self.without_lingering() }
    }
}

impl Clone for Entry {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), object: self.object.clone(), posted: self.posted.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_equals_only_its_own_namespace_and_name() {
        let check = |namespace, name, same| {
            assert_eq!(
                is_key(&key_text(KeyRef::new("a", "bc")), KeyRef::new(namespace, name)),
                same,
                "{namespace} {name}"
            );
        };
        check("a", "bc", true);
        check("a/", "c", false);
        check("a", "bd", false);
        check("", "a/bc", false);
        check("b", "bc", false);
        check("a", "c", false);
    }
}
