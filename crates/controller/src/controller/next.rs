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
    /// The reconcile returned this error.
    Error(String),
    /// The reconcile failed, and is not tried again.
    Final(String),
    /// The reconcile was not called: an object that it depends on cannot be decoded.
    Undecodable(String),
    Panicked(String),
    TimedOut(Duration),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(text) | Self::Final(text) | Self::Undecodable(text) => f.write_str(text),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::TimedOut(limit) => write!(f, "took longer than {limit:?}"),
        }
    }
}

/// Returns the text of an error and its causes. An error whose own code panics costs nothing but its text.
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
        .unwrap_or_else(|| "with something that is no text".to_owned())
}
