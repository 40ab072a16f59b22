//! The namespaces of a collection.

use std::sync::Arc;

use super::KeyRef;

/// The namespace that one reflector follows, or `None` for all namespaces.
pub type Scope = Option<Arc<str>>;

/// Returns true if the key is in this scope.
pub(crate) fn in_scope(scope: &Scope, key: KeyRef<'_>) -> bool {
    scope.is_none() || key.namespace() == scope.as_deref()
}
