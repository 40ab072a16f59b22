//! One error in an object, as a cause of a status.

use serde_json::Value;

/// One error in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// The reason, such as `FieldValueInvalid`.
    pub(crate) reason: &'static str,
    /// The field, such as `spec.containers[0].image`.
    pub(crate) field: String,
    /// The message for people.
    pub(crate) message: String,
}

impl Cause {
    /// Returns the error of an invalid value.
    pub(crate) fn invalid(field: impl Into<String>, value: Option<&Value>, detail: &str) -> Self {
        let shown = value.map_or_else(|| "null".to_owned(), Value::to_string);
        let message = format!("Invalid value: {shown}: {detail}");
        Self { reason: "FieldValueInvalid", field: field.into(), message }
    }

    /// Returns the error of a missing value.
    pub(crate) fn required(field: impl Into<String>) -> Self {
        Self { reason: "FieldValueRequired", field: field.into(), message: "Required value".to_owned() }
    }

    /// Returns the error of a value that must not be set or must not change.
    pub(crate) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self { reason: "FieldValueForbidden", field: field.into(), message: format!("Forbidden: {detail}") }
    }

    /// Returns the error of a value that must be unique, or must exist, or is too long.
    pub(crate) fn other(reason: &'static str, field: impl Into<String>, detail: &str) -> Self {
        Self { reason, field: field.into(), message: detail.to_owned() }
    }

    /// Returns the error of a value outside a list of supported ones.
    pub(crate) fn unsupported(field: impl Into<String>, value: Option<&Value>, supported: &[&str]) -> Self {
        let shown = value.map_or_else(|| "\"\"".to_owned(), Value::to_string);
        let message = format!("Unsupported value: {shown}: supported values: {supported:?}");
        Self { reason: "FieldValueNotSupported", field: field.into(), message }
    }
}
