//! The type and metadata of resources, at the root and embedded.

use serde_json::{Map, Value};

use super::cause::{FieldError, shown};
use super::golang;
use super::limits;
use super::node::SchemaNode;
use super::path::ValuePath;
use super::unknown::{Unknown, push_name};

const FIELDS: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];
const OWNER: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
const MANAGED: [&str; 7] = ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];

/// Removes unknown fields from the metadata of the object itself.
pub(super) fn prune_root(object: &mut Value, unknown: &mut Unknown) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        prune_metadata(metadata, "metadata", unknown);
    }
}

fn prune_metadata(metadata: &mut Map<String, Value>, path: &str, unknown: &mut Unknown) {
    keep(metadata, &FIELDS, path, unknown);
    for (name, fields) in [("ownerReferences", &OWNER[..]), ("managedFields", &MANAGED[..])] {
        let Some(Value::Array(items)) = metadata.get_mut(name) else {
            continue;
        };
        for (index, item) in items.iter_mut().enumerate() {
            if let Value::Object(item) = item {
                keep(item, fields, &format!("{path}.{name}[{index}]"), unknown);
            }
        }
    }
}

fn keep(members: &mut Map<String, Value>, fields: &[&str], path: &str, unknown: &mut Unknown) {
    members.retain(|name, _| {
        let known = fields.contains(&name.as_str());
        if !known {
            unknown.record(path, name);
        }
        known
    });
}

/// Removes unknown and empty fields from the metadata of embedded resources.
pub(super) fn prune_embedded(value: &mut Value, node: &SchemaNode, path: &mut String, unknown: &mut Unknown) {
    let length = path.len();
    match value {
        Value::Object(members) => {
            if node.embedded
                && let Some(Value::Object(metadata)) = members.get_mut("metadata")
            {
                push_name(path, "metadata");
                prune_metadata(metadata, path, unknown);
                metadata.retain(|_, value| !says_nothing(value));
                path.truncate(length);
            }
            for (name, member) in members {
                if let Some(inner) = node.properties.get(name) {
                    push_name(path, name);
                    prune_embedded(member, inner, path, unknown);
                } else if let Some(inner) = node.additional.schema() {
                    path.push_str(&format!("[{name}]"));
                    prune_embedded(member, inner, path, unknown);
                }
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            let Some(inner) = node.items.as_deref() else {
                return;
            };
            for (index, item) in items.iter_mut().enumerate() {
                path.push_str(&format!("[{index}]"));
                prune_embedded(item, inner, path, unknown);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) => false,
    }
}

/// Checks the types and metadata of embedded resources, and of the object itself with `is_resource`.
pub(crate) fn check_inside(
    value: &Value,
    node: &SchemaNode,
    path: &ValuePath<'_>,
    is_resource: bool,
    causes: &mut Vec<FieldError>,
) {
    if causes.len() >= limits::PROBLEMS {
        return;
    }
    match value {
        Value::Object(members) => {
            if node.embedded || is_resource {
                check_resource(members, path, causes);
            }
            for (name, member) in members {
                if let Some(inner) = node.properties.get(name) {
                    check_inside(member, inner, &path.child(name), false, causes);
                } else if let Some(inner) = node.additional.schema() {
                    check_inside(member, inner, &path.key(name), false, causes);
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = node.items.as_deref() else {
                return;
            };
            for (index, item) in items.iter().enumerate() {
                check_inside(item, inner, &path.index(index), false, causes);
            }
        }
        _ => {}
    }
}

fn check_resource(members: &Map<String, Value>, path: &ValuePath<'_>, causes: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let at = path.child(name);
        match members.get(name) {
            None => causes.push(FieldError::required(&at, "")),
            Some(Value::String(text)) if text.is_empty() => {
                causes.push(FieldError::invalid(&at, "\"\"", "must not be empty"));
            }
            Some(Value::String(text)) => {
                let wrong = if name == "kind" { wrong_kind(text) } else { wrong_version(text) };
                causes.extend(wrong.map(|detail| FieldError::invalid(&at, &golang::quote(text), &detail)));
            }
            Some(other) => causes.push(FieldError::invalid(&at, &shown(other), "must be a string")),
        }
    }
    if let Some(metadata) = members.get("metadata") {
        check_metadata(metadata, &path.child("metadata"), causes);
    }
}

fn wrong_version(text: &str) -> Option<String> {
    (text.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {text}"))
}

fn wrong_kind(text: &str) -> Option<String> {
    let fits = text.len() <= 63 && super::formats::is_dns_1035_label(&text.to_lowercase());
    (!fits).then(|| "must be a DNS-1035 label, which may have capitals".to_owned())
}

/// Checks the types of the metadata fields, but not their values.
fn check_metadata(metadata: &Value, path: &ValuePath<'_>, causes: &mut Vec<FieldError>) {
    let Value::Object(fields) = metadata else {
        if !metadata.is_null() {
            causes.push(FieldError::invalid(path, &shown(metadata), "must be an object"));
        }
        return;
    };
    for (name, value) in fields {
        let fits = match name.as_str() {
            "labels" | "annotations" => value.as_object().is_some_and(|map| map.values().all(Value::is_string)),
            "ownerReferences" | "managedFields" => {
                value.as_array().is_some_and(|items| items.iter().all(Value::is_object))
            }
            "finalizers" => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            "generation" | "deletionGracePeriodSeconds" => value.is_i64(),
            name if FIELDS.contains(&name) => value.is_string(),
            _ => true,
        };
        if !fits && !value.is_null() {
            let detail = format!("metadata.{name} is not of the type that metadata has");
            causes.push(FieldError::invalid(path, &shown(metadata), &detail));
        }
    }
}
