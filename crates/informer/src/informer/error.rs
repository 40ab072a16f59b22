//! Why an informer did not do what it was asked.

use std::time::Duration;

use crate::source::SourceError;

/// Why an informer did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Informers are tasks, and tasks need a runtime.
    #[error("no tokio runtime is running here; call this from async code")]
    NoRuntime,
    /// A stopped informer does not start again; make a new one.
    #[error("informer {0} has been stopped; ask the factory for a new one")]
    Stopped(String),
}

/// The informer has ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("informer {0} has been stopped")]
pub struct Stopped(pub String);

/// Why something was not reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The informer has ended.
    #[error("informer {0} has been stopped")]
    Stopped(String),
    /// The server was restored to an older state: versions from before mean nothing any more.
    #[error("the server was restored to an older state; versions from before it cannot be waited for")]
    VersionsRestarted,
}

/// Informers that were not synced in time, and what each of them was doing.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::informer::NotSynced;
///
/// let waiting = vec![("pods".to_owned(), "listing, 500 received".to_owned())];
/// let error = NotSynced { within: Duration::from_secs(5), waiting };
/// assert_eq!(error.to_string(), "not synced within 5s: pods (listing, 500 received)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not synced within {within:?}: {}", list(waiting))]
pub struct NotSynced {
    /// How long was waited.
    pub within: Duration,
    /// The name of each informer that was not synced, and why.
    pub waiting: Vec<(String, String)>,
}

fn list(waiting: &[(String, String)]) -> String {
    waiting.iter().map(|(name, why)| format!("{name} ({why})")).collect::<Vec<_>>().join(", ")
}

/// Why a cache could not be compared with its server.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The server could not be asked.
    #[error("the server could not be asked: {0}")]
    List(#[from] SourceError),
    /// The informer has ended.
    #[error("informer {0} has been stopped")]
    Stopped(String),
    /// The list did not come to an end.
    #[error("the server's list is not complete")]
    Incomplete,
}
