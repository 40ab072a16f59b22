//! Patches: JSON patch, merge patch, strategic merge patch and server-side apply.

use json_patch::{AddOperation, PatchOperation};
use serde_json::Value;

use super::create::create_as;
use super::metadata::{self, DEEPEST};
use super::options::Validation;
use super::ownership::{applied, merged};
use super::prepare::{Ownership, PreparedWrite};
use super::receive::{Received, complete, dedupe_owners, receive};
use super::update::{Subresource, check_body, check_version, modify, modify_as};
use super::{Trust, WriteFailure, WriteOptions, WriteOutcome};
use crate::hub::Hub;
use crate::kinds::Resource;
use crate::message::document::{self, BodyDocument};
use crate::status::{Status, StatusDetails};
use crate::storage::key::StoreKey;

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// The maximum number of operations in a JSON patch.
const MAX_OPERATIONS: usize = 10_000;

/// The estimated nesting at which an object is measured during a patch. The stack is large enough for this nesting.
const DEEPEST_MEANWHILE: usize = 2_000;

/// The maximum number of bytes that the copies of a JSON patch may add.
const MAX_COPIED: usize = 3 * 1024 * 1024;

/// A patch in one of its formats.
#[derive(Debug, Clone)]
pub(crate) enum Patch {
    /// RFC 6902: a list of operations.
    Operations { patch: json_patch::Patch, duplicates: Vec<String> },
    /// RFC 7386: a merge patch. Null removes a member.
    Merge(BodyDocument),
    /// A merge patch that merges lists by their keys.
    Strategic(BodyDocument),
    /// A server-side apply: the fields that the manager wants to set and to own.
    Apply(BodyDocument),
}

impl Patch {
    /// Reads a patch of this media type.
    pub(crate) fn parse(media_type: &str, body: &[u8], resource: &Resource) -> Result<Self, Status> {
        let refuse = |error: serde_json::Error| Status::bad_request(format!("error decoding patch: {error}"));
        match media_type {
            "application/json-patch+json" => {
                let BodyDocument { value, duplicates } = document::read(body).map_err(refuse)?;
                let patch: json_patch::Patch = serde_json::from_value(value).map_err(refuse)?;
                if patch.0.len() > MAX_OPERATIONS {
                    let message = format!(
                        "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
                        patch.0.len()
                    );
                    return Err(Status::failure(413, "RequestEntityTooLarge", message));
                }
                let duplicates = duplicates.into_iter().map(|flaw| format!("json patch {flaw}")).collect();
                Ok(Self::Operations { patch, duplicates })
            }
            MERGE | STRATEGIC if media_type == MERGE || resource.of.is_some() => {
                let patch = document::read(body).map_err(refuse)?;
                if !patch.value.is_object() {
                    return Err(Status::bad_request("error decoding patch: a merge patch must be an object"));
                }
                Ok(if media_type == MERGE { Self::Merge(patch) } else { Self::Strategic(patch) })
            }
            APPLY => {
                let patch = document::read_yaml(body)
                    .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
                Ok(Self::Apply(patch))
            }
            other => Err(unsupported(other, resource)),
        }
    }

    /// Returns the duplicate fields in the patch, for strict validation.
    pub(super) fn duplicates(&self) -> &[String] {
        match self {
            Self::Operations { duplicates, .. } => duplicates,
            Self::Merge(patch) | Self::Strategic(patch) | Self::Apply(patch) => &patch.duplicates,
        }
    }

    /// Returns the kind of its options, for messages.
    pub(crate) fn options(&self) -> &'static str {
        if let Self::Apply(_) = self { "ApplyOptions" } else { "PatchOptions" }
    }

    /// Returns the patched value.
    pub(crate) fn apply(&self, value: &Value, resource: &Resource) -> Result<Value, Status> {
        let mut changed = value.clone();
        match self {
            Self::Strategic(patch) => return merged(resource, value, &patch.value),
            // An apply describes a whole object and is handled elsewhere.
            Self::Apply(_) => return Err(Status::method_not_allowed()),
            Self::Merge(patch) => json_patch::merge(&mut changed, &patch.value),
            Self::Operations { patch, .. } => {
                let (mut copied, mut deepest) = (0, metadata::depth(&changed));
                for operation in &patch.0 {
                    if finds_nothing(operation, &changed) {
                        continue;
                    }
                    if brings_too_deep(operation) {
                        return Err(unprocessable());
                    }
                    if deepest_after(operation, deepest) > DEEPEST_MEANWHILE {
                        deepest = metadata::depth(&changed);
                        if deepest > DEEPEST {
                            return Err(unprocessable());
                        }
                    }
                    deepest = deepest_after(operation, deepest);
                    copied += copy_size(operation, &changed);
                    if copied > MAX_COPIED {
                        let message = format!(
                            "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding \
                             the limit {MAX_COPIED}"
                        );
                        return Err(Status::failure(413, "RequestEntityTooLarge", message));
                    }
                    let operation = copied_nothing(operation, &changed).unwrap_or_else(|| operation.clone());
                    json_patch::patch(&mut changed, std::slice::from_ref(&operation)).map_err(|error| {
                        tracing::debug!(%error, "patch does not apply");
                        unprocessable()
                    })?;
                }
                if deepest > DEEPEST && metadata::is_deeper(&changed, DEEPEST) {
                    return Err(unprocessable());
                }
            }
        }
        Ok(changed)
    }
}

