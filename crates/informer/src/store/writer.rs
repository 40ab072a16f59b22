//! The writer of a store.

use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::Store;
use super::index::{Index, IndexError, IndexFailure, IndexFunction, IndexState, NamedFunction, Values, index_function};
use super::lingering::{Departure, LingerLimits, LingeringState};
use super::slots::Slot;
use super::state::StoreState;
use crate::object::{Cached, KeyRef, Object, ResourceVersion};

/// Changes a store. Each store has exactly one writer, and it is not `Clone`.
///
/// ```
/// use kube_informer::Store;
/// # use std::sync::Arc;
/// # use kube_informer::Identity;
/// # let thing = |key: &str, version: &str| Arc::new(Identity { key: key.parse().unwrap(), uid: "".into(), version: version.into() });
///
/// let (store, mut writer) = Store::new(0);
/// assert!(writer.put(thing("web/a", "1")).is_none());
/// assert_eq!(writer.put(thing("web/a", "2")).unwrap().version, "1", "the replaced object");
/// writer.transaction(|transaction| {
///     transaction.remove("web/a");
///     transaction.put(thing("web/b", "3"));
///     assert!(store.contains("web/a"), "readers do not see it yet");
/// });
/// assert!(store.contains("web/b") && !store.contains("web/a"));
/// ```
pub struct StoreWriter<T: ?Sized> {
    store: Store<T>,
    functions: Functions,
    /// Reused for each change.
    scratch: Values,
    /// How many changes were made. A transaction that began before the last one is outdated.
    changes: u64,
}

/// The functions of all indexes, in the order in which they were added.
pub(crate) type Functions = Arc<[NamedFunction]>;

/// Changes that become visible to readers all at once.
pub struct Transaction<T: ?Sized> {
    state: StoreState,
    functions: Functions,
    scratch: Values,
    failures: Vec<IndexFailure>,
    /// The number of changes made when it began.
    began: u64,
    objects: PhantomData<fn() -> Box<T>>,
}

impl<T: Cached + ?Sized> StoreWriter<T> {
    pub(super) fn new(store: Store<T>) -> Self {
        let functions = Arc::from([]);
        Self { store, functions, scratch: Values::default(), changes: 0 }
    }

    /// Returns the store of this writer.
    pub fn store(&self) -> &Store<T> {
        &self.store
    }

    /// Adds or replaces one object, and returns the one it replaces.
    pub fn put(&mut self, object: Arc<T>) -> Option<Arc<T>> {
        let object = T::erase(object);
        // An index function that panics skips the object. Only an informer reports it.
        drop(self.scratch.fill(&self.functions, &*object));
        self.changes += 1;
        let replaced = self.store.shared.state.write().put(object, &self.scratch, None);
        self.store.shared.changed.notify_waiters();
        replaced.map(T::typed)
    }

