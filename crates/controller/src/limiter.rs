//! How long to wait before something is done again.
//!
//! | limiter | who waits, and how long |
//! |---|---|
//! | [`ItemExponential`] | each item by itself, twice as long each time |
//! | [`FastSlow`] | each item by itself, briefly a few times, then long |
//! | [`TokenBucket`] | all items together, so that there are so many a second |
//! | [`MaxOf`] | as long as the strictest of several says |
//! | [`MaxWait`] | as long as another says, within a limit |
//!
//! Limiters that remember items let go of one when it is forgotten, and by themselves when it has not been heard of for
//! a long time: an hour, or twice the longest delay if that is more. So what they hold is bounded by what failed
//! lately. (client-go's never let go of an item that nobody forgets.)

mod attempts;
mod exponential;
mod fast_slow;
mod bucket;
mod max_of;
mod max_wait;

use std::sync::Arc;
use std::time::Duration;

pub use bucket::TokenBucket;
pub use exponential::ItemExponential;
pub use fast_slow::FastSlow;
pub use max_of::MaxOf;
pub use max_wait::MaxWait;

use crate::queue::Key;

/// Says how long to wait before an item is done again.
///
/// ```
/// use std::time::Duration;
/// use kube_controller::{RateLimiter, WorkQueue};
///
/// /// What begins with `slow` can wait.
/// struct ByName;
///
/// impl RateLimiter<String> for ByName {
///     fn when(&self, item: &String) -> Duration {
///         Duration::from_secs(if item.starts_with("slow") { 60 } else { 1 })
///     }
///     fn forget(&self, _: &String) {}
///     fn num_requeues(&self, _: &String) -> u32 {
///         0
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let queue = WorkQueue::new(ByName);
/// queue.add_rate_limited("slow/a".to_owned());
/// queue.add_rate_limited("web/a".to_owned());
/// assert_eq!(*queue.get().await.unwrap(), "web/a");
/// # }
/// ```
pub trait RateLimiter<T>: Send + Sync + 'static {
    /// How long to wait this time. Each call counts as another attempt.
    fn when(&self, item: &T) -> Duration;

    /// Whatever happened to the item so far does not count any more.
    fn forget(&self, item: &T);

    /// How many attempts there were since it was forgotten.
    fn num_requeues(&self, item: &T) -> u32;
}

/// Several queues may share one.
impl<T, L: RateLimiter<T> + ?Sized> RateLimiter<T> for Arc<L> {
    fn when(&self, item: &T) -> Duration {
        (**self).when(item)
    }

    fn forget(&self, item: &T) {
        (**self).forget(item);
    }

    fn num_requeues(&self, item: &T) -> u32 {
        (**self).num_requeues(item)
    }
}

/// What client-go's controllers use: 5 milliseconds, doubling to 1000 seconds, for each item; ten a second for all
/// together, of which a hundred may come at once.
pub fn default_controller_limiter<T: Key>() -> MaxOf<T> {
    let each = ItemExponential::new(Duration::from_millis(5), Duration::from_secs(1000));
    MaxOf::new(each).and(TokenBucket::new(10.0, 100))
}

/// client-go's limiter by item alone: 1 millisecond, doubling to 1000 seconds.
pub fn default_item_limiter<T: Key>() -> ItemExponential<T> {
    ItemExponential::new(Duration::from_millis(1), Duration::from_secs(1000))
}