/// Returns true for a test for null at a missing path. Such a test passes, as in kube-apiserver.
fn finds_nothing(operation: &PatchOperation, object: &Value) -> bool {
    let PatchOperation::Test(test) = operation else { return false };
    let Some((parent, _)) = test.path.as_str().rsplit_once('/') else { return false };
    let there = |path: &str| object.pointer(path).is_some();
    test.value.is_null() && object.pointer(parent).is_some_and(Value::is_object) && !there(test.path.as_str())
}

/// Returns the operation that replaces a copy of a missing member: it adds null, as in kube-apiserver.
fn copied_nothing(operation: &PatchOperation, object: &Value) -> Option<PatchOperation> {
    let PatchOperation::Copy(copy) = operation else { return None };
    let (parent, _) = copy.from.as_str().rsplit_once('/')?;
    let missing = object.pointer(parent)?.is_object() && object.pointer(copy.from.as_str()).is_none();
    missing.then(|| PatchOperation::Add(AddOperation { path: copy.path.clone(), value: Value::Null }))
}

/// Returns the number of steps of a path.
fn steps(path: &str) -> usize {
    path.matches('/').count()
}

/// Returns whether an operation adds a value that would be nested too deep to be read again.
fn brings_too_deep(operation: &PatchOperation) -> bool {
    let (path, value) = match operation {
        PatchOperation::Add(add) => (&add.path, &add.value),
        PatchOperation::Replace(replace) => (&replace.path, &replace.value),
        _ => return false,
    };
    metadata::is_deeper(value, DEEPEST.saturating_sub(steps(path.as_str())))
}

/// Returns the maximum nesting of an object of this depth after an operation. Moved or copied values are not measured:
/// they may be large, and a patch may have thousands of operations.
fn deepest_after(operation: &PatchOperation, deepest: usize) -> usize {
    let (from, to) = match operation {
        PatchOperation::Copy(copy) => (&copy.from, &copy.path),
        PatchOperation::Move(moved) => (&moved.from, &moved.path),
        PatchOperation::Add(_) | PatchOperation::Replace(_) => return deepest.max(DEEPEST),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return deepest,
    };
    deepest.max(deepest.saturating_sub(steps(from.as_str())) + steps(to.as_str()))
}

/// Returns how many bytes a copy adds. Without a limit, copies of copies could exhaust the memory.
fn copy_size(operation: &PatchOperation, object: &Value) -> usize {
    let PatchOperation::Copy(copy) = operation else { return 0 };
    object.pointer(copy.from.as_str()).map_or(0, |value| value.to_string().len())
}

/// Patches the object at `key`, or a subresource of it, and returns the warnings for the client.
pub(crate) fn patch(
    hub: &Hub,
    resource: &Resource,
    key: &StoreKey,
    patch: &Patch,
    part: Subresource,
    options: &WriteOptions,
) -> Result<(WriteOutcome, Vec<String>), WriteFailure> {
    if let Patch::Apply(wanted) = patch {
        let outcome = apply(hub, resource, key, wanted, part, options)?;
        return Ok((outcome, wanted.judged(options)?));
    }
    let mut warnings = Vec::new();
    let outcome = modify(hub, resource, key, part, options, |stored| {
        let changed = patch.apply(stored, resource)?;
        let received = checked(resource, key, stored, changed, Some(patch), options)?;
        warnings = received.warnings;
        Ok(received.object)
    })?;
    Ok((outcome, warnings))
}

