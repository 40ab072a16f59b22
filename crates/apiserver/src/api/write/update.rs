//! Replaces an object or a subresource of it.

use serde_json::Value;
use std::sync::Arc;

use super::create::create;
use super::metadata::{finalizers, fix_namespace, metadata_text};
use super::prepare::{Ownership, PreparedWrite};
use super::{Trust, WriteFailure, WriteOptions, WriteOutcome, after_removal, follow_up};
use crate::hub::Hub;
use crate::kinds::Resource;
use crate::status::{Status, StatusCause};
use crate::storage::key::StoreKey;
use crate::storage::object::{StoredObject, WriteKind};

/// The subresource that a write addresses: it limits what the write may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subresource {
    /// Everything, but not status if status is a subresource.
    Main,
    /// Status, and for some kinds a few members of the metadata.
    Status,
    /// Only the finalizers in the spec of a namespace.
    Finalize,
    /// Only the conditions of a certificate signing request.
    Approval,
    /// Only the ephemeral containers of a pod.
    EphemeralContainers,
    /// Only the number of replicas.
    Scale,
}

impl Subresource {
    /// Returns its name in the path.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Main => None,
            Self::Status => Some("status"),
            Self::Finalize => Some("finalize"),
            Self::Approval => Some("approval"),
            Self::EphemeralContainers => Some("ephemeralcontainers"),
            Self::Scale => Some("scale"),
        }
    }
}

/// Replaces the object at `key` with `object`, or a subresource of it.
pub(crate) fn update(
    hub: &Hub,
    resource: &Resource,
    key: &StoreKey,
    mut object: Value,
    part: Subresource,
    options: &WriteOptions,
) -> Result<WriteOutcome, WriteFailure> {
    check_body(resource, key, &mut object)?;
    let creates = resource.rules.create_on_update && part == Subresource::Main;
    loop {
        let changed = modify(hub, resource, key, part, options, |stored| {
            check_version(resource, key, stored, &object, options)?;
            Ok(object.clone())
        });
        match changed {
            Err(WriteFailure::NotFound(_)) if creates => {}
            outcome => return outcome,
        }
        check_uid(resource, key, "", &object)?;
        let mut fresh = object.clone();
        if let Some(metadata) = fresh["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        match create(hub, resource, key.namespace(), fresh, options) {
            // Another client has created it meanwhile, so it is updated.
            Err(WriteFailure::AlreadyExists { .. }) => options.check_time()?,
            outcome => return outcome,
        }
    }
}

