//! What is left of an object that is gone.

use std::fmt;
use std::sync::Arc;

use crate::object::{Object, ObjectKey};

/// The last that is known of an object that is gone. It always has a key.
pub enum Deleted<T: ?Sized> {
    /// The state at deletion, as the server sent it.
    Final(Arc<T>),
    /// The deletion was not seen, only that the object is no longer there: the last state known, which may be older.
    Unknown(Arc<T>),
}

impl<T: Object + ?Sized> Deleted<T> {
    /// Which object is gone.
    pub fn key(&self) -> ObjectKey {
        self.object().id().key.into()
    }

    /// True if the state is the one at deletion; false if it may be older.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Final(_))
    }
}

impl<T: ?Sized> Deleted<T> {
    /// The last state known; see [`Deleted::is_final`].
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
