//! What is to be done later.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use tokio::time::Instant;

use super::{Key, Priority};

/// Items by the time at which they are due, each once.
pub(super) struct Delayed<T> {
    /// Those due at the same time are in the order in which they were put there.
    by_time: BTreeMap<(Instant, u64), (T, Priority)>,
    /// Where each item stands in `by_time`.
    places: HashMap<T, (Instant, u64), RandomState>,
    next: u64,
}

/// An item whose time has come.
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

    /// When the first of them is due.
    pub(super) fn first(&self) -> Option<Instant> {
        self.by_time.first_key_value().map(|((at, _), _)| *at)
    }

    /// Puts an item in. Of two times the earlier holds, and of two priorities the higher.
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

    /// Takes the first out if it is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Due<T>> {
        let entry = self.by_time.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((at, _), (item, priority)) = entry.remove_entry();
        self.places.remove(&item);
        Some(Due { item, priority, at })
    }

    /// Takes everything out, what is due first in front.
    pub(super) fn take_all(&mut self) -> Vec<T> {
        self.places.clear();
        std::mem::take(&mut self.by_time).into_values().map(|(item, _)| item).collect()
    }
}
