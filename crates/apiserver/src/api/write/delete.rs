//! Deletes an object: at once, or by marking it until its finalizers are gone.

use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

use super::metadata::{finalizers, metadata_mut};
use super::{DeleteOptions, Propagation, Trust, WriteFailure, WriteOutcome, after_removal, follow_up};
use crate::api::crd;
use crate::api::garbage::{FOREGROUND, ORPHAN};
use crate::api::webhook::Asked;
use crate::hub::Hub;
use crate::hub::admission::Admission;
use crate::kinds::{Resource, moment, storage_id};
use crate::message::verb::Verb;
use crate::status::{Status, StatusDetails};
use crate::storage::key::StoreKey;
use crate::storage::object::{Draft, StoredObject, WriteKind};
use crate::storage::state::Locked;

/// How often a delete is prepared again because the object has changed. The state stays locked during the last attempt,
/// unless there is admission, which is never called under the lock.
const ATTEMPTS: usize = 16;

/// Deletes the object at `key`.
pub(crate) fn delete(
    hub: &Hub,
    resource: &Resource,
    key: &StoreKey,
    options: &DeleteOptions,
) -> Result<WriteOutcome, WriteFailure> {
    let mut state = hub.storage.lock();
    let outcome = delete_in(hub, &mut state, resource, key, options)?;
    if !options.dry_run {
        follow_up(hub, &mut state, resource, key, options.trust);
    }
    Ok(outcome)
}

/// Deletes the object at `key`. The state is unlocked while admission runs and objects are decoded and encoded.
pub(crate) fn delete_in(
    hub: &Hub,
    state: &mut Locked<'_>,
    resource: &Resource,
    key: &StoreKey,
    options: &DeleteOptions,
) -> Result<WriteOutcome, WriteFailure> {
    for attempt in 1..=ATTEMPTS {
        state.check_current(resource)?;
        let Some(stored) = state.object(resource, key) else {
            return Err(WriteFailure::not_found(resource, key.name()));
        };
        let prepare = || prepared(hub, resource, &stored, options);
        let removal = if attempt == ATTEMPTS && !is_admitted(hub, options) {
            prepare()?
        } else {
            Locked::unlocked(state, prepare)?
        };
        if state.object(resource, key).is_some_and(|current| Arc::ptr_eq(&current, &stored)) {
            return Ok(carry_out(hub, state, resource, removal, options));
        }
    }
    Err(Status::modified_meanwhile(resource, key.name()).into())
}

/// The effect of a delete on an object.
enum PreparedDelete {
    /// No effect, or a dry run. This is the response.
    None(WriteOutcome),
    /// The object is marked. It stays until its finalizers are removed and its grace period is over.
    Mark(Draft),
    /// The object is removed. This is its last state.
    Remove(StoreKey, Value),
}

/// Checks a delete and prepares its effect.
fn prepared(
    hub: &Hub,
    resource: &Resource,
    stored: &Arc<StoredObject>,
    options: &DeleteOptions,
) -> Result<PreparedDelete, Status> {
    let key = &stored.key;
    let mut object = stored.value_as(resource);
    check_preconditions(resource, key, &object, options)?;
    if resource.id == "namespaces" && matches!(key.name(), "default" | "kube-system" | "kube-public") {
        let message = format!("namespaces \"{}\" is forbidden: this namespace may not be deleted", key.name());
        return Err(Status::failure(403, "Forbidden", message).with_details(resource.details(key.name())));
    }
    if !stored.is_marked() && is_admitted(hub, options) {
        admitted(hub, resource, key, object.clone(), options)?;
    }
    let unchanged = || PreparedDelete::None(WriteOutcome::Stored { object: stored.clone(), created: false });
    let marked = !object["metadata"]["deletionTimestamp"].is_null();
    let left = object["metadata"]["deletionGracePeriodSeconds"].as_i64().filter(|left| marked && *left > 0);
    let (at, grace) = match left {
        // A request can only shorten the grace period. Until the period is over nothing else changes.
        Some(left) => match shortened(hub, &object, left, options) {
            Some(shorter) => shorter,
            None => return Ok(unchanged()),
        },
        None => {
            let grace = if marked { 0 } else { grace_period(resource, &object, options) };
            (hub.clock.text_after(Duration::from_secs(grace)), grace)
        }
    };
    let before = object["metadata"]["finalizers"].clone();
    if !marked && resource.id == crd::DEFINITIONS {
        crd::hold(hub, &mut object);
    }
    propagate(resource, &mut object, options);
    if grace > 0 || !finalizers(&object).is_empty() || is_content_held(resource, &object) {
        if marked && left.is_none() && object["metadata"]["finalizers"] == before {
            return Ok(unchanged());
        }
        mark(resource, &mut object, at, grace);
        if options.dry_run {
            return Ok(PreparedDelete::None(WriteOutcome::Shown { object, created: false }));
        }
        let draft = match resource.rules.conversion {
            // A conversion may lose members of this version, so only the metadata is written.
            Some(_) => stored.with_metadata(&object["metadata"]),
            None => Draft::encode(resource, key.clone(), &object, WriteKind::Modified, stored.revision),
        };
        return Ok(PreparedDelete::Mark(draft));
    }
    if resource.id == "pods" && (!marked || left.is_some()) {
        // A removed pod is shown with a grace period of zero.
        mark(resource, &mut object, at, 0);
    }
    if options.dry_run {
        return Ok(PreparedDelete::None(answer(resource, key, object)));
    }
    Ok(PreparedDelete::Remove(key.clone(), object))
}

