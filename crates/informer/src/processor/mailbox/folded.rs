//! The latest state of each object, for a handler that is behind its bound.

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::fast::RandomState;
use tokio::time::Instant;

use super::{BatchReason, Event, Parcel};
use crate::object::{Object, ObjectKey};
use crate::queue::Deleted;

/// The latest state of each object, in the order in which the objects first changed.
pub(super) struct Folded {
    /// Events and marks by order of arrival. `None` is the mark after the initial state.
    entries: BTreeMap<u64, (Instant, Option<Event<dyn Object>>)>,
    /// The number of the newest entry of each object, by the hash of its key. Not a hash table: a hash table moves all
    /// its entries when it grows, and the mailbox is locked meanwhile.
    newest: BTreeMap<(u64, ObjectKey), u64>,
    hasher: RandomState,
    /// How many of the entries are marks.
    marks: usize,
    next: u64,
}

impl Folded {
    /// How many entries one parcel has.
    const PARCEL: usize = 64;

    pub(super) fn new() -> Self {
        let (entries, newest, hasher) = (BTreeMap::new(), BTreeMap::new(), RandomState::default());
        Self { entries, newest, hasher, marks: 0, next: 0 }
    }

    /// Returns the number of events.
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.marks
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns true if the first entry is an event, and not a mark.
    pub(super) fn begins_with_event(&self) -> bool {
        self.entries.first_key_value().is_some_and(|(_, (_, event))| event.is_some())
    }

    /// Returns since when the first entry has waited.
    pub(super) fn since(&self) -> Option<Instant> {
        self.entries.first_key_value().map(|(_, (since, _))| *since)
    }

    pub(super) fn mark(&mut self, now: Instant) {
        self.entries.insert(self.next, (now, None));
        self.marks += 1;
        self.next += 1;
    }

    /// Folds an event into the entries. The event that it replaces goes to `dropped`.
    pub(super) fn add(&mut self, now: Instant, event: Event<dyn Object>, dropped: &mut Vec<Event<dyn Object>>) {
        let key = self.hashed(event.key());
        let Some(&at) = self.newest.get(&key) else { return self.append(key, now, event) };
        let Some((since, Some(waiting))) = self.entries.remove(&at) else { return self.append(key, now, event) };
        dropped.push(waiting.clone());
        match fold(waiting, event) {
            Folding::One(event) => {
                self.entries.insert(at, (since, Some(event)));
            }
            Folding::Nothing => {
                self.newest.remove(&key);
            }
            Folding::Both(first, second) => {
                self.entries.insert(at, (since, Some(first)));
                self.append(key, now, second);
            }
        }
    }

    fn hashed(&self, key: ObjectKey) -> (u64, ObjectKey) {
        (self.hasher.hash_one(&key), key)
    }

    fn append(&mut self, key: (u64, ObjectKey), now: Instant, event: Event<dyn Object>) {
        self.newest.insert(key, self.next);
        self.entries.insert(self.next, (now, Some(event)));
        self.next += 1;
    }

    pub(super) fn take(&mut self) -> Option<Parcel> {
        if let Some((_, (_, None))) = self.entries.first_key_value() {
            self.entries.pop_first();
            self.marks -= 1;
            return Some(Parcel::Synced);
        }
        let mut events = Vec::new();
        while events.len() < Self::PARCEL
            && let Some(entry) = self.entries.first_entry()
            && entry.get().1.is_some()
        {
            let at = *entry.key();
            let (_, Some(event)) = entry.remove() else { break };
            let key = self.hashed(event.key());
            if self.newest.get(&key) == Some(&at) {
                self.newest.remove(&key);
            }
            events.push(event);
        }
        if events.is_empty() { None } else { Some(Parcel::Events(Arc::new(events), BatchReason::Live)) }
    }
}

enum Folding {
    One(Event<dyn Object>),
    Nothing,
    Both(Event<dyn Object>, Event<dyn Object>),
}

/// Folds two changes of one object, the second directly after the first, into the events that are still to be
/// delivered.
fn fold(first: Event<dyn Object>, second: Event<dyn Object>) -> Folding {
    use Event::{Added, Deleted as Gone, Resynced, Updated};
    match (first, second) {
        // The handler does not know the object yet: it receives one addition with the newest state, or nothing.
        (Added { initial, .. }, Added { object, .. } | Updated { new: object, .. }) => {
            Folding::One(Added { object, initial })
        }
        (Added { .. }, Gone(_)) => Folding::Nothing,
        // The oldest state is the one that the handler received last.
        (Updated { old, .. }, Updated { new, .. } | Added { object: new, .. }) => Folding::One(Updated { old, new }),
        // A resync never replaces a change.
        (change @ (Added { .. } | Updated { .. }), Resynced(_)) => Folding::One(change),
        (Resynced(_), second) => Folding::One(second),
        (Updated { .. }, gone @ Gone(_)) => Folding::One(gone),
        (first @ Gone(_), second @ (Added { .. } | Updated { .. })) => Folding::Both(first, second),
        (Gone(first), Gone(second)) => Folding::One(Gone(match first {
            Deleted::Final(_) => first,
            Deleted::Unknown(_) | Deleted::OutOfScope(_) => second,
        })),
        (gone @ Gone(_), Resynced(_)) => Folding::One(gone),
    }
}
