//! The order in which workers take items.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use tokio::time::Instant;

use super::Priority;

/// Every tenth item that is taken is the oldest one, whatever its priority.
const OLDEST_EVERY: u64 = 10;

/// Items, sorted by priority and then by age.
pub(super) struct Order<T> {
    /// The lanes, highest priority first. At most one of them is empty.
    lanes: BTreeMap<Reverse<Priority>, PriorityLane<T>>,
    len: usize,
    /// The number of the next item. An older item has a lower number.
    next: u64,
    /// The number of items taken so far.
    taken: u64,
}

/// The items of one priority, by number.
struct PriorityLane<T> {
    /// The items that were added with this priority. An item that moved to a higher priority leaves a gap. The first
    /// entry is never a gap.
    came: VecDeque<(u64, Option<WaitingItem<T>>)>,
    /// The number of gaps.
    gaps: usize,
    /// The items that were added with a lower priority. There are few of them.
    raised: BTreeMap<u64, WaitingItem<T>>,
}

/// An item that can be taken.
pub(super) struct WaitingItem<T> {
    pub(super) item: T,
    /// When the item was added.
    pub(super) since: Instant,
}

/// An item that was taken.
pub(super) struct Popped<T> {
    pub(super) waiting: WaitingItem<T>,
    pub(super) priority: Priority,
    /// The number of items taken so far, including this one.
    pub(super) ticket: u64,
}

impl<T> Order<T> {
    pub(super) fn new() -> Self {
        Self { lanes: BTreeMap::new(), len: 0, next: 0, taken: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds an item behind all others of its priority, and returns its number.
    pub(super) fn push(&mut self, waiting: WaitingItem<T>, priority: Priority) -> u64 {
        let number = self.next;
        self.next += 1;
        self.len += 1;
        self.lanes.entry(Reverse(priority)).or_default().came.push_back((number, Some(waiting)));
        number
    }

    /// Moves an item to a higher priority. It keeps its age.
    pub(super) fn move_to(&mut self, priority: Priority, from: Priority, number: u64) {
        let Some(waiting) = self.lanes.get_mut(&Reverse(from)).and_then(|lane| lane.take(number)) else { return };
        self.lanes.entry(Reverse(priority)).or_default().raised.insert(number, waiting);
        self.tidy(from);
    }

    pub(super) fn pop(&mut self) -> Option<Popped<T>> {
        let priority = if (self.taken + 1).is_multiple_of(OLDEST_EVERY) { self.oldest() } else { self.highest() }?;
        let waiting = self.lanes.get_mut(&Reverse(priority))?.pop()?;
        self.tidy(priority);
        self.len -= 1;
        self.taken += 1;
        Some(Popped { waiting, priority, ticket: self.taken })
    }

    fn highest(&self) -> Option<Priority> {
        self.lanes.iter().find(|(_, lane)| !lane.is_empty()).map(|(Reverse(priority), _)| *priority)
    }

    /// Returns the priority of the oldest item of all.
    fn oldest(&self) -> Option<Priority> {
        let first =
            |(priority, lane): (&Reverse<Priority>, &PriorityLane<T>)| lane.first().map(|number| (number, priority.0));
        self.lanes.iter().filter_map(first).min().map(|(_, priority)| priority)
    }

    /// Removes the lane of a priority if it is empty, unless it is the last lane. A queue that becomes empty again and
    /// again then does not allocate each time.
    fn tidy(&mut self, priority: Priority) {
        if self.lanes.len() > 1 && self.lanes.get(&Reverse(priority)).is_some_and(PriorityLane::is_empty) {
            self.lanes.remove(&Reverse(priority));
        }
    }
}

impl<T> Default for PriorityLane<T> {
    fn default() -> Self {
        Self { came: VecDeque::new(), gaps: 0, raised: BTreeMap::new() }
    }
}

impl<T> PriorityLane<T> {
    fn is_empty(&self) -> bool {
        self.came.is_empty() && self.raised.is_empty()
    }

    /// Returns the number of the oldest item.
    fn first(&self) -> Option<u64> {
        let (came, raised) = (self.came.front(), self.raised.first_key_value());
        came.map(|(number, _)| *number).into_iter().chain(raised.map(|(number, _)| *number)).min()
    }

    fn pop(&mut self) -> Option<WaitingItem<T>> {
        let first = self.first()?;
        if self.raised.first_key_value().is_some_and(|(number, _)| *number == first) {
            return self.raised.pop_first().map(|(_, waiting)| waiting);
        }
        let (_, waiting) = self.came.pop_front()?;
        self.close_gaps();
        waiting
    }

    /// Removes an item that need not be the first.
    fn take(&mut self, number: u64) -> Option<WaitingItem<T>> {
        if let Some(raised) = self.raised.remove(&number) {
            return Some(raised);
        }
        let at = self.came.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        let waiting = self.came[at].1.take()?;
        self.gaps += 1;
        self.close_gaps();
        Some(waiting)
    }

    /// Removes the gaps in front, and all gaps if they are more than half of the lane.
    fn close_gaps(&mut self) {
        while self.came.front().is_some_and(|(_, waiting)| waiting.is_none()) {
            self.came.pop_front();
            self.gaps -= 1;
        }
        if self.gaps > self.came.len() / 2 {
            self.came.retain(|(_, waiting)| waiting.is_some());
            self.gaps = 0;
        }
        // A queue that was long and is now short frees memory.
        if self.came.capacity() > 1024 && self.came.len() < self.came.capacity() / 8 {
            self.came.shrink_to(self.came.len() * 2);
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
            order.push(WaitingItem { item: number, since: Instant::now() }, Priority(number));
            order.push(WaitingItem { item: -1, since: Instant::now() }, Priority(number - 2));
            order.move_to(Priority(number), Priority(number - 2), order.next - 1);
            assert_eq!(order.pop().map(|popped| popped.waiting.item), Some(number));
            assert_eq!(order.pop().map(|popped| popped.waiting.item), Some(-1));
            assert_eq!((order.len(), order.lanes.len()), (0, 1));
        }
    }

    #[test]
    fn items_that_leave_a_lane_leave_nothing_behind() {
        let mut order = Order::new();
        let numbers: Vec<u64> =
            (0..10_000).map(|item| order.push(WaitingItem { item, since: Instant::now() }, Priority::LOW)).collect();
        for number in numbers.iter().skip(1).step_by(2) {
            order.move_to(Priority::NORMAL, Priority::LOW, *number);
        }
        let lane = &order.lanes[&Reverse(Priority::LOW)];
        assert!(lane.came.len() <= 10_000 && lane.gaps <= lane.came.len() / 2);
        let mut taken: Vec<i32> = std::iter::from_fn(|| order.pop()).map(|popped| popped.waiting.item).collect();
        taken.sort_unstable();
        assert_eq!(taken, (0..10_000).collect::<Vec<_>>());
        assert!(order.lanes.values().all(|lane| lane.came.capacity() <= 1024));
    }
}
