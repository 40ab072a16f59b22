//! Replaces an object, or a part of it.

use serde_json::Value;

use super::create::create;
use super::marks::check_marks;
use super::metadata::{check_kind, finalizers, fix_namespace, keep_identity, keep_member, metadata_text};
use super::{Outcome, Trust, WriteOptions, after_removal, follow_up};
use crate::crd;
use crate::hub::Hub;
use crate::object::Key;
use crate::resource::Resource;
use crate::status::{Status, StatusCause};

/// The part of an object that a write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but status, where status has a path of its own.
    Main,
    /// Nothing but status.
    Status,
    /// Nothing but the finalizers of a namespace's content.
    Finalize,
}

/// Replaces the object at `key` by `object`, or a part of it.
pub(crate) fn update(
    hub: &Hub,
    resource: &Resource,
    key: &Key,
    mut object: Value,
    part: Part,
    options: WriteOptions,
) -> Result<Outcome, Status> {
    check_body(resource, key, &mut object, options.trust)?;
    let missing = hub.storage.lock().object(resource, key).is_none();
    if missing && resource.rules.create_on_update && part == Part::Main {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        return create(hub, resource, key.namespace(), object, options);
    }
    modify(hub, resource, key, options, |stored| {
        check_version(resource, key, stored, &object, options)?;
        Ok(restrict(resource, stored, object, part, options.trust))
    })
}

/// Checks that a body is for this object, and fills in what it may leave out.
pub(super) fn check_body(resource: &Resource, key: &Key, object: &mut Value, trust: Trust) -> Result<(), Status> {
    check_kind(resource, object, trust)?;
    fix_namespace(resource, key.namespace(), object)?;
    let named = metadata_text(object, "name");
    if named.is_empty() {
        object["metadata"]["name"] = key.name().into();
    } else if named != key.name() {
        let message = format!("the name of the object ({named}) does not match the name on the URL ({})", key.name());
        return Err(Status::bad_request(message));
    }
    Ok(())
}

/// Takes from an update what it may change, and the rest from the stored object.
pub(super) fn restrict(resource: &Resource, stored: &Value, mut updated: Value, part: Part, trust: Trust) -> Value {
    match part {
        Part::Main => {
            keep_identity(resource, stored, &mut updated, trust);
            updated
        }
        Part::Status => {
            let mut next = stored.clone();
            keep_member(&updated, &mut next, "status");
            next
        }
        Part::Finalize => {
            let mut next = stored.clone();
            next["spec"]["finalizers"] = updated["spec"]["finalizers"].take();
            next
        }
    }
}

/// Reads an object, lets `change` make the next one of it, and stores that, all in one step.
///
/// A change that changes nothing keeps the version and makes no event.
pub(super) fn modify(
    hub: &Hub,
    resource: &Resource,
    key: &Key,
    options: WriteOptions,
    change: impl FnOnce(&Value) -> Result<Value, Status>,
) -> Result<Outcome, Status> {
    let mut state = hub.storage.lock();
    let Some(stored) = state.object(resource, key) else { return Err(Status::not_found(resource, key.name())) };
    let before = stored.value_as(resource);
    let mut after = change(&before)?;
    if resource.id == crd::DEFINITIONS {
        crd::prepare(&mut after)?;
    }
    check_marks(resource, &after)?;
    check_finalizers(resource, key, &before, &after)?;
    // The version is not part of the content: it follows from the write.
    after["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
    if is_last_release(resource, &before, &after) && !options.dry_run {
        let event = hub.storage.commit(&mut state, resource, key, None);
        after["metadata"]["resourceVersion"] = event.revision.to_string().into();
        after_removal(hub, &mut state, resource, key);
        return Ok(Outcome::Shown { object: after, created: false });
    }
    if after == before {
        return Ok(Outcome::Stored { object: stored, created: false });
    }
    if options.dry_run {
        return Ok(Outcome::Shown { object: after, created: false });
    }
    let event = hub.storage.commit(&mut state, resource, key, Some(&after));
    follow_up(hub, &mut state, resource, key, options.trust);
    match &event.after {
        Some(stored) => Ok(Outcome::Stored { object: stored.clone(), created: false }),
        None => Ok(Outcome::Shown { object: after, created: false }),
    }
}

/// Whether an update lets go of an object that only waited to be deleted.
fn is_last_release(resource: &Resource, before: &Value, after: &Value) -> bool {
    let metadata = &before["metadata"];
    let deleting =
        !metadata["deletionTimestamp"].is_null() && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0;
    let content_held = resource.id == "namespaces"
        && after["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    deleting && finalizers(after).is_empty() && !content_held
}

/// Compares the version and uid a client based its update on with what is stored.
pub(super) fn check_version(
    resource: &Resource,
    key: &Key,
    stored: &Value,
    updated: &Value,
    options: WriteOptions,
) -> Result<(), Status> {
    let uid = metadata_text(updated, "uid");
    let stored_uid = metadata_text(stored, "uid");
    if !uid.is_empty() && uid != stored_uid {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: UID in precondition: {uid}, UID in object meta: {stored_uid}",
            resource.plural,
            key.as_str()
        );
        return Err(Status::conflict(resource, key.name(), &why));
    }
    let version = metadata_text(updated, "resourceVersion");
    if version.is_empty() || version == "0" {
        if resource.rules.version_required && options.trust == Trust::Client {
            let cause = StatusCause::invalid("metadata.resourceVersion", "0: must be specified for an update");
            return Err(Status::invalid(&resource.group, &resource.kind, key.name(), vec![cause]));
        }
        return Ok(());
    }
    if version == metadata_text(stored, "resourceVersion") {
        return Ok(());
    }
    Err(Status::modified_meanwhile(resource, key.name()))
}

/// An object that is being deleted takes no new finalizers.
fn check_finalizers(resource: &Resource, key: &Key, before: &Value, after: &Value) -> Result<(), Status> {
    if before["metadata"]["deletionTimestamp"].is_null() {
        return Ok(());
    }
    let held = finalizers(before);
    let added: Vec<_> = finalizers(after).into_iter().filter(|name| !held.contains(name)).collect();
    if added.is_empty() {
        return Ok(());
    }
    let message =
        format!("no new finalizers can be added if the object is being deleted, found new finalizers {added:?}");
    let cause = StatusCause::forbidden("metadata.finalizers", &message);
    Err(Status::invalid(&resource.group, &resource.kind, key.name(), vec![cause]))
}
