//! Orders changes on their way from the reflector to the store.
//!
//! A queue is a plain value: it knows no sockets, clocks or tasks. [`Changes`](crate::parts::Changes) waits for it.
//!
//! | type | what it is |
//! |---|---|
//! | [`Delta`] | what goes in: one thing a reflector learnt |
//! | [`Work`] | what comes out: changes to be made as one |
//! | [`KeyDelta`] | one step in the history of one object, in [`DeltaFifo`] |
//! | [`Piece`] | a piece of a list, for a queue that takes lists apart |

mod deleted;
mod delta_fifo;
mod ordered;
mod pieces;

use std::fmt;
use std::sync::Arc;

pub use self::deleted::Deleted;
pub use self::delta_fifo::{DeltaFifo, Deltas, KeyDelta};
pub use self::ordered::OrderedQueue;
pub(crate) use self::pieces::{Comparison, ListPieces, PIECE};
pub use self::pieces::{Pending, Piece};
use crate::object::{Cached, KeyRef, Object, ObjectKey, ResourceVersion, Scope};
use crate::source::BadObject;
use crate::store::Store;

/// Where changes wait until they are applied.
///
/// What was taken out and is not yet processed still counts as waiting: whatever is pushed meanwhile is judged by it.
pub trait DeltaQueue<T: ?Sized>: Send + 'static {
    /// Puts a change in, which took so many bytes on the wire. `known` is what has been applied so far.
    fn push(&mut self, delta: Delta<T>, bytes: u64, known: &Store<T>);

    /// True if the queue takes lists and resyncs apart, object by object. They are then put in by [`DeltaQueue::push_piece`], so that no call
    /// takes long.
    fn takes_pieces(&self) -> bool {
        false
    }

    /// Returns the objects with changes that wait or are being processed. A list is compared with them and with the store.
    fn pending(&self) -> Pending<T> {
        Vec::new()
    }

    /// Puts in the next piece of a list or a resync. The pieces come in order, and no other change comes in between.
    ///
    /// If the pieces end before [`Piece::ListEnds`], no batch is [settled](Batch::settled) until a list of the same scope is complete.
    fn push_piece(&mut self, piece: Piece<T>, bytes: u64, known: &Store<T>) {
        let _ = (piece, bytes, known);
    }

    /// Takes the next changes out, to be made as one.
    fn pop(&mut self) -> Option<Batch<T>>;

    /// Says that everything taken out so far is processed.
    fn processed(&mut self);

    /// Puts back what could not be processed, unless something newer about the same object waits.
    fn put_back(&mut self, batch: Batch<T>);

    /// How many places in the line are taken.
    fn len(&self) -> usize;

    /// True if nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes all that waits took on the wire.
    fn bytes(&self) -> u64;

    /// How many places were ever taken, and how many of them are processed. Once the second number has reached what the
    /// first is now, everything pushed up to now is processed.
    fn progress(&self) -> (u64, u64);

    /// True once the first population is processed.
    fn has_synced(&self) -> bool;
}

/// What comes out of a queue at a time.
pub struct Batch<T: ?Sized> {
    /// What is to be done.
    pub work: Work<T>,
    /// How many bytes it took on the wire.
    pub bytes: u64,
    /// True if nothing older still waits: once this is done, everything up to the newest version in it is.
    pub settled: bool,
}

/// Changes to be made as one.
pub enum Work<T: ?Sized> {
    /// Changes of different objects in the order in which they were pushed, or one that is about many objects or none.
    Deltas(Vec<Delta<T>>),
    /// The changes of one object.
    Object(ObjectKey, Deltas<T>),
    /// An object is gone. Where it was known, its removal has a place of its own in the line; this says how far the server is.
    Gone {
        /// Which one.
        key: ObjectKey,
        /// The version of its deletion, if it could be read.
        version: Option<ResourceVersion>,
    },
    /// A list that came object by object is complete.
    Listed(ListMark),
    /// A resync that came object by object is complete.
    Resynced,
}

/// Which queue an informer uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum QueueOrder {
    /// Every change in the order of the stream, a relist as one: [`OrderedQueue`].
    #[default]
    Ordered,
    /// All changes of one object together: [`DeltaFifo`].
    PerObject,
}

impl QueueOrder {
    pub(crate) fn queue<T: Cached + ?Sized>(self) -> Box<dyn DeltaQueue<T>> {
        match self {
            Self::Ordered => Box::new(OrderedQueue::new()),
            Self::PerObject => Box::new(DeltaFifo::new().emit_replaced(true)),
        }
    }
}

/// One thing that a reflector learnt, bound for the store.
pub enum Delta<T: ?Sized> {
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
    /// Handlers that are due are to be shown the whole cache.
    Resync,
    /// The server was restored to an older state: versions start afresh, and nothing known can be relied on.
    Restarted {
        /// Whose versions.
        scope: Scope,
    },
}

