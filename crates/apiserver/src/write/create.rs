//! Creates an object.

use serde_json::{Value, json};
use std::sync::Arc;

use super::marks::check_marks;
use super::metadata::{check_kind, fix_namespace, metadata_mut, metadata_text};
use super::name::check_name;
use super::{Outcome, Trust, WriteOptions, follow_up};
use crate::crd;
use crate::hub::Hub;
use crate::object::Key;
use crate::resource::Resource;
use crate::status::{Status, StatusCause, StatusDetails};
use crate::storage::State;

/// How often a generated name that is taken is replaced by another.
const NAME_ATTEMPTS: usize = 8;
/// How much of `generateName` is used.
const NAME_PREFIX: usize = 58;

/// Creates `object`, which is consumed as it came from the client.
pub(crate) fn create(
    hub: &Hub,
    resource: &Resource,
    namespace: Option<&str>,
    mut object: Value,
    options: WriteOptions,
) -> Result<Outcome, Status> {
    check_kind(resource, &mut object, options.trust)?;
    fix_namespace(resource, namespace, &mut object)?;
    if !metadata_text(&object, "resourceVersion").is_empty() {
        return Err(Status::failure(500, "", "resourceVersion should not be set on objects to be created"));
    }
    let mut state = hub.storage.lock();
    let key = choose_key(hub, &state, resource, &mut object)?;
    let missing = check_namespace(&state, resource, &key, options.trust)?;
    if options.trust == Trust::Client {
        crd::check_not_terminating(&state, resource, key.name())?;
    }
    if resource.id == crd::DEFINITIONS {
        crd::prepare(&mut object)?;
    }
    fill(hub, resource, &mut object, options);
    check_marks(resource, &object)?;
    if let Some(existing) = state.object(resource, &key) {
        let mut status = Status::already_exists(resource, key.name());
        if existing.metadata().get("deletionTimestamp").is_some() {
            status.message = format!("object is being deleted: {}", status.message);
        }
        return Err(status);
    }
    if options.dry_run {
        return Ok(Outcome::Shown { object, created: true });
    }
    if let Some((namespaces, name)) = missing {
        make_namespace(hub, &mut state, &namespaces, name);
    }
    let event = hub.storage.commit(&mut state, resource, &key, Some(&object));
    follow_up(hub, &mut state, resource, &key, options.trust);
    match &event.after {
        Some(stored) => Ok(Outcome::Stored { object: stored.clone(), created: true }),
        None => Ok(Outcome::Shown { object, created: true }),
    }
}

/// The key of the new object, with a name drawn where the client asked for one.
fn choose_key(hub: &Hub, state: &State, resource: &Resource, object: &mut Value) -> Result<Key, Status> {
    let namespace = object["metadata"]["namespace"].as_str().filter(|_| resource.namespaced).map(str::to_owned);
    let name = metadata_text(object, "name");
    if !name.is_empty() {
        check_name(resource, name)?;
        return Ok(Key::new(namespace.as_deref(), name));
    }
    let prefix: String = metadata_text(object, "generateName").chars().take(NAME_PREFIX).collect();
    if prefix.is_empty() {
        check_name(resource, "")?;
    }
    let mut drawn = String::new();
    for _ in 0..NAME_ATTEMPTS {
        drawn = format!("{prefix}{}", hub.chance.name_suffix());
        check_name(resource, &drawn)?;
        let key = Key::new(namespace.as_deref(), &drawn);
        if state.object(resource, &key).is_none() {
            metadata_mut(object).insert("name".into(), drawn.into());
            return Ok(key);
        }
    }
    let mut status = Status::already_exists(resource, &drawn);
    status.message.push_str(", the server was not able to generate a unique name for the object");
    if let Some(details) = &mut status.details {
        details.retry_after_seconds = 1;
    }
    Err(status)
}

/// Content is created in namespaces that exist and are not on their way out. Returns the namespace to make first: what
/// the process itself creates brings its own.
fn check_namespace<'a>(
    state: &State,
    resource: &Resource,
    key: &'a Key,
    trust: Trust,
) -> Result<Option<(Arc<Resource>, &'a str)>, Status> {
    let Some(namespace) = key.namespace() else { return Ok(None) };
    let Some(namespaces) = state.catalog.named("namespaces") else { return Ok(None) };
    let Some(found) = state.object(namespaces, &Key::new(None, namespace)) else {
        if trust == Trust::Client {
            return Err(Status::not_found(namespaces, namespace));
        }
        check_name(namespaces, namespace)?;
        return Ok(Some((namespaces.clone(), namespace)));
    };
    if found.metadata().get("deletionTimestamp").is_none() {
        return Ok(None);
    }
    let message = format!(
        "{} \"{}\" is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
        resource.qualified(),
        key.name()
    );
    let cause = StatusCause::new(
        "NamespaceTerminating",
        "metadata.namespace",
        format!("namespace {namespace} is being terminated"),
    );
    let details = StatusDetails { causes: vec![cause], ..resource.details(key.name()) };
    Err(Status::failure(403, "Forbidden", message).with_details(details))
}

/// Makes a namespace of this name, which is free and allowed.
fn make_namespace(hub: &Hub, state: &mut State, namespaces: &Resource, name: &str) {
    let mut object =
        json!({"kind": namespaces.kind, "apiVersion": namespaces.api_version(), "metadata": {"name": name}});
    fill(hub, namespaces, &mut object, WriteOptions::HOST);
    hub.storage.commit(state, namespaces, &Key::new(None, name), Some(&object));
}

/// Fills in what the server answers for.
fn fill(hub: &Hub, resource: &Resource, object: &mut Value, options: WriteOptions) {
    let metadata = metadata_mut(object);
    for member in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation", "resourceVersion"] {
        metadata.remove(member);
    }
    metadata.insert("uid".into(), hub.chance.uid().into());
    metadata.insert("creationTimestamp".into(), hub.clock.now_text().into());
    if resource.rules.generation {
        metadata.insert("generation".into(), 1.into());
    }
    let clears_status = resource.rules.status && options.trust == Trust::Client && resource.id != "nodes";
    if clears_status && let Some(members) = object.as_object_mut() {
        members.remove("status");
    }
    match resource.id.as_str() {
        "namespaces" => fill_namespace(object),
        "pods" if object["status"]["phase"].is_null() => object["status"]["phase"] = "Pending".into(),
        _ => {}
    }
}

fn fill_namespace(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
    object["spec"] = json!({"finalizers": ["kubernetes"]});
    object["status"] = json!({"phase": "Active"});
}
