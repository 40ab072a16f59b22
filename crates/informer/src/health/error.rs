//! Everything that can go wrong in an informer that goes on.

use crate::object::{ObjectKey, Scope};
use crate::reflector::ReflectorError;
use crate::representation::DecodeError;
use crate::source::{BadObject, Status};
use crate::store::IndexFailure;

/// Something that went wrong. All of it reaches the error hook, [`Health`](crate::Health) and a counter.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum InformerError {
    /// Asking the server failed; it is asked again.
    #[error("{}{error}", scope_name(scope))]
    Reflector {
        /// For which part of the collection.
        scope: Scope,
        /// What went wrong.
        error: ReflectorError,
    },
    /// An object could not be read. What is known of it stays.
    #[error("object {} could not be read: {}", key_name(bad), bad.error)]
    Undecodable {
        /// Which one, and why.
        bad: BadObject,
    },
    /// An index function panicked; the object is not in that index.
    #[error("index {index:?} failed on {key}: {message}")]
    Index {
        /// The index.
        index: String,
        /// The object.
        key: ObjectKey,
        /// What the panic said.
        message: String,
    },
    /// A part of the informer panicked: it has ended.
    #[error("{part} panicked, and the informer ends: {message}")]
    Panicked {
        /// Which part.
        part: &'static str,
        /// What the panic said.
        message: String,
    },
    /// A handler panicked; the event counts as delivered.
    #[error("handler {handler:?} panicked: {message}")]
    HandlerPanicked {
        /// The handler.
        handler: String,
        /// What the panic said.
        message: String,
    },
}

impl InformerError {
    /// What the server said, if it was the server.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Reflector { error, .. } => error.source_error()?.status(),
            _ => None,
        }
    }
}

/// Stands for the text of an error or a panic of the user's code, which may quote a Secret.
const WITHHELD: &str = "message withheld: it may quote a Secret";

impl InformerError {
    /// The same without texts that come from the user's code: transforms, index functions and handlers.
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

/// The same for the error of an object that could not be read.
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
