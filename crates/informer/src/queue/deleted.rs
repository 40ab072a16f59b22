//! The last known state of a deleted object.

use std::fmt;
use std::sync::Arc;

use crate::object::{Object, ObjectKey};

/// The last known state of a deleted object. It always has a key.
pub enum Deleted<T: ?Sized> {
    /// The state at the deletion, as the API server sent it.
    Final(Arc<T>),
    /// The last state in the cache, which may be older than the deletion: a relist found that the object is missing.
    /// client-go's `DeletedFinalStateUnknown`.
    Unknown(Arc<T>),
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
}

impl<T: ?Sized> Deleted<T> {
    /// Returns the last known state; see [`Deleted::is_final`].
    pub fn object(&self) -> &Arc<T> {
        match self {
            Self::Final(object) | Self::Unknown(object) => object,
        }
    }
}

impl<T: ?Sized> Clone for Deleted<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Final(object) => Self::Final(object.clone()),
            Self::Unknown(object) => Self::Unknown(object.clone()),
        }
    }
}

impl<T: Object + ?Sized> fmt::Debug for Deleted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_final() { "final" } else { "last known" };
        write!(f, "Deleted({}@{}, {state})", self.object().id().key, self.object().id().version)
    }
}
