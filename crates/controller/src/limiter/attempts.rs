//! Counts the attempts of each item.

use std::collections::HashMap;
use std::time::Duration;

use foldhash::fast::RandomState;
use tokio::time::Instant;

use crate::key::Key;

/// An item that was not tried for this long, and for twice the longest delay, loses its count.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// The number of attempts of each item, in two generations. A count that did not change during a whole generation is
/// removed at its end. All such counts are removed at once, without a search.
pub(super) struct Attempts<T> {
    recent: HashMap<T, u32, RandomState>,
    older: HashMap<T, u32, RandomState>,
    /// When `recent` was started.
    begun: Instant,
    generation: Duration,
}

impl<T: Key> Attempts<T> {
    /// Makes an empty list of counts. `longest` is the longest delay between two attempts of an item.
    pub(super) fn new(longest: Duration) -> Self {
        Self {
            recent: HashMap::default(),
            older: HashMap::default(),
            begun: Instant::now(),
            generation: longest.saturating_mul(2).max(REMEMBERED),
        }
    }

    /// Counts one more attempt, and returns how many there were before.
    pub(super) fn next(&mut self, item: &T) -> u32 {
        self.let_go();
        if let Some(count) = self.recent.get_mut(item) {
            *count = count.saturating_add(1);
            return *count - 1;
        }
        let count = self.older.remove(item).unwrap_or(0);
        self.recent.insert(item.clone(), count.saturating_add(1));
        count
    }

    pub(super) fn forget(&mut self, item: &T) {
        self.let_go();
        self.recent.remove(item);
        self.older.remove(item);
    }

    pub(super) fn count(&mut self, item: &T) -> u32 {
        self.let_go();
        self.recent.get(item).or_else(|| self.older.get(item)).copied().unwrap_or(0)
    }

    fn let_go(&mut self) {
        let now = Instant::now();
        let age = now.saturating_duration_since(self.begun);
        if age >= self.generation {
            self.older = std::mem::take(&mut self.recent);
            if age / 2 >= self.generation {
                self.older.clear();
            }
            self.begun = now;
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.recent.len() + self.older.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // B-32.
    #[tokio::test(start_paused = true)]
    async fn counts_of_items_that_are_not_tried_any_more_are_removed() {
        let mut attempts = Attempts::new(Duration::from_secs(1));
        for item in 0..100_000 {
            attempts.next(&item);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!(attempts.len() <= 7200, "{} are left", attempts.len());
        tokio::time::advance(Duration::from_secs(7200)).await;
        assert_eq!(attempts.count(&99_999), 0);
        assert_eq!(attempts.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_item_that_is_tried_again_within_a_generation_keeps_its_count() {
        let mut attempts = Attempts::new(Duration::from_secs(5000));
        for count in 0..20 {
            assert_eq!(attempts.next(&"a"), count);
            tokio::time::advance(Duration::from_secs(9999)).await;
        }
        attempts.forget(&"a");
        assert_eq!((attempts.next(&"a"), attempts.len()), (0, 1));
    }
}
