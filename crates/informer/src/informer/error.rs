//! Errors of informers.

use std::time::Duration;

use crate::object::ResourceVersion;
use crate::source::SourceError;
use crate::time::rounded;

/// Why an informer could not be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Tasks need a runtime.
    #[error("no tokio runtime is running here; call this from async code")]
    NoRuntime,
    /// The informer was stopped, and cannot be started again.
    #[error("informer {0} has been stopped; ask the factory for a new one")]
    Stopped(String),
}

/// Why a wait failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The informer stopped before.
    #[error("informer {0} has been stopped")]
    Stopped(String),
    /// The limit was reached.
    #[error("waited {:?} in vain: {saw}", rounded(*.within))]
    TimedOut {
        /// The limit.
        within: Duration,
        /// How far the informer got.
        saw: String,
    },
    /// The API server was restored to an older state.
    #[error("the server was restored to an older state; versions from before it cannot be waited for")]
    VersionsRestarted,
    /// Versions that are not numbers cannot be compared.
    #[error("nobody can tell whether version {now} comes before or after {version}; wait for the object itself")]
    NotComparable {
        /// The version that was waited for.
        version: ResourceVersion,
        /// The version of the cache.
        now: ResourceVersion,
    },
}

/// Handlers whose last call had not returned when an informer was stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("informer {name} has stopped, but calls have not returned: {}", handlers.join(", "))]
#[non_exhaustive]
pub struct StillRunning {
    /// The informer.
    pub name: String,
    /// The handlers.
    pub handlers: Vec<String>,
}

/// Why a cache could not be compared with its server.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The API server did not answer, or not in time.
    #[error("the server could not be asked: {0}")]
    List(#[from] SourceError),
    /// The informer has ended.
    #[error("informer {0} has been stopped")]
    Stopped(String),
    /// The list has no end.
    #[error("the server's list is not complete")]
    Incomplete,
}
