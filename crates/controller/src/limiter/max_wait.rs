//! As long as another says, within a limit.

use std::time::Duration;

use super::RateLimiter;

/// Waits as long as another limiter says, but never longer than `max`.
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
    /// What `limiter` says, up to `max`.
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
