//! Field ownership: how each kind of write changes `managedFields`.

use kube_field_manager::{
    ApplyError, FieldFilter, FieldPattern, FieldSet, Force, PathElement, PatternStep, StrategicMergeError, Write,
    apply, strategic_merge_patch, update,
};
use serde_json::{Value, json};

use super::{Subresource, WriteOptions};
use crate::kinds::rules::strategy;
use crate::kinds::schema::TypePlace;
use crate::kinds::{Resource, form};
use crate::status::{Status, StatusCause, StatusDetails};

/// Records the fields that this write has set.
pub(super) fn track(
    resource: &Resource,
    before: Option<&Value>,
    after: &mut Value,
    part: Subresource,
    options: &WriteOptions,
    now: &str,
) {
    if let (Subresource::Scale, Some(scale), Some(before)) = (part, &resource.rules.scale, before) {
        track_scale(resource, &scale.spec_replicas, before, after, options);
        return;
    }
    let empty = empty(resource);
    let (api_version, filter) = (resource.api_version(), filter(resource, part));
    let request = request(resource, &api_version, part, options, &filter, now);
    update(&request, before.unwrap_or(&empty), after);
}

/// Records who set the replicas, as kube-apiserver does. If the write changes the replicas, its manager becomes their
/// only owner. Otherwise each owner by an update gets a separate entry for them, without a time. Replicas without an
/// owner stay without one.
fn track_scale(resource: &Resource, pointer: &str, before: &Value, after: &mut Value, options: &WriteOptions) {
    let path: Vec<String> = pointer.split('/').skip(1).map(|step| format!("f:{step}")).collect();
    let fields = path.iter().rev().fold(json!({}), |below, step| json!({ step.as_str(): below }));
    let entries = before["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let changed = before.pointer(pointer) != after.pointer(pointer);
    let (mut own, mut rest) = (Vec::new(), Vec::new());
    // A direct write may have stored entries of any type.
    for mut entry in entries.into_iter().filter(Value::is_object) {
        let stays = !changed && entry["operation"] == "Apply";
        if !stays && take(&mut entry["fieldsV1"], &path) {
            let mut moved = entry.clone();
            moved["fieldsV1"] = fields.clone();
            moved.as_object_mut().map(|moved| moved.remove("time"));
            own.push(moved);
        }
        if entry["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty()) {
            rest.push(entry);
        }
    }
    if own.is_empty() {
        return;
    }
    if changed && after.pointer(pointer).and_then(Value::as_i64) == Some(0) {
        // Zero replicas are omitted, so they have no owner.
        own.clear();
    } else if changed {
        own = vec![json!({
            "manager": &*options.manager, "operation": "Update", "apiVersion": resource.api_version(),
            "fieldsType": "FieldsV1", "fieldsV1": fields, "subresource": "scale",
        })];
    }
    // Apply entries come first, and entries without a time come before those with one.
    own.append(&mut rest);
    own.sort_by_key(|entry| (entry["operation"] != "Apply", !entry["time"].is_null()));
    after["metadata"]["managedFields"] = own.into();
}

/// Removes a path from the fields of an entry, and parents that become empty. Returns whether the path was there.
pub(super) fn take(fields: &mut Value, path: &[String]) -> bool {
    let (Some(members), Some((step, below))) = (fields.as_object_mut(), path.split_first()) else { return false };
    let Some(found) = members.get_mut(step) else { return false };
    let taken = below.is_empty() || take(found, below);
    if taken && (below.is_empty() || found.as_object().is_some_and(serde_json::Map::is_empty)) {
        members.remove(step);
    }
    taken
}

/// Returns the result of a server-side apply.
pub(super) fn applied(
    resource: &Resource,
    live: Option<&Value>,
    patch: &Value,
    part: Subresource,
    options: &WriteOptions,
    now: &str,
) -> Result<Value, Status> {
    let empty = empty(resource);
    let (api_version, filter) = (resource.api_version(), filter(resource, part));
    let request = request(resource, &api_version, part, options, &filter, now);
    let force = if options.force { Force::Yes } else { Force::No };
    apply(&request, &empty, live.unwrap_or(&empty), patch, force).map_err(refused)
}

fn request<'r>(
    resource: &'r Resource,
    api_version: &'r str,
    part: Subresource,
    options: &'r WriteOptions,
    filter: &'r FieldFilter,
    now: &'r str,
) -> Write<'r, TypePlace<'r>> {
    Write {
        schema: TypePlace::root(resource),
        api_version,
        kind: &resource.kind,
        subresource: part.name().unwrap_or_default(),
        manager: &options.manager,
        filter,
        now,
    }
}

/// Returns the result of a strategic merge patch.
pub(super) fn merged(resource: &Resource, object: &Value, patch: &Value) -> Result<Value, Status> {
    strategic_merge_patch(object, patch, TypePlace::root(resource)).map_err(|error| match error {
        StrategicMergeError::BadRequest(message) => Status::bad_request(message),
        StrategicMergeError::Unprocessable(message) => Status::failure(422, "Invalid", message),
        StrategicMergeError::Internal(message) => Status::failure(500, "", message),
    })
}

/// Returns which fields a write to this subresource can change.
fn filter(resource: &Resource, part: Subresource) -> FieldFilter {
    let except = |paths: &[&str]| match paths {
        [] => FieldFilter::Everything,
        paths => {
            let paths: Vec<Vec<&str>> = paths.iter().map(|path| path.split('.').collect()).collect();
            FieldFilter::Except(FieldSet::of_fields(paths.iter().map(Vec::as_slice)))
        }
    };
    let only = |path: &[&str]| {
        let steps: Vec<PatternStep> =
            path.iter().map(|name| PatternStep::Exactly(PathElement::Field((*name).into()))).collect();
        FieldFilter::Only(FieldPattern::prefix(&steps))
    };
    match part {
        Subresource::Main | Subresource::Finalize if resource.rules.custom => {
            if resource.rules.status {
                except(&["status"])
            } else {
                FieldFilter::Everything
            }
        }
        Subresource::Main | Subresource::Finalize => except(strategy::reset_fields(resource)),
        Subresource::Status if resource.rules.custom => only(&["status"]),
        Subresource::Status => except(strategy::reset_status_fields(resource)),
        Subresource::Approval => except(&["spec", "status.certificate"]),
        Subresource::EphemeralContainers => only(&["spec", "ephemeralContainers"]),
        Subresource::Scale => match &resource.rules.scale {
            Some(scale) => only(&scale.spec_replicas.trim_start_matches('/').split('/').collect::<Vec<_>>()),
            None => FieldFilter::Everything,
        },
    }
}

/// Returns an empty object of the kind.
fn empty(resource: &Resource) -> Value {
    let mut empty = resource.of.map_or_else(|| json!({}), form::zero_of);
    empty["apiVersion"] = resource.api_version().into();
    empty["kind"] = resource.kind.as_str().into();
    empty
}

pub(super) fn refused(error: ApplyError) -> Status {
    match error {
        ApplyError::BadRequest(message) => Status::bad_request(message),
        ApplyError::Internal(message) => Status::failure(500, "", message),
        ApplyError::Conflict(conflicts) => {
            let cause = |cause: &kube_field_manager::ConflictCause| {
                StatusCause::new("FieldManagerConflict", cause.field.clone(), cause.message.clone())
            };
            let causes = conflicts.causes().iter().map(cause).collect();
            Status::failure(409, "Conflict", conflicts.to_string())
                .with_details(StatusDetails { causes, ..StatusDetails::default() })
        }
    }
}
