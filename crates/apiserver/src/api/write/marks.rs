//! Checks the labels, annotations, finalizers and owner references of an object.

use serde_json::Value;

use super::metadata::finalizers;
use crate::api::selector::{is_label_key, is_label_value};
use crate::status::StatusCause;

/// The maximum size of all annotations together, in bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;

const KEY: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Returns the errors in labels, annotations, finalizers and owner references.
pub(super) fn wrong_marks(object: &Value) -> Vec<StatusCause> {
    let metadata = &object["metadata"];
    let entries = |member: &str| {
        let members = metadata[member].as_object().into_iter().flatten();
        members.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
    };
    let mut causes = Vec::new();
    for (key, value) in entries("labels") {
        if !is_label_key(key) {
            causes.push(StatusCause::invalid("metadata.labels", format!("{key:?}: {KEY}")));
        }
        if !is_label_value(value) {
            causes.push(StatusCause::invalid("metadata.labels", format!("{value:?}: {VALUE}")));
        }
    }
    for (key, _) in entries("annotations").filter(|(key, _)| !is_label_key(&key.to_lowercase())) {
        causes.push(StatusCause::invalid("metadata.annotations", format!("{key:?}: {KEY}")));
    }
    if entries("annotations").map(|(key, value)| key.len() + value.len()).sum::<usize>() > MAX_ANNOTATIONS {
        let message = format!("Too long: may not be more than {MAX_ANNOTATIONS} bytes");
        causes.push(StatusCause::new("FieldValueTooLong", "metadata.annotations", message));
    }
    let held = finalizers(object);
    for name in held.iter().filter(|name| !is_label_key(name)) {
        causes.push(StatusCause::invalid("metadata.finalizers", format!("{name:?}: {KEY}")));
    }
    if held.contains(&"orphan") && held.contains(&"foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.push(StatusCause::invalid("metadata.finalizers", format!("{held:?}: {why}")));
    }
    let owners = metadata["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, owner) in owners.iter().enumerate() {
        let text = |member: &str| owner[member].as_str().unwrap_or_default();
        let field = |member: &str| format!("metadata.ownerReferences[{index}].{member}");
        for member in ["apiVersion", "kind", "name", "uid"].into_iter().filter(|member| text(member).is_empty()) {
            causes.push(StatusCause::required(&field(member), "must not be empty"));
        }
        let api_version = text("apiVersion");
        if api_version.matches('/').count() > 1 || api_version.ends_with('/') {
            let why = format!("{api_version:?}: must be <group>/<version> or <version>");
            causes.push(StatusCause::invalid(&field("apiVersion"), why));
        }
    }
    if owners.iter().filter(|owner| owner["controller"] == true).count() > 1 {
        let why = "Only one reference can have Controller set to true";
        causes.push(StatusCause::invalid("metadata.ownerReferences", why));
    }
    causes
}
