//! What a worker has in its hands.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use super::shared::InHand;
use super::{DelayingQueue, Key, Priority, WorkQueue};

/// An item that was taken out of a queue: nobody else gets it as long as this lives, and dropping says that it is done.
///
/// What can be said of it besides depends on the kind of queue that it comes from.
///
/// ```
/// use std::time::Duration;
/// use kube_controller::{Item, WorkQueue};
///
/// fn reconcile(key: Item<String>) -> Result<(), String> {
///     if key.ends_with("/") {
///         key.forget();
///         return Err(format!("{} has no name", *key)); // It is dropped here, and so it is done.
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
    in_hand: InHand<T>,
    queue: Q,
}

impl<T: Key, Q> Item<T, Q> {
    pub(super) fn new(in_hand: InHand<T>, queue: Q) -> Self {
        Self { in_hand, queue }
    }

    /// The priority that it was taken with. A retry keeps it.
    pub fn priority(&self) -> Priority {
        self.in_hand.priority
    }

    /// The queue that it comes from.
    pub fn queue(&self) -> &Q {
        &self.queue
    }
}

impl<T: Key> Item<T, DelayingQueue<T>> {
    /// It is done for now, and comes again so much later, with the same priority.
    ///
    /// If the queue has been shut down, it is among what [`DelayingQueue::drain`] gives back.
    pub fn retry_after(self, delay: Duration) {
        self.in_hand.retry_after(delay);
    }
}

impl<T: Key> Item<T> {
    /// It failed: it is done for now, and comes again when the limiter says, with the same priority.
    ///
    /// If the queue has been shut down, the limiter is not asked, and it is among what [`DelayingQueue::drain`] gives
    /// back.
    pub fn retry(self) {
        self.retry_within(Duration::MAX);
    }

    /// As [`retry`](Self::retry), but comes again after this limit at the latest.
    pub(crate) fn retry_within(self, limit: Duration) {
        let delay = if self.queue.is_shut_down() { Duration::ZERO } else { self.queue.limiter().when(&self) };
        self.in_hand.retry_after(delay.min(limit));
    }

    /// It is done for now, and comes again so much later, with the same priority. The limiter is not asked.
    ///
    /// If the queue has been shut down, it is among what [`DelayingQueue::drain`] gives back.
    pub fn retry_after(self, delay: Duration) {
        self.in_hand.retry_after(delay);
    }

    /// It went well, or is given up: its failures so far do not count any more. It is not done before it is dropped.
    pub fn forget(&self) {
        self.queue.forget(self);
    }

    /// How often it failed since it was forgotten.
    pub fn num_requeues(&self) -> u32 {
        self.queue.num_requeues(self)
    }
}

impl<T: Key, Q> Deref for Item<T, Q> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.in_hand.item
    }
}

impl<T: Key + fmt::Debug, Q> fmt::Debug for Item<T, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Item").field(&self.in_hand.item).finish()
    }
}
