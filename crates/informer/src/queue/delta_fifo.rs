//! The classic queue: all changes of one object together, objects in the order in which they first changed.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::{Batch, Comparison, Deleted, Delta, DeltaQueue, ListMark, ListPieces, Pending, Piece, Replacement, Work};
use crate::object::{Cached, KeyRef, Object, ObjectKey, Scope, in_scope};
use crate::source::BadObject;
use crate::store::{Snapshot, Store};

/// One change of one object.
pub enum KeyDelta<T: ?Sized> {
    /// The object was added.
    Added(Arc<T>),
    /// The object changed.
    Updated(Arc<T>),
    /// The object was listed; see [`DeltaFifo::emit_replaced`].
    Replaced(Arc<T>),
    /// The object is processed again, though it has not changed.
    Sync(Arc<T>),
    /// The object was deleted.
    Deleted(Deleted<T>),
}

/// The changes of one object, oldest first. There is at least one.
pub type Deltas<T> = Vec<KeyDelta<T>>;

/// Changes that wait to be applied. The changes of one object stay together, and objects keep the order in which they
/// first changed.
///
/// client-go's `DeltaFIFO`, with its order and its rules. Two deletions in a row become one; no other changes are
/// merged. The differences: popped changes count as waiting until they are processed, and the caller passes the known
/// objects.
///
/// ```
/// use kube_informer::{Deleted, Store};
/// use kube_informer::parts::{DeltaFifo, KeyDelta};
/// # use std::sync::Arc;
/// # use kube_informer::Identity;
/// # let thing = |key: &str, version: &str| Arc::new(Identity { key: key.parse().unwrap(), uid: "".into(), version: version.into() });
///
/// let (store, _writer) = Store::new(0);
/// let mut queue = DeltaFifo::new();
/// queue.add(thing("web/a", "1"));
/// queue.add(thing("web/b", "2"));
/// queue.update(thing("web/a", "3"));
/// queue.delete(Deleted::Final(thing("web/a", "4")), &store.snapshot());
/// assert_eq!(queue.len(), 2, "objects, not changes");
///
/// let (key, deltas) = queue.pop().unwrap();
/// assert_eq!(key.as_str(), "web/a");
/// assert!(matches!(deltas[..], [KeyDelta::Added(_), KeyDelta::Updated(_), KeyDelta::Deleted(_)]));
/// ```
pub struct DeltaFifo<T: ?Sized> {
    order: VecDeque<QueuePlace<T>>,
    waiting: HashMap<ObjectKey, QueuedDeltas<T>>,
    /// The future state of each object that was popped and is not processed yet, or `None` if it will be deleted.
    in_progress: HashMap<ObjectKey, Option<Arc<T>>>,
    /// The keys of undecodable objects for which a mark waits.
    unread: HashSet<ObjectKey>,
    /// How many entries were popped and are not processed yet.
    popped: usize,
    emit_replaced: bool,
    /// How many objects of the first list are not processed yet; `None` before the first list.
    initial: Option<usize>,
    /// How many of those were popped and are not processed yet.
    initial_in_hand: usize,
    /// True while the first list is pushed.
    populating: bool,
    /// The scopes of lists whose pieces are not all pushed.
    open_lists: HashSet<Scope>,
    /// How many entries were ever queued.
    placed: u64,
    bytes: u64,
    closed: bool,
}

struct QueuedDeltas<T: ?Sized> {
    deltas: Deltas<T>,
    bytes: u64,
}

/// One entry of the queue.
enum QueuePlace<T: ?Sized> {
    Key(ObjectKey),
    /// A change of many objects or of none, in order with the changes before and after it.
    Mark(Work<T>),
}

impl<T: Cached + ?Sized> DeltaFifo<T> {
    /// Makes an empty queue. Listed objects come out as [`KeyDelta::Sync`], unless [`DeltaFifo::emit_replaced`] is set.
    pub fn new() -> Self {
        Self {
            order: VecDeque::new(),
            waiting: HashMap::new(),
            in_progress: HashMap::new(),
            unread: HashSet::new(),
            popped: 0,
            emit_replaced: false,
            initial: None,
            initial_in_hand: 0,
            populating: false,
            open_lists: HashSet::new(),
            placed: 0,
            bytes: 0,
            closed: false,
        }
    }

