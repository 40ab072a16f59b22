//! The health of work queues, without the type of their items.

use std::time::Duration;

/// A work queue that reports its health, so that a tool that shows informers can also show their queues.
///
/// ```
/// use kube_informer::{AnyQueue, QueueHealth};
///
/// struct Letters(Vec<String>);
///
/// impl AnyQueue for Letters {
///     fn health(&self) -> QueueHealth {
///         let mut health = QueueHealth::default();
///         (health.name, health.waiting) = ("letters".to_owned(), self.0.len());
///         health
///     }
/// }
/// ```
pub trait AnyQueue: Send + Sync + 'static {
    /// Returns the current health.
    fn health(&self) -> QueueHealth;
}

/// The health of a work queue. Unknown numbers are zero.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct QueueHealth {
    /// The name of the queue, or of its controller.
    pub name: String,
    /// How many items can be taken.
    pub waiting: usize,
    /// How many items workers have.
    pub processing: usize,
    /// How many items are added to the queue at a later time.
    pub delayed: usize,
    /// How many items wait until a cache shows the writes for them.
    pub parked: usize,
    /// The longest time for which a worker has had its item.
    pub longest_running: Duration,
    /// How many times an item was processed.
    pub worked: u64,
    /// How many of these attempts failed.
    pub failures: u64,
    /// The last error and its item, until that item succeeds.
    pub last_error: Option<String>,
    /// The items whose last attempt failed: at most 20, those with the most attempts first.
    pub failing: Vec<FailingItem>,
    /// How many items failed in their last attempt.
    pub failing_items: usize,
    /// How long the last attempts took; `None` before the first.
    pub times: Option<WorkTimes>,
}

/// An item whose last attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FailingItem {
    /// The item.
    pub item: String,
    /// How many attempts have failed since its last success.
    pub attempts: u32,
    /// The time until the next attempt; `None` if the item is not tried again by itself.
    pub next_try: Option<Duration>,
    /// The last error.
    pub error: String,
}

/// How long the last 100 attempts took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WorkTimes {
    /// Half of the attempts took at most this long.
    pub median: Duration,
    /// The longest of them.
    pub longest: Duration,
}
