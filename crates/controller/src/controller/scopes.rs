//! The namespace of a key, which stays in the caches of its controller while the key is reconciled.

use std::sync::Arc;

use kube_informer::{NamespaceGuard, NamespaceState, Object, ObjectKey, SharedInformer};

/// Holds a namespace in one cache of a controller.
pub(super) type HoldNamespace = Arc<dyn Fn(&str) -> Result<NamespaceGuard, NamespaceState> + Send + Sync>;

/// The use of a cache by its controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheRole {
    /// It has the objects that are reconciled.
    Primary,
    /// It has objects that belong to them.
    Owned,
    /// It has other objects, perhaps of other namespaces.
    Watched,
}

/// The caches of a controller, and their roles.
pub(super) type CacheScopes = Vec<(CacheRole, HoldNamespace)>;

/// Whether the caches of a controller hold the namespace of a key.
pub(super) enum KeyScope {
    /// They do, until the guards are dropped.
    Held(Vec<NamespaceGuard>),
    /// A cache that the reconcile reads does not hold it yet, or not any more.
    Pending,
    /// The controller's own informer does not follow it.
    OutOfScope,
}

/// Returns the number of the last change of the namespaces that a cache has completed.
pub(super) type NamespaceChanges = Box<dyn Fn() -> u64 + Send + Sync>;

pub(super) fn hold_in<O: Object>(informer: &SharedInformer<O>) -> HoldNamespace {
    let informer = informer.clone();
    Arc::new(move |namespace| informer.hold_namespace(namespace))
}

/// Holds the namespace of a key in all caches.
pub(super) fn hold(caches: &CacheScopes, key: &ObjectKey) -> KeyScope {
    let Some(namespace) = key.namespace() else { return KeyScope::Held(Vec::new()) };
    let mut guards = Vec::with_capacity(caches.len());
    for (role, hold) in caches {
        match (hold(namespace), role) {
            (Ok(guard), _) => guards.push(guard),
            (Err(NamespaceState::OutOfScope), CacheRole::Primary) => return KeyScope::OutOfScope,
            // Its objects are in other namespaces, or the reconcile asks for the state itself.
            (Err(NamespaceState::OutOfScope), CacheRole::Watched) => {}
            // Without its own objects, a reconcile would create them a second time.
            (Err(_), _) => return KeyScope::Pending,
        }
    }
    KeyScope::Held(guards)
}
