//! The errors of an informer. None of them except a panic of one of its tasks ends it.

use crate::object::{ObjectKey, Scope};
use crate::reflector::ReflectorError;
use crate::representation::DecodeError;
use crate::source::{BadObject, Status};
use crate::store::IndexFailure;

/// An error of an informer. Every error reaches the error hook, [`Health`](crate::Health) and a counter.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum InformerError {
    /// A request to the API server failed. The reflector retries it.
    #[error("{}{error}", scope_name(scope))]
    Reflector {
        /// The scope of the reflector.
        scope: Scope,
        /// The error of the reflector.
        error: ReflectorError,
    },
    /// An object could not be decoded. Its last known state stays.
    #[error("object {} could not be read: {}", key_name(bad), bad.error)]
    Undecodable {
        /// The object, and the reason.
        bad: BadObject,
    },
    /// An index function panicked; the object is not in that index.
    #[error("index {index:?} failed on {key}: {message}")]
    Index {
        /// The index.
        index: String,
        /// The object.
        key: ObjectKey,
        /// The message of the panic.
        message: String,
    },
    /// A task of the informer panicked, so the informer has stopped.
    #[error("{part} panicked, and the informer ends: {message}")]
    Panicked {
        /// The task.
        part: &'static str,
        /// The message of the panic.
        message: String,
    },
    /// A handler panicked; the event counts as delivered.
    #[error("handler {handler:?} panicked: {message}")]
    HandlerPanicked {
        /// The handler.
        handler: String,
        /// The message of the panic.
        message: String,
    },
}

impl InformerError {
    /// Returns the error response, if the API server sent one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Reflector { error, .. } => error.source_error()?.status(),
            _ => None,
        }
    }
}

/// Replaces the message of an error or a panic of user code, which may quote a Secret.
const WITHHELD: &str = "message withheld: it may quote a Secret";

impl InformerError {
    /// Returns the error without messages of user code: transforms, index functions and handlers.
    pub(super) fn without_user_text(&self) -> Self {
        let mut error = self.clone();
        match &mut error {
            Self::Index { message, .. } | Self::HandlerPanicked { message, .. } | Self::Panicked { message, .. } => {
                *message = WITHHELD.to_owned();
            }
            Self::Undecodable { bad } => bad.error = decode_error_without_user_text(&bad.error),
            Self::Reflector { .. } => {}
        }
        error
    }
}

/// Returns the error of an undecodable object without messages of user code.
pub(super) fn decode_error_without_user_text(error: &DecodeError) -> DecodeError {
    match error {
        DecodeError::Transform(_) => DecodeError::Transform(WITHHELD.to_owned()),
        error => error.clone(),
    }
}

impl From<IndexFailure> for InformerError {
    fn from(IndexFailure { index, key, message }: IndexFailure) -> Self {
        Self::Index { index: index.to_string(), key, message }
    }
}

fn scope_name(scope: &Scope) -> String {
    scope.as_ref().map_or_else(String::new, |namespace| format!("namespace {namespace:?}: "))
}

fn key_name(bad: &BadObject) -> String {
    bad.key.as_ref().map_or_else(|| "of unknown name".to_owned(), ToString::to_string)
}
