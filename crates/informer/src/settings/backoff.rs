//! Delays between attempts.

use std::time::Duration;

/// Sets how delays between attempts grow, and when they begin again. A random part of up to the same length is added to
/// each.
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
    /// The first delay, without the random part.
    pub initial: Duration,
    /// The longest delay, without the random part.
    pub max: Duration,
    /// The factor between one delay and the next.
    pub factor: f64,
    /// How long watches must work until the next delay is the shortest again.
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
