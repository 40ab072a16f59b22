//! Tells handlers what changed: each in order, each at its own pace.

mod handle;
mod handler;
mod listener;
mod mailbox;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use crate::object::{KeyRef, Object, ObjectKey};
use crate::store::Snapshot;

pub use self::handle::{HandlerGuard, HandlerHandle, Removal, RemoveError};
pub(crate) use self::handler::{AnyHandler, AsyncCalls, AsyncClosure};
pub use self::handler::{AsyncEventHandler, EventHandler, Filtered, Handlers};
pub(crate) use self::listener::Listener;
pub use self::listener::{EventStream, HandlerOptions};
pub use self::mailbox::Delivery;

/// What a handler is told.
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::source::Identity;
/// # let thing = |key: &str, version: &str| {
/// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
/// # };
/// use kube_informer::Event;
///
/// let event = Event::Updated { old: thing("web/a", "1"), new: thing("web/a", "2") };
/// assert_eq!(event.key().as_str(), "web/a");
/// assert_eq!(event.key_ref().name(), "a");
/// assert_eq!(event.object().version, "2", "the newest state");
/// assert_eq!(format!("{event:?}"), "Updated(web/a@1 to 2)");
/// ```
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
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::source::Identity;
/// # let thing = |key: &str, version: &str| {
/// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
/// # };
/// use kube_informer::{Deleted, Event};
///
/// // The deletion happened while nobody was watching.
/// let event = Event::Deleted(Deleted::Unknown(thing("web/a", "1")));
/// let Event::Deleted(gone) = event else { panic!() };
/// assert!(!gone.is_final());
/// assert_eq!((gone.key().as_str(), gone.object().version.as_str()), ("web/a", "1"));
/// ```
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

    /// The same, borrowed: nothing is allocated.
    pub fn key_ref(&self) -> KeyRef<'_> {
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
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// use kube_informer::Event;
    ///
    /// let mut events = maps.events().skip(1);
    /// server.delete("configmaps", Some("web"), "a")?;
    /// let Some(Event::Deleted(gone)) = events.next().await else { panic!("it is gone") };
    /// assert!(gone.is_final(), "the watch told of it");
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Final(_))
    }
}

/// The shortest time between two resyncs.
const SHORTEST_RESYNC: Duration = Duration::from_secs(1);

/// All listeners of one informer.
pub(crate) struct Processor<T> {
    listeners: Vec<Arc<Listener<T>>>,
    /// How often it is looked who is to be shown the cache again; `None` if nobody ever is. Fixed once started.
    resync_check: Option<Duration>,
    started: bool,
}

impl<T: Object> Processor<T> {
    pub(crate) fn new(resync_check: Option<Duration>) -> Self {
        Self { listeners: Vec::new(), resync_check, started: false }
    }

    /// From now on the time between resync checks is fixed; gives it.
    pub(crate) fn start(&mut self) -> Option<Duration> {
        self.started = true;
        let now = Instant::now();
        self.listeners.iter().for_each(|listener| self.plan_resync(listener, now));
        self.resync_check
    }

    /// Adds a listener. What is distributed from now on reaches it, behind a replay of what is known already.
    pub(crate) fn add(&mut self, listener: Arc<Listener<T>>, known: Snapshot<T>, synced: bool) {
        listener.mailbox.replay(known);
        if synced {
            listener.mailbox.push_synced();
        }
        self.negotiate_resync(&listener);
        self.listeners.push(listener);
    }

    /// Lowers the time between checks for a listener that wants to be shown the cache more often, before the start only.
    fn negotiate_resync(&mut self, listener: &Listener<T>) {
        let requested = listener.resync.lock().requested.map(|period| period.max(SHORTEST_RESYNC));
        match (requested, self.resync_check) {
            (Some(_), None) => {
                warn!(handler = listener.name(), "the informer does no resyncs; its resync period must be set")
            }
            (Some(requested), Some(check)) if requested < check && !self.started => {
                self.resync_check = Some(requested);
                let now = Instant::now();
                self.listeners.iter().for_each(|listener| self.plan_resync(listener, now));
            }
            (Some(requested), Some(check)) if requested < check => {
                warn!(
                    handler = listener.name(),
                    ?requested,
                    ?check,
                    "resync period is raised to what was fixed at the start"
                );
            }
            _ => {}
        }
        self.plan_resync(listener, Instant::now());
    }

    fn plan_resync(&self, listener: &Listener<T>, now: Instant) {
        let mut resync = listener.resync.lock();
        let period = |(requested, check): (Duration, Duration)| requested.max(check).max(SHORTEST_RESYNC);
        resync.period = resync.requested.zip(self.resync_check).map(period);
        resync.next = resync.period.map(|period| now + period);
    }

    /// Marks who is to be shown the cache again now. True if anybody is.
    pub(crate) fn mark_due(&self) -> bool {
        let now = Instant::now();
        let mut any = false;
        for listener in &self.listeners {
            let mut resync = listener.resync.lock();
            if let (Some(next), Some(period)) = (resync.next, resync.period)
                && next <= now
            {
                resync.next = Some(now + period);
                resync.due = true;
                any = true;
            }
        }
        any
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

    /// Shows objects to those who are due.
    pub(crate) fn resync<'a>(&self, objects: impl Iterator<Item = &'a Arc<T>>) {
        let events: Arc<[Event<T>]> = objects.cloned().map(Event::Resynced).collect();
        for listener in self.listeners.iter().filter(|listener| listener.resync.lock().due) {
            listener.mailbox.push(&events);
        }
    }

    /// Those who were due have been shown everything.
    pub(crate) fn resync_done(&self) {
        for listener in &self.listeners {
            listener.resync.lock().due = false;
        }
    }

    /// True inside a callback of one of these listeners.
    pub(crate) fn is_called_from_one(&self) -> bool {
        listener::current().is_some_and(|current| self.listeners.iter().any(|listener| listener.id == current))
    }

    /// Ends all listeners; what waits is dropped.
    pub(crate) fn close(&self) {
        for listener in &self.listeners {
            listener.mailbox.close(false);
        }
    }

    /// Marks that the initial state has been told in full.
    pub(crate) fn synced(&self) {
        for listener in &self.listeners {
            listener.mailbox.push_synced();
        }
    }

    /// Every listener's name, with how many events wait for it and how often it was folded.
    pub(crate) fn backlogs(&self) -> impl Iterator<Item = (&str, usize, u64)> {
        self.listeners.iter().map(|listener| (listener.name(), listener.backlog(), listener.mailbox.folds()))
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
