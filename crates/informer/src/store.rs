//! The cache itself: objects by key, and the indexes over them, readable at any time from anywhere.
//!
//! | to read | use |
//! |---|---|
//! | one object by key | [`Store::get`]: one short lock |
//! | many objects, or several reads that must fit together | [`Store::snapshot`]: everything of one instant, at any size in constant time |
//! | the objects that share a value | [`Index::get`], made by `add_index` |
//! | by namespace or by labels | [`Lister`](crate::Lister) |
//!
//! Nothing here waits, and nothing knows of sockets, clocks or tasks.

mod chunks;
mod index;
mod slots;
mod table;

use std::any::TypeId;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::FixedState;
use parking_lot::RwLock;

pub use self::index::{Index, IndexError, IndexValues};
pub(crate) use self::index::{IndexFunction, index_function};
use self::index::{IndexState, Values};
use self::slots::{Slot, Slots};
use self::table::Table;
use crate::object::{KeyRef, Object, ResourceVersion};

/// The objects of one informer, as last seen. Cloning gives another handle to the same cache.
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::source::Identity;
/// # let thing = |key: &str, version: &str| {
/// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
/// # };
/// use kube_informer::Store;
///
/// let (store, mut writer) = Store::new(0);
/// writer.put(thing("web/a", "1"));
/// writer.set_version(Some("1".into()));
///
/// let reader = store.clone();
/// let object = reader.get("web/a").unwrap();
/// writer.put(thing("web/a", "2"));
/// assert_eq!(object.version, "1", "what was read does not change");
/// assert!(reader.contains("web/a") && reader.len() == 1);
/// assert_eq!(reader.version(), Some("1".into()));
/// ```
pub struct Store<T> {
    shared: Arc<RwLock<State<T>>>,
}

/// All objects and indexes of one instant. It never changes, and holds nobody off however long it is kept.
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::{Store, source::Identity};
/// # let thing = |key: &str, version: &str| {
/// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
/// # };
/// let (store, mut writer) = Store::new(0);
/// writer.put(thing("web/a", "1"));
/// let before = store.snapshot();
/// writer.put(thing("web/a", "2"));
/// assert_eq!(before.get("web/a").unwrap().version, "1");
/// assert_eq!(store.get("web/a").unwrap().version, "2");
/// ```
pub struct Snapshot<T> {
    state: State<T>,
}

/// The one who may change a store. There is exactly one, and it is not `Clone`.
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::source::Identity;
/// # let thing = |key: &str, version: &str| {
/// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
/// # };
/// use kube_informer::Store;
///
/// let (store, mut writer) = Store::new(0);
/// assert!(writer.put(thing("web/a", "1")).is_none());
/// assert_eq!(writer.put(thing("web/a", "2")).unwrap().version, "1", "what it replaces");
/// assert_eq!(writer.remove("web/a").unwrap().version, "2");
/// assert!(store.is_empty() && writer.store().is_empty());
/// ```
pub struct StoreWriter<T> {
    store: Store<T>,
    /// Index values of the object that comes and of the one that goes: kept to be filled again.
    scratch: [Values; 2],
}

struct State<T> {
    hasher: FixedState,
    objects: Slots<Arc<T>>,
    /// Where each object is, by the hash of its key.
    by_key: Table<Slot>,
    indexes: Arc<Vec<IndexState<T>>>,
    version: Option<ResourceVersion>,
}

impl<T: Object> Store<T> {
    /// An empty store and its writer. The seed decides how keys are hashed, and nothing that can be seen.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// use kube_informer::Store;
    ///
    /// let (store, mut writer) = Store::new(42);
    /// assert!(store.is_empty() && store.version().is_none());
    /// writer.put(thing("web/a", "1"));
    /// assert_eq!(store.len(), 1);
    /// ```
    pub fn new(seed: u64) -> (Self, StoreWriter<T>) {
        let state = State {
            hasher: FixedState::with_seed(seed),
            objects: Slots::new(),
            by_key: Table::new(),
            indexes: Arc::new(Vec::new()),
            version: None,
        };
        let store = Self { shared: Arc::new(RwLock::new(state)) };
        (store.clone(), StoreWriter { store, scratch: Default::default() })
    }

