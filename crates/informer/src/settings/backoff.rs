//! How long to wait between attempts.

use std::time::Duration;

/// How delays between attempts grow, and when they start over. Each has up to its own length of chance on top.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::{BackoffOptions, InformerOptions};
///
/// // Never waits for more than a second, plus up to as much again.
/// let backoff = BackoffOptions { max: Duration::from_secs(1), ..BackoffOptions::default() };
/// let options = InformerOptions::new().backoff(backoff);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct BackoffOptions {
    /// The first delay, before chance.
    pub initial: Duration,
    /// The longest delay, before chance.
    pub max: Duration,
    /// What each delay is multiplied by for the next.
    pub factor: f64,
    /// How long watches must have been healthy to earn the shortest delay again.
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
