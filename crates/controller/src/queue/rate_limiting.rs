//! The third layer: a rate limiter decides the delay.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::{DelayingQueue, Item, Key, Priority};
use crate::limiter::{RateLimiter, default_controller_limiter};

/// A [`DelayingQueue`] with a [`RateLimiter`] that decides when a failed item is tried again. Controllers use this
/// queue. It has all methods of a [`DelayingQueue`] and of a [`Queue`](super::Queue).
///
/// ```
/// use std::time::Duration;
/// use kube_controller::WorkQueue;
/// use kube_controller::limiter::ItemExponential;
/// use tokio::time::Instant;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let limiter = ItemExponential::new(Duration::from_secs(1), Duration::from_secs(60));
/// let queue = WorkQueue::named("pods", limiter);
/// let start = Instant::now();
/// queue.add("web/a");
/// while let Some(key) = queue.get().await {
///     if key.num_requeues() < 3 {
///         key.retry(); // After one second, after two, after four.
///     } else {
///         key.forget();
///         queue.shut_down();
///     }
/// }
/// assert_eq!(start.elapsed().as_secs(), 7);
/// # }
/// ```
pub struct WorkQueue<T: Key> {
    queue: DelayingQueue<T>,
    limiter: Arc<dyn RateLimiter<T>>,
}

impl<T: Key> WorkQueue<T> {
    /// Makes an empty queue without metrics.
    pub fn new(limiter: impl RateLimiter<T>) -> Self {
        Self { queue: DelayingQueue::new(), limiter: Arc::new(limiter) }
    }

    /// Makes an empty queue that reports [metrics](crate::metrics) under this name.
    pub fn named(name: impl Into<String>, limiter: impl RateLimiter<T>) -> Self {
        Self { queue: DelayingQueue::named(name), limiter: Arc::new(limiter) }
    }

    /// Adds an item after the delay that the limiter decides. Returns false if the queue is shut down; then the limiter
    /// is not called.
    pub fn add_rate_limited(&self, item: T) -> bool {
        self.add_rate_limited_with(item, Priority::NORMAL)
    }

    /// Adds an item with a priority, after the delay that the limiter decides.
    pub fn add_rate_limited_with(&self, item: T, priority: Priority) -> bool {
        !self.is_shut_down() && {
            let delay = self.limiter.when(&item);
            self.add_after_with(item, delay, priority)
        }
    }

    /// Takes the next item, as [`Queue::get`](super::Queue::get) does.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the queue keeps the item.
    pub async fn get(&self) -> Option<Item<T>> {
        Some(Item::new(self.shared().next().await?, self.clone()))
    }

    /// Resets the number of failures of an item. A worker that has the item keeps it.
    pub fn forget(&self, item: &T) {
        self.limiter.forget(item);
    }

    /// Returns how often the item has failed since the last call of [`forget`](Self::forget).
    pub fn num_requeues(&self, item: &T) -> u32 {
        self.limiter.num_requeues(item)
    }

    pub(super) fn limiter(&self) -> &dyn RateLimiter<T> {
        &*self.limiter
    }
}

impl<T: Key> Deref for WorkQueue<T> {
    type Target = DelayingQueue<T>;

    fn deref(&self) -> &DelayingQueue<T> {
        &self.queue
    }
}

/// Makes a queue with [`default_controller_limiter`].
impl<T: Key> Default for WorkQueue<T> {
    fn default() -> Self {
        Self::new(default_controller_limiter())
    }
}

impl<T: Key> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), limiter: self.limiter.clone() }
    }
}

impl<T: Key> fmt::Debug for WorkQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WorkQueue").field(&self.status()).finish()
    }
}
