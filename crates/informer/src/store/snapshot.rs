//! The objects and indexes of one instant.

use std::marker::PhantomData;
use std::sync::Arc;

use super::state::{Revision, StoreState};
use crate::object::{Cached, KeyRef, Object, ResourceVersion};

/// All objects and indexes of one instant. A snapshot never changes, and it blocks no writer however long it is kept.
///
/// ```
/// use kube_informer::Store;
/// # use std::sync::Arc;
/// # use kube_informer::Identity;
/// # let thing = |key: &str, version: &str| Arc::new(Identity { key: key.parse().unwrap(), uid: "".into(), version: version.into() });
///
/// let (store, mut writer) = Store::new(0);
/// writer.put(thing("web/a", "1"));
/// let snapshot = store.snapshot();
/// writer.remove("web/a");
/// for object in &snapshot {
///     assert_eq!(object.key.as_str(), "web/a");
/// }
/// ```
pub struct Snapshot<T: ?Sized> {
    state: StoreState,
    objects: PhantomData<fn() -> Box<T>>,
}

impl<T: ?Sized> Snapshot<T> {
    pub(super) fn new(state: StoreState) -> Self {
        Self { state, objects: PhantomData }
    }
}

impl<T: Cached + ?Sized> Snapshot<T> {
    /// Returns the object, or `None` if the cache did not hold it at that instant. [`Snapshot::get_arc`] returns one to
    /// keep.
    pub fn get<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<&T> {
        self.state.get(key.into()).map(|object| T::typed_ref(&**object))
    }

    /// Returns the object to keep: it outlives the snapshot.
    pub fn get_arc<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<Arc<T>> {
        self.state.get(key.into()).cloned().map(T::typed)
    }

    /// Iterates over all objects, in no particular order. [`Snapshot::arcs`] iterates over objects to keep.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.state.iter().map(|object| T::typed_ref(&**object))
    }

    /// Iterates over all objects, in no particular order. The yielded objects outlive the snapshot.
    pub fn arcs(&self) -> impl Iterator<Item = Arc<T>> {
        self.state.iter().cloned().map(T::typed)
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.state.len()
    }

    /// Returns true if there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the version up to which this snapshot has every change, or `None` before the first list.
    pub fn version(&self) -> Option<&ResourceVersion> {
        self.state.version.as_ref()
    }

    /// Returns the revision of the content; see [`Store::revision`](crate::Store::revision).
    pub fn revision(&self) -> Revision {
        self.state.revision
    }

    /// Returns true if an index with this name was added.
    pub fn has_index(&self, index: &str) -> bool {
        self.state.indexes.iter().any(|state| state.is_named(index))
    }

    /// Iterates over the objects with this value in an index. There are none if no index has this name.
    pub fn by_index(&self, index: &str, value: &str) -> impl Iterator<Item = &T> {
        self.members(index, value).map(|object| T::typed_ref(&**object))
    }

    /// Returns the same objects without their type.
    pub(crate) fn members(&self, index: &str, value: &str) -> impl Iterator<Item = &Arc<dyn Object>> {
        let index = self.state.indexes.iter().find(|state| state.is_named(index));
        index.into_iter().flat_map(move |index| self.state.members(index, value))
    }

    /// Iterates over all objects without their type.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &Arc<dyn Object>> {
        self.state.iter()
    }
}

impl<'s, T: Cached + ?Sized> IntoIterator for &'s Snapshot<T> {
    type Item = &'s T;
    type IntoIter = Box<dyn Iterator<Item = &'s T> + 's>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

impl<T: Cached + ?Sized> IntoIterator for Snapshot<T> {
    type Item = Arc<T>;
    type IntoIter = std::vec::IntoIter<Arc<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.arcs().collect::<Vec<_>>().into_iter()
    }
}

impl<T: ?Sized> Clone for Snapshot<T> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone(), objects: PhantomData }
    }
}

impl<T: Cached + ?Sized> std::fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("len", &self.len()).field("version", &self.version()).finish_non_exhaustive()
    }
}
