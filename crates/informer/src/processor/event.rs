//! What a handler is told.

use std::fmt;
use std::sync::Arc;

use crate::object::{Cached as _, KeyRef, Object, ObjectKey};
use crate::queue::Deleted;

/// What a handler is told.
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
    /// An object appeared.
    Added {
        /// The object.
        object: Arc<T>,
        /// True if it was there already when the informer, or this handler, started.
        initial: bool,
    },
    /// An object changed. With another uid it was deleted and made again in between.
    Updated {
        /// What this handler was told before.
        old: Arc<T>,
        /// What it is now.
        new: Arc<T>,
    },
    /// Nothing changed: this handler asked to be shown the cache from time to time.
    Resynced(Arc<T>),
    /// An object is gone.
    Deleted(Deleted<T>),
}

impl<T: Object + ?Sized> Event<T> {
    /// Which object this is about.
    pub fn key(&self) -> ObjectKey {
        self.key_ref().into()
    }

    /// The newest state this event carries.
    pub fn object(&self) -> &Arc<T> {
        match self {
            Self::Added { object, .. } | Self::Updated { new: object, .. } | Self::Resynced(object) => object,
            Self::Deleted(deleted) => deleted.object(),
        }
    }

    /// Which object this is about, borrowed: nothing is allocated.
    pub fn key_ref(&self) -> KeyRef<'_> {
        self.object().id().key
    }
}

impl Event<dyn Object> {
    /// The same with the type of its objects.
    pub(crate) fn typed<T: Object>(self) -> Event<T> {
        match self {
            Self::Added { object, initial } => Event::Added { object: T::typed(object), initial },
            Self::Updated { old, new } => Event::Updated { old: T::typed(old), new: T::typed(new) },
            Self::Resynced(object) => Event::Resynced(T::typed(object)),
            Self::Deleted(Deleted::Final(object)) => Event::Deleted(Deleted::Final(T::typed(object))),
            Self::Deleted(Deleted::Unknown(object)) => Event::Deleted(Deleted::Unknown(T::typed(object))),
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
