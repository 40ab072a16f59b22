//! One error in a field, in the form and words of kube-apiserver.

use serde_json::Value;
use std::fmt;

use super::{golang, limits, path::ValuePath};

/// Why a field is refused: the `reason` of a cause in a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldErrorReason {
    /// The field is required.
    Required,
    /// The value is not valid.
    Invalid,
    /// The value has another type.
    TypeInvalid,
    /// The value is not one of the supported values.
    NotSupported,
    /// The value has too many characters.
    TooLong,
    /// The value has too many elements.
    TooMany,
    /// The value is a duplicate.
    Duplicate,
    /// The field must not be set.
    Forbidden,
    /// The server could not check the value.
    Internal,
}

impl FieldErrorReason {
    /// Returns the reason as in a status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::Internal => "Internal error",
        }
    }

    /// Returns whether the rules are skipped: they are not run on an object with the wrong shape.
    pub(crate) fn blocks_rules(self) -> bool {
        matches!(self, Self::NotSupported | Self::Required | Self::TooLong | Self::TooMany | Self::TypeInvalid)
    }
}

/// One error in a field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldError {
    /// The reason.
    pub reason: FieldErrorReason,
    /// The path of the field, such as `spec.list[0].name`; `<nil>` for the whole object.
    pub field: String,
    /// The message, without the field.
    pub message: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.field, self.message)
    }
}

impl FieldError {
    fn new(reason: FieldErrorReason, path: &ValuePath<'_>, shown: Option<&str>, detail: &str) -> Self {
        let mut message = reason.words().to_owned();
        if let Some(shown) = shown {
            message.push_str(": ");
            message.push_str(shown);
        }
        if !detail.is_empty() {
            message.push_str(": ");
            message.push_str(detail);
        }
        let mut field = path.to_string();
        cut(&mut field, limits::PATH_BYTES);
        cut(&mut message, limits::SENTENCE_BYTES);
        Self { reason, field, message }
    }

    /// Returns the size of its field and message in bytes.
    pub(crate) fn size(&self) -> usize {
        self.field.len() + self.message.len()
    }

    pub(crate) fn required(path: &ValuePath<'_>, detail: &str) -> Self {
        Self::new(FieldErrorReason::Required, path, None, detail)
    }

    pub(crate) fn forbidden(path: &ValuePath<'_>, detail: &str) -> Self {
        Self::new(FieldErrorReason::Forbidden, path, None, detail)
    }

    pub(crate) fn internal(path: &ValuePath<'_>, detail: &str) -> Self {
        Self::new(FieldErrorReason::Internal, path, None, detail)
    }

    /// Returns the error of an invalid value. `shown` is the printed value; see [`shown`].
    pub(crate) fn invalid(path: &ValuePath<'_>, shown: &str, detail: &str) -> Self {
        Self::new(FieldErrorReason::Invalid, path, Some(shown), detail)
    }

    /// Returns the error of an invalid value that is too large to print.
    pub(crate) fn invalid_unshown(path: &ValuePath<'_>, detail: &str) -> Self {
        Self::new(FieldErrorReason::Invalid, path, None, detail)
    }

    pub(crate) fn type_invalid(path: &ValuePath<'_>, shown: &str, detail: &str) -> Self {
        Self::new(FieldErrorReason::TypeInvalid, path, Some(shown), detail)
    }

    pub(crate) fn not_supported<'a>(
        path: &ValuePath<'_>,
        shown: &str,
        supported: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let quoted: Vec<String> = supported.into_iter().map(golang::quote).collect();
        let detail = if quoted.is_empty() { String::new() } else { format!("supported values: {}", quoted.join(", ")) };
        Self::new(FieldErrorReason::NotSupported, path, Some(shown), &detail)
    }

    pub(crate) fn too_long(path: &ValuePath<'_>, most: i64) -> Self {
        let detail = match most {
            1 => "may not be more than 1 byte".to_owned(),
            0.. => format!("may not be more than {most} bytes"),
            _ => "value is too long".to_owned(),
        };
        Self::new(FieldErrorReason::TooLong, path, None, &detail)
    }

    pub(crate) fn too_many(path: &ValuePath<'_>, actual: usize, most: i64) -> Self {
        let detail = match most {
            1 => "must have at most 1 item".to_owned(),
            0.. => format!("must have at most {most} items"),
            _ => "has too many items".to_owned(),
        };
        Self::new(FieldErrorReason::TooMany, path, Some(&actual.to_string()), &detail)
    }

    pub(crate) fn duplicate(path: &ValuePath<'_>, shown: Option<&str>) -> Self {
        Self::new(FieldErrorReason::Duplicate, path, shown, "")
    }
}

/// Truncates a string. Hostile objects can have names and values of any length, and many errors.
fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push_str("...");
        text.shrink_to_fit();
    }
}

/// Drops the errors that exceed the limits.
pub(crate) fn bound(causes: &mut Vec<FieldError>) {
    let mut bytes = 0;
    let fits = causes.iter().take(limits::PROBLEMS).take_while(|cause| {
        let fits = bytes < limits::PROBLEM_BYTES;
        bytes += cause.size();
        fits
    });
    let most = fits.count();
    causes.truncate(most);
}

/// Returns a value as it is printed in a message.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => golang::quote(text),
        Value::Number(number) => match golang::number(number) {
            golang::Num::Int(int) => int.to_string(),
            golang::Num::Float(float) => golang::float(float),
        },
        other => golang::json(other),
    }
}
