//! Orders changes on their way from the reflector to the store.
//!
//! A queue is a plain value: it knows no sockets, clocks or tasks. Waiting for it lives in [`apply`](crate::apply).

mod delta_fifo;
mod ordered;

use std::cmp::Ordering;
use std::sync::Arc;

pub use self::delta_fifo::{DeltaFifo, Deltas, KeyDelta};
pub use self::ordered::OrderedQueue;
use crate::object::{KeyRef, Object, ObjectKey, ResourceVersion, compare_versions};
use crate::source::BadObject;
use crate::store::Store;

/// Changes on their way to the store, in some order.
///
/// Both queues, and one of your own, are used alike:
///
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::source::Identity;
/// # let thing = |key: &str, version: &str| {
/// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
/// # };
/// use kube_informer::queue::{Delta, DeltaFifo, OrderedQueue, Queue};
/// # use kube_informer::Store;
/// let (store, _writer) = Store::new(0);
/// let queues: [Box<dyn Queue<Identity>>; 2] = [Box::new(OrderedQueue::new()), Box::new(DeltaFifo::new())];
/// let batches = queues.map(|mut queue| {
///     queue.push(Delta::Added(thing("web/a", "1")), &store);
///     queue.push(Delta::Added(thing("web/b", "2")), &store);
///     queue.push(Delta::Updated(thing("web/a", "3")), &store);
///     let batch = queue.pop_batch();
///     batch.iter().map(|delta| delta.key().unwrap().to_string()).collect::<Vec<_>>()
/// });
/// assert_eq!(batches[0], ["web/a", "web/b"], "in the order of the stream");
/// assert_eq!(batches[1], ["web/a", "web/a"], "object by object");
/// ```
pub trait Queue<T>: Send + 'static {
    /// Puts a change in. What the store holds already is there to be asked.
    fn push(&mut self, delta: Delta<T>, known: &Store<T>);

    /// Takes the next changes out, to be made one after the other; empty if nothing waits.
    fn pop_batch(&mut self) -> Vec<Delta<T>>;

    /// Says that everything popped so far is processed.
    fn processed(&mut self);

    /// Puts changes back that could not be made, unless newer ones of the same object wait.
    fn put_back(&mut self, batch: Vec<Delta<T>>);

    /// How many changes wait.
    fn len(&self) -> usize;

    /// True if nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True once the first population is popped and processed.
    fn has_synced(&self) -> bool;

    /// True if nothing older than what was popped last still waits.
    fn is_settled(&self) -> bool;
}

/// Which queue an informer uses.
///
/// ```
/// # use kube_informer::SharedInformer;
/// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
/// # let source = ListWatchFns::new(
/// #     |_: ListOptions| async {
/// #         let thing = Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "7".to_owned() };
/// #         Ok(Items::complete([thing], ListEnd { version: Some("7".into()), ..ListEnd::default() }))
/// #     },
/// #     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
/// # );
/// use kube_informer::QueueOrder;
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let things = SharedInformer::builder(source).queue_order(QueueOrder::PerObject).build();
/// things.start()?;
/// things.synced().await?;
/// assert!(things.store().contains("web/a"));
/// things.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum QueueOrder {
    /// Every change in the order of the stream, and a relist all at once: [`OrderedQueue`].
    #[default]
    Ordered,
    /// All changes of one object together, and a relist object by object: [`DeltaFifo`].
    PerObject,
}

impl QueueOrder {
    pub(crate) fn queue<T: Object>(self) -> Box<dyn Queue<T>> {
        match self {
            Self::Ordered => Box::new(OrderedQueue::new()),
            Self::PerObject => Box::new(DeltaFifo::new().emit_replaced(true)),
        }
    }
}

/// One ordered change bound for the store.
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::source::Identity;
/// # let thing = |key: &str, version: &str| {
/// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
/// # };
/// use kube_informer::Delta;
///
/// let delta = Delta::Updated(thing("web/a", "2"));
/// assert_eq!(delta.key(), Some("web/a".into()));
/// assert!(Delta::<Identity>::Resync.key().is_none(), "about all objects");
/// ```
#[derive(Debug)]
pub enum Delta<T> {
    /// An object appeared.
    Added(Arc<T>),
    /// An object changed, or was listed.
    Updated(Arc<T>),
    /// An object is gone, and this is the last the server sent of it.
    Deleted(Arc<T>),
    /// An object is gone: it was missing from a list. This is the last that was known of it.
    Tombstone(Arc<T>),
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
    /// A list that came object by object is complete.
    Listed(ListMark),
    /// Nothing up to this version is missing.
    Bookmark {
        /// Whose version: of one namespace of a set, or of the whole collection.
        scope: Scope,
        /// The version reached.
        version: ResourceVersion,
    },
    /// Handlers that are due are to be shown the whole cache.
    Resync,
    /// Handlers that are due are to be shown one object.
    Resynced(Arc<T>),
    /// Handlers that were due have been shown everything.
    ResyncDone,
    /// The server was restored to an older state: versions start afresh, and nothing known can be relied on.
    Restarted {
        /// Whose versions.
        scope: Scope,
    },
}

/// The part of a collection that one reflector follows: one namespace of a set, or `None` for everything.
pub type Scope = Option<Arc<str>>;