fn carry_out(
    hub: &Hub,
    state: &mut Locked<'_>,
    resource: &Resource,
    removal: PreparedDelete,
    options: &DeleteOptions,
) -> WriteOutcome {
    match removal {
        PreparedDelete::None(outcome) => outcome,
        PreparedDelete::Mark(draft) => {
            let stored = hub.storage.commit(state, resource, draft);
            if options.orphan_dependents == Some(false) {
                return WriteOutcome::Accepted(stored);
            }
            WriteOutcome::Stored { object: stored, created: false }
        }
        PreparedDelete::Remove(key, mut object) => {
            let revision = hub.storage.remove(state, resource, &key);
            object["metadata"]["resourceVersion"] = revision.to_string().into();
            after_removal(hub, state, resource, &key);
            answer(resource, &key, object)
        }
    }
}

/// Returns whether admission runs for a delete.
fn is_admitted(hub: &Hub, options: &DeleteOptions) -> bool {
    !hub.settings.admission.is_empty() || options.caller.is_some()
}

/// Runs admission for a delete: closures, then webhooks.
fn admitted(
    hub: &Hub,
    resource: &Resource,
    key: &StoreKey,
    mut object: Value,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let mut admission = Admission {
        verb: Verb::Delete,
        resource,
        namespace: key.namespace(),
        name: key.name(),
        part: None,
        before: None,
        object: &mut object,
        dry_run: options.dry_run,
    };
    hub.settings.admission.iter().try_for_each(|admit| admit.ask(&mut admission))?;
    let Some(caller) = &options.caller else { return Ok(()) };
    let asked = Asked {
        hub,
        resource,
        key,
        // As in kube-apiserver, deletes of a collection name no object.
        name: if options.collection { "" } else { key.name() },
        subresource: None,
        operation: "DELETE",
        before: Some(&object),
        dry_run: options.dry_run,
        options: options.to_value(),
    };
    asked.mutate(caller, &mut None)?;
    asked.validate(caller, None)
}

/// Sets the finalizers for the propagation policy of the delete. As in kube-apiserver, they do not depend on a garbage
/// collector: without one, a client has to remove them.
fn propagate(resource: &Resource, object: &mut Value, options: &DeleteOptions) {
    let asked = options.propagation.or_else(|| match options.orphan_dependents? {
        true => Some(Propagation::Orphan),
        false => Some(Propagation::Background),
    });
    let held = finalizers(object);
    let default = match resource.id.as_str() {
        _ if held.contains(&ORPHAN) => Propagation::Orphan,
        _ if held.contains(&FOREGROUND) => Propagation::Foreground,
        // The default from before owner references existed.
        "replicationcontrollers" | "jobs.batch" if options.trust == Trust::Client => Propagation::Orphan,
        _ => Propagation::Background,
    };
    let wanted = match asked.unwrap_or(default) {
        // Events can have no dependents.
        _ if matches!(resource.id.as_str(), "events" | "events.events.k8s.io") => None,
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    let mut kept: Vec<Value> =
        held.iter().filter(|name| !matches!(**name, ORPHAN | FOREGROUND)).map(|name| (*name).into()).collect();
    kept.extend(wanted.map(Value::from));
    let metadata = metadata_mut(object);
    if kept.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), kept.into());
    }
}

