//! Items that are ready or in progress. Each item is held once, and by one worker at most.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use foldhash::fast::RandomState;
use tokio::time::Instant;

use super::order::{Order, WaitingItem};
use super::running::Running;
use super::{Key, Priority};

/// Items that wait to be taken, and items that workers have.
pub(super) struct Ready<T> {
    /// The place of each item. `order` holds exactly the items that wait.
    places: HashMap<T, ItemState, RandomState>,
    order: Order<T>,
    running: Running,
    /// For items that were added again while a worker has them: when they were added, by ticket.
    wanted: HashMap<u64, Instant, RandomState>,
}

#[derive(Clone, Copy)]
enum ItemState {
    Waiting {
        priority: Priority,
        number: u64,
    },
    /// A worker has the item. `again` is true if it was added again meanwhile.
    Processing {
        ticket: u64,
        again: bool,
        priority: Priority,
    },
}

/// The effect of adding an item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// The item can be taken.
    Waits,
    /// The item waits until its worker is done.
    Again,
    /// The item waited already.
    Known,
}

/// An item that a worker takes.
pub(super) struct Taken<T> {
    pub(super) item: T,
    pub(super) priority: Priority,
    pub(super) ticket: u64,
    /// The time since the item was added.
    pub(super) waited: Duration,
}

/// The result for an item whose worker is done.
pub(super) struct Done {
    pub(super) worked: Duration,
    /// True if the item was added meanwhile, and can be taken again.
    pub(super) waits: bool,
}

impl<T: Key> Ready<T> {
    pub(super) fn new() -> Self {
        Self { places: HashMap::default(), order: Order::new(), running: Running::new(), wanted: HashMap::default() }
    }

    /// Returns the number of items that can be taken.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the number of items that can be taken or that wait until their worker is done.
    pub(super) fn depth(&self) -> usize {
        self.order.len() + self.wanted.len()
    }

    /// Returns true if no item waits and no worker has an item.
    pub(super) fn is_idle(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn running(&self) -> &Running {
        &self.running
    }

    pub(super) fn add(&mut self, item: T, priority: Priority, since: Instant) -> Added {
        let mut entry = match self.places.entry(item) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(entry) => {
                let number = self.order.push(WaitingItem { item: entry.key().clone(), since }, priority);
                entry.insert(ItemState::Waiting { priority, number });
                return Added::Waits;
            }
        };
        match entry.get_mut() {
            ItemState::Waiting { priority: known, number } => {
                if priority > *known {
                    self.order.move_to(priority, *known, *number);
                    *known = priority;
                }
                Added::Known
            }
            ItemState::Processing { again: true, priority: known, .. } => {
                *known = priority.max(*known);
                Added::Known
            }
            ItemState::Processing { ticket, again, priority: known } => {
                (*again, *known) = (true, priority);
                self.wanted.insert(*ticket, since);
                Added::Again
            }
        }
    }

    pub(super) fn take(&mut self, now: Instant) -> Option<Taken<T>> {
        let popped = self.order.pop()?;
        let WaitingItem { item, since } = popped.waiting;
        if let Some(place) = self.places.get_mut(&item) {
            *place = ItemState::Processing { ticket: popped.ticket, again: false, priority: popped.priority };
        }
        self.running.begin(popped.ticket, now);
        let waited = now.saturating_duration_since(since);
        Some(Taken { item, priority: popped.priority, ticket: popped.ticket, waited })
    }

    pub(super) fn done(&mut self, item: &T, ticket: u64, now: Instant) -> Done {
        let worked = self.running.end(ticket, now);
        let Entry::Occupied(mut entry) = self.places.entry(item.clone()) else { return Done { worked, waits: false } };
        let waits = match *entry.get() {
            ItemState::Processing { again: true, priority, .. } => {
                let since = self.wanted.remove(&ticket).unwrap_or(now);
                let number = self.order.push(WaitingItem { item: item.clone(), since }, priority);
                entry.insert(ItemState::Waiting { priority, number });
                true
            }
            _ => {
                entry.remove();
                // A queue that was long and is now short frees memory.
                if self.places.capacity() > 4096 && self.places.len() < self.places.capacity() / 8 {
                    self.places.shrink_to(self.places.len() * 2);
                }
                false
            }
        };
        Done { worked, waits }
    }
}
