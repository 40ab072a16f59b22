//! Changes parts of an object: JSON patch and JSON merge patch.

use json_patch::PatchOperation;
use serde_json::Value;

use super::metadata::is_too_deep;
use super::update::{Part, check_body, check_version, modify, restrict};
use super::{Outcome, WriteOptions};
use crate::hub::Hub;
use crate::object::Key;
use crate::resource::Resource;
use crate::status::{Status, StatusDetails};

/// How many operations a JSON patch may have.
const MAX_OPERATIONS: usize = 10_000;

/// How many bytes the copies of a JSON patch may add.
const MAX_COPIED: usize = 3 * 1024 * 1024;

/// A change in one of the two formats.
#[derive(Debug, Clone)]
pub(crate) enum Patch {
    /// RFC 6902: a list of operations.
    Operations(json_patch::Patch),
    /// RFC 7386: an object laid over the other; null removes.
    Merge(Value),
}

impl Patch {
    /// Reads a patch of this media type.
    pub(crate) fn parse(media_type: &str, body: &[u8]) -> Result<Self, Status> {
        let refuse = |error: serde_json::Error| Status::bad_request(format!("error decoding patch: {error}"));
        match media_type {
            "application/json-patch+json" => {
                let patch: json_patch::Patch = serde_json::from_slice(body).map_err(refuse)?;
                if patch.0.len() > MAX_OPERATIONS {
                    let message = format!(
                        "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
                        patch.0.len()
                    );
                    return Err(Status::failure(413, "RequestEntityTooLarge", message));
                }
                Ok(Self::Operations(patch))
            }
            "application/merge-patch+json" => {
                let patch: Value = serde_json::from_slice(body).map_err(refuse)?;
                if !patch.is_object() {
                    return Err(Status::bad_request("error decoding patch: a merge patch must be an object"));
                }
                Ok(Self::Merge(patch))
            }
            other => Err(unsupported(other)),
        }
    }

    /// The value with the change made.
    pub(crate) fn apply(&self, value: &Value) -> Result<Value, Status> {
        let mut changed = value.clone();
        match self {
            Self::Merge(patch) => json_patch::merge(&mut changed, patch),
            Self::Operations(patch) => {
                let mut copied = 0;
                for operation in &patch.0 {
                    if finds_nothing(operation, &changed) {
                        continue;
                    }
                    copied += copy_size(operation, &changed);
                    if copied > MAX_COPIED {
                        let message = format!(
                            "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding \
                             the limit {MAX_COPIED}"
                        );
                        return Err(Status::failure(413, "RequestEntityTooLarge", message));
                    }
                    json_patch::patch(&mut changed, std::slice::from_ref(operation)).map_err(|error| {
                        tracing::debug!(%error, "patch does not apply");
                        unprocessable()
                    })?;
                    if is_too_deep(&changed) {
                        return Err(unprocessable());
                    }
                }
            }
        }
        Ok(changed)
    }
}

/// True for a test for null where there is nothing: it holds, as with the real server.
fn finds_nothing(operation: &PatchOperation, object: &Value) -> bool {
    let PatchOperation::Test(test) = operation else { return false };
    let Some((parent, _)) = test.path.as_str().rsplit_once('/') else { return false };
    let there = |path: &str| object.pointer(path).is_some();
    test.value.is_null() && object.pointer(parent).is_some_and(Value::is_object) && !there(test.path.as_str())
}

/// How much an operation adds by copying: a few copies of copies would fill any memory.
fn copy_size(operation: &PatchOperation, object: &Value) -> usize {
    let PatchOperation::Copy(copy) = operation else { return 0 };
    object.pointer(copy.from.as_str()).map_or(0, |value| value.to_string().len())
}

/// Changes the object at `key`, or a part of it.
pub(crate) fn patch(
    hub: &Hub,
    resource: &Resource,
    key: &Key,
    patch: &Patch,
    part: Part,
    options: WriteOptions,
) -> Result<Outcome, Status> {
    patch_with(hub, resource, key, part, options, |stored| patch.apply(stored))
}

/// Changes the object at `key`, or a part of it, depending on what it is at that moment.
pub(crate) fn patch_with(
    hub: &Hub,
    resource: &Resource,
    key: &Key,
    part: Part,
    options: WriteOptions,
    change: impl FnOnce(&Value) -> Result<Value, Status>,
) -> Result<Outcome, Status> {
    modify(hub, resource, key, options, |stored| {
        let mut changed = change(stored)?;
        check_body(resource, key, &mut changed, options.trust).map_err(|status| {
            match status.message.contains("cannot unmarshal") {
                true => Status { code: 422, reason: "Invalid", ..status },
                false => status,
            }
        })?;
        check_version(resource, key, stored, &changed, options)?;
        Ok(restrict(resource, stored, changed, part, options.trust))
    })
}

fn unprocessable() -> Status {
    Status::failure(422, "Invalid", "the server rejected our request due to an error in our request")
        .with_details(StatusDetails::default())
}

/// Says which patches are understood, and that others of the API server's are not yet.
fn unsupported(media_type: &str) -> Status {
    let known = "application/json-patch+json, application/merge-patch+json";
    let message = match media_type {
        "application/strategic-merge-patch+json" | "application/apply-patch+yaml" | "application/apply-patch+cbor" => {
            format!(
                "this server does not understand patches of type {media_type} yet - accepted media types include: {known}"
            )
        }
        _ => format!("the body of the request was in an unknown format - accepted media types include: {known}"),
    };
    Status::failure(415, "UnsupportedMediaType", message)
}
