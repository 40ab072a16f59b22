//! The default queue: every change, in the order of the stream.

use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;

use super::{Batch, Delta, DeltaQueue, Work};
use crate::object::{Cached, Object, ObjectKey};
use crate::store::Store;

/// How many changes a batch has at most. A batch is committed under one lock, and delivered to a handler without a
/// pause.
const BATCH: usize = 256;

/// Changes that wait to be applied, oldest first. No change is merged, compressed or dropped.
///
/// client-go's `RealFIFO` in its atomic mode. The difference: the queue is synced only once the popped changes are
/// processed, also after an empty first list.
///
/// ```
/// use kube_informer::parts::Delta;
/// use kube_informer::parts::{ListMark, OrderedQueue, Replacement};
/// # use std::sync::Arc;
/// # use kube_informer::Identity;
/// # let thing = |key: &str, version: &str| Arc::new(Identity { key: key.parse().unwrap(), uid: "".into(), version: version.into() });
///
/// let mut queue = OrderedQueue::new();
/// let objects = vec![thing("web/a", "1")];
/// queue.push(Delta::Replaced(Replacement { mark: ListMark::default(), objects, undecodable: Vec::new() }));
/// queue.push(Delta::Updated(thing("web/a", "2")));
///
/// assert!(matches!(&queue.pop_batch()[..], [Delta::Replaced(list)] if list.objects.len() == 1));
/// assert!(!queue.has_synced());
/// queue.processed();
/// assert!(queue.has_synced());
/// ```
pub struct OrderedQueue<T: ?Sized> {
    waiting: VecDeque<(Delta<T>, u64)>,
    /// How many of the oldest deltas belong to the first list, including popped ones; `None` before the first list.
    initial: Option<usize>,
    /// How many deltas were popped and are not processed yet.
    in_progress: usize,
    /// How many deltas were ever pushed.
    pushed: u64,
    bytes: u64,
}

impl<T: Object + ?Sized> OrderedQueue<T> {
    /// Makes an empty queue.
    pub fn new() -> Self {
        Self { waiting: VecDeque::new(), initial: None, in_progress: 0, pushed: 0, bytes: 0 }
    }

    /// Pushes a change.
    pub fn push(&mut self, delta: Delta<T>) {
        self.push_sized(delta, 0);
    }

    fn push_sized(&mut self, delta: Delta<T>, bytes: u64) {
        let replaced = matches!(delta, Delta::Replaced(_));
        let populates = replaced || delta.key().is_some();
        self.waiting.push_back((delta, bytes));
        self.pushed += 1;
        self.bytes += bytes;
        if self.initial.is_none() && populates {
            // A first list counts with all deltas before it. If the first delta is no list, nothing counts.
            self.initial = Some(if replaced { self.waiting.len() + self.in_progress } else { 0 });
        }
    }

    /// Returns how many changes wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if no change waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns true once the first list is popped and processed.
    pub fn has_synced(&self) -> bool {
        self.initial == Some(0)
    }

    /// Pops the oldest changes. The result is empty if nothing waits.
    ///
    /// The changes of a batch are about different objects. A change of many objects or of none is a batch of its own,
    /// and no batch extends beyond the first list. Call [`OrderedQueue::processed`] before the next batch.
    pub fn pop_batch(&mut self) -> Vec<Delta<T>> {
        self.take().0
    }

    fn take(&mut self) -> (Vec<Delta<T>>, u64) {
        let length = self.batch_length();
        let mut bytes = 0;
        let batch = self.waiting.drain(..length).map(|(delta, size)| {
            bytes += size;
            delta
        });
        let batch = batch.collect();
        self.in_progress += length;
        self.bytes -= bytes;
        (batch, bytes)
    }

    fn batch_length(&self) -> usize {
        let limit = match self.initial {
            Some(initial) if initial > self.in_progress => BATCH.min(initial - self.in_progress),
            _ => BATCH,
        };
        let limit = limit.min(self.waiting.len());
        if limit < 2 {
            return limit;
        }
        // If two keys have the same hash, the batch only ends early.
        let hasher = FixedState::default();
        let mut keys = HashSet::with_capacity_and_hasher(limit, hasher.clone());
        let mut length = 0;
        for (delta, _) in self.waiting.iter().take(limit) {
            match delta.key().map(|key| hasher.hash_one(key)) {
                Some(key) if keys.insert(key) => length += 1,
                None if length == 0 => return 1,
                _ => break,
            }
        }
        length
    }

    /// Marks everything popped so far as processed.
    pub fn processed(&mut self) {
        if let Some(initial) = &mut self.initial {
            *initial = initial.saturating_sub(self.in_progress);
        }
        self.in_progress = 0;
    }
}

impl<T: Cached + ?Sized> DeltaQueue<T> for OrderedQueue<T> {
    fn push(&mut self, delta: Delta<T>, bytes: u64, _known: &Store<T>) {
        self.push_sized(delta, bytes);
    }

    fn pop(&mut self) -> Option<Batch<T>> {
        let (deltas, bytes) = self.take();
        // Changes stay in the order of the stream, so no older change waits.
        (!deltas.is_empty()).then(|| Batch { work: Work::Deltas(deltas), bytes, settled: true })
    }

    fn processed(&mut self) {
        Self::processed(self);
    }

    fn put_back(&mut self, batch: Batch<T>) {
        let Work::Deltas(deltas) = batch.work else { return };
        let key = |delta: &Delta<T>| delta.key().map(ObjectKey::from);
        let waiting: HashSet<_> = self.waiting.iter().filter_map(|(delta, _)| key(delta)).collect();
        let absent = |delta: &Delta<T>| !key(delta).is_some_and(|key| waiting.contains(&key));
        // The changes go back to the front, because later changes must stay behind them.
        for delta in deltas.into_iter().rev().filter(absent) {
            self.waiting.push_front((delta, 0));
            self.in_progress = self.in_progress.saturating_sub(1);
        }
    }

    fn len(&self) -> usize {
        Self::len(self)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn progress(&self) -> (u64, u64) {
        (self.pushed, self.pushed - (self.waiting.len() + self.in_progress) as u64)
    }

    fn has_synced(&self) -> bool {
        Self::has_synced(self)
    }
}

impl<T: Object + ?Sized> Default for OrderedQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Object + ?Sized> std::fmt::Debug for OrderedQueue<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OrderedQueue").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}
