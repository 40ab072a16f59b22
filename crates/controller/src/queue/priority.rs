//! What goes first.

/// What goes first: the higher, the sooner. Any number is one; a queue is made for a handful of different ones.
///
/// ```
/// use kube_controller::{Priority, Queue};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue = Queue::new();
/// queue.add_with("seen at the start", Priority::LOW);
/// queue.add("changed just now");
/// queue.add_with("somebody waits for it", Priority(7));
/// assert_eq!(*queue.get().await.unwrap(), "somebody waits for it");
/// assert_eq!(*queue.get().await.unwrap(), "changed just now");
/// assert_eq!(*queue.get().await.unwrap(), "seen at the start");
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Priority(pub i32);

impl Priority {
    /// For what nobody waits for, such as the objects of a first list, or of a resync.
    pub const LOW: Self = Self(-100);
    /// For what has just changed, and for all that is added without a priority.
    pub const NORMAL: Self = Self(0);
}
