//! Rate limiters: they decide how long an item waits before it is tried again.
//!
//! | limiter | delay |
//! |---|---|
//! | [`ItemExponential`] | per item, doubled with each attempt |
//! | [`FastSlow`] | per item: short for the first attempts, then long |
//! | [`TokenBucket`] | for all items together: a fixed number of items per second |
//! | [`MaxOf`] | the longest delay of several limiters |
//! | [`MaxWait`] | the delay of another limiter, up to a maximum |
//!
//! Limiters that count the attempts of an item remove the count when [`forget`](RateLimiter::forget) is called. They
//! also remove it when the item was not tried for a long time: one hour, or twice the longest delay if that is more. So
//! their memory is bounded by the number of items that failed recently. (client-go's limiters keep the count until the
//! program calls `Forget`.)

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

use crate::key::Key;

/// Decides how long an item waits before it is tried again.
///
/// ```
/// use std::time::Duration;
/// use kube_controller::{RateLimiter, WorkQueue};
///
/// /// Delays items whose key begins with `slow` for longer.
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
    /// Returns how long the item waits this time. Each call counts as one more attempt.
    fn when(&self, item: &T) -> Duration;

    /// Resets the number of attempts of the item.
    fn forget(&self, item: &T);

    /// Returns the number of attempts of the item since the last call of [`forget`](Self::forget).
    fn num_requeues(&self, item: &T) -> u32;
}

/// Several queues can share one limiter.
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

/// Returns the limiter that client-go's controllers use. The delay of each item is 5 milliseconds at first, and doubles
/// up to 1000 seconds. All items together are limited to 10 per second, with a burst of 100.
pub fn default_controller_limiter<T: Key>() -> MaxOf<T> {
    let each = ItemExponential::new(Duration::from_millis(5), Duration::from_secs(1000));
    MaxOf::new(each).and(TokenBucket::new(10.0, 100))
}

/// Returns client-go's limiter per item, without the limit for all items together. The delay is 1 millisecond at first,
/// and doubles up to 1000 seconds.
pub fn default_item_limiter<T: Key>() -> ItemExponential<T> {
    ItemExponential::new(Duration::from_millis(1), Duration::from_secs(1000))
}
