//! Parts of a collection.

use std::sync::Arc;

use super::KeyRef;

/// The part of a collection that one reflector follows: one namespace of a set, or `None` for everything.
pub type Scope = Option<Arc<str>>;

/// True if a key is in that part of the collection.
pub(crate) fn in_scope(scope: &Scope, key: KeyRef<'_>) -> bool {
    scope.is_none() || key.namespace() == scope.as_deref()
}
