//! Replaces an object.

use serde_json::Value;

use super::create::create;
use super::metadata::{check_kind, finalizers, fix_namespace, keep_identity, metadata_text};
use super::{Outcome, WriteOptions};
use crate::hub::Hub;
use crate::object::Key;
use crate::resource::Resource;
use crate::status::{Status, StatusCause};

/// Replaces the object at `key` by `object`.
pub(crate) fn update(
    hub: &Hub,
    resource: &Resource,
    key: &Key,
    mut object: Value,
    options: WriteOptions,
) -> Result<Outcome, Status> {
    check_kind(resource, &mut object)?;
    fix_namespace(resource, key.namespace(), &mut object)?;
    let named = metadata_text(&object, "name");
    if named.is_empty() {
        object["metadata"]["name"] = key.name().into();
    } else if named != key.name() {
        let message = format!("the name of the object ({named}) does not match the name on the URL ({})", key.name());
        return Err(Status::bad_request(message));
    }
    let missing = hub.storage.lock().object(resource, key).is_none();
    if missing && resource.rules.create_on_update {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        return create(hub, resource, key.namespace(), object, options);
    }
    modify(hub, resource, key, options, |stored| {
        check_version(resource, key, stored, &object, options)?;
        keep_identity(resource, stored, &mut object, options.trust);
        Ok(std::mem::take(&mut object))
    })
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
    let before = stored.value();
    let mut after = change(&before)?;
    check_finalizers(resource, key, &before, &after)?;
    // The version is not part of the content: it follows from the write.
    after["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
    let deleting = !before["metadata"]["deletionTimestamp"].is_null()
        && before["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0;
    let held_by_namespace =
        resource.id == "namespaces" && after["spec"]["finalizers"].as_array().is_some_and(|held| !held.is_empty());
    if deleting && finalizers(&after).is_empty() && !held_by_namespace && !options.dry_run {
        let event = hub.storage.commit(&mut state, resource, key, None);
        after["metadata"]["resourceVersion"] = event.revision.to_string().into();
        return Ok(Outcome::Shown { object: after, created: false });
    }
    if after == before {
        return Ok(Outcome::Stored { object: stored, created: false });
    }
    if options.dry_run {
        return Ok(Outcome::Shown { object: after, created: false });
    }
    let event = hub.storage.commit(&mut state, resource, key, Some(&after));
    match &event.after {
        Some(stored) => Ok(Outcome::Stored { object: stored.clone(), created: false }),
        None => Ok(Outcome::Shown { object: after, created: false }),
    }
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
        if resource.rules.version_required && options.trust == super::Trust::Client {
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
