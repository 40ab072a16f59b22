//! Instants that do not overflow, and durations that are short to read.

use std::time::Duration;

use tokio::time::Instant;

/// Longer than any program runs, and short enough to be added to an `Instant`.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Returns the instant a duration after another, or about 30 years after it if the duration is longer.
pub fn after(instant: Instant, duration: Duration) -> Instant {
    instant.checked_add(duration.min(FAR)).unwrap_or(instant)
}

/// Returns a duration for messages: about as long, but without digits that tell a reader nothing.
pub fn rounded(duration: Duration) -> Duration {
    let step = match duration.as_nanos() {
        10_000_000_000.. => {
            let up = u64::from(duration.subsec_millis() >= 500);
            return Duration::from_secs(duration.as_secs().saturating_add(up));
        }
        1_000_000_000.. => 100_000_000,
        1_000_000.. => 1_000_000,
        _ => 1_000,
    };
    let steps = (duration.subsec_nanos() + step / 2) / step;
    Duration::from_secs(duration.as_secs()) + Duration::from_nanos(u64::from(steps * step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rounded_duration_has_two_or_three_digits() {
        for (duration, expected) in [
            (Duration::from_nanos(150_000_123_456), "150s"),
            (Duration::from_millis(10_500), "11s"),
            (Duration::from_nanos(9_960_000_001), "10s"),
            (Duration::from_nanos(1_234_567_891), "1.2s"),
            (Duration::from_nanos(999_999_999), "1s"),
            (Duration::from_nanos(12_345_678), "12ms"),
            (Duration::from_nanos(345_678), "346µs"),
            (Duration::ZERO, "0ns"),
        ] {
            assert_eq!(format!("{:?}", rounded(duration)), expected, "{duration:?}");
        }
        assert_eq!(rounded(Duration::MAX), Duration::from_secs(u64::MAX));
    }
}
