//! The life of a custom resource definition: accepted, established, changed, and taken away with all its objects.
//!
//! What it must say is in `check`, which names it gets in `names`, the resource it means in `definition`, and how its objects are
//! pruned, defaulted and validated by `kube_structural_schema`. Only the storage version of a resource is looked at for selectable fields; others
//! show the same objects under another `apiVersion`.

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
use crate::storage::object::{Key, StoredObject};
use crate::storage::state::{self, Locked, State};
use definition::resources_of;

/// The resource of definitions.
pub(crate) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// The condition of a definition that is on its way out.
const TERMINATING: &str = "Terminating";
/// Keeps a definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// How many objects go while the state stays locked.
const PIECE: usize = 100;

/// Does what follows from a write to a definition: at once if the process itself wrote, else a moment later.
pub(crate) fn follow_up(hub: &Hub, state: &mut Locked<'_>, name: &str, trust: Trust) {
    let Some(stored) = look(state, name) else { return };
    if let Some(served) = state.catalog.of_definition(name).filter(|_| !stored.is_marked()) {
        // Most writes change nothing that matters here, and its metadata says so.
        if stored.metadata()["generation"].as_i64() != Some(served.rules.definition) {
            refresh(hub, state, name);
        }
        return;
    }
    settle_soon(hub, state, name, trust);
}

/// Refuses new objects of a resource that is on its way out.
pub(crate) fn check_not_terminating(state: &State, resource: &Resource, name: &str) -> Result<(), Status> {
    if !resource.rules.custom || !look(state, &resource.id).is_some_and(|stored| stored.is_marked()) {
        return Ok(());
    }
    let message = format!(
        "{} \"{name}\" is forbidden: create not allowed while custom resource definition is terminating",
        resource.qualified()
    );
    Err(Status::failure(403, "Forbidden", message).with_details(resource.details(name)))
}

/// Lets go of the definition of a resource that has no objects left, if it waits for that.
pub(crate) fn finish(hub: &Hub, state: &mut Locked<'_>, resource: &Resource) {
    if resource.rules.custom && state.collection(resource).objects().is_empty() {
        let_go(hub, state, &resource.id);
    }
}

/// Lets go of a definition that is marked; unless another client holds it, it is removed.
fn let_go(hub: &Hub, state: &mut Locked<'_>, name: &str) {
    if !look(state, name).is_some_and(|stored| stored.is_marked()) {
        return;
    }
    let Some((definitions, key, mut object)) = find(state, name) else { return };
    if !finalizers(&object).contains(&CLEANUP) {
        return;
    }
    release(&mut object);
    if finalizers(&object).is_empty() {
        hub.storage.remove(state, &definitions, &key);
        close(hub, state, name);
        return;
    }
    put_condition(hub, &mut object, TERMINATING, false, "InstanceDeletionCompleted", "all instances are gone");
    hub.storage.commit_small(state, &definitions, &key, &object);
}

/// Marks what a definition that is about to be deleted waits for.
pub(crate) fn hold(hub: &Hub, object: &mut Value) {
    if !finalizers(object).contains(&CLEANUP) {
        match object["metadata"]["finalizers"].as_array_mut() {
            Some(finalizers) => finalizers.push(CLEANUP.into()),
            None => object["metadata"]["finalizers"] = json!([CLEANUP]),
        }
    }
    put_condition(hub, object, TERMINATING, true, "InstanceDeletionPending", "instances will be deleted soon");
}

/// Serves a resource no longer whose definition is gone; its names are free for others.
pub(crate) fn close(hub: &Hub, state: &mut Locked<'_>, name: &str) {
    if let Some(resource) = state.catalog.of_definition(name).cloned() {
        state.catalog.remove(&resource.id);
        state.drop_collection(&resource);
    }
    reconsider(hub, state, name);
}

/// Looks again at the other definitions of a group, which may have waited for a name.
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

/// Brings a definition to where it is going.
fn settle_soon(hub: &Hub, state: &mut Locked<'_>, name: &str, trust: Trust) {
    let name = name.to_owned();
    hub.soon_in_pieces(state, trust, move |hub, state| settle(hub, state, &name));
}

/// Goes a step, and says whether there is more to do.
fn settle(hub: &Hub, state: &mut Locked<'_>, name: &str) -> bool {
    let Some(stored) = look(state, name) else { return false };
    if stored.is_marked() {
        return terminate(hub, state, name, &stored);
    }
    state.catalog.of_definition(name).is_none() && !establish(hub, state, name)
}

/// Accepts the names, then opens the resource: two steps, as clients see them. Says whether that is all; else it is to be called again.
fn establish(hub: &Hub, state: &mut Locked<'_>, name: &str) -> bool {
    let (Some(stored), Some((definitions, key, mut object))) = (look(state, name), find(state, name)) else {
        return true;
    };
    let before = object.clone();
    if !accept(hub, state, &mut object) {
        put_condition(hub, &mut object, "Established", false, "NotAccepted", "not all names are accepted");
        if object != before {
            hub.storage.commit_small(state, &definitions, &key, &object);
        }
        return true;
    }
    let resources = resources_of(hub, state, &object);
    if resources.is_empty() {
        return true;
    }
    if !is_unchanged(hub, state, &stored, &mut object) {
        return false;
    }
    hub.storage.commit_small(state, &definitions, &key, &object);
    let why = "the initial names have been accepted";
    put_condition(hub, &mut object, "Established", true, "InitialNamesAccepted", why);
    state.catalog.put(resources);
    hub.storage.commit_small(state, &definitions, &key, &object);
    true
}

