//! The second layer: what is to come later.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use super::{Item, Key, Priority, Queue};

/// A [`Queue`] into which items can be put for later. It has all that a [`Queue`] has.
///
/// An item has one time: of two the earlier holds. It does not wait before that time, so it can be added, taken and
/// done meanwhile; when the time comes it is added as by [`Queue::add`]. What differs from client-go's: no task, no
/// limit to how many can be put in at once, and what is left at the end is given back.
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
    /// An empty queue, of which no metrics tell.
    pub fn new() -> Self {
        Self { queue: Queue::new() }
    }

    /// An empty queue, of which [metrics](crate::metrics) tell under this name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { queue: Queue::named(name) }
    }

    /// Puts an item in, so much later. False if the queue is shut down, and the item was not taken in.
    pub fn add_after(&self, item: T, delay: Duration) -> bool {
        self.add_after_with(item, delay, Priority::NORMAL)
    }

    /// Puts an item in with a priority, so much later. If it is to come later already, it does so at the earlier time,
    /// with the higher priority.
    pub fn add_after_with(&self, item: T, delay: Duration, priority: Priority) -> bool {
        self.shared().add_after(item, delay, priority)
    }

    /// Takes the next item out, as [`Queue::get`] does.
    ///
    /// # Cancel safety
    ///
    /// Nothing is taken out unless it is returned.
    pub async fn get(&self) -> Option<Item<T, Self>> {
        Some(Item::new(self.shared().next().await?, self.clone()))
    }

    /// Takes nothing more in, hands out what is there, and gives back what was to come later, the first in front.
    pub fn shut_down(&self) -> Vec<T> {
        self.queue.shut_down();
        self.shared().left()
    }

    /// Shuts down, and waits until all that waits has been taken, and all that was taken is done. Gives back what was
    /// to come later, and what was to be retried meanwhile.
    ///
    /// What is said of [`Queue::drain`] holds here too.
    ///
    /// # Cancel safety
    ///
    /// The queue stays shut down, and can be waited for again; nothing is given back unless it is returned.
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
