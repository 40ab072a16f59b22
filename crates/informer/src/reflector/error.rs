//! Why a round of a reflector ended or was interrupted.

use std::time::Duration;

use crate::source::SourceError;
use crate::time::rounded;

/// Why a round ended, or why a watch in it was interrupted. No such error ends the reflector.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::ReflectorError;
/// use kube_informer::{SourceError, Status};
///
/// let silent = ReflectorError::Silent { after: Duration::from_secs(60) };
/// assert!(silent.is_lost_connection() && silent.source_error().is_none());
///
/// let status = Status { code: 429, retry_after: Some(Duration::from_secs(2)), ..Status::default() };
/// let busy = ReflectorError::List(SourceError::Status(status));
/// assert!(!busy.is_lost_connection());
/// assert_eq!(busy.retry_after(), Some(Duration::from_secs(2)));
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReflectorError {
    /// The collection could not be listed.
    #[error("list failed: {0}")]
    List(#[source] SourceError),
    /// The API server returned the same continue token twice.
    #[error("list does not end: the server repeats a continue token")]
    RepeatedContinue,
    /// The API server returns pages without end.
    #[error("list does not end: {pages} pages came, of which the last {empty} were empty")]
    EndlessList {
        /// How many pages arrived.
        pages: usize,
        /// How many of the last pages were empty.
        empty: usize,
    },
    /// The API server does not stream the initial state. The reflector lists instead, and no object is missing.
    #[error("initial state is listed, as the server does not stream it: {0}")]
    NotStreamed(#[source] SourceError),
    /// The initial state by a streaming watch is not complete.
    #[error("initial state did not arrive in full: {0}")]
    Incomplete(IncompleteReason),
    /// A watch could not be opened.
    #[error("watch failed: {0}")]
    Watch(#[source] SourceError),
    /// A watch was interrupted, or sent an error.
    #[error("watch was interrupted: {0}")]
    Stream(#[source] SourceError),
    /// The version to watch from has expired, or the API server has not reached it yet.
    #[error("the version to watch from is not available: {0}")]
    Expired(#[source] SourceError),
    /// A watch ended at once.
    #[error("watch ended after {:?}", rounded(*.lasted))]
    VeryShortWatch {
        /// How long it lasted.
        lasted: Duration,
    },
    /// The key of the object in an event could not be read, so it is unknown which object in the store is outdated.
    #[error("an event could not be read, not even which object it is about")]
    Unreadable,
    /// The watch sent nothing and did not end.
    #[error("nothing was heard for {:?}; the connection is taken for dead", rounded(*.after))]
    Silent {
        /// How long it was silent.
        after: Duration,
    },
}

/// Why an initial state is not complete.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum IncompleteReason {
    /// The stream ended before the bookmark at the end of the initial state.
    #[error("the stream ended before its end was marked")]
    Ended,
    /// The bookmark at the end of the initial state has no version.
    #[error("its end was marked without a version")]
    NoVersion,
    /// Too little data arrived in time.
    #[error("{0}")]
    Stalled(SourceError),
    /// Changes arrived, but the bookmark at the end of the initial state did not follow in time.
    #[error("its end was not marked within {:?} of the first change", rounded(*.0))]
    NoEnd(Duration),
}

impl ReflectorError {
    /// Returns the error of the source, if the source caused this one.
    pub fn source_error(&self) -> Option<&SourceError> {
        match self {
            Self::List(error)
            | Self::NotStreamed(error)
            | Self::Watch(error)
            | Self::Stream(error)
            | Self::Expired(error) => Some(error),
            _ => None,
        }
    }

    /// Returns true if the connection broke or fell silent. The API server itself may be healthy.
    pub fn is_lost_connection(&self) -> bool {
        match self {
            Self::Silent { .. } => true,
            Self::Stream(error) => error.is_interruption(),
            _ => false,
        }
    }

    /// Returns true if the API server answered that the resource does not exist.
    pub fn is_missing_resource(&self) -> bool {
        self.source_error().is_some_and(|error| error.has_code(&[404]))
    }

    /// Returns how long the API server asks the client to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.source_error().and_then(SourceError::retry_after)
    }
}