/// Checks that a body is for this object, and fills in the fields that it may omit.
pub(super) fn check_body(resource: &Resource, key: &StoreKey, object: &mut Value) -> Result<(), Status> {
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

/// Reads an object, computes its next state with `change`, and stores that. Starts again if another client wrote
/// meanwhile.
///
/// No lock is held while `change` runs: a slow write does not block others, and it retries until its deadline. A change
/// without an effect keeps the version and makes no event.
pub(super) fn modify(
    hub: &Hub,
    resource: &Resource,
    key: &StoreKey,
    part: Subresource,
    options: &WriteOptions,
    change: impl FnMut(&Value) -> Result<Value, WriteFailure>,
) -> Result<WriteOutcome, WriteFailure> {
    modify_as(PreparedWrite { hub, resource, key, part, options, ownership: Ownership::Due }, change)
}

/// Does the same as `modify`, but field managers may already be recorded.
pub(super) fn modify_as(
    write: PreparedWrite<'_>,
    mut change: impl FnMut(&Value) -> Result<Value, WriteFailure>,
) -> Result<WriteOutcome, WriteFailure> {
    let PreparedWrite { hub, resource, key, options, .. } = write;
    loop {
        let stored = hub.storage.lock().object(resource, key);
        let Some(stored) = stored else { return Err(WriteFailure::not_found(resource, key.name())) };
        let before = stored.value_as(resource);
        let (after, _giving) = write.prepare_changed(&before, change(&before)?)?;
        if let Some(outcome) = replace(write, &stored, &before, after)? {
            return Ok(outcome);
        }
        options.check_time()?;
    }
}

/// Stores the next state of an object. Returns `None` if the stored object has changed since the next state was
/// computed.
fn replace(
    write: PreparedWrite<'_>,
    stored: &Arc<StoredObject>,
    before: &Value,
    mut after: Value,
) -> Result<Option<WriteOutcome>, WriteFailure> {
    let PreparedWrite { hub, resource, key, options, .. } = write;
    let release = is_last_release(resource, before, &after) && !options.dry_run;
    let is_changed = after != *before;
    let writes = is_changed && !release && !options.dry_run;
    let draft = if writes { Some(write.draft(&after, WriteKind::Modified)?) } else { None };
    let mut state = hub.storage.lock();
    state.check_current(resource)?;
    if !state.object(resource, key).is_some_and(|current| Arc::ptr_eq(&current, stored)) {
        return Ok(None);
    }
    let outcome = if release {
        let revision = hub.storage.remove(&mut state, resource, key);
        after["metadata"]["resourceVersion"] = revision.to_string().into();
        after_removal(hub, &mut state, resource, key);
        WriteOutcome::Shown { object: after, created: false }
    } else if let Some(draft) = draft {
        WriteOutcome::Stored { object: hub.storage.commit(&mut state, resource, draft), created: false }
    } else if is_changed {
        return Ok(Some(WriteOutcome::Shown { object: after, created: false }));
    } else {
        return Ok(Some(WriteOutcome::Stored { object: stored.clone(), created: false }));
    };
    follow_up(hub, &mut state, resource, key, options.trust);
    Ok(Some(outcome))
}

/// Returns whether an update removes the last finalizer of an object that is being deleted.
fn is_last_release(resource: &Resource, before: &Value, after: &Value) -> bool {
    let metadata = &before["metadata"];
    let deleting =
        !metadata["deletionTimestamp"].is_null() && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0;
    let content_held = resource.id == "namespaces"
        && after["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    deleting && finalizers(after).is_empty() && !content_held
}

/// Compares the version and uid in the update with the stored ones.
pub(super) fn check_version(
    resource: &Resource,
    key: &StoreKey,
    stored: &Value,
    updated: &Value,
    options: &WriteOptions,
) -> Result<(), Status> {
    check_uid(resource, key, metadata_text(stored, "uid"), updated)?;
    let version = metadata_text(updated, "resourceVersion");
    if version.is_empty() || version == "0" {
        if resource.rules.version_required && options.trust == Trust::Client {
            let cause = StatusCause::invalid("metadata.resourceVersion", "0: must be specified for an update");
            // This error names the plural. All others name the kind.
            return Err(Status::invalid(&resource.group, &resource.plural, key.name(), vec![cause]));
        }
        return Ok(());
    }
    if version == metadata_text(stored, "resourceVersion") {
        return Ok(());
    }
    Err(Status::modified_meanwhile(resource, key.name()))
}

/// Compares the uid in the update with the stored one; a missing object has an empty uid.
fn check_uid(resource: &Resource, key: &StoreKey, stored: &str, updated: &Value) -> Result<(), Status> {
    check_condition(resource, key, "UID", metadata_text(updated, "uid"), stored)
}

/// Refuses a write unless the stored object has the uid and version that the preconditions name.
pub(crate) fn check_conditions(
    resource: &Resource,
    key: &StoreKey,
    stored: &Value,
    named: &Value,
) -> Result<(), Status> {
    for (what, member) in [("UID", "uid"), ("ResourceVersion", "resourceVersion")] {
        check_condition(resource, key, what, metadata_text(named, member), metadata_text(stored, member))?;
    }
    Ok(())
}

fn check_condition(resource: &Resource, key: &StoreKey, what: &str, named: &str, stored: &str) -> Result<(), Status> {
    if named.is_empty() || named == stored {
        return Ok(());
    }
    let why = format!(
        "StorageError: invalid object, Code: 4, StoreKey: /registry/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: {what} in precondition: {named}, {what} in object meta: {stored}",
        folder(resource),
        key.as_str()
    );
    Err(Status::conflict(resource, key.name(), &why))
}

/// Returns the storage path of this resource in kube-apiserver, as shown in its messages.
fn folder(resource: &Resource) -> String {
    match resource.id.as_str() {
        "services" => "services/specs".to_owned(),
        "endpoints" => "services/endpoints".to_owned(),
        "nodes" => "minions".to_owned(),
        "replicationcontrollers" => "controllers".to_owned(),
        "ingresses.networking.k8s.io" => "ingress".to_owned(),
        _ if resource.rules.custom || resource.group == "apiextensions.k8s.io" => {
            format!("{}/{}", resource.group, resource.plural)
        }
        _ => resource.plural.clone(),
    }
}
