//! A limit per second for all items together.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::RateLimiter;

/// A token bucket: limits all items together to `qps` per second, and allows a burst.
///
/// The bucket holds `burst` tokens at first, and gets `qps` tokens per second, up to `burst`. Each use takes one token.
/// If there is none, the use reserves a future token and waits for it. The bucket can also be used alone, to limit how
/// often a program does something:
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
    state: Mutex<BucketState>,
}

#[derive(Debug)]
struct BucketState {
    /// The number of tokens. It is negative if future tokens are reserved.
    tokens: f64,
    counted: Instant,
}

impl TokenBucket {
    /// Makes a full bucket. With a rate of zero it gets no tokens after the first `burst` ones.
    pub fn new(qps: f64, burst: u32) -> Self {
        let burst = f64::from(burst);
        Self { qps: qps.max(0.0), burst, state: Mutex::new(BucketState { tokens: burst, counted: Instant::now() }) }
    }

    /// Takes a token if there is one. Returns false if there is none.
    pub fn try_take(&self) -> bool {
        let mut state = self.state.lock();
        self.refill(&mut state);
        let there = state.tokens >= 1.0;
        if there {
            state.tokens -= 1.0;
        }
        there
    }

    /// Takes a token, and waits for it if there is none.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped while it waits, it returns the token to the bucket.
    pub async fn take(&self) {
        let wait = self.reserve();
        if !wait.is_zero() {
            let promised = Promised { bucket: self };
            sleep(wait).await;
            std::mem::forget(promised);
        }
    }

    /// Takes or reserves a token, and returns how long it takes until the bucket has it.
    fn reserve(&self) -> Duration {
        let mut state = self.state.lock();
        self.refill(&mut state);
        state.tokens -= 1.0;
        if state.tokens >= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-state.tokens / self.qps).unwrap_or(Duration::MAX)
    }

    fn refill(&self, state: &mut BucketState) {
        let now = Instant::now();
        let passed = now.saturating_duration_since(state.counted).as_secs_f64();
        state.counted = now;
        state.tokens = (state.tokens + passed * self.qps).min(self.burst);
    }
}

/// A reserved token. Dropping it returns the token to the bucket.
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