/// Applies the configuration of a manager to the object at `key`, and creates the object if it is missing.
fn apply(
    hub: &Hub,
    resource: &Resource,
    key: &StoreKey,
    sent: &BodyDocument,
    part: Subresource,
    options: &WriteOptions,
) -> Result<WriteOutcome, WriteFailure> {
    let wanted = &sent.value;
    if !wanted.is_object() || metadata::is_deeper(wanted, DEEPEST) {
        return Err(Status::bad_request("error decoding patch: it is no object that could be applied").into());
    }
    // A copy is checked for this object. The request body itself is applied unchanged.
    check_body(resource, key, &mut wanted.clone())?;
    let now = hub.clock.now_text();
    let made = |live: Option<&Value>| {
        let value = applied(resource, live, wanted, part, options, &now)?;
        sent.judged(options)?;
        complete(resource, value, options)
    };
    let write = PreparedWrite { hub, resource, key, part, options, ownership: Ownership::Done };
    loop {
        let changed = modify_as(write, |stored| {
            check_version(resource, key, stored, wanted, &WriteOptions { trust: Trust::Host, ..options.clone() })?;
            made(Some(stored))
        });
        match changed {
            Err(WriteFailure::NotFound(_)) if part == Subresource::Main => {}
            outcome => return outcome,
        }
        match create_as(hub, resource, key.namespace(), made(None)?, options, Ownership::Done) {
            // Another client has created it meanwhile, so it is changed.
            Err(WriteFailure::AlreadyExists { .. }) => options.check_time()?,
            outcome => return outcome,
        }
    }
}

impl BodyDocument {
    /// Returns the warnings for an apply, or refuses it under strict validation.
    pub(super) fn judged(&self, options: &WriteOptions) -> Result<Vec<String>, Status> {
        match options.validation {
            Validation::Strict if !self.duplicates.is_empty() => {
                Err(Status::bad_request(format!("error strict decoding patch: {}", self.duplicates.join(", "))))
            }
            Validation::Ignore => Ok(Vec::new()),
            Validation::Strict | Validation::Warn => Ok(self.duplicates.clone()),
        }
    }
}

/// Changes the object at `key` by a function of its current state. `change` is called again if another client wrote
/// meanwhile.
pub(crate) fn patch_with(
    hub: &Hub,
    resource: &Resource,
    key: &StoreKey,
    options: &WriteOptions,
    change: impl FnMut(&Value) -> Result<Value, WriteFailure>,
) -> Result<WriteOutcome, WriteFailure> {
    patch_as(PreparedWrite { hub, resource, key, part: Subresource::Main, options, ownership: Ownership::Due }, change)
}

/// Does the same as [`patch_with`], without recording a field manager.
pub(crate) fn patch_unowned(
    hub: &Hub,
    resource: &Resource,
    key: &StoreKey,
    options: &WriteOptions,
    change: impl FnMut(&Value) -> Result<Value, WriteFailure>,
) -> Result<WriteOutcome, WriteFailure> {
    patch_as(PreparedWrite { hub, resource, key, part: Subresource::Main, options, ownership: Ownership::Done }, change)
}

fn patch_as(
    write: PreparedWrite<'_>,
    mut change: impl FnMut(&Value) -> Result<Value, WriteFailure>,
) -> Result<WriteOutcome, WriteFailure> {
    modify_as(write, |stored| {
        let changed = change(stored)?;
        checked(write.resource, write.key, stored, changed, None, write.options).map(|received| received.object)
    })
}

/// Checks the result of a patch like the body of an update. An error names the patch.
fn checked(
    resource: &Resource,
    key: &StoreKey,
    stored: &Value,
    mut changed: Value,
    patch: Option<&Patch>,
    options: &WriteOptions,
) -> Result<Received, WriteFailure> {
    let shown = match patch {
        Some(Patch::Strategic(patch)) => patch.value.to_string(),
        _ => changed.to_string(),
    };
    let duplicates = patch.map_or(&[][..], Patch::duplicates).to_vec();
    let doubled = dedupe_owners(&mut changed, " after mutating admission happens");
    let sent = BodyDocument { value: changed, duplicates };
    let mut received = receive(resource, sent, options).map_err(|error| error.of_patch(&shown))?;
    received.warnings.extend(doubled);
    check_body(resource, key, &mut received.object)?;
    check_version(resource, key, stored, &received.object, options)?;
    Ok(received)
}

fn unprocessable() -> Status {
    Status::failure(422, "Invalid", "the server rejected our request due to an error in our request")
        .with_details(StatusDetails::default())
}

/// Returns the error that lists the supported patch types.
fn unsupported(media_type: &str, resource: &Resource) -> Status {
    let mut known = vec!["application/json-patch+json", MERGE];
    known.extend(resource.of.is_some().then_some(STRATEGIC));
    known.push(APPLY);
    let known = known.join(", ");
    let message = match media_type {
        "application/apply-patch+cbor" => {
            format!("this server does not understand CBOR - accepted media types include: {known}")
        }
        _ => format!("the body of the request was in an unknown format - accepted media types include: {known}"),
    };
    Status::failure(415, "UnsupportedMediaType", message)
}