/// All objects of a scope, as of one version.
pub struct Replacement<T: ?Sized> {
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
    /// The keys of what is there but could not be read. Set by the queue that takes the list apart.
    pub unread: Vec<ObjectKey>,
    /// True if not every key in it could be read, so that deletions may be missing. Likewise.
    pub inconclusive: bool,
}

impl<T: Object + ?Sized> Replacement<T> {
    /// True if whatever is not in the list can be taken for deleted: every key in it could be read.
    pub fn is_conclusive(&self) -> bool {
        self.undecodable.iter().all(|bad| bad.key.is_some())
    }

    /// Returns the keys of all objects in the list, undecodable ones included.
    pub(crate) fn keys(&self) -> impl Iterator<Item = KeyRef<'_>> {
        self.objects.iter().map(|object| object.id().key).chain(self.undecodable_keys())
    }

    /// Returns the keys of the undecodable objects, as far as they are known.
    pub(crate) fn undecodable_keys(&self) -> impl Iterator<Item = KeyRef<'_>> {
        self.undecodable.iter().filter_map(|bad| bad.key.as_ref()).map(KeyRef::from)
    }

    /// What remains to be said once the objects are taken out.
    pub(crate) fn full_mark(&self) -> ListMark {
        let unread = self.undecodable.iter().filter_map(|bad| bad.key.clone()).collect();
        ListMark { unread, inconclusive: !self.is_conclusive(), ..self.mark.clone() }
    }
}

impl<T: Object + ?Sized> Delta<T> {
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

impl<T: ?Sized> Clone for Delta<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Added(object) => Self::Added(object.clone()),
            Self::Updated(object) => Self::Updated(object.clone()),
            Self::Deleted(object) => Self::Deleted(object.clone()),
            Self::Vanished { key, version } => Self::Vanished { key: key.clone(), version: version.clone() },
            Self::Undecodable(bad) => Self::Undecodable(bad.clone()),
            Self::Replaced(Replacement { mark, objects, undecodable }) => Self::Replaced(Replacement {
                mark: mark.clone(),
                objects: objects.clone(),
                undecodable: undecodable.clone(),
            }),
            Self::Bookmark { scope, version } => Self::Bookmark { scope: scope.clone(), version: version.clone() },
            Self::Resync => Self::Resync,
            Self::Restarted { scope } => Self::Restarted { scope: scope.clone() },
        }
    }
}

impl<T: ?Sized> Clone for Work<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Deltas(deltas) => Self::Deltas(deltas.clone()),
            Self::Object(key, deltas) => Self::Object(key.clone(), deltas.clone()),
            Self::Gone { key, version } => Self::Gone { key: key.clone(), version: version.clone() },
            Self::Listed(mark) => Self::Listed(mark.clone()),
            Self::Resynced => Self::Resynced,
        }
    }
}

impl<T: ?Sized> Clone for Batch<T> {
    fn clone(&self) -> Self {
        Self { work: self.work.clone(), bytes: self.bytes, settled: self.settled }
    }
}

// What is in an object is nobody's business in a log.

impl<T: Object + ?Sized> fmt::Debug for Delta<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut object = |what: &str, object: &T| write!(f, "{what}({}@{})", object.id().key, object.id().version);
        match self {
            Self::Added(added) => object("Added", added),
            Self::Updated(updated) => object("Updated", updated),
            Self::Deleted(deleted) => object("Deleted", deleted),
            Self::Vanished { key, .. } => write!(f, "Vanished({key})"),
            Self::Undecodable(bad) => write!(f, "Undecodable({:?})", bad.key),
            Self::Replaced(list) => write!(f, "Replaced({list:?})"),
            Self::Bookmark { version, .. } => write!(f, "Bookmark({version})"),
            Self::Resync => f.write_str("Resync"),
            Self::Restarted { .. } => f.write_str("Restarted"),
        }
    }
}

impl<T: Object + ?Sized> fmt::Debug for Replacement<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unread = self.undecodable.len();
        write!(f, "{} objects and {unread} unread at {:?}", self.objects.len(), self.mark.version)
    }
}

impl<T: Object + ?Sized> fmt::Debug for Work<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deltas(deltas) => f.debug_list().entries(deltas).finish(),
            Self::Object(_, deltas) => f.debug_list().entries(deltas).finish(),
            Self::Gone { key, .. } => write!(f, "Gone({key})"),
            Self::Listed(mark) => write!(f, "Listed({:?})", mark.version),
            Self::Resynced => f.write_str("Resynced"),
        }
    }
}

impl<T: Object + ?Sized> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.work, f)
    }
}
