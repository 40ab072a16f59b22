//! Orders changes on their way from the reflector to the store.
//!
//! A queue is a plain value: it knows no sockets, clocks or tasks. Waiting for it lives in [`apply`](crate::apply).

mod ordered;

use std::sync::Arc;

pub use self::ordered::OrderedQueue;
use crate::object::{KeyRef, Object, ObjectKey, ResourceVersion};
use crate::source::BadObject;

/// One ordered change bound for the store.
#[derive(Debug)]
pub enum Delta<T> {
    /// An object appeared.
    Added(Arc<T>),
    /// An object changed.
    Updated(Arc<T>),
    /// An object is gone, and this is the last the server sent of it.
    Deleted(Arc<T>),
    /// An object is gone, and nothing but its key could be read.
    Vanished {
        /// Which object.
        key: ObjectKey,
        /// The version of its deletion, if that could be read.
        version: Option<ResourceVersion>,
    },
    /// An object came that could not be read: what is known of it stays.
    Undecodable(BadObject),
    /// The server was asked for everything again, and this is all there is.
    Replaced(Replacement<T>),
    /// Nothing up to this version is missing.
    Bookmark {
        /// Whose version: of one namespace of a set, or of the whole collection.
        scope: Scope,
        /// The version reached.
        version: ResourceVersion,
    },
    /// Handlers that asked for it are to be shown the cache again.
    Resync,
    /// The server was restored to an older state: versions start afresh, and nothing known can be relied on.
    Restarted {
        /// Whose versions.
        scope: Scope,
    },
}

/// The part of a collection that one reflector follows: one namespace of a set, or `None` for everything.
pub type Scope = Option<Arc<str>>;

/// All objects of a scope, as of one version.
#[derive(Debug)]
pub struct Replacement<T> {
    /// What was listed. Known objects outside of it are untouched.
    pub scope: Scope,
    /// The objects, in the server's order.
    pub objects: Vec<Arc<T>>,
    /// Objects that are there but could not be read: known ones stay as they are.
    pub undecodable: Vec<BadObject>,
    /// The version of the list.
    pub version: Option<ResourceVersion>,
}

impl<T> Replacement<T> {
    /// True if whatever is not in the list can be taken for deleted: every key in it could be read.
    pub fn is_conclusive(&self) -> bool {
        self.undecodable.iter().all(|bad| bad.key.is_some())
    }
}

impl<T: Object> Delta<T> {
    /// The one object this is about; `None` if it is about many or none.
    pub fn key(&self) -> Option<KeyRef<'_>> {
        match self {
            Self::Added(object) | Self::Updated(object) | Self::Deleted(object) => Some(object.id().key),
            Self::Vanished { key, .. } => Some(key.into()),
            Self::Undecodable(bad) => bad.key.as_ref().map(KeyRef::from),
            Self::Replaced(_) | Self::Bookmark { .. } | Self::Resync | Self::Restarted { .. } => None,
        }
    }
}