    /// The object as the cache last saw it, or `None` if the cache does not hold it.
    ///
    /// The answer may lag behind the server. It never changes under you: an update replaces the `Arc`, not its contents.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::Store;
    /// # let (store, mut writer) = Store::new(0);
    /// writer.put(thing("web/a", "1"));
    /// let object = store.get("web/a").unwrap();
    /// writer.remove(("web", "a"));
    /// assert_eq!(object.version, "1", "it is yours as long as you like");
    /// assert!(store.get(&object.key).is_none());
    /// ```
    pub fn get<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<Arc<T>> {
        self.shared.read().get(key.into()).cloned()
    }

    /// True if the cache holds the object.
    pub fn contains<'k>(&self, key: impl Into<KeyRef<'k>>) -> bool {
        self.shared.read().get(key.into()).is_some()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.shared.read().objects.len()
    }

    /// True if there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Everything of this instant, in constant time at any size.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::Store;
    /// let (store, mut writer) = Store::new(0);
    /// writer.put(thing("web/a", "1"));
    /// let snapshot = store.snapshot();
    /// writer.remove("web/a");
    /// assert_eq!(snapshot.iter().count(), 1);
    /// assert!(store.snapshot().is_empty());
    /// ```
    pub fn snapshot(&self) -> Snapshot<T> {
        Snapshot { state: self.shared.read().clone() }
    }

    /// The version up to which the store reflects every change; `None` before the first list.
    pub fn version(&self) -> Option<ResourceVersion> {
        self.shared.read().version.clone()
    }

    /// The index of that name, or `None` if nobody added it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::Store;
    /// let (store, mut writer) = Store::new(0);
    /// writer.put(thing("web/a", "1"));
    /// writer.add_index_with("name", |object: &Identity, add| add(object.key.name()))?;
    /// assert_eq!(store.index("name").unwrap().get("a").len(), 1);
    /// assert!(store.index("color").is_none());
    /// # Ok::<(), kube_informer::store::IndexError>(())
    /// ```
    pub fn index(&self, name: &str) -> Option<Index<T>> {
        let at = self.shared.read().indexes.iter().position(|index| index.is_named(name))?;
        Some(Index::new(self.clone(), at))
    }

    fn read<R>(&self, look: impl FnOnce(&State<T>) -> R) -> R {
        look(&self.shared.read())
    }
}

impl<T: Object> Snapshot<T> {
    /// The object, or `None` if the cache did not hold it at that instant.
    pub fn get<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<&Arc<T>> {
        self.state.get(key.into())
    }

    /// Every object, in no particular order.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::Store;
    /// # let (store, mut writer) = Store::new(0);
    /// writer.put(thing("web/b", "1"));
    /// writer.put(thing("web/a", "2"));
    /// let snapshot = store.snapshot();
    /// let mut keys: Vec<_> = snapshot.iter().map(|object| object.key.as_str()).collect();
    /// keys.sort_unstable();
    /// assert_eq!(keys, ["web/a", "web/b"]);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.state.iter()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.state.objects.len()
    }

    /// True if there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version up to which this snapshot reflects every change; `None` before the first list.
    pub fn version(&self) -> Option<&ResourceVersion> {
        self.state.version.as_ref()
    }

    /// True if somebody added an index of that name.
    pub fn has_index(&self, index: &str) -> bool {
        self.state.indexes.iter().any(|state| state.is_named(index))
    }

    /// The objects that had this value in the named index at that instant; none if there is no such index.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::Store;
    /// let (store, mut writer) = Store::new(0);
    /// writer.add_index_with("name", |object: &Identity, add| add(object.key.name()))?;
    /// writer.put(thing("web/a", "1"));
    /// let snapshot = store.snapshot();
    /// writer.put(thing("shop/a", "2"));
    /// assert!(snapshot.has_index("name"));
    /// assert_eq!(snapshot.by_index("name", "a").count(), 1);
    /// assert_eq!(store.snapshot().by_index("name", "a").count(), 2);
    /// # Ok::<(), kube_informer::store::IndexError>(())
    /// ```
    pub fn by_index(&self, index: &str, value: &str) -> impl Iterator<Item = &Arc<T>> {
        let index = self.state.indexes.iter().find(|state| state.is_named(index));
        index
            .into_iter()
            .flat_map(move |index| index.slots(&self.state.hasher, value))
            .filter_map(|slot| self.state.objects.get(slot))
    }
}

impl<T: Object> StoreWriter<T> {
    /// The store this writer writes.
    pub fn store(&self) -> &Store<T> {
        &self.store
    }

    /// Adds or replaces one object, and gives back the one it replaces.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::Store;
    /// # let (store, mut writer) = Store::new(0);
    /// assert!(writer.put(thing("web/a", "1")).is_none());
    /// assert_eq!(writer.put(thing("web/a", "2")).unwrap().version, "1");
    /// assert_eq!(store.len(), 1);
    /// ```
    pub fn put(&mut self, object: Arc<T>) -> Option<Arc<T>> {
        self.store.shared.write().put(object, &mut self.scratch)
    }

