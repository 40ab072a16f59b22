//! One thing that is wrong with an object, in the words of a refusal.

use serde_json::Value;

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// What is wrong, such as `FieldValueInvalid`.
    pub(crate) reason: &'static str,
    /// Where, such as `spec.containers[0].image`.
    pub(crate) field: String,
    /// What is wrong, for people.
    pub(crate) message: String,
}

impl Cause {
    fn new(reason: &'static str, field: impl Into<String>, what: String, detail: &str) -> Self {
        let message = if detail.is_empty() { what } else { format!("{what}: {detail}") };
        Self { reason, field: field.into(), message }
    }

    /// A value that is not one of this field's.
    pub(crate) fn invalid(field: impl Into<String>, value: Option<&Value>, detail: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {}", shown(value)), detail)
    }

    /// A value that is missing.
    pub(crate) fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::new("FieldValueRequired", field, "Required value".to_owned(), detail)
    }

    /// A value that must not be here, or must not change.
    pub(crate) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new("FieldValueForbidden", field, "Forbidden".to_owned(), detail)
    }

    /// A value that another has.
    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {}", shown(Some(value))), "")
    }

    /// A reference to what is not there.
    pub(crate) fn not_found(field: impl Into<String>, value: &Value) -> Self {
        Self::new("FieldValueNotFound", field, format!("Not found: {}", shown(Some(value))), "")
    }

    /// A value that is none of a list.
    pub(crate) fn unsupported(field: impl Into<String>, value: Option<&Value>, supported: &[&str]) -> Self {
        let supported: Vec<_> = supported.iter().map(|value| format!("{value:?}")).collect();
        let what = format!("Unsupported value: {}", shown(value));
        Self::new("FieldValueNotSupported", field, what, &format!("supported values: {}", supported.join(", ")))
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "null".to_owned(), Value::to_string)
}
