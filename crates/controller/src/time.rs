//! Instants that do not overflow.

use std::time::Duration;

use tokio::time::Instant;

/// As good as never, and still a time that can be reckoned with.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// So long after an instant; never further than an instant can be.
pub(crate) fn after(instant: Instant, duration: Duration) -> Instant {
    instant.checked_add(duration.min(FAR)).unwrap_or(instant)
}
