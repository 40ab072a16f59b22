//! The cache: objects by key, and indexes over them. Any thread can read it at any time.
//!
//! | to read | use |
//! |---|---|
//! | one object by key | [`Store::get`]: one short lock |
//! | many objects, or several consistent reads | [`Store::snapshot`]: all objects of one instant, in constant time |
//! | the objects that share a value | [`Index::get`], made by `add_index` |
//! | by namespace or by labels | [`Lister`](crate::Lister) |
//! | deleted a short time ago | [`Lingering`] |
//!
//! This module uses no sockets, clocks or tasks, and only [`Store::changed_since`] waits. Index functions run outside
//! the lock of the readers.

mod chunks;
mod index;
mod lingering;
mod slots;
mod snapshot;
mod state;
mod table;
mod writer;

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use tokio::time::Instant;

pub use self::index::{Index, IndexError, IndexValues};
pub(crate) use self::index::{IndexFailure, IndexFunction, Values as IndexValuesOf, index_function};
pub use self::lingering::Lingering;
pub(crate) use self::lingering::{Departure, LingerLimits, LingeringCounts};
pub(crate) use self::slots::Slot;
pub use self::snapshot::Snapshot;
pub use self::state::Revision;
use self::state::StoreState;
pub(crate) use self::writer::{Functions as IndexFunctions, StoreChange, function_identity};
pub use self::writer::{StoreWriter, Transaction};
use crate::lock::RwLock;
use crate::object::{Cached, KeyRef, Object, ResourceVersion};

/// The cache of one informer. A clone is another handle of the same cache.
///
/// ```
/// use kube_informer::Store;
/// # use std::sync::Arc;
/// # use kube_informer::Identity;
/// # let thing = |key: &str, version: &str| Arc::new(Identity { key: key.parse().unwrap(), uid: "".into(), version: version.into() });
///
/// let (store, mut writer) = Store::new(0);
/// writer.put(thing("web/a", "1"));
///
/// let object = store.get("web/a").unwrap();
/// let snapshot = store.snapshot();
/// writer.put(thing("web/a", "2"));
/// assert_eq!(object.version, "1", "an `Arc` that was read does not change");
/// assert_eq!(snapshot.get("web/a").unwrap().version, "1");
/// assert_eq!(store.get("web/a").unwrap().version, "2");
/// ```
pub struct Store<T: ?Sized> {
    shared: Arc<StoreShared>,
    objects: PhantomData<fn() -> Box<T>>,
}

struct StoreShared {
    state: RwLock<StoreState>,
    /// Notified when the content may have changed, and when it will not change any more.
    changed: Notify,
    /// Notified when a deleted object may have begun to linger.
    lingered: Notify,
    /// True once the content will not change any more.
    closed: AtomicBool,
}

impl<T: Cached + ?Sized> Store<T> {
    /// Makes an empty store and its writer. The seed only affects how keys are hashed.
    pub fn new(seed: u64) -> (Self, StoreWriter<T>) {
        let state = RwLock::new(StoreState::new(seed));
        let (changed, lingered, closed) = (Notify::new(), Notify::new(), AtomicBool::new(false));
        let shared = Arc::new(StoreShared { state, changed, lingered, closed });
        let store = Self { shared, objects: PhantomData };
        (store.clone(), StoreWriter::new(store))
    }

    /// Returns the cached object, or `None` if the cache does not hold it.
    ///
    /// The result may lag behind the API server. It never changes under you: an update replaces the `Arc`, not its
    /// contents.
    pub fn get<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<Arc<T>> {
        let object = self.shared.state.read().get(key.into()).cloned();
        object.map(T::typed)
    }

