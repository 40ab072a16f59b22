//! What comes of an attempt.

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// An error of whatever type.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What is to happen after a reconcile that did not fail. One that fails is tried again when the queue's limiter says.
#[derive(Debug)]
pub enum Next {
    /// Nothing, until something changes.
    Done,
    /// Once more, so much later, or when something changes. The limiter is not asked: zero is at once, again and again.
    After(Duration),
    /// It failed, and trying again would not help: counted and told, but not tried again until something changes.
    Failed(BoxError),
}

impl Next {
    /// [`Next::Failed`] with an error of any type, or a text.
    pub fn failed(error: impl Into<BoxError>) -> Self {
        Self::Failed(error.into())
    }
}

/// Why an attempt failed.
pub(super) enum Failure {
    Error(BoxError),
    /// The same, but it is not tried again.
    Final(BoxError),
    Panicked(String),
    TimedOut(Duration),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) | Self::Final(error) => {
                write!(f, "{error}")?;
                let mut cause = error.source();
                while let Some(error) = cause {
                    write!(f, ": {error}")?;
                    cause = error.source();
                }
                Ok(())
            }
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::TimedOut(limit) => write!(f, "took longer than {limit:?}"),
        }
    }
}

/// What a panic said.
pub(super) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "with something that is no text".to_owned())
}
