//! Orders changes on their way from the reflector to the store.
//!
//! A queue is a plain value: it uses no sockets, clocks or tasks. [`Changes`](crate::parts::Changes) adds the waiting.
//!
//! | type | purpose |
//! |---|---|
//! | [`Delta`] | goes in: one change from a reflector |
//! | [`Work`] | comes out: changes to apply together |
//! | [`KeyDelta`] | one change of one object, in [`DeltaFifo`] |
//! | [`Piece`] | a piece of a list, for a queue that splits lists |

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
use crate::settings::QueueOrder;
use crate::source::BadObject;
use crate::store::Store;

/// Holds changes until they are applied: client-go's `Queue`.
///
/// A batch that was popped and is not yet processed still counts as queued: the queue compares new changes with it.
pub trait DeltaQueue<T: ?Sized>: Send + 'static {
    /// Puts in a change that took `bytes` bytes on the wire. `known` has the objects that are applied already.
    fn push(&mut self, delta: Delta<T>, bytes: u64, known: &Store<T>);

    /// Returns true if the queue splits lists and resyncs into their objects. They are then put in by
    /// [`DeltaQueue::push_piece`], so that no call takes long.
    fn takes_pieces(&self) -> bool {
        false
    }

    /// Returns the objects with changes that wait or are being processed. A list is compared with them and with the
    /// store.
    fn pending(&self) -> Pending<T> {
        Vec::new()
    }

    /// Puts in the next piece of a list or a resync. The pieces come in order, and no other change comes in between.
    ///
    /// If the pieces end before [`Piece::ListEnds`], no batch is [settled](Batch::settled) until a list of the same
    /// scope is complete.
    fn push_piece(&mut self, piece: Piece<T>, bytes: u64, known: &Store<T>) {
        let _ = (piece, bytes, known);
    }

    /// Pops the next changes, to apply together.
    fn pop(&mut self) -> Option<Batch<T>>;

    /// Marks everything that was popped so far as processed.
    fn processed(&mut self);

    /// Puts back a batch that could not be processed. A change is dropped if a newer change of the same object waits.
    fn put_back(&mut self, batch: Batch<T>);

    /// Returns how many entries wait.
    fn len(&self) -> usize;

    /// Returns true if no entry waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many bytes on the wire the waiting changes took.
    fn bytes(&self) -> u64;

    /// Returns how many entries were ever queued, and how many of them are processed. Once the second number reaches
    /// the current first number, everything that is pushed now is processed.
    fn progress(&self) -> (u64, u64);

    /// Returns true once the first list is processed.
    fn has_synced(&self) -> bool;
}

/// Changes that are popped from a queue together.
pub struct Batch<T: ?Sized> {
    /// The changes.
    pub work: Work<T>,
    /// How many bytes on the wire the changes took.
    pub bytes: u64,
    /// True if no older change waits: once this batch is applied, the store has every change up to the newest version
    /// in the batch.
    pub settled: bool,
}

/// Changes to apply together.
pub enum Work<T: ?Sized> {
    /// Changes of different objects in the order in which they were pushed, or one change of many objects or of none.
    Deltas(Vec<Delta<T>>),
    /// The changes of one object.
    Object(ObjectKey, Deltas<T>),
    /// An object was deleted. If the object was known, its removal is another entry, and this entry only reports the
    /// version.
    Gone {
        /// The key of the object.
        key: ObjectKey,
        /// The version of its deletion, if it could be decoded.
        version: Option<ResourceVersion>,
    },
    /// All objects of a list that was split are popped.
    Listed(ListMark),
    /// All objects of a resync that was split are popped.
    Resynced,
}

/// Creates the queue of an informer.
pub(crate) fn queue_in<T: Cached + ?Sized>(order: QueueOrder) -> Box<dyn DeltaQueue<T>> {
    match order {
        QueueOrder::Ordered => Box::new(OrderedQueue::new()),
        QueueOrder::PerObject => Box::new(DeltaFifo::new().emit_replaced(true)),
    }
}

