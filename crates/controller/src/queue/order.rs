//! In which order items are taken.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tokio::time::Instant;

use super::Priority;

/// So often it is the oldest item's turn, whatever its priority.
const OLDEST_EVERY: u64 = 10;

/// Items by priority, and by age within.
pub(super) struct Order<T> {
    /// The highest priority first; each holds its items by number. At most one of them is empty.
    lanes: BTreeMap<Reverse<Priority>, BTreeMap<u64, Waiting<T>>>,
    len: usize,
    /// The number of the next item: what came first has the lower one.
    next: u64,
    /// How many were ever taken.
    taken: u64,
}

/// An item that can be taken.
pub(super) struct Waiting<T> {
    pub(super) item: T,
    /// Since when somebody wants it done.
    pub(super) since: Instant,
}

/// What was taken.
pub(super) struct Popped<T> {
    pub(super) waiting: Waiting<T>,
    pub(super) priority: Priority,
    /// The how many-th it is.
    pub(super) ticket: u64,
}

impl<T> Order<T> {
    pub(super) fn new() -> Self {
        Self { lanes: BTreeMap::new(), len: 0, next: 0, taken: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Puts an item behind all others of its priority, and gives its number.
    pub(super) fn push(&mut self, waiting: Waiting<T>, priority: Priority) -> u64 {
        let number = self.next;
        self.next += 1;
        self.len += 1;
        self.lanes.entry(Reverse(priority)).or_default().insert(number, waiting);
        number
    }

    /// Moves an item to another priority. It keeps its age.
    pub(super) fn move_to(&mut self, priority: Priority, from: Priority, number: u64) {
        let Some(waiting) = self.lanes.get_mut(&Reverse(from)).and_then(|lane| lane.remove(&number)) else { return };
        self.lanes.entry(Reverse(priority)).or_default().insert(number, waiting);
        self.tidy(from);
    }

    pub(super) fn pop(&mut self) -> Option<Popped<T>> {
        let priority = if (self.taken + 1).is_multiple_of(OLDEST_EVERY) { self.oldest() } else { self.highest() }?;
        let (_, waiting) = self.lanes.get_mut(&Reverse(priority))?.pop_first()?;
        self.tidy(priority);
        self.len -= 1;
        self.taken += 1;
        Some(Popped { waiting, priority, ticket: self.taken })
    }

    fn highest(&self) -> Option<Priority> {
        self.lanes.iter().find(|(_, lane)| !lane.is_empty()).map(|(Reverse(priority), _)| *priority)
    }

    /// The priority that the oldest item of all has.
    fn oldest(&self) -> Option<Priority> {
        let first = |(priority, lane): (&Reverse<Priority>, &BTreeMap<u64, Waiting<T>>)| {
            lane.first_key_value().map(|(number, _)| (*number, priority.0))
        };
        self.lanes.iter().filter_map(first).min().map(|(_, priority)| priority)
    }

    /// Removes a priority that has no more items, unless it is the last: a queue that is emptied over and over need not
    /// allocate each time.
    fn tidy(&mut self, priority: Priority) {
        if self.lanes.len() > 1 && self.lanes.get(&Reverse(priority)).is_some_and(BTreeMap::is_empty) {
            self.lanes.remove(&Reverse(priority));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_that_are_not_used_any_more_are_not_kept() {
        let mut order = Order::new();
        for number in 0..1000 {
            order.push(Waiting { item: number, since: Instant::now() }, Priority(number));
            order.push(Waiting { item: -1, since: Instant::now() }, Priority(number - 2));
            order.move_to(Priority(number), Priority(number - 2), order.next - 1);
            assert_eq!(order.pop().map(|popped| popped.waiting.item), Some(number));
            assert_eq!(order.pop().map(|popped| popped.waiting.item), Some(-1));
            assert_eq!((order.len(), order.lanes.len()), (0, 1));
        }
    }
}
