//! The life of a CRD (`CustomResourceDefinition`): it is accepted, established, changed, and removed together with all
//! its objects.
//!
//! `check` validates a CRD, `names` assigns its names, `definition` turns it into a resource, and
//! `kube_structural_schema` prunes, defaults and validates its objects. Selectable fields come from the storage version
//! of a resource only. Other versions show the same objects with another `apiVersion`.

mod check;
mod definition;
mod names;
mod selectable;

pub(crate) use definition::{definition_of, prepare};

use serde_json::{Map, Value, json};
use std::sync::Arc;

use crate::api::write::{DeleteOptions, Trust, delete_in, finalizers};
use crate::hub::Hub;
use crate::kinds::Resource;
use crate::status::Status;
use crate::storage::key::StoreKey;
use crate::storage::object::{Draft, StoredObject, WriteKind};
use crate::storage::state::{self, Locked, LockedState};
use definition::resources_of;

/// The resource of CRDs.
pub(crate) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// The condition of a CRD that is being deleted.
const TERMINATING: &str = "Terminating";
/// The finalizer that keeps a CRD until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// How many objects are deleted while the state stays locked.
const PIECE: usize = 100;

/// Does the work that follows a write to a CRD: at once for writes from the process itself, otherwise after the settle
/// delay.
pub(crate) fn follow_up(hub: &Hub, state: &mut Locked<'_>, name: &str, trust: Trust) {
    let Some(stored) = look(state, name) else { return };
    if let Some(served) = state.catalog.of_definition(name).filter(|_| !stored.is_marked()) {
        // Most writes do not change the spec. The generation in the metadata shows this.
        if stored.metadata()["generation"].as_i64() != Some(served.rules.definition) {
            refresh(hub, state, name);
        }
        return;
    }
    settle_soon(hub, state, name, trust);
}

/// Refuses to create objects of a resource whose CRD is being deleted.
pub(crate) fn check_not_terminating(state: &LockedState, resource: &Resource, name: &str) -> Result<(), Status> {
    if !resource.rules.custom || !look(state, &resource.id).is_some_and(|stored| stored.is_marked()) {
        return Ok(());
    }
    let message = format!(
        "{} \"{name}\" is forbidden: create not allowed while custom resource definition is terminating",
        resource.qualified()
    );
    Err(Status::failure(403, "Forbidden", message).with_details(resource.details(name)))
}

/// Releases the CRD of a resource that has no objects left, if the CRD waits for that.
pub(crate) fn finish(hub: &Hub, state: &mut Locked<'_>, resource: &Resource) {
    if resource.rules.custom && state.collection(resource).objects().is_empty() {
        let_go(hub, state, &resource.id);
    }
}

/// Removes the finalizer from a CRD that is being deleted. The CRD is removed unless it has other finalizers.
fn let_go(hub: &Hub, state: &mut Locked<'_>, name: &str) {
    while let Some(stored) = look(state, name).filter(|stored| stored.is_marked() && is_held(stored)) {
        let draft = Locked::unlocked(state, || {
            let mut object = stored.value();
            release(&mut object);
            let why = "all instances are gone";
            put_condition(hub, &mut object, TERMINATING, false, "InstanceDeletionCompleted", why);
            if finalizers(&object).is_empty() { None } else { draft_of(hub, &stored, &object) }
        });
        let Some(definitions) = current(state, &stored) else { continue };
        match draft {
            Some(draft) => drop(hub.storage.commit(state, &definitions, draft)),
            None => {
                hub.storage.remove(state, &definitions, &stored.key);
                close(hub, state, name);
            }
        }
        return;
    }
}

/// Returns whether the finalizer of the server keeps a CRD.
fn is_held(stored: &StoredObject) -> bool {
    stored.metadata()["finalizers"].as_array().is_some_and(|held| held.contains(&CLEANUP.into()))
}

/// Encodes a changed CRD, which takes long for a large one. Call it while the state is unlocked.
fn draft_of(hub: &Hub, stored: &StoredObject, object: &Value) -> Option<Draft> {
    let definitions = hub.storage.lock().catalog.named(DEFINITIONS)?.clone();
    Some(hub.storage.draft(&definitions, &stored.key, object, WriteKind::Modified))
}

/// Returns the resource of CRDs, if this CRD has not changed while the state was unlocked.
fn current(state: &LockedState, stored: &Arc<StoredObject>) -> Option<Arc<Resource>> {
    let is_current = look(state, stored.key.name()).is_some_and(|now| Arc::ptr_eq(&now, stored));
    state.catalog.named(DEFINITIONS).filter(|_| is_current).cloned()
}

