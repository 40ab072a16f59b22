//! The longest delay of several limiters.

use std::fmt;
use std::time::Duration;

use super::RateLimiter;

/// Calls all its limiters, and returns the longest delay.
///
/// ```
/// use std::time::Duration;
/// use kube_controller::RateLimiter;
/// use kube_controller::limiter::{ItemExponential, MaxOf, TokenBucket};
///
/// let each = ItemExponential::new(Duration::from_millis(5), Duration::from_secs(10));
/// let limiter = MaxOf::new(each).and(TokenBucket::new(0.0, 2));
/// assert_eq!([(); 2].map(|()| limiter.when(&"a").as_millis()), [5, 10]);
/// assert_eq!(limiter.when(&"a"), Duration::MAX); // The bucket never gets another token.
/// assert_eq!(limiter.num_requeues(&"a"), 3);
/// ```
pub struct MaxOf<T> {
    limiters: Vec<Box<dyn RateLimiter<T>>>,
}

impl<T> MaxOf<T> {
    /// Makes a limiter from a first one.
    pub fn new(limiter: impl RateLimiter<T>) -> Self {
        Self { limiters: vec![Box::new(limiter)] }
    }

    /// Adds a limiter.
    pub fn and(mut self, limiter: impl RateLimiter<T>) -> Self {
        self.limiters.push(Box::new(limiter));
        self
    }
}

impl<T: 'static> RateLimiter<T> for MaxOf<T> {
    fn when(&self, item: &T) -> Duration {
        self.limiters.iter().map(|limiter| limiter.when(item)).max().unwrap_or_default()
    }

    fn forget(&self, item: &T) {
        self.limiters.iter().for_each(|limiter| limiter.forget(item));
    }

    fn num_requeues(&self, item: &T) -> u32 {
        self.limiters.iter().map(|limiter| limiter.num_requeues(item)).max().unwrap_or_default()
    }
}

impl<T> fmt::Debug for MaxOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaxOf").field("limiters", &self.limiters.len()).finish()
    }
}