    /// Removes one object, and gives it back.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::Store;
    /// # let (store, mut writer) = Store::new(0);
    /// writer.put(thing("web/a", "1"));
    /// assert_eq!(writer.remove("web/a").unwrap().version, "1");
    /// assert!(writer.remove("web/a").is_none());
    /// # assert!(store.is_empty());
    /// ```
    pub fn remove<'k>(&mut self, key: impl Into<KeyRef<'k>>) -> Option<Arc<T>> {
        self.store.shared.write().remove(key.into(), &mut self.scratch)
    }

    /// Says how far the store now reflects the server; `None` when versions start afresh.
    ///
    /// ```
    /// # use kube_informer::{Store, source::Identity};
    /// # let (store, mut writer) = Store::<Identity>::new(0);
    /// writer.set_version(Some("7".into()));
    /// assert_eq!(store.version(), Some("7".into()));
    /// ```
    pub fn set_version(&mut self, version: Option<ResourceVersion>) {
        self.store.shared.write().version = version;
    }

    /// Makes many changes that readers see all at once, none of them held off meanwhile.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::Store;
    /// let (store, mut writer) = Store::new(0);
    /// writer.put(thing("web/a", "1"));
    /// writer.transaction(|transaction| {
    ///     transaction.remove("web/a");
    ///     transaction.put(thing("web/b", "2"));
    ///     transaction.set_version(Some("2".into()));
    ///     assert!(store.contains("web/a"), "nobody sees it yet");
    /// });
    /// assert!(store.contains("web/b") && !store.contains("web/a"));
    /// ```
    pub fn transaction<R>(&mut self, change: impl FnOnce(&mut Transaction<'_, T>) -> R) -> R {
        // Nobody else writes, so what is prepared on a copy can simply take the place of the original.
        let mut transaction = Transaction { state: self.store.shared.read().clone(), scratch: &mut self.scratch };
        let result = change(&mut transaction);
        let Transaction { state, .. } = transaction;
        let replaced = std::mem::replace(&mut *self.store.shared.write(), state);
        drop(replaced); // Freed with the lock already released.
        result
    }

    /// Adds a named index to a store used by itself, and fills it. A function that panics skips the object.
    ///
    /// # Errors
    ///
    /// [`IndexError::Exists`] if the name is taken by another function.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{Store, store::IndexError};
    /// let (_store, mut writer) = Store::new(0);
    /// writer.put(thing("web/a", "1"));
    /// let by_name = writer.add_index_with("name", |object: &Identity, add| add(object.key.name()))?;
    /// assert_eq!(by_name.count("a"), 1);
    /// let taken = writer.add_index_with("name", |object: &Identity, add| add(&object.uid));
    /// assert!(matches!(taken, Err(IndexError::Exists(_))));
    /// # Ok::<(), IndexError>(())
    /// ```
    pub fn add_index_with<F>(&mut self, name: &str, function: F) -> Result<Index<T>, IndexError>
    where
        F: Fn(&T, &mut dyn FnMut(&str)) + Send + Sync + 'static,
    {
        self.add_index(name, TypeId::of::<F>(), index_function(function, |_, _| {}))
    }

    /// Adds an index and fills it, or finds the one that is there already.
    pub(crate) fn add_index(
        &mut self,
        name: &str,
        kind: TypeId,
        function: IndexFunction<T>,
    ) -> Result<Index<T>, IndexError> {
        if let Some(at) = self.store.read(|state| state.indexes.iter().position(|index| index.is_named(name))) {
            let same = self.store.read(|state| state.indexes[at].is_of(kind));
            return if same {
                Ok(Index::new(self.store.clone(), at))
            } else {
                Err(IndexError::Exists(name.to_owned()))
            };
        }
        let at = self.transaction(|transaction| {
            let mut index = IndexState::new(name, kind, function);
            let state = &mut transaction.state;
            for (slot, object) in state.objects.iter() {
                if index.changes(None, Some(object), transaction.scratch) {
                    index.update(&state.hasher, slot, transaction.scratch);
                }
            }
            Arc::make_mut(&mut state.indexes).push(index);
            state.indexes.len() - 1
        });
        Ok(Index::new(self.store.clone(), at))
    }
}

