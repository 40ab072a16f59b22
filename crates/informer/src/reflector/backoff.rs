//! The delays between attempts.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::recovery::Class;
use crate::settings::BackoffOptions;

/// The longest delay that an API server can request.
const LONGEST: Duration = Duration::from_secs(300);
/// The longest watch timeout in seconds: one year.
const LONGEST_WATCH: u64 = 365 * 24 * 3600;

/// Delays that double up to a cap. Each has a random part of up to its own length added.
///
/// client-go's sequence. The difference: it starts again after a healthy time, not after any time.
#[derive(Debug)]
pub(crate) struct Backoff {
    options: BackoffOptions,
    base: Duration,
    /// For how long watches were healthy since the last delay.
    healthy: Duration,
    random: StdRng,
}

impl Backoff {
    pub(crate) fn new(options: BackoffOptions, seed: u64) -> Self {
        Self { base: options.initial, options, healthy: Duration::ZERO, random: StdRng::seed_from_u64(seed) }
    }

    /// Records that a watch was healthy for this long.
    pub(crate) fn healthy(&mut self, lasted: Duration) {
        self.healthy = self.healthy.saturating_add(lasted);
    }

    /// Returns the next delay. It is at least as long as the API server asks for, up to five minutes.
    pub(crate) fn next(&mut self, at_least: Option<Duration>) -> Duration {
        if std::mem::take(&mut self.healthy) >= self.options.reset_after {
            self.base = self.options.initial;
        }
        let delay = self.part_of(self.base).saturating_add(self.base);
        let longer = Duration::try_from_secs_f64(self.base.as_secs_f64() * self.options.factor);
        self.base = longer.unwrap_or(Duration::MAX).min(self.options.max);
        delay.max(at_least.unwrap_or_default().min(LONGEST))
    }

    /// Returns the next delay of the prober. It is at least as long as the API server asks for, up to five minutes.
    pub(crate) fn probe(&mut self, class: Class, lasts: Duration, at_least: Option<Duration>) -> Duration {
        let delay = class.probe_after(lasts, self.options.initial, self.options.max);
        let delay = self.part_of(delay / 2).saturating_add(delay);
        delay.max(at_least.unwrap_or_default().min(LONGEST))
    }

    /// Returns a random delay of up to a second, which spreads simultaneous requests.
    pub(crate) fn second(&mut self) -> Duration {
        self.part_of(Duration::from_secs(1).min(self.options.max))
    }

    /// Returns a random delay of up to the initial one, so that thousands of reflectors do not act at once.
    pub(crate) fn jitter(&mut self) -> Duration {
        self.part_of(self.options.initial)
    }

    /// Returns a random whole number of seconds between this many and twice as many.
    pub(crate) fn spread(&mut self, seconds: Duration) -> Duration {
        let least = seconds.as_secs().clamp(1, LONGEST_WATCH);
        Duration::from_secs(self.random.random_range(least..=least * 2))
    }

    fn part_of(&mut self, whole: Duration) -> Duration {
        let part = whole.as_secs_f64() * self.random.random_range(0.0..1.0);
        Duration::try_from_secs_f64(part).unwrap_or(whole)
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

    //
    #[test]
    fn delays_double_up_to_the_cap() {
        let mut backoff = Backoff::new(BackoffOptions::default(), 1);
        assert_eq!(bases(&mut backoff, 8), [800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
    }

    // B-01: neither time alone nor a short healthy time resets the sequence.
    #[test]
    fn only_two_healthy_minutes_reset_the_delay() {
        let mut backoff = Backoff::new(BackoffOptions::default(), 1);
        bases(&mut backoff, 8);
        assert_eq!(bases(&mut backoff, 1), [30000]);
        backoff.healthy(Duration::from_secs(119));
        assert_eq!(bases(&mut backoff, 1), [30000]);
        backoff.healthy(Duration::from_secs(60));
        backoff.healthy(Duration::from_secs(60));
        assert!(backoff.next(None) < Duration::from_millis(1600));
        assert_eq!(bases(&mut backoff, 2), [1600, 3200]);
    }

    #[test]
    fn the_server_may_ask_for_a_longer_delay() {
        let mut backoff = Backoff::new(BackoffOptions::default(), 1);
        assert_eq!(backoff.next(Some(Duration::from_secs(90))), Duration::from_secs(90));
        assert!(backoff.next(Some(Duration::from_millis(1))) >= Duration::from_millis(1600));
        assert_eq!(backoff.next(Some(Duration::MAX)), Duration::from_secs(300), "but not for a day");
    }

    #[test]
    fn any_duration_is_legal() {
        let endless =
            BackoffOptions { initial: Duration::MAX, max: Duration::MAX, factor: 1e300, ..Default::default() };
        let mut backoff = Backoff::new(endless, 1);
        assert_eq!(backoff.next(None), Duration::MAX);
        backoff.next(Some(Duration::MAX));
        backoff.healthy(Duration::MAX);
        backoff.healthy(Duration::MAX);
        assert!(backoff.jitter() <= Duration::MAX);
        assert!(backoff.spread(Duration::MAX) > Duration::from_secs(3600));
    }
}
