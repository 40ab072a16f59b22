//! Tells handlers what changed: each in order, each at its own pace.

mod handler;
mod mailbox;

use std::fmt;
use std::sync::Arc;

use crate::object::{KeyRef, Object, ObjectKey};
use crate::store::Snapshot;

pub(crate) use self::handler::{AnyHandler, Listener};
pub use self::handler::{EventHandler, HandlerHandle, Removal, RemoveError};
pub use self::mailbox::Delivery;

/// What a handler is told.
pub enum Event<T> {
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

/// The last that is known of an object that is gone. It always has a key.
pub enum Deleted<T> {
    /// The state at deletion, as the server sent it.
    Final(Arc<T>),
    /// The deletion was not seen, only that the object is no longer there: the last state known, which may be older.
    Unknown(Arc<T>),
}

impl<T: Object> Event<T> {
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

    pub(crate) fn key_ref(&self) -> KeyRef<'_> {
        self.object().id().key
    }
}

impl<T: Object> Deleted<T> {
    /// Which object is gone.
    pub fn key(&self) -> ObjectKey {
        self.object().id().key.into()
    }

    /// The last state known; see [`Deleted::is_final`].
    pub fn object(&self) -> &Arc<T> {
        match self {
            Self::Final(object) | Self::Unknown(object) => object,
        }
    }

    /// True if the state is the one at deletion; false if it may be older.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Final(_))
    }
}

/// All listeners of one informer.
pub(crate) struct Processor<T> {
    listeners: Vec<Arc<Listener<T>>>,
}

impl<T: Object> Processor<T> {
    pub(crate) fn new() -> Self {
        Self { listeners: Vec::new() }
    }

    /// Adds a listener. What is distributed from now on reaches it, behind a replay of what is known already.
    pub(crate) fn add(&mut self, listener: Arc<Listener<T>>, known: Snapshot<T>, synced: bool) {
        listener.mailbox.replay(known);
        if synced {
            listener.mailbox.push_synced();
        }
        self.listeners.push(listener);
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.listeners.retain(|listener| listener.id != id);
    }

    /// Tells everybody.
    pub(crate) fn distribute(&self, events: Vec<Event<T>>) {
        if events.is_empty() {
            return;
        }
        let events: Arc<[Event<T>]> = events.into();
        for listener in &self.listeners {
            listener.mailbox.push(&events);
        }
    }

    /// Shows the cache to those who are due.
    pub(crate) fn resync(&self, known: &Snapshot<T>) {
        let events: Arc<[Event<T>]> = known.iter().cloned().map(Event::Resynced).collect();
        for listener in self.listeners.iter().filter(|listener| listener.wants_resync()) {
            listener.mailbox.push(&events);
        }
    }

    /// Ends all listeners; what waits is dropped.
    pub(crate) fn close(&mut self) {
        for listener in std::mem::take(&mut self.listeners) {
            listener.mailbox.close(false);
        }
    }

    /// Marks that the initial state has been told in full.
    pub(crate) fn synced(&self) {
        for listener in &self.listeners {
            listener.mailbox.push_synced();
        }
    }
}

impl<T> Clone for Event<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { object, initial } => Self::Added { object: object.clone(), initial: *initial },
            Self::Updated { old, new } => Self::Updated { old: old.clone(), new: new.clone() },
            Self::Resynced(object) => Self::Resynced(object.clone()),
            Self::Deleted(deleted) => Self::Deleted(deleted.clone()),
        }
    }
}

impl<T> Clone for Deleted<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Final(object) => Self::Final(object.clone()),
            Self::Unknown(object) => Self::Unknown(object.clone()),
        }
    }
}

impl<T: Object> fmt::Debug for Event<T> {
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

impl<T: Object> fmt::Debug for Deleted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_final() { "final" } else { "last known" };
        write!(f, "Deleted({}@{}, {state})", self.object().id().key, self.object().id().version)
    }
}
