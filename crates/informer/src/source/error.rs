//! Why a list or a watch failed.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why a list or watch failed. No value of an object appears in any of it.
///
/// What the predicates are for, is to tell what to do next:
///
/// ```
/// use std::time::Duration;
/// use kube_informer::{SourceError, Status};
///
/// let status = |code| Status { code, retry_after: Some(Duration::from_secs(2)), ..Status::default() };
/// let gone = SourceError::Status(status(410));
/// assert!(gone.is_expired() && gone.is_version_unavailable(), "list again");
/// let busy = SourceError::Status(status(429));
/// assert!(busy.is_overload() && busy.retry_after() == Some(Duration::from_secs(2)), "wait, then ask the same");
/// assert!(SourceError::CutOff.is_interruption(), "ask for the rest");
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The server answered with an error, or sent one within the stream.
    #[error("{0}")]
    Status(Status),
    /// The server could not be reached.
    #[error("cannot reach the server: {}", chain(&**.0))]
    Unreachable(Arc<dyn Error + Send + Sync>),
    /// The connection broke.
    #[error("connection was interrupted: {}", chain(&**.0))]
    Interrupted(Arc<dyn Error + Send + Sync>),
    /// Too little came in too long a time.
    #[error("{received} bytes and {objects} objects in {within:?} are too few; the connection is given up")]
    Stalled {
        /// How many bytes came.
        received: u64,
        /// How many objects came.
        objects: u64,
        /// In how long.
        within: Duration,
    },
    /// The answer ended in the middle.
    #[error("answer was cut off")]
    CutOff,
    /// A line of a watch is not an event.
    #[error("not a watch event: {0}")]
    NotAnEvent(&'static str),
    /// The body of a list is something else.
    #[error("not a list: {0}")]
    NotAList(String),
    /// The server sent a table for people.
    #[error("the server sent a Table instead of objects")]
    Table,
    /// The server sent objects of another kind.
    #[error("expected a {expected}, got a {got}")]
    WrongKind {
        /// What was asked for.
        expected: String,
        /// What came.
        got: String,
    },
    /// The server sent something that is not JSON.
    #[error("the server sent {content_type} instead of JSON; is a proxy in the way?")]
    NotJson {
        /// What it says it is.
        content_type: String,
    },
    /// An object is larger than is allowed.
    #[error("object is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The request could not even be written.
    #[error("cannot make the request: {0}")]
    Request(String),
}

/// What the server said in an error.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// One word for machines, such as `Expired`.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// How long the server asks to be left alone.
    pub retry_after: Option<Duration>,
    /// True if the version asked for is one that the server has not reached.
    pub version_too_large: bool,
}

impl SourceError {
    /// What the server said, if it was the server.
    pub fn status(&self) -> Option<&Status> {
        if let Self::Status(status) = self { Some(status) } else { None }
    }

    /// True if the version asked for has been forgotten, or is not reached yet.
    pub fn is_version_unavailable(&self) -> bool {
        self.is_expired() || self.status().is_some_and(|status| status.version_too_large)
    }

    /// True if another version, or none, may be answered.
    pub(crate) fn is_about_version(&self) -> bool {
        self.is_version_unavailable() || self.has_code(&[400, 422])
    }

    /// True if the version asked for has been forgotten.
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(|status| status.code == 410 || status.reason == "Expired" || status.reason == "Gone")
    }

    /// True if the server has too much to do.
    pub fn is_overload(&self) -> bool {
        self.has_code(&[429])
    }

    /// True if the server, or somebody in front of it, is away for a moment.
    pub fn is_unavailable(&self) -> bool {
        self.has_code(&[429, 502, 503, 504]) && !self.is_version_unavailable()
    }

    /// True if asking again will not change the answer before somebody changes something: rights, or the resource itself.
    pub fn is_refusal(&self) -> bool {
        self.has_code(&[401, 403, 404])
    }

    /// True if nobody answered.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable(_))
    }

    /// True if the connection broke in the middle, or might as well have.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Interrupted(_) | Self::CutOff | Self::Stalled { .. })
    }

    /// How long the server asks to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        self.status().and_then(|status| status.retry_after)
    }

    pub(crate) fn has_code(&self, codes: &[u16]) -> bool {
        self.status().is_some_and(|status| codes.contains(&status.code))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server answered {}", self.code)?;
        if !self.reason.is_empty() {
            write!(f, " {}", self.reason)?;
        }
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

/// What an error says and what caused it, each once: the last words are often the ones that help.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}