    /// Removes one object, and returns it.
    pub fn remove<'k>(&mut self, key: impl Into<KeyRef<'k>>) -> Option<Arc<T>> {
        self.changes += 1;
        let removed = self.store.shared.state.write().remove(key.into());
        self.store.shared.changed.notify_waiters();
        removed.map(T::typed)
    }

    /// Sets the version up to which the store has every change; `None` if the versions of the API server start again.
    pub fn set_version(&mut self, version: Option<ResourceVersion>) {
        self.changes += 1;
        self.store.shared.state.write().version = version;
    }

    /// Makes changes that become visible to readers all at once. Readers do not wait meanwhile.
    pub fn transaction<R>(&mut self, change: impl FnOnce(&mut Transaction<T>) -> R) -> R {
        let mut transaction = self.begin();
        let result = change(&mut transaction);
        self.install(transaction);
        result
    }

    /// Lets deleted objects linger. This must be called before the first index is added.
    pub(crate) fn linger(&mut self, limits: LingerLimits, now: Instant) {
        let mut state = self.store.shared.state.write();
        state.lingering = Some(Arc::new(LingeringState::new(limits, state.hasher().clone(), now)));
    }

    /// Removes lingering objects whose time is over, at most this many, and returns them, to be dropped outside of any
    /// lock. A transaction that has begun is not overtaken: it brings them back, and they are removed again.
    pub(crate) fn expire(&mut self, now: Instant, most: usize) -> Freed {
        let mut state = self.store.shared.state.write();
        if let Some(lingering) = &mut state.lingering {
            Arc::make_mut(lingering).expire(now, most);
        }
        state.take_freed()
    }

    /// Begins a transaction that other changes may overtake.
    pub(crate) fn begin(&self) -> Transaction<T> {
        Transaction {
            state: self.store.shared.state.read().clone(),
            functions: self.functions.clone(),
            scratch: Values::default(),
            failures: Vec::new(),
            began: self.changes,
            objects: PhantomData,
        }
    }

    /// Makes a transaction's changes, and returns the state that it replaces, to be dropped outside of any lock. Fails
    /// if other changes were made since the transaction began.
    pub(crate) fn commit(&mut self, transaction: Transaction<T>) -> Result<(Replaced, Vec<IndexFailure>), Overtaken> {
        if transaction.began == self.changes { Ok(self.install(transaction)) } else { Err(Overtaken) }
    }

    fn install(&mut self, mut transaction: Transaction<T>) -> (Replaced, Vec<IndexFailure>) {
        self.changes += 1;
        self.functions = transaction.functions;
        let freed = transaction.state.take_freed();
        let lingers = transaction.state.lingering.is_some();
        // There is no other writer, so a state that was prepared on a copy can take the place of the original.
        let replaced = std::mem::replace(&mut *self.store.shared.state.write(), transaction.state);
        self.store.shared.changed.notify_waiters();
        if lingers {
            self.store.shared.lingered.notify_one();
        }
        (Replaced(replaced, freed), transaction.failures)
    }

    /// Applies prepared changes and sets the version, under one lock. If deleted objects may linger, `departure` tells
    /// when they were deleted. Returns objects to be dropped outside of any lock.
    pub(crate) fn make<'c>(
        &mut self,
        changes: impl Iterator<Item = StoreChange<'c>>,
        version: Option<ResourceVersion>,
        departure: Option<Departure>,
    ) -> Freed {
        self.changes += 1;
        let mut state = self.store.shared.state.write();
        if let Some(departure) = departure {
            state.departs(departure);
        }
        for change in changes {
            match change {
                StoreChange::Put(object, values, likely) => drop(state.put(object, values, likely)),
                StoreChange::Delete(last, values) => {
                    drop(state.delete(last.id().key, values.map(|values| (last, values))));
                }
            }
        }
        state.version = version;
        let freed = state.take_freed();
        drop(state);
        self.store.shared.changed.notify_waiters();
        if departure.is_some() {
            self.store.shared.lingered.notify_one();
        }
        freed
    }

    /// Returns the functions of all indexes.
    pub(crate) fn functions(&self) -> Functions {
        self.functions.clone()
    }

    /// Returns true if these are the functions of all indexes, so that no index was added since.
    pub(crate) fn has_functions(&self, functions: &Functions) -> bool {
        Arc::ptr_eq(&self.functions, functions)
    }

    /// Adds a named index, and fills it. A function that panics skips the object.
    ///
    /// # Errors
    ///
    /// [`IndexError::Exists`] if the name is taken by another function.
    pub fn add_index<F>(&mut self, name: &str, function: F) -> Result<Index<T>, IndexError>
    where
        F: Fn(&T, &mut dyn FnMut(&str)) + Send + Sync + 'static,
    {
        let added = self.begin().add_index(name, function_identity::<F>(), index_function::<T, _>(function));
        if let Some(transaction) = added? {
            self.install(transaction);
        }
        self.store.index(name).ok_or_else(|| IndexError::Exists(name.to_owned()))
    }
}

