//! The cache by namespace.

use std::sync::Arc;

use crate::object::{KeyRef, Object};
use crate::store::Store;

/// Reads a cache by namespace and name. Cloning gives another handle.
///
/// client-go's `GenericLister`. What differs: what is not there is `None`, not an error.
pub struct Lister<T> {
    store: Store<T>,
}

/// A [`Lister`] within one namespace.
pub struct NamespaceLister<'n, T> {
    store: Store<T>,
    namespace: &'n str,
}

impl<T: Object> Lister<T> {
    pub(crate) fn new(store: Store<T>) -> Self {
        Self { store }
    }

    /// One object by key, or by name in cluster scope.
    pub fn get<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<Arc<T>> {
        self.store.get(key)
    }

    /// Every object, in no particular order.
    pub fn list(&self) -> Vec<Arc<T>> {
        self.store.snapshot().iter().cloned().collect()
    }

    /// The same within one namespace.
    pub fn namespace<'n>(&self, namespace: &'n str) -> NamespaceLister<'n, T> {
        NamespaceLister { store: self.store.clone(), namespace }
    }
}

impl<T: Object> NamespaceLister<'_, T> {
    /// One object by name.
    pub fn get(&self, name: &str) -> Option<Arc<T>> {
        self.store.get((self.namespace, name))
    }

    /// Every object of the namespace, in no particular order.
    pub fn list(&self) -> Vec<Arc<T>> {
        let within = |object: &&Arc<T>| object.id().key.namespace() == Some(self.namespace);
        self.store.snapshot().iter().filter(within).cloned().collect()
    }
}

impl<T> Clone for Lister<T> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone() }
    }
}

impl<T: Object> std::fmt::Debug for Lister<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lister").field("store", &self.store).finish()
    }
}

impl<T: Object> std::fmt::Debug for NamespaceLister<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NamespaceLister").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}
