//! The one who changes a store.

use std::any::TypeId;
use std::sync::Arc;

use super::Store;
use super::index::{Index, IndexError, IndexFailure, IndexFunction, IndexState, NamedFunction, Values, index_function};
use super::state::State;
use crate::object::{KeyRef, Object, ResourceVersion};

/// The one who may change a store. There is exactly one, and it is not `Clone`.
///
/// ```
/// use kube_informer::Store;
/// # use std::sync::Arc;
/// # use kube_informer::representation::Identity;
/// # let thing = |key: &str, version: &str| Arc::new(Identity { key: key.parse().unwrap(), uid: "".into(), version: version.into() });
///
/// let (store, mut writer) = Store::new(0);
/// assert!(writer.put(thing("web/a", "1")).is_none());
/// assert_eq!(writer.put(thing("web/a", "2")).unwrap().version, "1", "what it replaces");
/// writer.transaction(|transaction| {
///     transaction.remove("web/a");
///     transaction.put(thing("web/b", "3"));
///     assert!(store.contains("web/a"), "nobody sees it yet");
/// });
/// assert!(store.contains("web/b") && !store.contains("web/a"));
/// ```
pub struct StoreWriter<T> {
    store: Store<T>,
    functions: Functions<T>,
    /// Filled again and again.
    scratch: Values,
    /// How many changes were made: a transaction that began before the last one is out of date.
    changes: u64,
    /// What index functions failed on, until somebody takes it.
    failures: Vec<IndexFailure>,
}

type Functions<T> = Arc<[NamedFunction<T>]>;

/// Changes that readers see all at once, or not at all.
pub struct Transaction<T> {
    state: State<T>,
    functions: Functions<T>,
    scratch: Values,
    failures: Vec<IndexFailure>,
    /// The number of changes made when it began.
    began: u64,
}

/// What became of an object that was to be put in.
pub(crate) enum Put<T> {
    /// It was not wanted.
    Kept,
    /// It is new.
    Added,
    /// It takes the place of another state.
    Replaced(Arc<T>),
}

impl<T: Object> StoreWriter<T> {
    pub(super) fn new(store: Store<T>) -> Self {
        let functions = Arc::from([]);
        Self { store, functions, scratch: Values::default(), changes: 0, failures: Vec::new() }
    }

    /// The store this writer writes.
    pub fn store(&self) -> &Store<T> {
        &self.store
    }

    /// Adds or replaces one object, and gives back the one it replaces.
    pub fn put(&mut self, object: Arc<T>) -> Option<Arc<T>> {
        match self.put_if(object, |_| true) {
            Put::Replaced(old) => Some(old),
            Put::Added | Put::Kept => None,
        }
    }

    /// Adds or replaces one object if it is wanted beside what is known: looked up once, under one lock.
    pub(crate) fn put_if(&mut self, object: Arc<T>, wanted: impl FnOnce(Option<&Arc<T>>) -> bool) -> Put<T> {
        self.scratch.fill(&self.functions, &object, &mut self.failures);
        self.changes += 1;
        let holder = object.clone();
        self.store.shared.write().put(holder.id().key, object, &self.scratch, wanted)
    }

