//! The second layer: items can be added after a delay.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use super::{Item, Key, Priority, Queue};

/// A [`Queue`] to which items can be added after a delay. It has all methods of a [`Queue`].
///
/// An item has one time at which it is due. If it is added with two delays, the earlier time counts. While an item is
/// delayed, the same item can also be added without a delay, taken and done. When it is due, the queue adds it as
/// [`Queue::add`] does. There are three differences from client-go's delaying queue. This queue has no task. It has no
/// limit for the number of items that are added at once. It returns the items that are still delayed at the end.
///
/// ```
/// use std::time::Duration;
/// use kube_controller::DelayingQueue;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let queue = DelayingQueue::new();
/// queue.add_after("in a minute", Duration::from_secs(60));
/// queue.add_after("in a while", Duration::MAX);
/// queue.add("now");
/// assert_eq!(*queue.get().await.unwrap(), "now");
/// assert_eq!(*queue.get().await.unwrap(), "in a minute");
/// assert_eq!(queue.shut_down(), ["in a while"]);
/// # }
/// ```
pub struct DelayingQueue<T: Key> {
    queue: Queue<T>,
}

impl<T: Key> DelayingQueue<T> {
    /// Makes an empty queue without metrics.
    pub fn new() -> Self {
        Self { queue: Queue::new() }
    }

    /// Makes an empty queue that reports [metrics](crate::metrics) under this name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { queue: Queue::named(name) }
    }

    /// Adds an item after a delay. Returns false if the queue is shut down and did not accept the item.
    pub fn add_after(&self, item: T, delay: Duration) -> bool {
        self.add_after_with(item, delay, Priority::NORMAL)
    }

    /// Adds an item with a priority after a delay. If the item is delayed already, it keeps the earlier time and the
    /// higher priority.
    pub fn add_after_with(&self, item: T, delay: Duration, priority: Priority) -> bool {
        self.shared().add_after(item, delay, priority)
    }

    /// Takes the next item, as [`Queue::get`] does.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the queue keeps the item.
    pub async fn get(&self) -> Option<Item<T, Self>> {
        Some(Item::new(self.shared().next().await?, self.clone()))
    }

    /// Shuts the queue down, and returns the delayed items. The item that was due first comes first.
    ///
    /// From then on the queue accepts no items. Workers still get the items that wait.
    pub fn shut_down(&self) -> Vec<T> {
        self.queue.shut_down();
        self.shared().left()
    }

    /// Shuts the queue down, and waits until all waiting items are taken and done. Returns the delayed items, including
    /// those that workers asked to retry meanwhile.
    ///
    /// The limits of [`Queue::drain`] apply here too.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the queue stays shut down and keeps the delayed items. The caller can call `drain`
    /// again.
    pub async fn drain(&self) -> Vec<T> {
        self.queue.drain().await;
        self.shared().left()
    }
}

impl<T: Key> Deref for DelayingQueue<T> {
    type Target = Queue<T>;

    fn deref(&self) -> &Queue<T> {
        &self.queue
    }
}

impl<T: Key> Default for DelayingQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Key> Clone for DelayingQueue<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone() }
    }
}

impl<T: Key> fmt::Debug for DelayingQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DelayingQueue").field(&self.status()).finish()
    }
}