/// Adds the finalizer to a CRD that is about to be deleted.
pub(crate) fn hold(hub: &Hub, object: &mut Value) {
    if !finalizers(object).contains(&CLEANUP) {
        match object["metadata"]["finalizers"].as_array_mut() {
            Some(finalizers) => finalizers.push(CLEANUP.into()),
            None => object["metadata"]["finalizers"] = json!([CLEANUP]),
        }
    }
    put_condition(hub, object, TERMINATING, true, "InstanceDeletionPending", "instances will be deleted soon");
}

/// Stops serving the resource of a deleted CRD, and frees its names.
pub(crate) fn close(hub: &Hub, state: &mut Locked<'_>, name: &str) {
    if let Some(resource) = state.catalog.of_definition(name).cloned() {
        state.catalog.remove(&resource.id);
        state.drop_collection(&resource);
    }
    reconsider(hub, state, name);
}

/// Checks the other CRDs of a group again, because they may have waited for a name.
fn reconsider(hub: &Hub, state: &mut Locked<'_>, name: &str) {
    let group = name.split_once('.').map_or("", |(_, group)| group);
    for other in names::others(state, group, name) {
        if state.catalog.of_definition(&other).is_none() {
            settle_soon(hub, state, &other, Trust::Client);
        }
    }
}

fn release(object: &mut Value) {
    if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|finalizer| finalizer != CLEANUP);
    }
}

/// Schedules the next steps of a CRD.
fn settle_soon(hub: &Hub, state: &mut Locked<'_>, name: &str, trust: Trust) {
    let name = name.to_owned();
    hub.soon_in_pieces(state, trust, move |hub, state| settle(hub, state, &name));
}

/// Does one step, and returns whether more steps are left.
fn settle(hub: &Hub, state: &mut Locked<'_>, name: &str) -> bool {
    let Some(stored) = look(state, name) else { return false };
    if stored.is_marked() {
        return terminate(hub, state, name, &stored);
    }
    state.catalog.of_definition(name).is_none() && !establish(hub, state, name)
}

/// Accepts the names, then opens the resource: clients see two steps. Returns false if the caller must call it again.
fn establish(hub: &Hub, state: &mut Locked<'_>, name: &str) -> bool {
    let Some(stored) = look(state, name) else { return true };
    let mut object = Locked::unlocked(state, || stored.value());
    let before = outline(&object);
    if !accept(hub, state, &mut object) {
        put_condition(hub, &mut object, "Established", false, "NotAccepted", "not all names are accepted");
        if object["status"] == before["status"] {
            return true;
        }
        let draft = Locked::unlocked(state, move || draft_of(hub, &stored, &object).map(|draft| (draft, stored)));
        let Some((draft, stored)) = draft else { return true };
        let definitions = current(state, &stored);
        return definitions.is_some_and(|definitions| {
            hub.storage.commit(state, &definitions, draft);
            true
        });
    }
    let resources = resources_of(hub, state, &object);
    if resources.is_empty() {
        return true;
    }
    let names = object["status"]["acceptedNames"].clone();
    let drafts = Locked::unlocked(state, || {
        let accepted = draft_of(hub, &stored, &object);
        let why = "the initial names have been accepted";
        put_condition(hub, &mut object, "Established", true, "InitialNamesAccepted", why);
        let established = draft_of(hub, &stored, &object);
        drop(object);
        accepted.zip(established)
    });
    let (Some(definitions), Some((accepted, established))) = (current(state, &stored), drafts) else { return false };
    if names::settle(state, &before).accepted != names {
        return false;
    }
    hub.storage.commit(state, &definitions, accepted);
    state.catalog.put(resources);
    hub.storage.commit(state, &definitions, established);
    true
}

/// Returns the members of a CRD that decide about its names.
fn outline(object: &Value) -> Value {
    json!({"metadata": {"name": object["metadata"]["name"]},
        "spec": {"group": object["spec"]["group"], "names": object["spec"]["names"]}, "status": object["status"]})
}

/// Assigns names to a CRD, and returns whether it got all of them.
fn accept(hub: &Hub, state: &LockedState, object: &mut Value) -> bool {
    let settled = names::settle(state, object);
    status_of(object).insert("acceptedNames".into(), settled.accepted);
    match settled.conflict {
        None => put_condition(hub, object, "NamesAccepted", true, "NoConflicts", "no conflicts found"),
        Some((reason, ref message)) => put_condition(hub, object, "NamesAccepted", false, reason, message),
    };
    settled.conflict.is_none()
}

