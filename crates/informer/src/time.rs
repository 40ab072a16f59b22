//! Instants that do not overflow.

use std::time::Duration;

use tokio::time::Instant;

/// Longer than any program runs, and short enough to be added to an `Instant`.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Returns the instant a duration after another, or about 30 years after it if the duration is longer.
pub fn after(instant: Instant, duration: Duration) -> Instant {
    instant.checked_add(duration.min(FAR)).unwrap_or(instant)
}
