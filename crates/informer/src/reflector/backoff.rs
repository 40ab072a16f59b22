//! How long to wait before trying again.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::Instant;

/// How delays between attempts grow, and when they start over.
///
/// ```
/// use std::time::Duration;
/// # use kube_informer::{SharedInformer, source::*};
/// use kube_informer::reflector::BackoffOptions;
///
/// # let source = ListWatchFns::new(
/// #     |_: ListOptions| async { Err::<Items<Identity>, _>(SourceError::CutOff) },
/// #     |_: WatchOptions| async { Err::<Events<Identity>, _>(SourceError::CutOff) },
/// # );
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
/// # runtime.unwrap().block_on(async {
/// // Never waits for more than a second, plus up to as much again of jitter.
/// let backoff = BackoffOptions { max: Duration::from_secs(1), ..BackoffOptions::default() };
/// let things = SharedInformer::builder(source).backoff(backoff).build();
/// things.start()?;
/// tokio::time::sleep(Duration::from_secs(60)).await;
/// assert!(things.health().parts[0].failures >= 30);
/// things.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct BackoffOptions {
    /// The first delay, before jitter.
    pub initial: Duration,
    /// The longest delay, before jitter.
    pub max: Duration,
    /// What each delay is multiplied by for the next.
    pub factor: f64,
    /// How long a watch must have been healthy to earn the shortest delay again.
    pub reset_after: Duration,
}

impl Default for BackoffOptions {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(800),
            max: Duration::from_secs(30),
            factor: 2.0,
            reset_after: Duration::from_secs(120),
        }
    }
}

/// Delays that double up to a cap, each with up to its own length of jitter on top.
///
/// client-go's sequence. What differs: it starts over after a healthy time, not after any time.
#[derive(Debug)]
pub(crate) struct Backoff {
    options: BackoffOptions,
    base: Duration,
    healthy_since: Option<Instant>,
    random: StdRng,
}

impl Backoff {
    pub(crate) fn new(options: BackoffOptions, seed: u64) -> Self {
        Self { base: options.initial, options, healthy_since: None, random: StdRng::seed_from_u64(seed) }
    }

    /// Says that the server is answering.
    pub(crate) fn healthy(&mut self) {
        self.healthy_since.get_or_insert_with(Instant::now);
    }

    /// The next delay; at least as long as the server asks for.
    pub(crate) fn next(&mut self, at_least: Option<Duration>) -> Duration {
        if self.healthy_since.take().is_some_and(|since| since.elapsed() >= self.options.reset_after) {
            self.base = self.options.initial;
        }
        let delay = self.base.mul_f64(1.0 + self.random.random_range(0.0..1.0));
        self.base = self.base.mul_f64(self.options.factor).min(self.options.max);
        delay.max(at_least.unwrap_or_default())
    }

    /// A whole number of seconds between this many and twice as many.
    pub(crate) fn spread(&mut self, seconds: Duration) -> Duration {
        let least = seconds.as_secs().max(1);
        Duration::from_secs(self.random.random_range(least..=least * 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bases(backoff: &mut Backoff, count: usize) -> Vec<u128> {
        (0..count)
            .map(|_| {
                let base = backoff.base;
                let delay = backoff.next(None);
                assert!(base <= delay && delay < base * 2, "{delay:?} is not {base:?} plus up to as much");
                base.as_millis()
            })
            .collect()
    }

    // R-4.
    #[tokio::test(start_paused = true)]
    async fn delays_double_up_to_the_cap() {
        let mut backoff = Backoff::new(BackoffOptions::default(), 1);
        assert_eq!(bases(&mut backoff, 8), [800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
    }

    // B-01: time alone must not reset the sequence, and neither must a short spell of health.
    #[tokio::test(start_paused = true)]
    async fn only_two_healthy_minutes_earn_the_shortest_delay_again() {
        let mut backoff = Backoff::new(BackoffOptions::default(), 1);
        bases(&mut backoff, 8);
        tokio::time::advance(Duration::from_secs(600)).await;
        assert_eq!(bases(&mut backoff, 1), [30000]);
        backoff.healthy();
        tokio::time::advance(Duration::from_secs(119)).await;
        assert_eq!(bases(&mut backoff, 1), [30000]);
        backoff.healthy();
        tokio::time::advance(Duration::from_secs(120)).await;
        assert!(backoff.next(None) < Duration::from_millis(1600));
        assert_eq!(bases(&mut backoff, 2), [1600, 3200]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_server_may_ask_for_longer() {
        let mut backoff = Backoff::new(BackoffOptions::default(), 1);
        assert_eq!(backoff.next(Some(Duration::from_secs(90))), Duration::from_secs(90));
        assert!(backoff.next(Some(Duration::from_millis(1))) >= Duration::from_millis(1600));
    }
}
