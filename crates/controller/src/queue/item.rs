//! The item that a worker has taken from a queue.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use super::shared::ItemGuard;
use super::{DelayingQueue, Key, Priority, WorkQueue};

/// An item that a worker has taken from a queue. No other worker gets it until this value is dropped. Dropping it marks
/// the item as done.
///
/// Its other methods depend on the type of the queue.
///
/// ```
/// use std::time::Duration;
/// use kube_controller::{Item, WorkQueue};
///
/// fn reconcile(key: Item<String>) -> Result<(), String> {
///     if key.ends_with("/") {
///         key.forget();
///         return Err(format!("{} has no name", *key)); // The item is dropped here, so it is done.
///     }
///     if key.num_requeues() < 3 {
///         key.retry();
///     } else {
///         key.retry_after(Duration::from_secs(60));
///     }
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let queue = WorkQueue::default();
/// queue.add("web/".to_owned());
/// queue.add("web/a".to_owned());
/// assert!(reconcile(queue.get().await.unwrap()).is_err());
/// assert!(reconcile(queue.get().await.unwrap()).is_ok());
/// assert_eq!(*queue.get().await.unwrap(), "web/a");
/// # }
/// ```
pub struct Item<T: Key, Q = WorkQueue<T>> {
    in_progress: ItemGuard<T>,
    queue: Q,
}

impl<T: Key, Q> Item<T, Q> {
    pub(super) fn new(in_progress: ItemGuard<T>, queue: Q) -> Self {
        Self { in_progress, queue }
    }

    /// Returns the priority that the item had when it was taken. A retry keeps this priority.
    pub fn priority(&self) -> Priority {
        self.in_progress.priority
    }

    /// Returns the queue that the item comes from.
    pub fn queue(&self) -> &Q {
        &self.queue
    }
}

impl<T: Key> Item<T, DelayingQueue<T>> {
    /// Marks the item as done, and adds it again after a delay, with the same priority.
    ///
    /// If the queue is shut down, [`DelayingQueue::drain`] returns the item.
    pub fn retry_after(self, delay: Duration) {
        self.in_progress.retry_after(delay);
    }
}

impl<T: Key> Item<T> {
    /// Marks the item as done and failed, and adds it again with the same priority. The limiter decides the delay.
    ///
    /// If the queue is shut down, the limiter is not called, and [`DelayingQueue::drain`] returns the item.
    pub fn retry(self) {
        let delay = self.retry_delay();
        self.in_progress.retry_after(delay);
    }

    /// Asks the limiter for the delay of the next retry. The delay is zero if the queue is shut down; then the limiter
    /// is not called.
    pub(crate) fn retry_delay(&self) -> Duration {
        if self.queue.is_shut_down() { Duration::ZERO } else { self.queue.limiter().when(self) }
    }

    /// Marks the item as done, and adds it again after a delay, with the same priority. The limiter is not called.
    ///
    /// If the queue is shut down, [`DelayingQueue::drain`] returns the item.
    pub fn retry_after(self, delay: Duration) {
        self.in_progress.retry_after(delay);
    }

    /// Resets the number of failures of the item: call it after a success, or when you give the item up. The item is
    /// done only when it is dropped.
    pub fn forget(&self) {
        self.queue.forget(self);
    }

    /// Returns how often the item has failed since the last call of [`forget`](Self::forget).
    pub fn num_requeues(&self) -> u32 {
        self.queue.num_requeues(self)
    }
}

impl<T: Key, Q> Deref for Item<T, Q> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.in_progress.item
    }
}

impl<T: Key + fmt::Debug, Q> fmt::Debug for Item<T, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Item").field(&self.in_progress.item).finish()
    }
}
