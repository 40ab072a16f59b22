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
    fn new(reason: &'static str, field: impl Into<String>, what: String, detail: &str) -> Self {
        let message = if detail.is_empty() { what } else { format!("{what}: {detail}") };
        Self { reason, field: field.into(), message }
    }

    /// Returns the error of an invalid value.
    pub(crate) fn invalid(field: impl Into<String>, value: Option<&Value>, detail: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {}", shown(value)), detail)
    }

    /// Returns the error of a missing value.
    pub(crate) fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::new("FieldValueRequired", field, "Required value".to_owned(), detail)
    }

    /// Returns the error of a value that must not be set or must not change.
    pub(crate) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new("FieldValueForbidden", field, "Forbidden".to_owned(), detail)
    }

    /// Returns the error of a duplicate value.
    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {}", shown(Some(value))), "")
    }

    /// Returns the error of a reference to a missing object.
    pub(crate) fn not_found(field: impl Into<String>, value: &Value) -> Self {
        Self::new("FieldValueNotFound", field, format!("Not found: {}", shown(Some(value))), "")
    }

    /// Returns the error of a value outside a list of supported ones.
    pub(crate) fn unsupported(field: impl Into<String>, value: Option<&Value>, supported: &[&str]) -> Self {
        let supported: Vec<_> = supported.iter().map(|value| format!("{value:?}")).collect();
        let what = format!("Unsupported value: {}", shown(value));
        Self::new("FieldValueNotSupported", field, what, &format!("supported values: {}", supported.join(", ")))
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "null".to_owned(), Value::to_string)
}
