//! Arithmetic with instants that does not overflow.

use std::time::Duration;

use tokio::time::Instant;

/// 30 years: practically never, and still small enough to be added to an instant.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Returns the instant that is `duration` later, but at most [`FAR`] later.
pub(crate) fn after(instant: Instant, duration: Duration) -> Instant {
    instant.checked_add(duration.min(FAR)).unwrap_or(instant)
}
