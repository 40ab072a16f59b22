//! Deletes an object: at once, or by marking it until its finalizers are gone.

use serde_json::Value;
use std::time::Duration;

use super::metadata::{finalizers, metadata_mut};
use super::{DeleteOptions, Outcome, Trust, after_removal, follow_up};
use crate::hub::Hub;
use crate::object::Key;
use crate::resource::Resource;
use crate::status::{Status, StatusDetails};
use crate::storage::State;

/// Deletes the object at `key`.
pub(crate) fn delete(hub: &Hub, resource: &Resource, key: &Key, options: &DeleteOptions) -> Result<Outcome, Status> {
    let mut state = hub.storage.lock();
    let outcome = delete_in(hub, &mut state, resource, key, options)?;
    if !options.dry_run {
        follow_up(hub, &mut state, resource, key, options.trust);
    }
    Ok(outcome)
}

/// Deletes the object at `key` while the state is held.
pub(crate) fn delete_in(
    hub: &Hub,
    state: &mut State,
    resource: &Resource,
    key: &Key,
    options: &DeleteOptions,
) -> Result<Outcome, Status> {
    let Some(stored) = state.object(resource, key) else { return Err(Status::not_found(resource, key.name())) };
    let mut object = stored.value_as(resource);
    check_preconditions(resource, key, &object, options)?;
    if resource.id == "namespaces" && matches!(key.name(), "default" | "kube-system" | "kube-public") {
        let message = format!("namespaces \"{}\" is forbidden: this namespace may not be deleted", key.name());
        return Err(Status::failure(403, "Forbidden", message).with_details(resource.details(key.name())));
    }
    let grace = grace_period(resource, &object, options);
    let held = grace > 0 || !finalizers(&object).is_empty() || is_content_held(resource, &object);
    if held {
        let marked = !object["metadata"]["deletionTimestamp"].is_null();
        let shorter = object["metadata"]["deletionGracePeriodSeconds"].as_i64().is_some_and(|left| grace < left);
        if marked && !shorter {
            return Ok(Outcome::Stored { object: stored, created: false });
        }
        mark(hub, resource, &mut object, grace);
        if options.dry_run {
            return Ok(Outcome::Shown { object, created: false });
        }
        let event = hub.storage.commit(state, resource, key, Some(&object));
        return Ok(match &event.after {
            Some(stored) if options.orphan_dependents == Some(false) => Outcome::Accepted(stored.clone()),
            Some(stored) => Outcome::Stored { object: stored.clone(), created: false },
            None => Outcome::Shown { object, created: false },
        });
    }
    if !options.dry_run {
        let event = hub.storage.commit(state, resource, key, None);
        object["metadata"]["resourceVersion"] = event.revision.to_string().into();
        after_removal(hub, state, resource, key);
    }
    Ok(answer(resource, key, object))
}

/// What a delete that removed the object answers with.
fn answer(resource: &Resource, key: &Key, object: Value) -> Outcome {
    if resource.rules.returns_deleted {
        return Outcome::Shown { object, created: false };
    }
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let details = StatusDetails { uid, ..resource.details(key.name()) };
    Outcome::Done(Status::failure(200, "", "").with_details(details))
}

/// Whether a namespace must be emptied first.
fn is_content_held(resource: &Resource, object: &Value) -> bool {
    let finalizers = object["spec"]["finalizers"].as_array();
    resource.id == "namespaces" && finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

/// Marks an object as being deleted.
fn mark(hub: &Hub, resource: &Resource, object: &mut Value, grace: i64) {
    let delay = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
    let first = object["metadata"]["deletionTimestamp"].is_null();
    let metadata = metadata_mut(object);
    metadata.insert("deletionTimestamp".into(), hub.clock.text_after(delay).into());
    if resource.id == "namespaces" {
        object["status"]["phase"] = "Terminating".into();
        return;
    }
    metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
    let generation = metadata.get("generation").and_then(Value::as_i64).filter(|_| first);
    if let Some(generation) = generation.filter(|generation| *generation > 0) {
        metadata.insert("generation".into(), (generation + 1).into());
    }
}

/// How long the object may still live, in seconds. Only running pods are given time.
fn grace_period(resource: &Resource, object: &Value, options: &DeleteOptions) -> i64 {
    if resource.id != "pods" || options.trust == Trust::Host && options.grace_period.is_none() {
        return 0;
    }
    let finished = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if finished || object["spec"]["nodeName"].as_str().unwrap_or_default().is_empty() {
        return 0;
    }
    let asked = options.grace_period.or_else(|| object["spec"]["terminationGracePeriodSeconds"].as_i64());
    let grace = asked.unwrap_or(30);
    if grace < 0 { 1 } else { grace }
}

fn check_preconditions(resource: &Resource, key: &Key, object: &Value, options: &DeleteOptions) -> Result<(), Status> {
    let refuse = |what: &str, asked: &str, found: &str, hint: &str| {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{}\": the {what} in the precondition ({asked}) does not match the \
             {what} in record ({found}). The object might have been {hint}",
            resource.kind,
            key.name()
        );
        let details = StatusDetails { kind: resource.kind.clone(), ..resource.details(key.name()) };
        Err(Status::failure(409, "Conflict", message).with_details(details))
    };
    let text = |member: &str| object["metadata"][member].as_str().unwrap_or_default();
    match (&options.uid, &options.resource_version) {
        (Some(uid), _) if uid != text("uid") => refuse("UID", uid, text("uid"), "deleted and then recreated"),
        (_, Some(version)) if version != text("resourceVersion") => {
            refuse("ResourceVersion", version, text("resourceVersion"), "modified")
        }
        _ => Ok(()),
    }
}
