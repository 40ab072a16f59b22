//! The life of a custom resource definition: accepted, established, changed, and taken away with all its objects.
//!
//! Schemas are accepted and not looked into: nothing is pruned, defaulted or validated by them. Only the storage version
//! of a resource is looked at for selectable fields; others show the same objects under another `apiVersion`.

mod definition;

pub(crate) use definition::{definition_of, prepare};

use serde_json::{Value, json};
use std::sync::Arc;

use crate::hub::Hub;
use crate::object::Key;
use crate::resource::Resource;
use crate::status::Status;
use crate::storage::State;
use crate::write::{DeleteOptions, Trust, delete_in};
use definition::resources_of;

/// The resource of definitions.
pub(crate) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// Keeps a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Does what follows from a write to a definition: at once if the process itself wrote, else a moment later.
pub(crate) fn follow_up(hub: &Hub, state: &mut State, name: &str, trust: Trust) {
    let Some((definitions, key, object)) = find(state, name) else { return };
    let settled = !is_deleting(&object) && has_condition(&object, "Established");
    if settled {
        refresh(state, &object);
        return;
    }
    drop((definitions, key));
    let (owner, delay, later) = (hub.me.clone(), hub.settings.settle_delay, name.to_owned());
    let waits = trust == Trust::Client
        && hub.spawn(async move {
            tokio::time::sleep(delay).await;
            if let Some(hub) = owner.upgrade() {
                settle(&hub, &mut hub.storage.lock(), &later);
            }
        });
    if !waits {
        settle(hub, state, name);
    }
}

/// Refuses new objects of a resource that is on its way out.
pub(crate) fn check_not_terminating(state: &State, resource: &Resource, name: &str) -> Result<(), Status> {
    if !resource.rules.custom || !find(state, &resource.id).is_some_and(|(_, _, object)| is_deleting(&object)) {
        return Ok(());
    }
    let message = format!(
        "{} \"{name}\" is forbidden: create not allowed while custom resource definition is terminating",
        resource.qualified()
    );
    Err(Status::failure(403, "Forbidden", message).with_details(resource.details(name)))
}

/// Removes a definition that is marked and has no objects left, and with it the resource.
pub(crate) fn finish(hub: &Hub, state: &mut State, resource: &Resource) {
    if !resource.rules.custom {
        return;
    }
    let Some((definitions, key, object)) = find(state, &resource.id) else { return };
    if !is_deleting(&object) || !state.collection(resource).objects().is_empty() {
        return;
    }
    hub.storage.commit(state, &definitions, &key, None);
    state.catalog.remove(&resource.id);
    state.drop_collection(resource);
}

/// Brings a definition to where it is going.
fn settle(hub: &Hub, state: &mut State, name: &str) {
    let Some((definitions, key, object)) = find(state, name) else { return };
    if is_deleting(&object) {
        terminate(hub, state, &definitions, &key, object);
    } else if !has_condition(&object, "Established") {
        establish(hub, state, &definitions, &key, object);
    }
}

/// Accepts the names, then opens the resource: two steps, as clients see them.
fn establish(hub: &Hub, state: &mut State, definitions: &Resource, key: &Key, mut object: Value) {
    let resources = resources_of(&object);
    let Some(stored) = resources.first() else { return };
    object["status"]["acceptedNames"] = object["spec"]["names"].clone();
    object["status"]["storedVersions"] = json!([stored.version]);
    put_condition(hub, &mut object, "NamesAccepted", "NoConflicts", "no conflicts found");
    hub.storage.commit(state, definitions, key, Some(&object));
    put_condition(hub, &mut object, "Established", "InitialNamesAccepted", "the initial names have been accepted");
    state.catalog.put(resources);
    hub.storage.commit(state, definitions, key, Some(&object));
}

/// Opens the resource anew if its definition has changed: watches end, and older versions have expired.
fn refresh(state: &mut State, object: &Value) {
    let resources = resources_of(object);
    let Some(stored) = resources.first() else { return };
    let served = state.catalog.named(&stored.id);
    if served.is_some_and(|served| served.rules.definition == stored.rules.definition) {
        return;
    }
    state.reopen(stored);
    state.catalog.put(resources);
}

/// Deletes all objects; the definition goes with the last of them.
fn terminate(hub: &Hub, state: &mut State, definitions: &Resource, key: &Key, mut object: Value) {
    if !has_condition(&object, "Terminating") {
        put_condition(hub, &mut object, "Terminating", "InstanceDeletionInProgress", "instances are being deleted");
        hub.storage.commit(state, definitions, key, Some(&object));
    }
    let resources = resources_of(&object);
    let Some(resource) = resources.first() else { return };
    let keys: Vec<Key> = state.collection(resource).objects().keys().cloned().collect();
    let options = DeleteOptions { trust: Trust::Host, ..DeleteOptions::default() };
    for key in keys {
        // Each key was there a moment ago, under the same lock.
        let _ = delete_in(hub, state, resource, &key, &options);
    }
    finish(hub, state, resource);
}

fn find(state: &State, name: &str) -> Option<(Arc<Resource>, Key, Value)> {
    let definitions = state.catalog.named(DEFINITIONS)?.clone();
    let key = Key::new(None, name);
    let object = state.object(&definitions, &key)?.value();
    Some((definitions, key, object))
}

fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
}

fn put_condition(hub: &Hub, object: &mut Value, kind: &str, reason: &str, message: &str) {
    let condition = json!({"type": kind, "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": hub.clock.now_text()});
    match object["status"]["conditions"].as_array_mut() {
        Some(conditions) => conditions.push(condition),
        None => object["status"]["conditions"] = json!([condition]),
    }
}
