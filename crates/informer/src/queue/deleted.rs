//! The last known state of a deleted object.

use std::fmt;
use std::sync::Arc;

use crate::object::{Object, ObjectKey};

/// The last known state of an object that left the cache. It always has a key.
pub enum Deleted<T: ?Sized> {
    /// The state at the deletion, as the API server sent it.
    Final(Arc<T>),
    /// The last state in the cache, which may be older than the deletion: a relist found that the object is missing.
    /// client-go's `DeletedFinalStateUnknown`.
    Unknown(Arc<T>),
    /// The last state in the cache of an object that may still exist: the program gave its namespace up (see
    /// [`SharedInformer::set_namespaces`](crate::SharedInformer::set_namespaces)). Do not treat it as deleted.
    OutOfScope(Arc<T>),
}

impl<T: Object + ?Sized> Deleted<T> {
    /// Returns the key of the deleted object.
    pub fn key(&self) -> ObjectKey {
        self.object().id().key.into()
    }

    /// Returns true if the state is that at the deletion, and false if it may be older.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Final(_))
    }

    /// Returns true if the informer does not follow the object any more. The object may still exist.
    pub fn is_out_of_scope(&self) -> bool {
        matches!(self, Self::OutOfScope(_))
    }
}

impl<T: ?Sized> Deleted<T> {
    /// Returns the last known state; see [`Deleted::is_final`].
    pub fn object(&self) -> &Arc<T> {
        match self {
            Self::Final(object) | Self::Unknown(object) | Self::OutOfScope(object) => object,
        }
    }
}

impl<T: ?Sized> Clone for Deleted<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Final(object) => Self::Final(object.clone()),
            Self::Unknown(object) => Self::Unknown(object.clone()),
            Self::OutOfScope(object) => Self::OutOfScope(object.clone()),
        }
    }
}

impl<T: Object + ?Sized> fmt::Debug for Deleted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self {
            Self::Final(_) => "final",
            Self::Unknown(_) => "last known",
            Self::OutOfScope(_) => "out of scope",
        };
        write!(f, "Deleted({}@{}, {state})", self.object().id().key, self.object().id().version)
    }
}