/// All objects of a scope, as of one version.
///
/// What an informer makes of a list:
///
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::source::Identity;
/// # let thing = |key: &str, version: &str| {
/// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
/// # };
/// # use kube_informer::Delta;
/// use kube_informer::queue::{ListMark, OrderedQueue, Replacement};
///
/// let mark = ListMark { version: Some("7".into()), ..ListMark::default() };
/// let list = Replacement { mark, objects: vec![thing("web/a", "3")], undecodable: Vec::new() };
/// assert!(list.is_conclusive(), "whatever else is known is gone");
/// let mut queue = OrderedQueue::new();
/// queue.push(Delta::Replaced(list));
/// assert_eq!(queue.len(), 1);
/// ```
#[derive(Debug)]
pub struct Replacement<T> {
    /// What was listed, and when.
    pub mark: ListMark,
    /// The objects, in the server's order.
    pub objects: Vec<Arc<T>>,
    /// Objects that are there but could not be read: known ones stay as they are.
    pub undecodable: Vec<BadObject>,
}

/// Which list it was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListMark {
    /// What was listed. Known objects outside of it are untouched.
    pub scope: Scope,
    /// The version of the list.
    pub version: Option<ResourceVersion>,
    /// The last request for a relist that had been made when it began; 0 if none.
    pub request: u64,
    /// True if not every key in it could be read, so that deletions may be missing. Set by the queue that takes it apart.
    pub inconclusive: bool,
}

impl<T: Object> Replacement<T> {
    /// True if whatever is not in the list can be taken for deleted: every key in it could be read.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// use kube_informer::object::DecodeError;
    /// use kube_informer::queue::{ListMark, Replacement};
    /// use kube_informer::source::BadObject;
    ///
    /// let bad = |key| BadObject { key, version: None, error: DecodeError::NotUtf8 };
    /// let objects = vec![thing("web/a", "1")];
    /// let list = |bad| Replacement { mark: ListMark::default(), objects: objects.clone(), undecodable: vec![bad] };
    /// assert!(list(bad(Some("web/b".parse()?))).is_conclusive(), "all but a and b is gone");
    /// assert!(!list(bad(None)).is_conclusive(), "that could be any object");
    /// # Ok::<(), kube_informer::object::KeyError>(())
    /// ```
    pub fn is_conclusive(&self) -> bool {
        self.undecodable.iter().all(|bad| bad.key.is_some())
    }

    /// True if an object in the list is older than what is known of it already. No server says that of one and the same
    /// history: it was restored to an older state.
    pub(crate) fn contradicts(&self, known: impl Fn(KeyRef<'_>) -> Option<Arc<T>>) -> bool {
        self.objects.iter().any(|object| known(object.id().key).is_some_and(|known| is_older(&**object, &*known)))
    }

    /// The keys of everything in the list, also of what could not be read.
    pub(crate) fn keys(&self) -> impl Iterator<Item = KeyRef<'_>> {
        let unread = self.undecodable.iter().filter_map(|bad| bad.key.as_ref()).map(KeyRef::from);
        self.objects.iter().map(|object| object.id().key).chain(unread)
    }
}

/// True if `new` is a state from before `known`, as far as can be told.
pub(crate) fn is_older<T: Object>(new: &T, known: &T) -> bool {
    compare_versions(new.id().version, known.id().version) == Some(Ordering::Less)
}

/// True if a key is in the part of the collection that was listed.
pub(crate) fn in_scope(scope: &Scope, key: KeyRef<'_>) -> bool {
    scope.is_none() || key.namespace() == scope.as_deref()
}

impl<T: Object> Delta<T> {
    /// The one object this is about; `None` if it is about many or none.
    pub fn key(&self) -> Option<KeyRef<'_>> {
        match self {
            Self::Added(object)
            | Self::Updated(object)
            | Self::Deleted(object)
            | Self::Tombstone(object)
            | Self::Resynced(object) => Some(object.id().key),
            Self::Vanished { key, .. } => Some(key.into()),
            Self::Undecodable(bad) => bad.key.as_ref().map(KeyRef::from),
            Self::Replaced(_)
            | Self::Listed(_)
            | Self::Bookmark { .. }
            | Self::Resync
            | Self::ResyncDone
            | Self::Restarted { .. } => None,
        }
    }
}

impl<T> Clone for Delta<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Added(object) => Self::Added(object.clone()),
            Self::Updated(object) => Self::Updated(object.clone()),
            Self::Deleted(object) => Self::Deleted(object.clone()),
            Self::Tombstone(object) => Self::Tombstone(object.clone()),
            Self::Vanished { key, version } => Self::Vanished { key: key.clone(), version: version.clone() },
            Self::Undecodable(bad) => Self::Undecodable(bad.clone()),
            Self::Replaced(Replacement { mark, objects, undecodable }) => Self::Replaced(Replacement {
                mark: mark.clone(),
                objects: objects.clone(),
                undecodable: undecodable.clone(),
            }),
            Self::Listed(mark) => Self::Listed(mark.clone()),
            Self::Bookmark { scope, version } => Self::Bookmark { scope: scope.clone(), version: version.clone() },
            Self::Resync => Self::Resync,
            Self::Resynced(object) => Self::Resynced(object.clone()),
            Self::ResyncDone => Self::ResyncDone,
            Self::Restarted { scope } => Self::Restarted { scope: scope.clone() },
        }
    }
}