/// One change from a reflector, on its way to the store.
pub enum Delta<T: ?Sized> {
    /// An object was added.
    Added(Arc<T>),
    /// An object changed.
    Updated(Arc<T>),
    /// An object was deleted. This is its last state, as the API server sent it.
    Deleted(Arc<T>),
    /// An object was deleted, and only its key could be decoded.
    Vanished {
        /// The key of the object.
        key: ObjectKey,
        /// The version of its deletion, if it could be decoded.
        version: Option<ResourceVersion>,
    },
    /// A state of an object could not be decoded. The last known state stays.
    Undecodable(BadObject),
    /// The result of a list: all objects of a scope.
    Replaced(Replacement<T>),
    /// Every change up to this version was pushed.
    Bookmark {
        /// One namespace of a set, or the whole resource.
        scope: Scope,
        /// The version reached.
        version: ResourceVersion,
    },
    /// Sends the whole cache to the handlers whose resync is due.
    Resync,
    /// The API server was restored to an older state. Versions start again, and nothing in the cache can be relied on.
    Restarted {
        /// One namespace of a set, or the whole resource.
        scope: Scope,
    },
    /// The program follows other namespaces from now on.
    ScopeChanged(ScopeChange),
}

/// A change of the namespaces that an informer follows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScopeChange {
    /// The scopes that are listed and watched from now on.
    pub added: Vec<Scope>,
    /// The scopes that are not followed any more. Changes of their objects that still wait are obsolete.
    pub left: Vec<Scope>,
    /// The number of the change.
    pub number: u64,
}

/// All objects of a scope, as of one version.
pub struct Replacement<T: ?Sized> {
    /// The scope and the version of the list.
    pub mark: ListMark,
    /// The objects, in the API server's order.
    pub objects: Vec<Arc<T>>,
    /// Objects in the list that could not be decoded. Their last known states stay.
    pub undecodable: Vec<BadObject>,
}

/// Describes a list without its objects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListMark {
    /// The listed scope. Cached objects outside of it stay.
    pub scope: Scope,
    /// The version of the list.
    pub version: Option<ResourceVersion>,
    /// The number of the last relist request before the list began, or 0.
    pub request: u64,
    /// The keys of listed objects that could not be decoded. Set by a queue that splits the list.
    pub unread: Vec<ObjectKey>,
    /// True if the key of an object could not be decoded, so that deletions may be missing. Set by a queue that splits
    /// the list.
    pub inconclusive: bool,
}

impl<T: Object + ?Sized> Replacement<T> {
    /// Returns true if every key in the list could be decoded, so that an object that is missing from it was deleted.
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

    /// Returns the mark of a list that is split: with the keys of undecodable objects.
    pub(crate) fn full_mark(&self) -> ListMark {
        let unread = self.undecodable.iter().filter_map(|bad| bad.key.clone()).collect();
        ListMark { unread, inconclusive: !self.is_conclusive(), ..self.mark.clone() }
    }
}

impl<T: Object + ?Sized> Delta<T> {
    /// Returns the key of the object that changed, or `None` for a delta of many objects or of none.
    pub fn key(&self) -> Option<KeyRef<'_>> {
        match self {
            Self::Added(object) | Self::Updated(object) | Self::Deleted(object) => Some(object.id().key),
            Self::Vanished { key, .. } => Some(key.into()),
            Self::Undecodable(bad) => bad.key.as_ref().map(KeyRef::from),
            Self::Replaced(_)
            | Self::Bookmark { .. }
            | Self::Resync
            | Self::Restarted { .. }
            | Self::ScopeChanged(_) => None,
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
            Self::ScopeChanged(change) => Self::ScopeChanged(change.clone()),
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

// No content of an object may appear in a log.

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
            Self::ScopeChanged(change) => fmt::Debug::fmt(change, f),
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
