//! Priorities of items.

/// The priority of an item: a queue hands out the highest number first. Every number is allowed, but a queue works best
/// with a small number of different priorities.
///
/// ```
/// use kube_controller::{Priority, Queue};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue = Queue::new();
/// queue.add_with("seen at the start", Priority::LOW);
/// queue.add("changed just now");
/// queue.add_with("a user waits for it", Priority(7));
/// assert_eq!(*queue.get().await.unwrap(), "a user waits for it");
/// assert_eq!(*queue.get().await.unwrap(), "changed just now");
/// assert_eq!(*queue.get().await.unwrap(), "seen at the start");
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Priority(pub i32);

impl Priority {
    /// For items that are not urgent, such as the objects of a first list or of a resync.
    pub const LOW: Self = Self(-100);
    /// For objects that have just changed, and for all items that are added without a priority.
    pub const NORMAL: Self = Self(0);
}