    /// Removes one object, and gives it back.
    pub fn remove<'k>(&mut self, key: impl Into<KeyRef<'k>>) -> Option<Arc<T>> {
        self.remove_if(key.into(), |_| true)
    }

    /// Removes one object if that is wanted of what is known.
    pub(crate) fn remove_if(&mut self, key: KeyRef<'_>, wanted: impl FnOnce(&Arc<T>) -> bool) -> Option<Arc<T>> {
        self.changes += 1;
        self.store.shared.write().remove(key, wanted)
    }

    /// Says how far the store now reflects the server; `None` when versions start afresh.
    pub fn set_version(&mut self, version: Option<ResourceVersion>) {
        self.changes += 1;
        self.store.shared.write().version = version;
    }

    /// Makes many changes that readers see all at once, none of them held off meanwhile.
    pub fn transaction<R>(&mut self, change: impl FnOnce(&mut Transaction<T>) -> R) -> R {
        let mut transaction = self.begin();
        let result = change(&mut transaction);
        self.install(transaction);
        result
    }

    /// Begins a transaction that others may overtake.
    pub(crate) fn begin(&self) -> Transaction<T> {
        Transaction {
            state: self.store.shared.read().clone(),
            functions: self.functions.clone(),
            scratch: Values::default(),
            failures: Vec::new(),
            began: self.changes,
        }
    }

    /// Makes a transaction's changes, unless others were made since it began. True if it did.
    pub(crate) fn commit(&mut self, transaction: Transaction<T>) -> bool {
        let current = transaction.began == self.changes;
        if current {
            self.install(transaction);
        }
        current
    }

    fn install(&mut self, transaction: Transaction<T>) {
        self.changes += 1;
        self.functions = transaction.functions;
        self.failures.extend(transaction.failures);
        // Nobody else writes, so what was prepared on a copy can simply take the place of the original.
        let replaced = std::mem::replace(&mut *self.store.shared.write(), transaction.state);
        drop(replaced); // Freed with the lock already released.
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
        let added = self.begin().add_index(name, TypeId::of::<F>(), index_function(function));
        if let Some(transaction) = added? {
            self.install(transaction);
        }
        self.store.index(name).ok_or_else(|| IndexError::Exists(name.to_owned()))
    }

    /// What index functions failed on since this was asked last.
    pub(crate) fn take_failures(&mut self) -> Vec<IndexFailure> {
        std::mem::take(&mut self.failures)
    }
}

impl<T: Object> Transaction<T> {
    /// The object as it will be.
    pub fn get<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<&Arc<T>> {
        self.state.get(key.into())
    }

    /// Every object as it will be, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.state.iter()
    }

    /// Adds or replaces one object, and gives back the one it replaces.
    pub fn put(&mut self, object: Arc<T>) -> Option<Arc<T>> {
        match self.put_if(object, |_| true) {
            Put::Replaced(old) => Some(old),
            Put::Added | Put::Kept => None,
        }
    }

    pub(crate) fn put_if(&mut self, object: Arc<T>, wanted: impl FnOnce(Option<&Arc<T>>) -> bool) -> Put<T> {
        self.scratch.fill(&self.functions, &object, &mut self.failures);
        let holder = object.clone();
        self.state.put(holder.id().key, object, &self.scratch, wanted)
    }

    /// Removes one object, and gives it back.
    pub fn remove<'k>(&mut self, key: impl Into<KeyRef<'k>>) -> Option<Arc<T>> {
        self.state.remove(key.into(), |_| true)
    }

    /// Says how far the store will reflect the server.
    pub fn set_version(&mut self, version: Option<ResourceVersion>) {
        self.state.version = version;
    }

    /// The same with one more index; `None` if it has that index already.
    pub(crate) fn add_index(
        mut self,
        name: &str,
        kind: TypeId,
        function: IndexFunction<T>,
    ) -> Result<Option<Self>, IndexError> {
        if let Some(known) = self.state.indexes.iter().find(|index| index.is_named(name)) {
            return if known.is_of(kind) { Ok(None) } else { Err(IndexError::Exists(name.to_owned())) };
        }
        let (function, failures) = ((Arc::from(name), function), &mut self.failures);
        self.state.add_index(IndexState::new(name, kind), |object, at, values| {
            values.add_all(at, &function, object, failures);
        });
        self.functions = self.functions.iter().cloned().chain([function]).collect();
        Ok(Some(self))
    }
}

impl<T: Object> std::fmt::Debug for StoreWriter<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StoreWriter").field(&self.store).finish()
    }
}

impl<T> std::fmt::Debug for Transaction<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction").field("began", &self.began).finish_non_exhaustive()
    }
}