    /// Sets whether listed objects come out as [`KeyDelta::Replaced`], so that they differ from a resync.
    #[must_use]
    pub fn emit_replaced(mut self, emit_replaced: bool) -> Self {
        self.emit_replaced = emit_replaced;
        self
    }

    /// Queues the addition of an object.
    pub fn add(&mut self, object: Arc<T>) {
        self.populate();
        self.enqueue(object.id().key.into(), KeyDelta::Added(object), 0);
    }

    /// Queues the change of an object.
    pub fn update(&mut self, object: Arc<T>) {
        self.populate();
        self.enqueue(object.id().key.into(), KeyDelta::Updated(object), 0);
    }

    /// Queues the deletion of an object. It is ignored if the object is neither queued, nor being processed, nor known.
    pub fn delete(&mut self, object: Deleted<T>, known: &Snapshot<T>) {
        self.delete_sized(object, 0, |key| known.get_arc(key));
    }

    fn delete_sized(&mut self, object: Deleted<T>, bytes: u64, known: impl Fn(KeyRef<'_>) -> Option<Arc<T>>) {
        self.populate();
        let key = object.key();
        if self.waiting.contains_key(&key) || self.newest(&key, known).is_some() {
            self.enqueue(key, KeyDelta::Deleted(object), bytes);
        }
    }

    /// Returns the state that an object will have once everything pushed so far is processed.
    fn newest(&self, key: &ObjectKey, known: impl Fn(KeyRef<'_>) -> Option<Arc<T>>) -> Option<Arc<T>> {
        let queued = self.waiting.get(key).map(|waiting| state_after(&waiting.deltas));
        queued.or_else(|| self.in_progress.get(key).cloned()).unwrap_or_else(|| known(key.into()))
    }

    /// Queues a list: listed objects are queued, and objects that are missing from the list are deleted, whether they
    /// are queued, being processed or known.
    pub fn replace(&mut self, objects: Vec<Arc<T>>, known: &Snapshot<T>) {
        let list = Replacement { mark: ListMark::default(), objects, undecodable: Vec::new() };
        for (piece, bytes) in self.cut(list, 0, known) {
            match piece {
                // Only a list of a reflector ends with a mark in the queue.
                Piece::ListEnds(mark) => self.end_list(&mark),
                piece => self.put_piece(piece, bytes, |_| None),
            }
        }
    }

    /// Compares a list with the queue and with the known objects, and splits it into pieces.
    fn cut(&self, list: Replacement<T>, bytes: u64, known: &Snapshot<T>) -> ListPieces<T> {
        let mut comparison = Comparison::new(&list);
        list.objects.iter().for_each(|object| comparison.add_listed(object.id().key));
        let listed = comparison.listed();
        if list.is_conclusive() {
            list.undecodable_keys().for_each(|key| comparison.add_listed(key));
            comparison.add_pending(self.pending());
            known.objects().for_each(|object| comparison.add_known(object));
        }
        let missing = comparison.into_missing();
        ListPieces::new(list, bytes, listed, missing)
    }

    fn put_piece(&mut self, piece: Piece<T>, bytes: u64, known: impl Fn(KeyRef<'_>) -> Option<Arc<T>>) {
        match piece {
            Piece::ListBegins { scope, objects } => self.begin_list(scope, objects),
            Piece::Listed(objects) => {
                let share = bytes / objects.len().max(1) as u64;
                for object in objects {
                    let key = object.id().key.into();
                    let delta = if self.emit_replaced { KeyDelta::Replaced(object) } else { KeyDelta::Sync(object) };
                    self.enqueue(key, delta, share);
                }
            }
            Piece::Missing(objects) => {
                for object in objects {
                    self.enqueue(object.id().key.into(), KeyDelta::Deleted(Deleted::Unknown(object)), 0);
                }
            }
            Piece::Undecodable(objects) => objects.into_iter().for_each(|bad| self.mark_unread(bad)),
            Piece::ListEnds(mark) => {
                self.end_list(&mark);
                self.mark(Work::Listed(mark));
            }
            Piece::Resync(keys) => {
                for key in keys {
                    // Read at this time, because the object may have changed since the resync began.
                    if let Some(object) = known((&key).into()).filter(|_| !self.is_pending(&key)) {
                        self.enqueue(key, KeyDelta::Sync(object), 0);
                    }
                }
            }
            Piece::ResyncEnds => self.mark(Work::Resynced),
        }
    }

    /// Records that a list of a scope begins, of which `objects` objects will be popped.
    fn begin_list(&mut self, scope: Scope, objects: usize) {
        // Undecodable objects are not counted, because they are never popped as objects. This list replaces a first
        // list that was not completed.
        if self.initial.is_none() || self.populating {
            self.initial = Some(objects + self.initial_in_hand);
            self.populating = true;
        }
        self.open_lists.insert(scope);
    }

    fn end_list(&mut self, mark: &ListMark) {
        self.populating = false;
        self.open_lists.remove(&mark.scope);
    }

    /// Returns true if changes of an object wait or are being processed.
    fn is_pending(&self, key: &ObjectKey) -> bool {
        self.waiting.contains_key(key) || self.in_progress.contains_key(key)
    }

    /// Queues every known object to be processed again, except objects with changes that wait or are being processed.
    pub fn resync(&mut self, known: &Snapshot<T>) {
        for object in known.objects() {
            let key = ObjectKey::from(object.id().key);
            if !self.is_pending(&key) {
                self.enqueue(key, KeyDelta::Sync(T::typed(object.clone())), 0);
            }
        }
    }

    /// Pops the changes of the object that has waited longest; `None` if nothing waits.
    ///
    /// Until [`DeltaFifo::processed`] is called, the popped changes still count as waiting.
    pub fn pop(&mut self) -> Option<(ObjectKey, Deltas<T>)> {
        while let Some(place) = self.order.pop_front() {
            self.popped += 1;
            if let QueuePlace::Key(key) = place {
                let deltas = self.take(&key).deltas;
                return Some((key, deltas));
            }
        }
        None
    }

    fn take(&mut self, key: &ObjectKey) -> QueuedDeltas<T> {
        self.count_popped();
        let waiting = self.waiting.remove(key).unwrap_or(QueuedDeltas { deltas: Vec::new(), bytes: 0 });
        self.bytes -= waiting.bytes;
        self.in_progress.insert(key.clone(), state_after(&waiting.deltas));
        waiting
    }

    /// Marks everything popped so far as processed.
    pub fn processed(&mut self) {
        if let Some(initial) = &mut self.initial {
            *initial = initial.saturating_sub(self.initial_in_hand);
        }
        self.initial_in_hand = 0;
        self.popped = 0;
        self.in_progress.clear();
    }

    /// Puts back changes that could not be processed, unless newer changes of the same object wait.
    pub fn add_if_absent(&mut self, key: ObjectKey, deltas: Deltas<T>) {
        if !deltas.is_empty() && !self.waiting.contains_key(&key) {
            // An object in processing returns to the queue, so it does not count as processed.
            match self.in_progress.remove(&key) {
                Some(_) => {
                    self.popped = self.popped.saturating_sub(1);
                    self.initial_in_hand = self.initial_in_hand.saturating_sub(1);
                }
                None => self.placed += 1,
            }
            self.order.push_back(QueuePlace::Key(key.clone()));
            self.waiting.insert(key, QueuedDeltas { deltas, bytes: 0 });
        }
    }

    /// Returns the waiting changes of one object, oldest first.
    pub fn get<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<&[KeyDelta<T>]> {
        self.waiting.get(&ObjectKey::from(key.into())).map(|waiting| waiting.deltas.as_slice())
    }

    /// Returns the keys of all objects with waiting changes, in the order in which they will be popped.
    pub fn keys(&self) -> Vec<KeyRef<'_>> {
        let keys =
            self.order.iter().filter_map(|place| if let QueuePlace::Key(key) = place { Some(key) } else { None });
        keys.map(KeyRef::from).collect()
    }

    /// Returns how many objects have waiting changes.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if no object has waiting changes.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns true once the first list is popped and processed.
    pub fn has_synced(&self) -> bool {
        self.initial == Some(0)
    }

    /// Closes the queue: it accepts no more changes. Waiting changes can still be popped.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Returns true if the queue is closed.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    fn populate(&mut self) {
        self.initial.get_or_insert(0);
    }

    fn count_popped(&mut self) {
        if self.initial.is_some_and(|initial| initial > self.initial_in_hand) {
            self.initial_in_hand += 1;
        }
    }

    fn enqueue(&mut self, key: ObjectKey, delta: KeyDelta<T>, bytes: u64) {
        if self.closed {
            return;
        }
        self.bytes += bytes;
        // A mark of an older, undecodable state may come after the new change. It is removed, because this change makes
        // it obsolete.
        if !matches!(delta, KeyDelta::Sync(_)) && self.unread.remove(&key) {
            self.order.retain(|place| place.unread() != Some(&key));
        }
        match self.waiting.get_mut(&key) {
            None => {
                self.placed += 1;
                self.order.push_back(QueuePlace::Key(key.clone()));
                self.waiting.insert(key, QueuedDeltas { deltas: vec![delta], bytes });
            }
            Some(waiting) => {
                waiting.bytes += bytes;
                match (waiting.deltas.last(), &delta) {
                    // Of two deletions, the one with the final state is kept.
                    (Some(KeyDelta::Deleted(Deleted::Final(_))), KeyDelta::Deleted(_)) => {}
                    (Some(KeyDelta::Deleted(Deleted::Unknown(_))), KeyDelta::Deleted(_)) => {
                        waiting.deltas.pop();
                        waiting.deltas.push(delta);
                    }
                    _ => waiting.deltas.push(delta),
                }
            }
        }
    }

    /// Removes the waiting changes of a scope: the API server was restored and they belong to its old history, or the
    /// scope is not followed any more.
    fn forget(&mut self, scope: &Scope) {
        for place in std::mem::take(&mut self.order) {
            match place {
                QueuePlace::Key(key) if in_scope(scope, (&key).into()) => {
                    self.bytes -= self.waiting.remove(&key).map_or(0, |waiting| waiting.bytes);
                    self.count_popped();
                }
                QueuePlace::Mark(Work::Listed(ListMark { scope: of, .. })) if of == *scope => {}
                place => self.order.push_back(place),
            }
        }
    }

    fn mark(&mut self, work: Work<T>) {
        if !self.closed {
            self.placed += 1;
            self.order.push_back(QueuePlace::Mark(work));
        }
    }

    fn mark_unread(&mut self, bad: BadObject) {
        self.unread.extend(bad.key.clone());
        self.mark(Work::Deltas(vec![Delta::Undecodable(bad)]));
    }
}

impl<T: ?Sized> QueuePlace<T> {
    /// Returns the key of the undecodable object, if this is a mark for one.
    fn unread(&self) -> Option<&ObjectKey> {
        match self {
            Self::Mark(Work::Deltas(deltas)) => match &deltas[..] {
                [Delta::Undecodable(bad)] => bad.key.as_ref(),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Returns the state of an object after its changes, or `None` if it is deleted.
fn state_after<T: ?Sized>(deltas: &[KeyDelta<T>]) -> Option<Arc<T>> {
    match deltas.last() {
        None | Some(KeyDelta::Deleted(_)) => None,
        Some(delta) => Some(delta.object().clone()),
    }
}

impl<T: Cached + ?Sized> DeltaQueue<T> for DeltaFifo<T> {
    fn push(&mut self, delta: Delta<T>, bytes: u64, known: &Store<T>) {
        match delta {
            Delta::Added(object) => {
                self.populate();
                self.enqueue(object.id().key.into(), KeyDelta::Added(object), bytes);
            }
            Delta::Updated(object) => {
                self.populate();
                self.enqueue(object.id().key.into(), KeyDelta::Updated(object), bytes);
            }
            Delta::Deleted(object) => {
                // If the object is unknown, a mark after the other changes reports the version of the deletion.
                let version = object.id().known_version();
                let key = object.id().key.into();
                self.delete_sized(Deleted::Final(object), bytes, |key| known.get(key));
                if !self.waiting.contains_key(&key) && version.is_some() {
                    self.mark(Work::Gone { key, version });
                }
            }
            Delta::Vanished { key, version } => {
                if let Some(last) = self.newest(&key, |key| known.get(key)) {
                    self.enqueue(key.clone(), KeyDelta::Deleted(Deleted::Unknown(last)), bytes);
                }
                // The mark comes after the other changes and reports the version. Later changes of queued objects may
                // be popped before it.
                self.mark(Work::Gone { key, version });
            }
            Delta::Replaced(list) => {
                for (piece, bytes) in self.cut(list, bytes, &known.snapshot()) {
                    self.push_piece(piece, bytes, known);
                }
            }
            Delta::Resync => {
                self.resync(&known.snapshot());
                self.mark(Work::Resynced);
            }
            Delta::Restarted { scope } => {
                self.forget(&scope);
                self.mark(Work::Deltas(vec![Delta::Restarted { scope }]));
            }
            Delta::ScopeChanged(change) => {
                for scope in &change.left {
                    self.forget(scope);
                    // The rest of a list that was cut off never arrives.
                    self.open_lists.remove(scope);
                }
                self.mark(Work::Deltas(vec![Delta::ScopeChanged(change)]));
            }
            Delta::Undecodable(bad) => self.mark_unread(bad),
            bookmark @ Delta::Bookmark { .. } => self.mark(Work::Deltas(vec![bookmark])),
        }
    }

    fn takes_pieces(&self) -> bool {
        true
    }

    fn pending(&self) -> Pending<T> {
        let queued = self.order.iter().filter_map(|place| match place {
            QueuePlace::Key(key) => Some((key.clone(), state_after(&self.waiting.get(key)?.deltas))),
            QueuePlace::Mark(_) => None,
        });
        let only_in_hand = self.in_progress.iter().filter(|(key, _)| !self.waiting.contains_key(key));
        // Sorted, so that the order does not depend on the hash map.
        let mut in_progress: Pending<T> = only_in_hand.map(|(key, state)| (key.clone(), state.clone())).collect();
        in_progress.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        queued.chain(in_progress).collect()
    }

    fn push_piece(&mut self, piece: Piece<T>, bytes: u64, known: &Store<T>) {
        self.put_piece(piece, bytes, |key| known.get(key));
    }

    fn pop(&mut self) -> Option<Batch<T>> {
        let place = self.order.pop_front()?;
        self.popped += 1;
        if let Some(key) = place.unread() {
            self.unread.remove(key);
        }
        let settled = self.order.is_empty() && self.open_lists.is_empty();
        Some(match place {
            QueuePlace::Mark(work) => Batch { work, bytes: 0, settled },
            QueuePlace::Key(key) => {
                let QueuedDeltas { deltas, bytes } = self.take(&key);
                Batch { work: Work::Object(key, deltas), bytes, settled }
            }
        })
    }

    fn processed(&mut self) {
        Self::processed(self);
    }

    fn put_back(&mut self, batch: Batch<T>) {
        match batch.work {
            Work::Object(key, deltas) => self.add_if_absent(key, deltas),
            // The mark goes back to the front, because later changes must stay behind it.
            mark => {
                self.popped = self.popped.saturating_sub(1);
                self.order.push_front(QueuePlace::Mark(mark));
            }
        }
    }

    fn len(&self) -> usize {
        self.order.len()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn progress(&self) -> (u64, u64) {
        (self.placed, self.placed - (self.order.len() + self.popped) as u64)
    }

    fn has_synced(&self) -> bool {
        Self::has_synced(self)
    }
}

impl<T: ?Sized> KeyDelta<T> {
    /// Returns the newest state in this change.
    pub fn object(&self) -> &Arc<T> {
        match self {
            Self::Added(object) | Self::Updated(object) | Self::Replaced(object) | Self::Sync(object) => object,
            Self::Deleted(gone) => gone.object(),
        }
    }
}

impl<T: Cached + ?Sized> Default for DeltaFifo<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: ?Sized> Clone for KeyDelta<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Added(object) => Self::Added(object.clone()),
            Self::Updated(object) => Self::Updated(object.clone()),
            Self::Replaced(object) => Self::Replaced(object.clone()),
            Self::Sync(object) => Self::Sync(object.clone()),
            Self::Deleted(gone) => Self::Deleted(gone.clone()),
        }
    }
}

impl<T: Object + ?Sized> fmt::Debug for KeyDelta<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, id) = match self {
            Self::Added(object) => ("Added", object.id()),
            Self::Updated(object) => ("Updated", object.id()),
            Self::Replaced(object) => ("Replaced", object.id()),
            Self::Sync(object) => ("Sync", object.id()),
            Self::Deleted(gone) => return fmt::Debug::fmt(gone, f),
        };
        write!(f, "{what}({}@{})", id.key, id.version)
    }
}

impl<T: Cached + ?Sized> fmt::Debug for DeltaFifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaFifo")
            .field("keys", &self.keys())
            .field("synced", &self.has_synced())
            .finish_non_exhaustive()
    }
}
