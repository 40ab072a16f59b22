//! The `Status` object: errors of the API server, and a few of its success answers.

use bytes::Bytes;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

/// An answer of the API server that is not an object: almost always an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason, such as `NotFound`; empty if the server gives none.
    pub reason: Cow<'static, str>,
    /// The message for people.
    pub message: String,
    /// Details of the object and the causes.
    pub details: Option<Box<StatusDetails>>,
    /// A new continue token, in the answer to a request whose token has expired.
    pub continue_token: Option<String>,
}

/// Details of a [`Status`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusDetails {
    /// The name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group of the resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The plural name of the resource, or the kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The uid of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The causes, one for each invalid field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// After how many seconds to retry; zero if the server does not say.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// One cause of a [`Status`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StatusCause {
    /// The machine-readable kind of cause, such as `FieldValueInvalid`.
    #[serde(skip_serializing_if = "is_empty")]
    pub reason: Cow<'static, str>,
    /// The message for people.
    pub message: String,
    /// The path of the invalid field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

fn is_empty(text: &str) -> bool {
    text.is_empty()
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Status {
    /// Returns a failure with a code, a reason and a message.
    #[must_use]
    pub fn failure(code: u16, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), details: None, continue_token: None }
    }

    pub(crate) fn with_details(mut self, details: StatusDetails) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Returns the error of something that failed in the server, with the failure as its cause.
    pub(crate) fn internal(why: impl Into<String>) -> Self {
        let why = why.into();
        let message = format!("Internal error occurred: {why}");
        let cause = StatusCause { message: why, ..StatusCause::default() };
        let details = StatusDetails { causes: vec![cause], ..StatusDetails::default() };
        Self::failure(500, "InternalError", message).with_details(details)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(400, "BadRequest", message)
    }

    pub(crate) fn no_such_resource() -> Self {
        Self::failure(404, "NotFound", "the server could not find the requested resource")
            .with_details(StatusDetails::default())
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .with_details(StatusDetails::default())
    }

    pub(crate) fn list_expired() -> Self {
        Self::failure(410, "Expired", "The resourceVersion for the provided list is too old.")
    }

    pub(crate) fn watch_expired(asked: u64, oldest: u64) -> Self {
        Self::failure(410, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    pub(crate) fn version_too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let cause = StatusCause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".into(),
            field: String::new(),
        };
        Self::failure(504, "Timeout", message).with_details(StatusDetails {
            causes: vec![cause],
            retry_after_seconds: 1,
            ..StatusDetails::default()
        })
    }

    /// Returns the error of an object of `kind` in `group` with invalid fields.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, causes: Vec<StatusCause>) -> Self {
        // Equal causes are shown once.
        let mut known = HashSet::new();
        let new = causes.iter().filter(|cause| known.insert((cause.field.as_str(), cause.message.as_str())));
        let told: Vec<String> = new.map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let told = if told.len() == 1 { told.concat() } else { format!("[{}]", told.join(", ")) };
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        Self::failure(422, "Invalid", format!("{qualified} \"{name}\" is invalid: {told}")).with_details(
            StatusDetails {
                name: name.to_owned(),
                group: group.to_owned(),
                kind: kind.to_owned(),
                causes,
                ..StatusDetails::default()
            },
        )
    }

    /// Returns the error of query options that cannot be combined.
    pub(crate) fn invalid_options(kind: &str, causes: Vec<StatusCause>) -> Self {
        Self::invalid("meta.k8s.io", kind, "", causes)
    }

    /// Returns how many seconds to wait before a retry, if the answer says so.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u32> {
        self.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0)
    }

    /// Returns the body as the API server writes it: one line, with a newline at its end.
    #[must_use]
    pub fn to_json(&self) -> Bytes {
        let failed = self.code >= 400;
        let wire = StatusBody {
            kind: "Status",
            api_version: "v1",
            metadata: WireMetadata { continue_token: self.continue_token.as_deref() },
            status: if failed { "Failure" } else { "Success" },
            message: &self.message,
            reason: &self.reason,
            details: self.details.as_deref(),
            code: if failed { self.code } else { 0 },
        };
        let mut bytes = serde_json::to_vec(&wire).unwrap_or_default();
        bytes.push(b'\n');
        bytes.into()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusBody<'a> {
    kind: &'a str,
    api_version: &'a str,
    metadata: WireMetadata<'a>,
    status: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a StatusDetails>,
    #[serde(skip_serializing_if = "is_zero_code")]
    code: u16,
}

#[derive(Serialize)]
struct WireMetadata<'a> {
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    continue_token: Option<&'a str>,
}

fn is_zero_code(code: &u16) -> bool {
    *code == 0
}

impl From<kube_structural_schema::FieldError> for StatusCause {
    fn from(cause: kube_structural_schema::FieldError) -> Self {
        Self::new(cause.reason.as_str(), cause.field, cause.message)
    }
}

impl StatusCause {
    pub(crate) fn new(reason: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into(), field: field.into() }
    }

    pub(crate) fn forbidden(field: &str, message: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {message}"))
    }

    pub(crate) fn required(field: &str, message: &str) -> Self {
        let colon = if message.is_empty() { "" } else { ": " };
        Self::new("FieldValueRequired", field, format!("Required value{colon}{message}"))
    }

    pub(crate) fn invalid(field: &str, message: impl fmt::Display) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {message}"))
    }

    pub(crate) fn unsupported(field: &str, message: impl fmt::Display) -> Self {
        Self::new("FieldValueNotSupported", field, format!("Unsupported value: {message}"))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}: {}", self.code, self.reason, self.message)
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_bodies_match_kube_apiserver() {
        let expired = Status::watch_expired(1, 1175).to_json();
        let expected = concat!(
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
            r#""message":"too old resource version: 1 (1175)","reason":"Expired","code":410}"#,
            "\n"
        );
        assert_eq!(expired, expected);
    }

    #[test]
    fn equal_causes_are_listed_once() {
        let causes = |from: usize| (from..100_000).map(|number| StatusCause::forbidden(&format!("a{number}"), "no"));
        let status = Status::invalid_options("ListOptions", causes(0).chain(causes(50_000)).collect());
        assert_eq!(status.message.matches("Forbidden").count(), 100_000);
        assert_eq!(status.details.unwrap().causes.len(), 150_000);
    }

    #[test]
    fn several_causes_are_listed_in_brackets() {
        let status = Status::invalid_options(
            "ListOptions",
            vec![StatusCause::forbidden("a", "no"), StatusCause::forbidden("b", "never")],
        );
        assert_eq!(status.message, "ListOptions.meta.k8s.io \"\" is invalid: [a: Forbidden: no, b: Forbidden: never]");
    }
}
