//! The outcome of a reconcile, for a hook of the program.

use std::sync::Arc;
use std::time::Duration;

use kube_informer::ObjectKey;

use super::action::ReconcileFailure;

/// The outcome of one reconcile; see [`Controller::on_outcome`](crate::Controller::on_outcome).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outcome {
    /// The key.
    pub key: ObjectKey,
    /// Whether the reconcile succeeded, and if not, why it failed.
    pub result: Result<(), ReconcileFailure>,
    /// The number of this attempt: one, and one more for each failure since the last success.
    pub attempt: u32,
    /// How long the reconcile took.
    pub duration: Duration,
    /// The delay after which the key is reconciled again by itself: the delay of a retry, or of
    /// [`Action::requeue`](crate::Action::requeue). `None` if the key waits for a change, or if the controller is ending.
    ///
    /// A change reconciles the key earlier. The key runs later if all workers are busy, or if the caches do not show
    /// its writes yet.
    pub requeue_after: Option<Duration>,
}

/// A hook that sees each outcome.
pub(super) type OutcomeHook = Arc<dyn Fn(&Outcome) + Send + Sync>;
