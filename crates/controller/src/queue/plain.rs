//! The first layer: an item waits once, one worker at a time has it, and it has a priority.

use std::fmt;
use std::sync::Arc;

use super::shared::SharedQueue;
use super::{Item, Key, Priority, QueueStatus};

/// A queue in which an item waits once, and only one worker at a time has it. A clone is another handle of the same
/// queue.
///
/// The module lists the [guarantees for workers](crate::queue#guarantees-for-workers). There are three differences from
/// client-go's queue. An item is done when it is dropped. Items have priorities. [`drain`](Self::drain) also waits for
/// the items that no worker has taken yet, and every handle can call it.
///
/// ```
/// use kube_controller::Queue;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue = Queue::new();
/// queue.add("web/a");
/// queue.add("web/a");
/// queue.add("web/b");
/// assert_eq!(queue.len(), 2);
///
/// let a = queue.get().await.unwrap();
/// queue.add("web/a"); // The object changed while a worker has its key: the queue hands it out once more, later.
/// assert_eq!(*queue.get().await.unwrap(), "web/b");
/// assert!(queue.is_empty());
/// drop(a);
/// assert_eq!(*queue.get().await.unwrap(), "web/a");
///
/// queue.shut_down();
/// assert!(queue.get().await.is_none());
/// # }
/// ```
pub struct Queue<T: Key> {
    shared: Arc<SharedQueue<T>>,
}

impl<T: Key> Queue<T> {
    /// Makes an empty queue without metrics.
    pub fn new() -> Self {
        Self { shared: SharedQueue::new(None) }
    }

    /// Makes an empty queue that reports [metrics](crate::metrics) under this name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { shared: SharedQueue::new(Some(name.into())) }
    }

    /// Returns the name of the queue, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.shared.name()
    }

    /// Adds an item, unless it waits already. Returns false if the queue is shut down and did not accept the item.
    pub fn add(&self, item: T) -> bool {
        self.add_with(item, Priority::NORMAL)
    }

    /// Adds an item with a priority. If the item waits already, it gets the higher of the two priorities.
    pub fn add_with(&self, item: T, priority: Priority) -> bool {
        self.shared.add(item, priority)
    }

    /// Waits for the next item and takes it. Returns `None` once the queue is shut down and all items were taken.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the queue keeps the item.
    pub async fn get(&self) -> Option<Item<T, Self>> {
        Some(Item::new(self.shared.next().await?, self.clone()))
    }

    /// Returns the number of items that can be taken. It does not count delayed items, nor items that workers have.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Returns true if no item can be taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shuts the queue down: it accepts no more items. Workers still get the items that wait.
    pub fn shut_down(&self) {
        self.shared.close();
    }

    /// Returns true once the queue is shut down.
    pub fn is_shut_down(&self) -> bool {
        self.shared.is_closed()
    }

    /// Shuts the queue down, and waits until all waiting items are taken and done.
    ///
    /// This waits for ever if a worker never drops its item, or if items wait and there is no worker. Set a limit with
    /// [`tokio::time::timeout`]. A call of [`shut_down`](Self::shut_down) does not end it.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the queue stays shut down. The caller can call `drain` again.
    pub async fn drain(&self) {
        self.shared.close();
        self.shared.drained().await;
    }

    /// Returns the current status of the queue, and updates its gauges.
    pub fn status(&self) -> QueueStatus {
        self.shared.status()
    }

    pub(super) fn shared(&self) -> &Arc<SharedQueue<T>> {
        &self.shared
    }
}

impl<T: Key> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Key> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T: Key> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Queue").field(&self.status()).finish()
    }
}
