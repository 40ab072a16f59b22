//! The events that a handler receives.

use std::fmt;
use std::sync::Arc;

use crate::object::{Cached as _, KeyRef, Object, ObjectKey};
use crate::queue::Deleted;

/// An event that a handler receives.
///
/// ```
/// use kube_informer::Event;
/// # use std::sync::Arc;
/// # use kube_informer::Identity;
/// # let thing = |key: &str, version: &str| Arc::new(Identity { key: key.parse().unwrap(), uid: "".into(), version: version.into() });
///
/// let event = Event::Updated { old: thing("web/a", "1"), new: thing("web/a", "2") };
/// assert_eq!(event.key().as_str(), "web/a");
/// assert_eq!(event.object().version, "2", "the newest state");
/// ```
pub enum Event<T: ?Sized> {
    /// An object was added.
    Added {
        /// The object.
        object: Arc<T>,
        /// True if the object existed when the informer, or this handler, started.
        initial: bool,
    },
    /// An object changed. If the uids differ, it was deleted and created again in between.
    Updated {
        /// The state in the event that this handler received before.
        old: Arc<T>,
        /// The current state.
        new: Arc<T>,
    },
    /// A resync: the object has not changed. Only handlers that asked for resyncs receive it.
    Resynced(Arc<T>),
    /// An object was deleted, or left the scope of the informer ([`Deleted::OutOfScope`]).
    Deleted(Deleted<T>),
}

/// Why events are one batch; see [`Registration::on_batch`](crate::Registration::on_batch).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BatchReason {
    /// The objects of a first list, or all objects that the cache held when the handler was added.
    FirstList,
    /// The differences that a relist found.
    Relist,
    /// All objects of a resync.
    Resync,
    /// All objects of the namespaces that the informer does not follow any more.
    ScopeChange,
    /// All changes that waited.
    Live,
}

impl<T: Object + ?Sized> Event<T> {
    /// Returns the key of the object.
    pub fn key(&self) -> ObjectKey {
        self.key_ref().into()
    }

    /// Returns the newest state in this event.
    pub fn object(&self) -> &Arc<T> {
        match self {
            Self::Added { object, .. } | Self::Updated { new: object, .. } | Self::Resynced(object) => object,
            Self::Deleted(deleted) => deleted.object(),
        }
    }

    /// Returns the key of the object, borrowed. This allocates nothing.
    pub fn key_ref(&self) -> KeyRef<'_> {
        self.object().id().key
    }
}

impl Event<dyn Object> {
    /// Returns the same event with the type of its objects.
    pub(crate) fn typed<T: Object>(self) -> Event<T> {
        match self {
            Self::Added { object, initial } => Event::Added { object: T::typed(object), initial },
            Self::Updated { old, new } => Event::Updated { old: T::typed(old), new: T::typed(new) },
            Self::Resynced(object) => Event::Resynced(T::typed(object)),
            Self::Deleted(Deleted::Final(object)) => Event::Deleted(Deleted::Final(T::typed(object))),
            Self::Deleted(Deleted::Unknown(object)) => Event::Deleted(Deleted::Unknown(T::typed(object))),
            Self::Deleted(Deleted::OutOfScope(object)) => Event::Deleted(Deleted::OutOfScope(T::typed(object))),
        }
    }
}

impl<T: ?Sized> Clone for Event<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { object, initial } => Self::Added { object: object.clone(), initial: *initial },
            Self::Updated { old, new } => Self::Updated { old: old.clone(), new: new.clone() },
            Self::Resynced(object) => Self::Resynced(object.clone()),
            Self::Deleted(deleted) => Self::Deleted(deleted.clone()),
        }
    }
}

impl<T: Object + ?Sized> fmt::Debug for Event<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, version) = (self.key_ref(), self.object().id().version);
        match self {
            Self::Added { initial: true, .. } => write!(f, "Added({what}@{version}, initial)"),
            Self::Added { initial: false, .. } => write!(f, "Added({what}@{version})"),
            Self::Updated { old, .. } => write!(f, "Updated({what}@{} to {version})", old.id().version),
            Self::Resynced(_) => write!(f, "Resynced({what}@{version})"),
            Self::Deleted(deleted) => fmt::Debug::fmt(deleted, f),
        }
    }
}
