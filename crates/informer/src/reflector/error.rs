//! Why a round of a reflector ended or was interrupted.

use std::time::Duration;

use crate::source::SourceError;

/// Why a round ended, or a watch within it was interrupted. None of it ends the reflector.
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
    /// The server handed out the same place to go on from twice.
    #[error("list does not end: the server repeats a continue token")]
    RepeatedContinue,
    /// The server hands out one page after the other without end.
    #[error("list does not end: {pages} pages came, of which the last {empty} were empty")]
    EndlessList {
        /// How many pages came.
        pages: usize,
        /// How many of the last ones were empty.
        empty: usize,
    },
    /// The server did not send the initial state by a watch; it is asked for by a list instead, and nothing is missing.
    #[error("initial state is listed, as the server does not stream it: {0}")]
    NotStreamed(#[source] SourceError),
    /// The initial state was to come by a watch, and did not come in full.
    #[error("initial state did not arrive in full: {0}")]
    Incomplete(IncompleteReason),
    /// A watch could not be opened.
    #[error("watch failed: {0}")]
    Watch(#[source] SourceError),
    /// A watch broke off, or sent an error.
    #[error("watch was interrupted: {0}")]
    Stream(#[source] SourceError),
    /// The server has forgotten, or not yet reached, the version to go on from.
    #[error("the version to watch from is not available: {0}")]
    Expired(#[source] SourceError),
    /// A watch ended at once.
    #[error("watch ended after {lasted:?}")]
    VeryShortWatch {
        /// How long it lasted.
        lasted: Duration,
    },
    /// An event came of which not even the key could be read: nobody knows what is missing now.
    #[error("an event could not be read, not even which object it is about")]
    Unreadable,
    /// A watch neither sent anything nor ended.
    #[error("nothing was heard for {after:?}; the connection is taken for dead")]
    Silent {
        /// How long.
        after: Duration,
    },
}

/// Why an initial state did not come in full.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum IncompleteReason {
    /// The stream ended before the bookmark that marks the end of the initial state.
    #[error("the stream ended before its end was marked")]
    Ended,
    /// Its end was marked, but not with a version.
    #[error("its end was marked without a version")]
    NoVersion,
    /// Too little came for too long.
    #[error("{0}")]
    Stalled(SourceError),
    /// Changes came, but the end of the initial state was not marked before them, nor soon after.
    #[error("its end was not marked within {0:?} of the first change")]
    NoEnd(Duration),
}

impl ReflectorError {
    /// What the source said, if it was the source.
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

    /// True if a connection broke or fell silent: nothing is known to be wrong with the server.
    pub fn is_lost_connection(&self) -> bool {
        match self {
            Self::Silent { .. } => true,
            Self::Stream(error) => error.is_interruption(),
            _ => false,
        }
    }

    /// True if the server says that there is no such resource.
    pub fn is_missing_resource(&self) -> bool {
        self.source_error().is_some_and(|error| error.has_code(&[404]))
    }

    /// How long the server asks to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        self.source_error().and_then(SourceError::retry_after)
    }
}
