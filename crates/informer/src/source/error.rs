//! Why a list or a watch failed.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::time::rounded;

/// Why a list or watch failed. The error contains no value of an object.
///
/// The predicates tell what to do next:
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
    /// The API server answered with an error, or sent one within the stream.
    #[error("{0}")]
    Status(Status),
    /// The API server could not be reached.
    #[error("cannot reach the server: {}", chain(&**.0))]
    Unreachable(Arc<dyn Error + Send + Sync>),
    /// The connection broke.
    #[error("connection was interrupted: {}", chain(&**.0))]
    Interrupted(Arc<dyn Error + Send + Sync>),
    /// Too little data arrived in time.
    #[error("{received} bytes and {objects} objects in {:?} are too few; the connection is given up", rounded(*.within))]
    Stalled {
        /// How many bytes arrived.
        received: u64,
        /// How many objects arrived.
        objects: u64,
        /// The time limit.
        within: Duration,
    },
    /// The response ended early.
    #[error("answer was cut off")]
    CutOff,
    /// A line of a watch is not an event.
    #[error("not a watch event: {0}")]
    NotAnEvent(&'static str),
    /// The body of a list is not a list.
    #[error("not a list: {0}")]
    NotAList(String),
    /// The API server sent a `Table`, the format that kubectl prints.
    #[error("the server sent a Table instead of objects")]
    Table,
    /// The API server sent objects of another kind.
    #[error("expected a {expected}, got a {got}")]
    WrongKind {
        /// The requested kind.
        expected: String,
        /// The received kind.
        got: String,
    },
    /// The response is not JSON.
    #[error("the server sent {content_type} instead of JSON; is a proxy in the way?")]
    NotJson {
        /// The content type of the response.
        content_type: String,
    },
    /// An object is larger than the limit.
    #[error("object is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The request could not be built.
    #[error("cannot make the request: {0}")]
    Request(String),
}

/// The error response of an API server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The reason in one word, such as `Expired`.
    pub reason: String,
    /// The message for people.
    pub message: String,
    /// How long the API server asks the client to wait.
    pub retry_after: Option<Duration>,
    /// True if the API server has not reached the requested version yet.
    pub version_too_large: bool,
}

impl SourceError {
    /// Returns the error response, if the API server sent one.
    pub fn status(&self) -> Option<&Status> {
        if let Self::Status(status) = self { Some(status) } else { None }
    }

    /// Returns true if the requested version has expired, or is not reached yet.
    pub fn is_version_unavailable(&self) -> bool {
        self.is_expired() || self.status().is_some_and(|status| status.version_too_large)
    }

    /// Returns true if a request for another version, or for none, may succeed.
    pub(crate) fn is_about_version(&self) -> bool {
        self.is_version_unavailable() || self.has_code(&[400, 422])
    }

    /// Returns true if the requested version has expired.
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(|status| status.code == 410 || status.reason == "Expired" || status.reason == "Gone")
    }

    /// Returns true if the API server refused the request because of too many requests (429).
    pub fn is_overload(&self) -> bool {
        self.has_code(&[429])
    }

    /// Returns true if the API server, or a proxy in front of it, is temporarily unavailable.
    pub fn is_unavailable(&self) -> bool {
        self.has_code(&[429, 502, 503, 504]) && !self.is_version_unavailable()
    }

    /// Returns true if a retry fails as well until permissions change or the resource exists.
    pub fn is_refusal(&self) -> bool {
        self.has_code(&[401, 403, 404])
    }

    /// Returns true if no response arrived.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable(_))
    }

    /// Returns true if the connection broke during the response, or too little data arrived.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Interrupted(_) | Self::CutOff | Self::Stalled { .. })
    }

    /// Returns how long the API server asks the client to wait.
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

/// Joins the messages of an error and all its causes, each once: the innermost cause is often the most helpful.
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