/// Reopens the resource if its CRD has changed: open watches end, and older versions expire.
fn refresh(hub: &Hub, state: &mut Locked<'_>, name: &str) {
    while !refreshed(hub, state, name) {}
}

/// Goes on as long as the CRD does not change, and returns whether the work is complete. The state is unlocked during
/// slow work.
fn refreshed(hub: &Hub, state: &mut Locked<'_>, name: &str) -> bool {
    let Some(stored) = look(state, name) else { return true };
    let Some(served) = state.catalog.of_definition(name).cloned() else { return true };
    let mut object = Locked::unlocked(state, || stored.value());
    let before = outline(&object);
    accept(hub, state, &mut object);
    let names = object["status"]["acceptedNames"].clone();
    let is_renamed = names != before["status"]["acceptedNames"];
    let is_changed = object["status"] != before["status"];
    let draft = Locked::unlocked(state, || if is_changed { draft_of(hub, &stored, &object) } else { None });
    let mut opened = None;
    if is_renamed || object["metadata"]["generation"].as_i64() != Some(served.rules.definition) {
        let resources = resources_of(hub, state, &object);
        let objects = resources.first().map(|resource| state::recoded(state, &served, resource));
        opened = objects.map(|objects| (resources, objects));
    }
    // From here on the state stays locked: a write in between would be missing from the recoded objects.
    let is_served = state.catalog.of_definition(name).is_some_and(|now| Arc::ptr_eq(now, &served));
    let Some(definitions) = current(state, &stored).filter(|_| is_served) else { return false };
    if names::settle(state, &before).accepted != names {
        return false;
    }
    if let Some(draft) = draft {
        hub.storage.commit(state, &definitions, draft);
    }
    if let Some((resources, objects)) = opened {
        state.reopen(&served, objects);
        state.catalog.put(resources);
        if is_renamed {
            reconsider(hub, state, name);
        }
    }
    true
}

/// Deletes some objects, and returns whether more are left. The CRD is removed with the last one.
fn terminate(hub: &Hub, state: &mut Locked<'_>, name: &str, stored: &Arc<StoredObject>) -> bool {
    if !is_held(stored) {
        return false;
    }
    let Some(resource) = state.catalog.of_definition(name).cloned() else {
        // The CRD never had a resource.
        let_go(hub, state, name);
        return false;
    };
    let draft = Locked::unlocked(state, || {
        let (mut object, why) = (stored.value(), "instances are being deleted");
        let is_new = put_condition(hub, &mut object, TERMINATING, true, "InstanceDeletionInProgress", why);
        if is_new { draft_of(hub, stored, &object) } else { None }
    });
    if let (Some(draft), Some(definitions)) = (draft, current(state, stored)) {
        hub.storage.commit(state, &definitions, draft);
    }
    let left = state.collection(&resource).objects().values().filter(|object| !object.is_marked());
    let keys: Vec<StoreKey> = left.take(PIECE).map(|object| object.key.clone()).collect();
    let options = DeleteOptions { trust: Trust::Host, ..DeleteOptions::default() };
    let mut gone = 0;
    for key in &keys {
        // An object that is already gone, or that may not be deleted, is not tried again.
        gone += usize::from(delete_in(hub, state, &resource, key, &options).is_ok());
    }
    finish(hub, state, &resource);
    gone > 0 && keys.len() == PIECE
}

fn look(state: &LockedState, name: &str) -> Option<Arc<StoredObject>> {
    state.object(state.catalog.named(DEFINITIONS)?, &StoreKey::new(None, name))
}

/// Returns the status of a CRD. A direct write may have stored a status of any type.
fn status_of(object: &mut Value) -> &mut Map<String, Value> {
    if !object["status"].is_object() {
        object["status"] = json!({});
    }
    object["status"].as_object_mut().expect("made an object above")
}

fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// Sets a condition. Its transition time changes only with its status. Returns whether anything changed.
fn put_condition(hub: &Hub, object: &mut Value, kind: &str, status: bool, reason: &str, message: &str) -> bool {
    let status = if status { "True" } else { "False" };
    let conditions = status_of(object).entry("conditions").or_insert_with(|| json!([]));
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return false };
    let mut next = json!({"type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": hub.clock.now_text()});
    let Some(found) = conditions.iter_mut().find(|condition| condition["type"] == kind) else {
        conditions.push(next);
        return true;
    };
    if found["status"] == status {
        next["lastTransitionTime"] = found["lastTransitionTime"].clone();
    }
    let changed = *found != next;
    *found = next;
    changed
}