/// A store being changed out of sight; see [`StoreWriter::transaction`].
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::source::Identity;
/// # let thing = |key: &str, version: &str| {
/// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
/// # };
/// # use kube_informer::Store;
/// let (store, mut writer) = Store::new(0);
/// writer.put(thing("web/a", "1"));
/// writer.put(thing("web/b", "2"));
/// let left = writer.transaction(|transaction| {
///     let old = transaction.remove("web/a");
///     assert!(old.is_some() && transaction.get("web/a").is_none());
///     transaction.iter().count()
/// });
/// assert_eq!((left, store.len()), (1, 1));
/// ```
pub struct Transaction<'w, T> {
    state: State<T>,
    scratch: &'w mut [Values; 2],
}

impl<T: Object> Transaction<'_, T> {
    /// The object as it is in this transaction.
    pub fn get<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<&Arc<T>> {
        self.state.get(key.into())
    }

    /// Adds or replaces one object, and gives back the one it replaces.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::Store;
    /// # let (store, mut writer) = Store::new(0);
    /// writer.transaction(|transaction| {
    ///     assert!(transaction.put(thing("web/a", "1")).is_none());
    ///     assert_eq!(transaction.put(thing("web/a", "2")).unwrap().version, "1");
    ///     assert_eq!(transaction.get("web/a").unwrap().version, "2");
    ///     assert!(store.is_empty(), "nobody else sees it yet");
    /// });
    /// assert_eq!(store.get("web/a").unwrap().version, "2");
    /// ```
    pub fn put(&mut self, object: Arc<T>) -> Option<Arc<T>> {
        self.state.put(object, self.scratch)
    }

    /// Removes one object, and gives it back.
    pub fn remove<'k>(&mut self, key: impl Into<KeyRef<'k>>) -> Option<Arc<T>> {
        self.state.remove(key.into(), self.scratch)
    }

    /// Says how far the store reflects the server with this transaction.
    pub fn set_version(&mut self, version: Option<ResourceVersion>) {
        self.state.version = version;
    }

    /// Every object as it is in this transaction, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.state.iter()
    }
}

impl<T: Object> State<T> {
    fn get(&self, key: KeyRef<'_>) -> Option<&Arc<T>> {
        self.objects.get(self.slot(self.hash(key), key)?)
    }

    fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.objects.iter().map(|(_, object)| object)
    }

    fn put(&mut self, object: Arc<T>, scratch: &mut [Values; 2]) -> Option<Arc<T>> {
        let key = object.id().key;
        let hash = self.hash(key);
        let (slot, old) = match self.slot(hash, key) {
            Some(slot) => (slot, self.objects.replace(slot, object.clone())),
            None => {
                let slot = self.objects.add(object.clone());
                self.by_key.add(hash, slot);
                (slot, None)
            }
        };
        self.reindex(slot, old.as_deref(), Some(&object), scratch);
        old
    }

    fn remove(&mut self, key: KeyRef<'_>, scratch: &mut [Values; 2]) -> Option<Arc<T>> {
        let hash = self.hash(key);
        let slot = self.slot(hash, key)?;
        self.by_key.remove(hash, |&known| known == slot);
        let old = self.objects.remove(slot)?;
        self.reindex(slot, Some(&old), None, scratch);
        Some(old)
    }

    fn hash(&self, key: KeyRef<'_>) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    fn slot(&self, hash: u32, key: KeyRef<'_>) -> Option<Slot> {
        let same = |&slot: &Slot| self.objects.get(slot).is_some_and(|object| object.id().key == key);
        self.by_key.get(hash, same).copied()
    }

    /// Follows one object from its old state to its new one. Most changes leave all index values as they are.
    fn reindex(&mut self, slot: Slot, old: Option<&T>, new: Option<&T>, scratch: &mut [Values; 2]) {
        for at in 0..self.indexes.len() {
            if self.indexes[at].changes(old, new, scratch) {
                Arc::make_mut(&mut self.indexes)[at].update(&self.hasher, slot, scratch);
            }
        }
    }
}

impl<T> Clone for Store<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> Clone for Snapshot<T> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone() }
    }
}

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self {
            hasher: self.hasher.clone(),
            objects: self.objects.clone(),
            by_key: self.by_key.clone(),
            indexes: self.indexes.clone(),
            version: self.version.clone(),
        }
    }
}

impl<T: Object> std::fmt::Debug for Store<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("len", &self.len()).field("version", &self.version()).finish_non_exhaustive()
    }
}

impl<T: Object> std::fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("len", &self.len()).field("version", &self.version()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
