//! Items that are added to the queue at a later time.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use tokio::time::Instant;

use super::{Key, Priority};

/// Delayed items, sorted by the time at which they are due. Each item is there once.
pub(super) struct Delayed<T> {
    /// Items that are due at the same time are in the order in which they were inserted.
    by_time: BTreeMap<(Instant, u64), (T, Priority)>,
    /// The key of each item in `by_time`.
    places: HashMap<T, (Instant, u64), RandomState>,
    next: u64,
}

/// An item that is due.
pub(super) struct Due<T> {
    pub(super) item: T,
    pub(super) priority: Priority,
    pub(super) at: Instant,
}

impl<T: Key> Delayed<T> {
    pub(super) fn new() -> Self {
        Self { by_time: BTreeMap::new(), places: HashMap::default(), next: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.by_time.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_time.is_empty()
    }

    /// Returns the time at which the first item is due.
    pub(super) fn first(&self) -> Option<Instant> {
        self.by_time.first_key_value().map(|((at, _), _)| *at)
    }

    /// Inserts an item. If it is there already, it keeps the earlier time and the higher priority.
    pub(super) fn insert(&mut self, item: T, priority: Priority, at: Instant) {
        let place = (at, self.next);
        match self.places.entry(item) {
            Entry::Vacant(entry) => {
                self.by_time.insert(place, (entry.key().clone(), priority));
                entry.insert(place);
            }
            Entry::Occupied(mut entry) => {
                let Some((item, known)) = self.by_time.remove(entry.get()) else { return };
                if at < entry.get().0 {
                    entry.insert(place);
                }
                self.by_time.insert(*entry.get(), (item, known.max(priority)));
            }
        }
        self.next += 1;
    }

    /// Removes and returns the first item if it is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Due<T>> {
        let entry = self.by_time.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((at, _), (item, priority)) = entry.remove_entry();
        self.places.remove(&item);
        Some(Due { item, priority, at })
    }

    /// Removes and returns all items. The item that is due first comes first.
    pub(super) fn take_all(&mut self) -> Vec<T> {
        self.places.clear();
        std::mem::take(&mut self.by_time).into_values().map(|(item, _)| item).collect()
    }
}
