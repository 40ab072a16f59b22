//! The metadata that the server sets: identity, versions, timestamps.

use serde_json::{Map, Value};

use super::{Trust, WriteFailure};
use crate::kinds::Resource;
use crate::status::Status;
use crate::storage::key::StoreKey;

/// Checks that a body is an object of this resource. Fills in `kind` and `apiVersion` where the body may omit them.
///
/// Clients must set both for custom resources. Direct calls name the resource, so they may omit them.
pub(super) fn check_kind(resource: &Resource, object: &mut Value, trust: Trust) -> Result<(), WriteFailure> {
    if is_deeper(object, DEEPEST) {
        return Err(WriteFailure::undecodable(resource.named(), "json: exceeded max depth"));
    }
    let Some(members) = object.as_object_mut() else {
        return Err(WriteFailure::undecodable(resource.named(), "json: cannot unmarshal into an object"));
    };
    let api_version = resource.api_version();
    for (member, expected) in [("kind", resource.kind.as_str()), ("apiVersion", api_version.as_str())] {
        match members.get(member) {
            None if resource.rules.custom && trust == Trust::Client => {
                return Err(Status::bad_request(format!("Object '{}' is missing in the body", capital(member))).into());
            }
            None => {
                members.insert(member.to_owned(), expected.into());
            }
            Some(Value::String(found)) if found == expected => {}
            Some(Value::String(found)) if member == "apiVersion" => {
                return Err(Status::bad_request(format!(
                    "the API version in the data ({found}) does not match the expected API version ({expected})"
                ))
                .into());
            }
            Some(Value::String(found)) => {
                return Err(Status::bad_request(format!(
                    "{found} in version {:?} cannot be handled as a {expected}",
                    resource.version
                ))
                .into());
            }
            Some(_) => {
                return Err(WriteFailure::undecodable(
                    resource.named(),
                    "json: cannot unmarshal a type that is no string",
                ));
            }
        }
    }
    ensure_metadata(members);
    Ok(())
}

/// The maximum nesting of an object. Clients and the server could not read a deeper one.
pub(super) const DEEPEST: usize = 100;

/// Returns whether a value is nested deeper than `levels`.
pub(super) fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(members) => levels == 0 || members.values().any(|member| is_deeper(member, levels - 1)),
        _ => false,
    }
}

/// Returns the nesting depth of a value; 0 for strings and numbers.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn capital(member: &str) -> &str {
    if member == "kind" { "Kind" } else { "apiVersion" }
}

/// Adds empty metadata if it is missing or null.
fn ensure_metadata(members: &mut Map<String, Value>) {
    let metadata = members.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
}

/// Sets the namespace from the path, and refuses a body with another namespace.
pub(super) fn fix_namespace(resource: &Resource, namespace: Option<&str>, object: &mut Value) -> Result<(), Status> {
    let metadata = metadata_mut(object);
    if !resource.namespaced {
        metadata.remove("namespace");
        return Ok(());
    }
    let Some(namespace) = namespace else { return Err(Status::bad_request("namespace is required")) };
    match metadata.get("namespace").and_then(Value::as_str) {
        None | Some("") => {
            metadata.insert("namespace".into(), namespace.into());
            Ok(())
        }
        Some(named) if named == namespace => Ok(()),
        Some(_) => Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

/// Returns the metadata of an object, and adds empty metadata if there is none.
pub(super) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut().expect("made an object above")
}

/// Returns a string member of metadata, or an empty string.
pub(super) fn metadata_text<'a>(object: &'a Value, member: &str) -> &'a str {
    object["metadata"][member].as_str().unwrap_or_default()
}

/// Returns the finalizers of an object.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Copies the metadata that an update cannot change from the stored object.
pub(super) fn keep_identity(stored: &Value, updated: &mut Value) {
    let kept = stored["metadata"].as_object().cloned().unwrap_or_default();
    let metadata = metadata_mut(updated);
    metadata.remove("resourceVersion");
    metadata.remove("selfLink");
    for member in IMMUTABLE.into_iter().chain(["generation"]) {
        match kept.get(member) {
            Some(value) => metadata.insert(member.to_owned(), value.clone()),
            None => metadata.remove(member),
        };
    }
}

/// Members of metadata that no write changes after the create.
const IMMUTABLE: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName"];

/// Sets the fields that no request, patch, admission or rule of a kind may decide: kind, version, name, namespace and
/// the immutable metadata of
/// `identity`. This is the last step of every write before the object is stored.
pub(super) fn seal(resource: &Resource, key: &StoreKey, identity: &Value, object: &mut Value) {
    keep_place(resource, key, object);
    for member in IMMUTABLE {
        match identity["metadata"].get(member) {
            Some(value) => metadata_mut(object).insert(member.to_owned(), value.clone()),
            None => metadata_mut(object).remove(member),
        };
    }
}

/// Sets kind, version, name and namespace of an object.
pub(super) fn keep_place(resource: &Resource, key: &StoreKey, object: &mut Value) {
    object["kind"] = resource.kind.as_str().into();
    object["apiVersion"] = resource.api_version().into();
    let metadata = metadata_mut(object);
    metadata.insert("name".into(), key.name().into());
    match key.namespace() {
        Some(namespace) => metadata.insert("namespace".into(), namespace.into()),
        None => metadata.remove("namespace"),
    };
}

/// Copies one top-level member from the stored object, or removes it if the stored object has none.
pub(super) fn keep_member(stored: &Value, updated: &mut Value, member: &str) {
    let Some(members) = updated.as_object_mut() else { return };
    match stored.get(member) {
        Some(value) => members.insert(member.to_owned(), value.clone()),
        None => members.remove(member),
    };
}

/// Increments the generation after a change outside of metadata and status.
pub(super) fn bump_generation(resource: &Resource, stored: &Value, updated: &mut Value) {
    if !resource.rules.generation {
        return;
    }
    let ignored = |member: &str| member == "metadata" || (member == "status" && resource.rules.status);
    let relevant = |object: &Value| -> Map<String, Value> {
        let members = object.as_object().into_iter().flatten();
        members.filter(|(member, _)| !ignored(member)).map(|(member, value)| (member.clone(), value.clone())).collect()
    };
    if relevant(stored) != relevant(updated) {
        let generation = stored["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        metadata_mut(updated).insert("generation".into(), generation.into());
    }
}
