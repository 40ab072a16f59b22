//! The message of a command that fails: what it tried, why that failed, and what to do.

use std::error::Error;
use std::fmt;

/// The exit code of a command that Ctrl-C ended before it was done.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    cause: Option<Box<dyn Error + Send + Sync>>,
    hint: Option<String>,
    exit_code: u8,
}

impl Failure {
    /// Creates a failure with a cause.
    pub(crate) fn new(what: impl Into<String>, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { what: what.into(), cause: Some(cause.into()), hint: None, exit_code: 1 }
    }

    /// Creates a failure without a cause.
    pub(crate) fn plain(what: impl Into<String>) -> Self {
        Self { what: what.into(), cause: None, hint: None, exit_code: 1 }
    }

    /// Creates a failure because of wrong arguments.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self { what: what.into(), cause: None, hint: None, exit_code: 2 }
    }

    /// Creates a failure because the user interrupted the command.
    pub(crate) fn interrupted(what: impl Into<String>) -> Self {
        Self { what: what.into(), cause: None, hint: None, exit_code: INTERRUPTED }
    }

    /// Adds a hint: what the user can do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns 2 for wrong arguments, 130 for an interrupted command, and otherwise 1.
    pub(crate) fn exit_code(&self) -> u8 {
        self.exit_code
    }
}

/// The whole message, as the user sees it.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        let mut last = self.what.clone();
        let mut cause = self.cause.as_deref().map(|cause| cause as &dyn Error);
        while let Some(error) = cause {
            let text = error.to_string();
            // Many errors end with the message of their source, which is not repeated.
            if !last.ends_with(&text) {
                write!(f, "\n  caused by: {text}")?;
            }
            last = text;
            cause = error.source();
        }
        match &self.hint {
            Some(hint) => write!(f, "\n\nhint: {hint}"),
            None => Ok(()),
        }
    }
}
