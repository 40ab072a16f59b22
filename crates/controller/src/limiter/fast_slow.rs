//! A delay per item that is short for the first attempts, and then long.

use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;

use super::RateLimiter;
use super::attempts::Attempts;
use crate::key::Key;

/// Delays each item for a short time at the first attempts, and for a long time at all further ones.
///
/// ```
/// use std::time::Duration;
/// use kube_controller::RateLimiter;
/// use kube_controller::limiter::FastSlow;
///
/// let limiter = FastSlow::new(Duration::from_millis(10), Duration::from_secs(60), 2);
/// assert_eq!([(); 4].map(|()| limiter.when(&"a").as_millis()), [10, 10, 60_000, 60_000]);
/// ```
pub struct FastSlow<T> {
    fast: Duration,
    slow: Duration,
    fast_attempts: u32,
    attempts: Mutex<Attempts<T>>,
}

impl<T: Key> FastSlow<T> {
    /// Makes a limiter with the delay `fast` for the first `fast_attempts` attempts, and `slow` for all further ones.
    pub fn new(fast: Duration, slow: Duration, fast_attempts: u32) -> Self {
        Self { fast, slow, fast_attempts, attempts: Mutex::new(Attempts::new(fast.max(slow))) }
    }
}

impl<T: Key> RateLimiter<T> for FastSlow<T> {
    fn when(&self, item: &T) -> Duration {
        if self.attempts.lock().next(item) < self.fast_attempts { self.fast } else { self.slow }
    }

    fn forget(&self, item: &T) {
        self.attempts.lock().forget(item);
    }

    fn num_requeues(&self, item: &T) -> u32 {
        self.attempts.lock().count(item)
    }
}

impl<T> fmt::Debug for FastSlow<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fast, slow, fast_attempts, .. } = self;
        f.debug_struct("FastSlow")
            .field("fast", fast)
            .field("slow", slow)
            .field("fast_attempts", fast_attempts)
            .finish_non_exhaustive()
    }
}
