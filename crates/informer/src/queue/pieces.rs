//! Splits a list into pieces, so that a queue is locked for one piece at a time.

use std::collections::HashSet;
use std::sync::Arc;
use std::vec::IntoIter;

use foldhash::fast::RandomState;

use super::{ListMark, Replacement};
use crate::object::{Cached, KeyRef, Object, ObjectKey, Scope, in_scope};
use crate::source::BadObject;

/// How many objects a piece holds at most.
pub(crate) const PIECE: usize = 256;

/// A piece of a list or of a resync; see [`DeltaQueue::push_piece`](super::DeltaQueue::push_piece).
pub enum Piece<T: ?Sized> {
    /// A list begins. It comes first.
    ListBegins {
        /// The scope that was listed.
        scope: Scope,
        /// How many objects will be popped because of this list: the distinct listed ones and the missing ones.
        objects: usize,
    },
    /// Objects of the list, in the API server's order.
    Listed(Vec<Arc<T>>),
    /// The last known states of objects that are missing from the list: they are deleted.
    Missing(Vec<Arc<T>>),
    /// Objects of the list that could not be decoded.
    Undecodable(Vec<BadObject>),
    /// The list is complete. It comes last.
    ListEnds(ListMark),
    /// The keys of objects to send to the handlers again.
    Resync(Vec<ObjectKey>),
    /// The resync is complete.
    ResyncEnds,
}

/// The objects with changes that wait or are being processed, in the queue's order. Each comes with the state that it
/// will have, or `None` if it will be deleted.
pub type Pending<T> = Vec<(ObjectKey, Option<Arc<T>>)>;

/// Finds the objects that are missing from a list.
///
/// The caller adds the keys of the list, then the pending objects, then the objects of the store. Each step takes
/// constant time, so that the caller can let other tasks run in between.
pub(crate) struct Comparison<'l, T: ?Sized> {
    scope: &'l Scope,
    listed: HashSet<KeyRef<'l>, RandomState>,
    pending: HashSet<ObjectKey>,
    missing: Vec<Arc<T>>,
}

impl<'l, T: Cached + ?Sized> Comparison<'l, T> {
    pub(crate) fn new(list: &'l Replacement<T>) -> Self {
        let listed = HashSet::with_capacity_and_hasher(list.objects.len(), RandomState::default());
        Self { scope: &list.mark.scope, listed, pending: HashSet::new(), missing: Vec::new() }
    }

    /// Adds a key of the list.
    pub(crate) fn add_listed(&mut self, key: KeyRef<'l>) {
        self.listed.insert(key);
    }

    /// Adds all pending objects.
    pub(crate) fn add_pending(&mut self, pending: Pending<T>) {
        for (key, state) in pending {
            if let Some(state) = state.filter(|_| self.is_missing((&key).into())) {
                self.missing.push(state);
            }
            self.pending.insert(key);
        }
    }

    /// Adds an object of the store. The state of a pending object is newer than this one.
    pub(crate) fn add_known(&mut self, object: &Arc<dyn Object>) {
        let key = object.id().key;
        if self.is_missing(key) && (self.pending.is_empty() || !self.pending.contains(&ObjectKey::from(key))) {
            self.missing.push(T::typed(object.clone()));
        }
    }

    fn is_missing(&self, key: KeyRef<'_>) -> bool {
        in_scope(self.scope, key) && !self.listed.contains(&key)
    }

    /// Returns how many keys the list has so far.
    pub(crate) fn listed(&self) -> usize {
        self.listed.len()
    }

    /// Returns the last known states of the missing objects.
    pub(crate) fn into_missing(self) -> Vec<Arc<T>> {
        self.missing
    }
}

/// The pieces of a list in the order in which they are pushed, each with its bytes on the wire.
///
/// New objects come before deletions, as in client-go. Undecodable objects come last: a list may hold a good state of
/// an object and a later one that could not be decoded.
pub(crate) struct ListPieces<T: ?Sized> {
    begin: Option<(Scope, usize)>,
    objects: IntoIter<Arc<T>>,
    missing: IntoIter<Arc<T>>,
    undecodable: IntoIter<BadObject>,
    end: Option<ListMark>,
    bytes_per_object: u64,
}

impl<T: Object + ?Sized> ListPieces<T> {
    /// Cuts a list of `listed` distinct objects, from which the `missing` ones are absent.
    pub(crate) fn new(list: Replacement<T>, bytes: u64, listed: usize, missing: Vec<Arc<T>>) -> Self {
        Self {
            begin: Some((list.mark.scope.clone(), listed + missing.len())),
            end: Some(list.full_mark()),
            bytes_per_object: bytes / list.objects.len().max(1) as u64,
            objects: list.objects.into_iter(),
            missing: missing.into_iter(),
            undecodable: list.undecodable.into_iter(),
        }
    }
}

impl<T: ?Sized> Iterator for ListPieces<T> {
    type Item = (Piece<T>, u64);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some((scope, objects)) = self.begin.take() {
            return Some((Piece::ListBegins { scope, objects }, 0));
        }
        if let Some(objects) = piece(&mut self.objects) {
            let bytes = self.bytes_per_object * objects.len() as u64;
            return Some((Piece::Listed(objects), bytes));
        }
        if let Some(missing) = piece(&mut self.missing) {
            return Some((Piece::Missing(missing), 0));
        }
        if let Some(undecodable) = piece(&mut self.undecodable) {
            return Some((Piece::Undecodable(undecodable), 0));
        }
        self.end.take().map(|mark| (Piece::ListEnds(mark), 0))
    }
}

/// Returns the next items, or `None` if there are no more.
fn piece<I>(items: &mut IntoIter<I>) -> Option<Vec<I>> {
    (items.len() > 0).then(|| items.by_ref().take(PIECE).collect())
}
