//! The default queue: every change, in the order of the stream.

use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;

use super::{Delta, Queue};
use crate::object::Object;
use crate::store::Store;

/// The most changes one batch holds.
const BATCH: usize = 1000;

/// Changes waiting to be applied, oldest first. Nothing is merged, compressed or dropped.
///
/// client-go's `RealFIFO` in its atomic mode. What differs: synced is true only once what was popped is also processed,
/// an empty first list included.
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::source::Identity;
/// # let thing = |key: &str, version: &str| {
/// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
/// # };
/// use kube_informer::Delta;
/// use kube_informer::queue::{ListMark, OrderedQueue, Replacement};
///
/// let mut queue = OrderedQueue::new();
/// let objects = vec![thing("web/a", "1")];
/// queue.push(Delta::Replaced(Replacement { mark: ListMark::default(), objects, undecodable: Vec::new() }));
/// queue.push(Delta::Updated(thing("web/a", "2")));
/// assert_eq!(queue.len(), 2);
///
/// assert!(matches!(&queue.pop_batch()[..], [Delta::Replaced(list)] if list.objects.len() == 1));
/// assert!(!queue.has_synced());
/// queue.processed();
/// assert!(queue.has_synced());
/// ```
#[derive(Debug)]
pub struct OrderedQueue<T> {
    waiting: VecDeque<Delta<T>>,
    /// How many of the deltas at the front, popped ones included, belong to the first population; `None` before it.
    initial: Option<usize>,
    /// How many were popped and are not yet processed.
    in_hand: usize,
}

impl<T: Object> OrderedQueue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self { waiting: VecDeque::new(), initial: None, in_hand: 0 }
    }

    /// Puts a change behind all others.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{Delta, queue::OrderedQueue};
    /// let mut queue = OrderedQueue::new();
    /// queue.push(Delta::Added(thing("web/a", "1")));
    /// queue.push(Delta::Added(thing("web/a", "1")));
    /// assert_eq!(queue.len(), 2, "nothing is merged");
    /// ```
    pub fn push(&mut self, delta: Delta<T>) {
        let replaced = matches!(delta, Delta::Replaced(_));
        let populates = replaced || delta.key().is_some();
        self.waiting.push_back(delta);
        if self.initial.is_none() && populates {
            // A first list makes up the first population, with all that waits before it; a first event none at all.
            self.initial = Some(if replaced { self.waiting.len() + self.in_hand } else { 0 });
        }
    }

    /// How many changes wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// True once the first population is popped and processed.
    pub fn has_synced(&self) -> bool {
        self.initial == Some(0)
    }

    /// Takes the oldest changes out: empty if nothing waits.
    ///
    /// Changes of a batch are about different objects. What is about many objects or none comes alone, and no batch
    /// reaches beyond the first population. [`OrderedQueue::processed`] is to be called before the next batch.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{Delta, queue::OrderedQueue};
    /// let mut queue = OrderedQueue::new();
    /// queue.push(Delta::Added(thing("web/a", "1")));
    /// queue.push(Delta::Added(thing("web/b", "2")));
    /// queue.push(Delta::Updated(thing("web/a", "3")));
    /// assert_eq!(queue.pop_batch().len(), 2, "the second change of a comes after the first");
    /// queue.processed();
    /// assert_eq!(queue.pop_batch().len(), 1);
    /// ```
    pub fn pop_batch(&mut self) -> Vec<Delta<T>> {
        let limit = match self.initial {
            Some(initial) if initial > self.in_hand => BATCH.min(initial - self.in_hand),
            _ => BATCH,
        };
        // Two keys of one hash only end a batch early.
        let (hasher, mut keys) = (FixedState::default(), HashSet::with_hasher(FixedState::default()));
        let mut length = 0;
        for delta in self.waiting.iter().take(limit) {
            match delta.key().map(|key| hasher.hash_one(key)) {
                Some(key) if keys.insert(key) => length += 1,
                None if length == 0 => {
                    length = 1;
                    break;
                }
                _ => break,
            }
        }
        self.in_hand += length;
        self.waiting.drain(..length).collect()
    }

    /// Says that everything popped so far is processed.
    ///
    /// ```
    /// # use kube_informer::source::Identity;
    /// # use kube_informer::{Delta, queue::OrderedQueue};
    /// # use kube_informer::queue::{ListMark, Replacement};
    /// let mut queue = OrderedQueue::<Identity>::new();
    /// let empty = Replacement { mark: ListMark::default(), objects: Vec::new(), undecodable: Vec::new() };
    /// queue.push(Delta::Replaced(empty));
    /// queue.pop_batch();
    /// assert!(!queue.has_synced(), "popped is not processed");
    /// queue.processed();
    /// assert!(queue.has_synced());
    /// ```
    pub fn processed(&mut self) {
        if let Some(initial) = &mut self.initial {
            *initial = initial.saturating_sub(self.in_hand);
        }
        self.in_hand = 0;
    }
}

impl<T: Object> Queue<T> for OrderedQueue<T> {
    fn push(&mut self, delta: Delta<T>, _known: &Store<T>) {
        Self::push(self, delta);
    }

    fn pop_batch(&mut self) -> Vec<Delta<T>> {
        Self::pop_batch(self)
    }

    fn processed(&mut self) {
        Self::processed(self);
    }

    fn put_back(&mut self, batch: Vec<Delta<T>>) {
        let waiting: HashSet<_> =
            self.waiting.iter().filter_map(|delta| delta.key().map(crate::ObjectKey::from)).collect();
        let absent = |delta: &Delta<T>| !delta.key().is_some_and(|key| waiting.contains(&key.into()));
        // In front, where they were: what came later must still come later.
        for delta in batch.into_iter().rev().filter(absent) {
            self.waiting.push_front(delta);
        }
    }

    fn len(&self) -> usize {
        Self::len(self)
    }

    fn has_synced(&self) -> bool {
        Self::has_synced(self)
    }

    fn is_settled(&self) -> bool {
        true
    }
}

impl<T: Object> Default for OrderedQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}
