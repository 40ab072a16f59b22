//! So many a second, for all together.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::RateLimiter;

/// So many a second for all items together, of which some may come at once.
///
/// It holds `burst` tokens at first, and gets `qps` a second, up to `burst`. Each use takes one, also one that is not
/// there yet: that is what it waits for. Usable alone too, wherever something must not be done too often:
///
/// ```
/// use std::time::Duration;
/// use kube_controller::RateLimiter;
/// use kube_controller::limiter::TokenBucket;
/// use tokio::time::Instant;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let bucket = TokenBucket::new(10.0, 2);
/// assert_eq!(["a", "b", "c", "a"].map(|item| bucket.when(&item).as_millis()), [0, 0, 100, 200]);
///
/// assert!(!bucket.try_take());
/// let start = Instant::now();
/// bucket.take().await;
/// assert_eq!(start.elapsed().as_millis(), 300);
/// # }
/// ```
#[derive(Debug)]
pub struct TokenBucket {
    qps: f64,
    burst: f64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Less than none if some are promised.
    tokens: f64,
    counted: Instant,
}

impl TokenBucket {
    /// A full bucket. With a rate of zero there is no token beyond the first ones.
    pub fn new(qps: f64, burst: u32) -> Self {
        let burst = f64::from(burst);
        Self { qps: qps.max(0.0), burst, state: Mutex::new(State { tokens: burst, counted: Instant::now() }) }
    }

    /// Takes a token if there is one.
    pub fn try_take(&self) -> bool {
        let mut state = self.state.lock();
        self.refill(&mut state);
        let there = state.tokens >= 1.0;
        if there {
            state.tokens -= 1.0;
        }
        there
    }

    /// Takes a token, once it is there.
    ///
    /// # Cancel safety
    ///
    /// The token is given back if this is dropped before it is there.
    pub async fn take(&self) {
        let wait = self.reserve();
        if !wait.is_zero() {
            let promised = Promised { bucket: self };
            sleep(wait).await;
            std::mem::forget(promised);
        }
    }

    /// Takes a token, and says how long it is until it is there.
    fn reserve(&self) -> Duration {
        let mut state = self.state.lock();
        self.refill(&mut state);
        state.tokens -= 1.0;
        if state.tokens >= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-state.tokens / self.qps).unwrap_or(Duration::MAX)
    }

    fn refill(&self, state: &mut State) {
        let now = Instant::now();
        let passed = now.saturating_duration_since(state.counted).as_secs_f64();
        state.counted = now;
        state.tokens = (state.tokens + passed * self.qps).min(self.burst);
    }
}

/// A token that is not there yet, and may not be wanted any more.
struct Promised<'b> {
    bucket: &'b TokenBucket,
}

impl Drop for Promised<'_> {
    fn drop(&mut self) {
        self.bucket.state.lock().tokens += 1.0;
    }
}

impl<T> RateLimiter<T> for TokenBucket {
    fn when(&self, _: &T) -> Duration {
        self.reserve()
    }

    fn forget(&self, _: &T) {}

    fn num_requeues(&self, _: &T) -> u32 {
        0
    }
}
