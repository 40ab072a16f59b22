//! What can be done now: each item once, and none with two workers.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use foldhash::fast::RandomState;
use tokio::time::Instant;

use super::order::{Order, Waiting};
use super::running::Running;
use super::{Key, Priority};

/// Items that wait to be taken, and items that workers have.
pub(super) struct Ready<T> {
    /// Where each item is. Those that wait are in `order`, and no others.
    places: HashMap<T, Place, RandomState>,
    order: Order<T>,
    running: Running,
    /// Since when those that workers have are wanted once more, by ticket.
    wanted: HashMap<u64, Instant, RandomState>,
}

#[derive(Clone, Copy)]
enum Place {
    Waiting {
        priority: Priority,
        number: u64,
    },
    /// With a worker. If it is wanted once more, `wanted` knows since when.
    Processing {
        ticket: u64,
        again: bool,
        priority: Priority,
    },
}

/// What became of an item that was added.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// It can be taken.
    Waits,
    /// It waits until its worker is done.
    Again,
    /// It waited already.
    Known,
}

/// An item on its way to a worker.
pub(super) struct Taken<T> {
    pub(super) item: T,
    pub(super) priority: Priority,
    pub(super) ticket: u64,
    /// For how long somebody wanted it done.
    pub(super) waited: Duration,
}

/// What became of an item whose worker is done.
pub(super) struct Done {
    pub(super) worked: Duration,
    /// It was added meanwhile, and can be taken again.
    pub(super) waits: bool,
}

impl<T: Key> Ready<T> {
    pub(super) fn new() -> Self {
        Self { places: HashMap::default(), order: Order::new(), running: Running::new(), wanted: HashMap::default() }
    }

    /// How many can be taken.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// How many are to be done: those that can be taken, and those that wait for their worker.
    pub(super) fn depth(&self) -> usize {
        self.order.len() + self.wanted.len()
    }

    /// True if nothing waits and no worker has anything.
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
                let number = self.order.push(Waiting { item: entry.key().clone(), since }, priority);
                entry.insert(Place::Waiting { priority, number });
                return Added::Waits;
            }
        };
        match entry.get_mut() {
            Place::Waiting { priority: known, number } => {
                if priority > *known {
                    self.order.move_to(priority, *known, *number);
                    *known = priority;
                }
                Added::Known
            }
            Place::Processing { again: true, priority: known, .. } => {
                *known = priority.max(*known);
                Added::Known
            }
            Place::Processing { ticket, again, priority: known } => {
                (*again, *known) = (true, priority);
                self.wanted.insert(*ticket, since);
                Added::Again
            }
        }
    }

    pub(super) fn take(&mut self, now: Instant) -> Option<Taken<T>> {
        let popped = self.order.pop()?;
        let Waiting { item, since } = popped.waiting;
        if let Some(place) = self.places.get_mut(&item) {
            *place = Place::Processing { ticket: popped.ticket, again: false, priority: popped.priority };
        }
        self.running.begin(popped.ticket, now);
        let waited = now.saturating_duration_since(since);
        Some(Taken { item, priority: popped.priority, ticket: popped.ticket, waited })
    }

    pub(super) fn done(&mut self, item: &T, ticket: u64, now: Instant) -> Done {
        let worked = self.running.end(ticket, now);
        let Entry::Occupied(mut entry) = self.places.entry(item.clone()) else { return Done { worked, waits: false } };
        let waits = match *entry.get() {
            Place::Processing { again: true, priority, .. } => {
                let since = self.wanted.remove(&ticket).unwrap_or(now);
                let number = self.order.push(Waiting { item: item.clone(), since }, priority);
                entry.insert(Place::Waiting { priority, number });
                true
            }
            _ => {
                entry.remove();
                // What was once a long queue gives its memory back.
                if self.places.capacity() > 4096 && self.places.len() < self.places.capacity() / 8 {
                    self.places.shrink_to(self.places.len() * 2);
                }
                false
            }
        };
        Done { worked, waits }
    }
}
