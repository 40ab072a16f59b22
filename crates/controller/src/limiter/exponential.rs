//! A delay per item that doubles with each attempt.

use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::RateLimiter;
use super::attempts::Attempts;
use crate::key::Key;

/// Delays each item for `base` at the first attempt, and for twice as long at each further attempt, up to `max`.
///
/// ```
/// use std::time::Duration;
/// use kube_controller::RateLimiter;
/// use kube_controller::limiter::ItemExponential;
///
/// let limiter = ItemExponential::new(Duration::from_secs(1), Duration::from_secs(3));
/// assert_eq!([(); 4].map(|()| limiter.when(&"a").as_secs()), [1, 2, 3, 3]);
/// assert_eq!(limiter.when(&"b").as_secs(), 1);
/// limiter.forget(&"a");
/// assert_eq!(limiter.when(&"a").as_secs(), 1);
/// ```
pub struct ItemExponential<T> {
    base: Duration,
    max: Duration,
    attempts: Mutex<Attempts<T>>,
    jitter: Option<Jitter>,
}

struct Jitter {
    factor: f64,
    random: Mutex<StdRng>,
}

impl<T: Key> ItemExponential<T> {
    /// Makes a limiter with delays from `base`, doubled with each attempt, up to `max`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, attempts: Mutex::new(Attempts::new(max)), jitter: None }
    }

    /// Adds a random duration to each delay: up to `factor` times the delay, but the sum is never longer than `max`. So
    /// items that failed at the same time are not tried again at the same time. The same seed gives the same delays.
    pub fn jitter(self, factor: f64, seed: u64) -> Self {
        let random = Mutex::new(StdRng::seed_from_u64(seed));
        Self { jitter: Some(Jitter { factor: factor.max(0.0), random }), ..self }
    }

    fn delay(&self, attempt: u32) -> Duration {
        let longer = 1_u128.checked_shl(attempt).and_then(|factor| self.base.as_nanos().checked_mul(factor));
        let delay = match longer.filter(|nanos| *nanos < self.max.as_nanos()) {
            Some(nanos) => duration_of(nanos),
            None if self.base.is_zero() => Duration::ZERO,
            None => self.max,
        };
        let Some(Jitter { factor, random }) = &self.jitter else { return delay };
        let more = delay.as_secs_f64() * factor * random.lock().random_range(0.0..1.0);
        delay.saturating_add(Duration::try_from_secs_f64(more).unwrap_or(self.max)).min(self.max)
    }
}

impl<T: Key> RateLimiter<T> for ItemExponential<T> {
    fn when(&self, item: &T) -> Duration {
        let attempt = self.attempts.lock().next(item);
        self.delay(attempt)
    }

    fn forget(&self, item: &T) {
        self.attempts.lock().forget(item);
    }

    fn num_requeues(&self, item: &T) -> u32 {
        self.attempts.lock().count(item)
    }
}

impl<T> fmt::Debug for ItemExponential<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemExponential").field("base", &self.base).field("max", &self.max).finish_non_exhaustive()
    }
}
/// Returns the duration of so many nanoseconds, or the longest one.
fn duration_of(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    let (seconds, rest) = (u64::try_from(nanos / SECOND), u32::try_from(nanos % SECOND));
    seconds.and_then(|seconds| Ok(Duration::new(seconds, rest?))).unwrap_or(Duration::MAX)
}