    /// Returns true if the cache holds the object.
    pub fn contains<'k>(&self, key: impl Into<KeyRef<'k>>) -> bool {
        self.shared.state.read().get(key.into()).is_some()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.shared.state.read().len()
    }

    /// Returns true if the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all objects and indexes of this instant, in constant time at any size.
    pub fn snapshot(&self) -> Snapshot<T> {
        Snapshot::new(self.shared.state.read().without_lingering())
    }

    /// Iterates over all objects of this instant, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = Arc<T>> + use<T> {
        self.snapshot().into_iter()
    }

    /// Returns the version up to which the store has every change, or `None` before the first list.
    pub fn version(&self) -> Option<ResourceVersion> {
        self.shared.state.read().version.clone()
    }

    /// Returns the revision of the content. It grows with each addition, update and deletion of an object, and stays
    /// the same otherwise: a bookmark, a resync, or a relist that finds nothing new does not change it.
    ///
    /// Revisions of one cache can be compared. [`Snapshot::revision`] belongs to the objects of the snapshot.
    pub fn revision(&self) -> Revision {
        self.shared.state.read().revision
    }

    /// Waits until the revision differs from this one, and returns the new revision. Returns `None` if the informer has
    /// stopped, so that the content will not change any more.
    ///
    /// A relist changes the revision once. Changes that happen while the program computes are one change, too:
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn count_all(store: kube_informer::Store<ConfigMap>) {
    /// loop {
    ///     let snapshot = store.snapshot();
    ///     println!("{} config maps", snapshot.len()); // Computes something from all objects.
    ///     if store.changed_since(snapshot.revision()).await.is_none() {
    ///         return; // The informer has stopped.
    ///     }
    /// }
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing. A later call with the same revision returns at once if there was a change.
    pub async fn changed_since(&self, revision: Revision) -> Option<Revision> {
        loop {
            // The wait is registered before the check, so that it does not miss a change.
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            let now = self.revision();
            if now != revision {
                return Some(now);
            }
            if self.shared.closed.load(Ordering::SeqCst) {
                return None;
            }
            changed.await;
        }
    }

    /// Returns the index with this name, or `None` if it was not added.
    pub fn index(&self, name: &str) -> Option<Index<T>> {
        let at = self.shared.state.read().indexes.iter().position(|index| index.is_named(name))?;
        Some(Index::new(self.clone(), at))
    }

    /// Returns the names of all indexes, in the order in which they were added.
    pub fn index_names(&self) -> Vec<Arc<str>> {
        self.shared.state.read().indexes.iter().map(|index| index.name().clone()).collect()
    }

    fn read<R>(&self, look: impl FnOnce(&StoreState) -> R) -> R {
        look(&self.shared.state.read())
    }

    /// Returns an object and its slot: a hint for [`StoreChange::Put`].
    pub(crate) fn find(&self, key: KeyRef<'_>) -> Option<(Slot, Arc<dyn Object>)> {
        self.shared.state.read().find(key).map(|(slot, object)| (slot, object.clone()))
    }

    /// Returns how many handles of this store exist, indexes and listers included.
    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.shared)
    }

    /// Returns figures of the lingering objects; `None` if none may linger.
    pub(crate) fn lingering_counts(&self) -> Option<LingeringCounts> {
        self.read(|state| state.lingering.as_ref().map(|lingering| lingering.counts()))
    }

    /// Returns when the time of the first lingering object is over; `None` if no object lingers.
    pub(crate) fn lingering_ends(&self) -> Option<Instant> {
        self.read(|state| state.lingering.as_ref().and_then(|lingering| lingering.ends()))
    }

    /// Waits until another object may be the first lingering one. Only one task may wait.
    ///
    /// # Cancel safety
    ///
    /// Waiting again is fine.
    pub(crate) async fn lingered(&self) {
        self.shared.lingered.notified().await;
    }

    /// Returns the same cache with another type: the type of its objects, or `dyn Object`.
    pub(crate) fn cast<U: Cached + ?Sized>(&self) -> Store<U> {
        Store { shared: self.shared.clone(), objects: PhantomData }
    }
}

impl<T: ?Sized> Clone for Store<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), objects: PhantomData }
    }
}

impl<T: Cached + ?Sized> std::fmt::Debug for Store<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("len", &self.len()).field("version", &self.version()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