/// Whether a definition and the names that it gets are what they were before others were let in. Its conditions become those of now.
fn is_unchanged(hub: &Hub, state: &State, stored: &Arc<StoredObject>, object: &mut Value) -> bool {
    let given = object["status"]["acceptedNames"].clone();
    if !look(state, stored.key.name()).is_some_and(|now| Arc::ptr_eq(&now, stored)) {
        return false;
    }
    *object = stored.value();
    accept(hub, state, object);
    object["status"]["acceptedNames"] == given
}

/// Gives a definition its names, and says whether it got them all.
fn accept(hub: &Hub, state: &State, object: &mut Value) -> bool {
    let settled = names::settle(state, object);
    status_of(object).insert("acceptedNames".into(), settled.accepted);
    match settled.conflict {
        None => put_condition(hub, object, "NamesAccepted", true, "NoConflicts", "no conflicts found"),
        Some((reason, ref message)) => put_condition(hub, object, "NamesAccepted", false, reason, message),
    };
    settled.conflict.is_none()
}

/// Opens the resource anew if its definition has changed: watches end, and older versions have expired.
fn refresh(hub: &Hub, state: &mut Locked<'_>, name: &str) {
    while !refreshed(hub, state, name) {}
}

/// Goes as far as it gets while the definition stays as it is, and says whether that is all. What takes long is done while others are
/// let in.
fn refreshed(hub: &Hub, state: &mut Locked<'_>, name: &str) -> bool {
    let (Some(stored), Some((definitions, key, mut object))) = (look(state, name), find(state, name)) else {
        return true;
    };
    let Some(served) = state.catalog.of_definition(name).cloned() else { return true };
    let (names, conditions) = (object["status"]["acceptedNames"].clone(), object["status"]["conditions"].clone());
    accept(hub, state, &mut object);
    let renamed = object["status"]["acceptedNames"] != names;
    let mut opened = None;
    if renamed || object["metadata"]["generation"].as_i64() != Some(served.rules.definition) {
        let resources = resources_of(hub, state, &object);
        let objects = resources.first().map(|resource| state::recoded(state, &served, resource));
        let is_served = state.catalog.of_definition(name).is_some_and(|now| Arc::ptr_eq(now, &served));
        if !is_served || !is_unchanged(hub, state, &stored, &mut object) {
            return false;
        }
        opened = objects.map(|objects| (resources, objects));
    }
    if renamed || object["status"]["conditions"] != conditions {
        hub.storage.commit_small(state, &definitions, &key, &object);
    }
    if let Some((resources, objects)) = opened {
        state.reopen(&served, objects);
        state.catalog.put(resources);
        if renamed {
            reconsider(hub, state, name);
        }
    }
    true
}

/// Deletes some objects, and says whether there are more; the definition goes with the last of them.
fn terminate(hub: &Hub, state: &mut Locked<'_>, name: &str, stored: &StoredObject) -> bool {
    if !stored.metadata()["finalizers"].as_array().is_some_and(|held| held.contains(&CLEANUP.into())) {
        return false;
    }
    let Some(resource) = state.catalog.of_definition(name).cloned() else {
        // It never had any.
        let_go(hub, state, name);
        return false;
    };
    if let Some((definitions, key, mut object)) = find(state, name)
        && put_condition(
            hub,
            &mut object,
            TERMINATING,
            true,
            "InstanceDeletionInProgress",
            "instances are being deleted",
        )
    {
        hub.storage.commit_small(state, &definitions, &key, &object);
    }
    let left = state.collection(&resource).objects().values().filter(|object| !object.is_marked());
    let keys: Vec<Key> = left.take(PIECE).map(|object| object.key.clone()).collect();
    let options = DeleteOptions { trust: Trust::Host, ..DeleteOptions::default() };
    let mut gone = 0;
    for key in &keys {
        // What is gone meanwhile, or may not go, is no reason to try again.
        gone += usize::from(delete_in(hub, state, &resource, key, &options).is_ok());
    }
    finish(hub, state, &resource);
    gone > 0 && keys.len() == PIECE
}

fn look(state: &State, name: &str) -> Option<Arc<StoredObject>> {
    state.object(state.catalog.named(DEFINITIONS)?, &Key::new(None, name))
}

fn find(state: &State, name: &str) -> Option<(Arc<Resource>, Key, Value)> {
    let definitions = state.catalog.named(DEFINITIONS)?.clone();
    let key = Key::new(None, name);
    let object = state.object(&definitions, &key)?.value();
    Some((definitions, key, object))
}

/// The status of a definition. What the host put there as it is may be anything.
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

/// Sets a condition; its time stays if its status does. Returns whether anything changed.
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
