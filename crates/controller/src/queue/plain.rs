//! The first layer: each item once, never with two workers, by priority.

use std::fmt;
use std::sync::Arc;

use super::shared::Shared;
use super::{Item, Key, Priority, QueueStatus};

/// A queue in which an item waits once, and is never with two workers at a time. Cloning gives another handle of the
/// same queue.
///
/// [What workers may rely on](crate::queue#what-workers-may-rely-on) stands with the module. What differs from
/// client-go's queue: items are done when they are dropped; there are priorities; a drain waits for what is queued too,
/// and anybody may wait for it.
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
/// queue.add("web/a"); // It changed while we look at it: once more, later.
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
    shared: Arc<Shared<T>>,
}

impl<T: Key> Queue<T> {
    /// An empty queue, of which no metrics tell.
    pub fn new() -> Self {
        Self { shared: Shared::new(None) }
    }

    /// An empty queue, of which [metrics](crate::metrics) tell under this name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { shared: Shared::new(Some(name.into())) }
    }

    /// The name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.shared.name()
    }

    /// Puts an item in, unless it waits already. False if the queue is shut down, and the item was not taken in.
    pub fn add(&self, item: T) -> bool {
        self.add_with(item, Priority::NORMAL)
    }

    /// Puts an item in with a priority. If it waits already, it has the higher of the two from now on.
    pub fn add_with(&self, item: T, priority: Priority) -> bool {
        self.shared.add(item, priority)
    }

    /// Takes the next item out, once there is one; `None` once the queue is shut down and all was taken.
    ///
    /// # Cancel safety
    ///
    /// Nothing is taken out unless it is returned.
    pub async fn get(&self) -> Option<Item<T, Self>> {
        Some(Item::new(self.shared.next().await?, self.clone()))
    }

    /// How many items can be taken: not those that workers have, nor those that come later.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// True if no item can be taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes nothing more in, and hands out what is there.
    pub fn shut_down(&self) {
        self.shared.close();
    }

    /// True once nothing more is taken in.
    pub fn is_shut_down(&self) -> bool {
        self.shared.is_closed()
    }

    /// Shuts down, and waits until all that waits has been taken, and all that was taken is done.
    ///
    /// A worker that never lets go of an item keeps this waiting, and so does having no worker: give it a limit with
    /// [`tokio::time::timeout`]. Another [`shut_down`](Self::shut_down) does not end it.
    ///
    /// # Cancel safety
    ///
    /// The queue stays shut down, and can be waited for again.
    pub async fn drain(&self) {
        self.shared.close();
        self.shared.drained().await;
    }

    /// How the queue is doing, at this moment. Its gauges are brought up to date.
    pub fn status(&self) -> QueueStatus {
        self.shared.status()
    }

    pub(super) fn shared(&self) -> &Arc<Shared<T>> {
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
