//! The properties of a write that decide field ownership.

use serde_json::Value;

use super::filter::FieldFilter;
use super::manager::{ManagerEntry, Operation};
use super::set::FieldSet;

/// A write: object, manager and time.
#[derive(Debug, Clone, Copy)]
pub struct Write<'r, S> {
    /// The type of the object.
    pub schema: S,
    /// The version of the request, such as `apps/v1`.
    pub api_version: &'r str,
    /// The kind of the object.
    pub kind: &'r str,
    /// The subresource that is written, such as `status`; empty for the main resource.
    pub subresource: &'r str,
    /// The name of the manager; an empty name counts as `unknown`.
    pub manager: &'r str,
    /// Which fields the request can change.
    pub filter: &'r FieldFilter,
    /// The time, such as `2006-01-02T15:04:05Z`.
    pub now: &'r str,
}

impl<S> Write<'_, S> {
    /// Returns an entry without fields for the manager of this request.
    pub(super) fn entry(&self, manager: &str, operation: Operation) -> ManagerEntry {
        ManagerEntry {
            manager: if manager.is_empty() { "unknown".into() } else { manager.to_owned() },
            operation,
            api_version: self.api_version.to_owned(),
            subresource: self.subresource.to_owned(),
            time: String::new(),
            fields: FieldSet::default(),
        }
    }

    /// Returns an object as named in messages: namespace, name and kind.
    pub(super) fn name_of(object: &Value) -> String {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let metadata = |name: &str| text(object.get("metadata").and_then(|metadata| metadata.get(name)));
        let kind = kind_text(&text(object.get("apiVersion")), &text(object.get("kind")));
        format!("{}/{}; {kind}", metadata("namespace"), metadata("name"))
    }
}

/// Returns a kind as named in messages: `apps/v1, Kind=Deployment`.
pub(super) fn kind_text(api_version: &str, kind: &str) -> String {
    match api_version.split('/').collect::<Vec<_>>().as_slice() {
        [version] => format!("/{version}, Kind={kind}"),
        ["", ""] => format!("/, Kind={kind}"),
        [group, version] => format!("{group}/{version}, Kind={kind}"),
        _ => "/, Kind=".into(),
    }
}