/// Removes a finalizer from an object. Removes the object with its last finalizer, if it is being deleted.
pub(crate) fn let_go(hub: &Hub, state: &mut Locked<'_>, resource: &Resource, key: &StoreKey, finalizer: &str) {
    let Some(stored) = state.object(resource, key) else { return };
    let mut object = stored.identity();
    let kept: Vec<Value> = finalizers(&object).into_iter().filter(|name| *name != finalizer).map(Value::from).collect();
    let metadata = metadata_mut(&mut object);
    let grace = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    if kept.is_empty() && grace == 0 && metadata.contains_key("deletionTimestamp") {
        hub.storage.remove(state, resource, key);
        after_removal(hub, state, resource, key);
        return;
    }
    if kept.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), kept.into());
    }
    hub.storage.commit(state, resource, stored.with_metadata(&object["metadata"]));
}

/// Returns the answer of a delete that removed the object.
fn answer(resource: &Resource, key: &StoreKey, object: Value) -> WriteOutcome {
    if resource.rules.returns_deleted {
        return WriteOutcome::Shown { object, created: false };
    }
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let details = StatusDetails { uid, ..resource.details(key.name()) };
    WriteOutcome::Done(Status::failure(200, "", "").with_details(details))
}

/// Returns whether a namespace must be emptied first.
fn is_content_held(resource: &Resource, object: &Value) -> bool {
    let finalizers = object["spec"]["finalizers"].as_array();
    resource.id == "namespaces" && finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

/// Marks an object as being deleted, with a time and a grace period in seconds.
fn mark(resource: &Resource, object: &mut Value, at: String, grace: u64) {
    let first = object["metadata"]["deletionTimestamp"].is_null();
    let metadata = metadata_mut(object);
    metadata.insert("deletionTimestamp".into(), at.into());
    if resource.id == "namespaces" {
        let members = object.as_object_mut();
        let status = members.map(|members| members.entry("status").or_insert_with(|| json!({})));
        if let Some(Value::Object(status)) = status {
            status.insert("phase".into(), "Terminating".into());
        }
        return;
    }
    metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
    let generation = metadata.get("generation").and_then(Value::as_i64).filter(|_| first);
    if let Some(generation) = generation.filter(|generation| *generation > 0) {
        metadata.insert("generation".into(), (generation + 1).into());
    }
}

/// Returns the grace period in seconds. Only running pods have one.
fn grace_period(resource: &Resource, object: &Value, options: &DeleteOptions) -> u64 {
    if resource.id != "pods" || options.trust == Trust::Host && options.grace_period.is_none() {
        return 0;
    }
    let finished = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if finished || object["spec"]["nodeName"].as_str().unwrap_or_default().is_empty() {
        return 0;
    }
    let asked = options.grace_period.or_else(|| object["spec"]["terminationGracePeriodSeconds"].as_i64());
    seconds(asked.unwrap_or(30))
}

/// Returns the period in seconds. A negative period counts as one second, as in kube-apiserver.
fn seconds(asked: i64) -> u64 {
    u64::try_from(asked).unwrap_or(1)
}

/// Returns the new deletion time and grace period of an object with `left` seconds, or `None` if the period is not
/// shortened.
fn shortened(hub: &Hub, object: &Value, left: i64, options: &DeleteOptions) -> Option<(String, u64)> {
    let asked = options.grace_period.or_else(|| (options.trust == Trust::Host).then_some(0));
    let (left, asked) = (left.unsigned_abs(), seconds(asked?));
    let sooner = left.checked_sub(asked).filter(|sooner| *sooner > 0)?;
    let planned = moment::parse(object["metadata"]["deletionTimestamp"].as_str().unwrap_or_default());
    let at = planned.and_then(|planned| planned.checked_sub(Duration::from_secs(sooner)).ok());
    match at.filter(|at| *at >= hub.clock.now()) {
        Some(at) => Some((at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), asked)),
        // The whole period has passed: the new one is 1 second at most.
        None => Some((hub.clock.now_text(), asked.min(1))),
    }
}

fn check_preconditions(
    resource: &Resource,
    key: &StoreKey,
    object: &Value,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let refuse = |what: &str, asked: &str, found: &str, hint: &str| {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{}\": the {what} in the precondition ({asked}) does not match the \
             {what} in record ({found}). The object might have been {hint}",
            storage_id(&resource.group, &resource.kind),
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
