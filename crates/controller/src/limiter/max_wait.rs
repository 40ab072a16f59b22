//! The delay of another limiter, up to a maximum.

use std::time::Duration;

use super::RateLimiter;

/// Returns the delay of another limiter, but never more than `max`.
///
/// ```
/// use std::time::Duration;
/// use kube_controller::RateLimiter;
/// use kube_controller::limiter::{MaxWait, default_controller_limiter};
///
/// let limiter = MaxWait::new(default_controller_limiter(), Duration::from_secs(30));
/// let longest = (0..50).map(|_| limiter.when(&"a")).max();
/// assert_eq!(longest, Some(Duration::from_secs(30)));
/// assert_eq!(limiter.num_requeues(&"a"), 50);
/// ```
#[derive(Debug)]
pub struct MaxWait<L> {
    limiter: L,
    max: Duration,
}

impl<L> MaxWait<L> {
    /// Makes a limiter that returns the delays of `limiter`, up to `max`.
    pub fn new(limiter: L, max: Duration) -> Self {
        Self { limiter, max }
    }
}

impl<T, L: RateLimiter<T>> RateLimiter<T> for MaxWait<L> {
    fn when(&self, item: &T) -> Duration {
        self.limiter.when(item).min(self.max)
    }

    fn forget(&self, item: &T) {
        self.limiter.forget(item);
    }

    fn num_requeues(&self, item: &T) -> u32 {
        self.limiter.num_requeues(item)
    }
}