impl<T: ?Sized> StoreWriter<T> {
    /// Ends every [`Store::changed_since`], because no more changes will be made.
    pub(crate) fn close(&self) {
        self.store.shared.closed.store(true, Ordering::SeqCst);
        self.store.shared.changed.notify_waiters();
    }
}

impl<T: ?Sized> Drop for StoreWriter<T> {
    fn drop(&mut self) {
        self.close();
    }
}

/// A prepared change.
pub(crate) enum StoreChange<'c> {
    /// Adds or replaces an object, with these index values, likely in this slot.
    Put(Arc<dyn Object>, &'c Values, Option<Slot>),
    /// Removes an object that was deleted in this state. If deleted objects linger, with its index values.
    Delete(&'c Arc<dyn Object>, Option<&'c Values>),
}

/// The state that a transaction replaced. Dropping it may free many objects.
pub(crate) struct Replaced(
    #[allow(dead_code, reason = "held to be dropped later")] StoreState,
    #[allow(dead_code, reason = "held to be dropped later")] Freed,
);

/// Objects that do not linger any more.
pub(crate) type Freed = Vec<Arc<dyn Object>>;

/// Other changes were made since a transaction began.
#[derive(Debug)]
pub(crate) struct Overtaken;

/// Returns the identity of an index function, if its type alone identifies it. A closure that captures values has none.
pub(crate) fn function_identity<F: 'static>() -> Option<TypeId> {
    (size_of::<F>() == 0).then(TypeId::of::<F>)
}

impl<T: Cached + ?Sized> Transaction<T> {
    /// Returns the object in the state of this transaction.
    pub fn get<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<Arc<T>> {
        self.state.get(key.into()).cloned().map(T::typed)
    }

    /// Iterates over every object in the state of this transaction, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.objects().map(|object| T::typed_ref(&**object))
    }

    /// Iterates over the same objects without their type.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &Arc<dyn Object>> {
        self.state.iter()
    }

    /// Adds or replaces one object, and returns the one it replaces.
    pub fn put(&mut self, object: Arc<T>) -> Option<Arc<T>> {
        let object = T::erase(object);
        self.failures.append(&mut self.scratch.fill(&self.functions, &*object));
        self.state.put(object, &self.scratch, None).map(T::typed)
    }

    /// Sets when the objects that are deleted from now on were deleted.
    pub(crate) fn departs(&mut self, departure: Departure) {
        self.state.departs(departure);
    }

    /// Removes one object that was deleted, and returns it. It lingers, if deleted objects may.
    pub(crate) fn delete(&mut self, key: KeyRef<'_>) -> Option<Arc<T>> {
        self.state.delete(key, None).map(T::typed)
    }

    /// Removes one object, and returns it.
    pub fn remove<'k>(&mut self, key: impl Into<KeyRef<'k>>) -> Option<Arc<T>> {
        self.state.remove(key.into()).map(T::typed)
    }

    /// Sets the version up to which the store will have every change.
    pub fn set_version(&mut self, version: Option<ResourceVersion>) {
        self.state.version = version;
    }

    /// Returns the transaction with one more index, or `None` if it has that index already.
    pub(crate) fn add_index(
        mut self,
        name: &str,
        identity: Option<TypeId>,
        function: IndexFunction,
    ) -> Result<Option<Self>, IndexError> {
        if let Some(known) = self.state.indexes.iter().find(|index| index.is_named(name)) {
            return if known.is_of(identity) { Ok(None) } else { Err(IndexError::Exists(name.to_owned())) };
        }
        let (function, failures) = ((Arc::from(name), function), &mut self.failures);
        self.state.add_index(IndexState::new(name, identity), |object, at, values| {
            values.add_all(at, &function, object, failures);
        });
        self.functions = self.functions.iter().cloned().chain([function]).collect();
        Ok(Some(self))
    }
}

impl<T: Cached + ?Sized> std::fmt::Debug for StoreWriter<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StoreWriter").field(&self.store).finish()
    }
}

impl<T: ?Sized> std::fmt::Debug for Transaction<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction").field("began", &self.began).finish_non_exhaustive()
    }
}
