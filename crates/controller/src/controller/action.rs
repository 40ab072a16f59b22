//! The result of a reconcile.

use std::error::Error;
use std::time::Duration;

/// An error of any type.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Tells the controller when to reconcile the key again, as in kube-rs. If a reconcile returns an error instead, the
/// limiter of the queue decides.
///
/// ```
/// use std::time::Duration;
/// use kube_controller::Action;
///
/// fn action(is_valid: bool, is_ready: bool) -> Action {
///     match (is_valid, is_ready) {
///         (false, _) => Action::terminal_error("the specification is invalid"), // A retry does not help.
///         (true, false) => Action::requeue(Duration::from_secs(10)),
///         (true, true) => Action::await_change(),
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Action(pub(crate) Requeue);

/// When a key is reconciled again.
#[derive(Debug)]
pub(crate) enum Requeue {
    OnChange,
    After(Duration),
    /// The reconcile failed, and the key is reconciled again only when something changes.
    Failed(BoxError),
}

impl Action {
    /// Reconciles the key again only when something changes.
    pub fn await_change() -> Self {
        Self(Requeue::OnChange)
    }

    /// Reconciles the key again after a duration, or when something changes. The limiter is not called, so a duration
    /// of zero reconciles the key in an endless loop without a pause.
    pub fn requeue(duration: Duration) -> Self {
        Self(Requeue::After(duration))
    }

    /// Reports that the reconcile failed and that a retry would not help: controller-runtime's `TerminalError`. The
    /// failure is counted and logged. The key is reconciled again only when something changes.
    pub fn terminal_error(error: impl Into<BoxError>) -> Self {
        Self(Requeue::Failed(error.into()))
    }
}

/// Why a reconcile failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReconcileFailure {
    /// The reconcile returned an error with this message.
    #[error("{0}")]
    Error(String),
    /// The reconcile failed for good, with this message. It is not tried again.
    #[error("{0}")]
    Final(String),
    /// The reconcile was not called, because an object that it depends on cannot be decoded.
    #[error("{0}")]
    Undecodable(String),
    /// The reconcile panicked with this message.
    #[error("panicked: {0}")]
    Panicked(String),
    /// The reconcile took longer than this limit, and was dropped.
    #[error("took longer than {0:?}")]
    TimedOut(Duration),
}

/// Returns the message of an error and its causes. If the error panics while it is displayed or dropped, returns
/// another message.
pub(super) fn describe(error: BoxError) -> String {
    let describe = || {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        drop(error);
        text
    };
    catch(describe).unwrap_or_else(|message| format!("an error that panicked while it was displayed: {message}"))
}

/// Calls a function, and returns the message of its panic if it panics.
pub(super) fn catch<R>(call: impl FnOnce() -> R) -> Result<R, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).map_err(|panic| panic_message(&*panic))
}

/// Returns the message of a panic.
pub(super) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "with a value that is not a string".to_owned())
}
