//! Creates an object.

use serde_json::{Value, json};
use std::sync::Arc;

use super::metadata::{fix_namespace, keep_place, metadata_mut, metadata_text};
use super::name::check_name;
use super::prepare::{Ownership, PreparedWrite};
use super::{Subresource, Trust, WriteFailure, WriteOptions, WriteOutcome, follow_up};
use crate::api::crd;
use crate::hub::Hub;
use crate::kinds::Resource;
use crate::status::{Status, StatusCause, StatusDetails};
use crate::storage::key::StoreKey;
use crate::storage::object::WriteKind;
use crate::storage::state::LockedState;

/// How many generated names are tried if a name is taken.
const NAME_ATTEMPTS: usize = 8;
/// How many bytes of `generateName` are used.
const NAME_PREFIX: usize = 58;

/// Creates an object as it was received.
pub(crate) fn create(
    hub: &Hub,
    resource: &Resource,
    namespace: Option<&str>,
    object: Value,
    options: &WriteOptions,
) -> Result<WriteOutcome, WriteFailure> {
    create_as(hub, resource, namespace, object, options, Ownership::Due)
}

/// Creates an object, and records its field managers if `ownership` is due.
pub(super) fn create_as(
    hub: &Hub,
    resource: &Resource,
    namespace: Option<&str>,
    mut object: Value,
    options: &WriteOptions,
    ownership: Ownership,
) -> Result<WriteOutcome, WriteFailure> {
    fix_namespace(resource, namespace, &mut object)?;
    let prefix: String = metadata_text(&object, "generateName").chars().take(NAME_PREFIX).collect();
    // LimitRanges are the only objects that need no name.
    if resource.id == "limitranges" && prefix.is_empty() && metadata_text(&object, "name").is_empty() {
        metadata_mut(&mut object).insert("name".into(), hub.chance.uid().into());
    }
    if !metadata_text(&object, "name").is_empty() || prefix.is_empty() {
        return create_named(hub, resource, object, options, ownership);
    }
    let mut attempts = 1;
    loop {
        let drawn = format!("{prefix}{}", hub.chance.name_suffix());
        metadata_mut(&mut object).insert("name".into(), drawn.into());
        match create_named(hub, resource, object.clone(), options, ownership) {
            Err(WriteFailure::AlreadyExists { .. }) if attempts < NAME_ATTEMPTS => attempts += 1,
            Err(taken @ WriteFailure::AlreadyExists { .. }) => {
                let mut status = Status::from(taken);
                status.message.push_str(", the server was not able to generate a unique name for the object");
                if let Some(details) = &mut status.details {
                    details.retry_after_seconds = 1;
                }
                return Err(status.into());
            }
            outcome => return outcome,
        }
    }
}

/// Creates an object that has a name. Slow work is done before the state is locked.
fn create_named(
    hub: &Hub,
    resource: &Resource,
    mut object: Value,
    options: &WriteOptions,
    ownership: Ownership,
) -> Result<WriteOutcome, WriteFailure> {
    let name = metadata_text(&object, "name");
    check_name(resource, name)?;
    let key = StoreKey::new(object["metadata"]["namespace"].as_str().filter(|_| resource.namespaced), name);
    let brought = bring(hub, resource, &key, options.trust)?;
    let version = metadata_text(&object, "resourceVersion").to_owned();
    let write = PreparedWrite { hub, resource, key: &key, part: Subresource::Main, options, ownership };
    let _giving = write.prepare_new(&mut object)?;
    // Storage refuses a version, and a dry run does not reach storage.
    if !version.is_empty() && options.dry_run {
        metadata_mut(&mut object).insert("resourceVersion".into(), version.into());
    } else if !version.is_empty() {
        return Err(Status::failure(500, "", "resourceVersion should not be set on objects to be created").into());
    }
    let draft = write.draft(&object, WriteKind::Added)?;
    let mut state = hub.storage.lock();
    state.check_current(resource)?;
    let missing = check_place(&state, resource, &key, options.trust)?;
    if let Some(existing) = state.object(resource, &key) {
        let object = Box::new(resource.details(key.name()));
        return Err(WriteFailure::AlreadyExists { object, deleting: existing.is_marked() });
    }
    if options.dry_run {
        return Ok(WriteOutcome::Shown { object, created: true });
    }
    if let Some((namespaces, name)) = missing {
        make_namespace(hub, &mut state, &namespaces, name, brought)?;
    }
    let stored = hub.storage.commit(&mut state, resource, draft);
    follow_up(hub, &mut state, resource, &key, options.trust);
    Ok(WriteOutcome::Stored { object: stored, created: true })
}

/// Checks that the namespace exists and is not being deleted, and that the resource is not being deleted. Returns the
/// namespace to create first: direct creates also create a missing namespace.
fn check_place<'a>(
    state: &LockedState,
    resource: &Resource,
    key: &'a StoreKey,
    trust: Trust,
) -> Result<Option<(Arc<Resource>, &'a str)>, Status> {
    if trust == Trust::Client {
        crd::check_not_terminating(state, resource, key.name())?;
    }
    let Some(namespace) = key.namespace() else { return Ok(None) };
    let Some(namespaces) = state.catalog.named("namespaces") else { return Ok(None) };
    let Some(found) = state.object(namespaces, &StoreKey::new(None, namespace)) else {
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

/// Prepares the missing namespace of an object before the state is locked.
fn bring(hub: &Hub, resource: &Resource, key: &StoreKey, trust: Trust) -> Result<Option<Value>, WriteFailure> {
    let Some((namespaces, name)) = check_place(&hub.storage.lock(), resource, key, trust)? else { return Ok(None) };
    let mut object =
        json!({"kind": namespaces.kind, "apiVersion": namespaces.api_version(), "metadata": {"name": name}});
    let (key, options) = (StoreKey::new(None, name), WriteOptions::host());
    let write = PreparedWrite {
        hub,
        resource: &namespaces,
        key: &key,
        part: Subresource::Main,
        options: &options,
        ownership: Ownership::Due,
    };
    write.prepare_new(&mut object)?;
    Ok(Some(object))
}

/// Stores the prepared namespace. None was prepared if the namespace was deleted only now.
fn make_namespace(
    hub: &Hub,
    state: &mut LockedState,
    namespaces: &Resource,
    name: &str,
    prepared: Option<Value>,
) -> Result<(), Status> {
    let Some(object) = prepared else { return Err(Status::not_found(namespaces, name)) };
    hub.storage.commit_namespace(state, namespaces, &StoreKey::new(None, name), &object);
    Ok(())
}

/// Stores an object without checks, in place of the existing one. Unlike other writes it does not use
/// [`PreparedWrite::prepare_new`]. The caller decides everything except kind, name, namespace, uid and creation time.
pub(crate) fn put_as_is(
    hub: &Hub,
    resource: &Resource,
    key: &StoreKey,
    mut object: Value,
) -> Result<WriteOutcome, WriteFailure> {
    check_name(resource, key.name())?;
    let brought = bring(hub, resource, key, Trust::Host)?;
    loop {
        let before = hub.storage.lock().object(resource, key);
        let known = before.as_ref().map(|stored| stored.metadata()).unwrap_or_default();
        let kept = |member: &str, fresh: String| known.get(member).cloned().unwrap_or_else(|| fresh.into());
        let identity = [
            ("uid", kept("uid", hub.chance.uid())),
            ("creationTimestamp", kept("creationTimestamp", hub.clock.now_text())),
        ];
        metadata_mut(&mut object).extend(identity.map(|(member, value)| (member.to_owned(), value)));
        keep_place(resource, key, &mut object);
        let change = if before.is_some() { WriteKind::Modified } else { WriteKind::Added };
        let draft = hub.storage.draft(resource, key, &object, change);
        let mut state = hub.storage.lock();
        let current = state.object(resource, key);
        if current.as_ref().map(Arc::as_ptr) != before.as_ref().map(Arc::as_ptr) {
            continue;
        }
        if let Some((namespaces, name)) = check_place(&state, resource, key, Trust::Host)? {
            make_namespace(hub, &mut state, &namespaces, name, brought)?;
        }
        let stored = hub.storage.commit(&mut state, resource, draft);
        return Ok(WriteOutcome::Stored { object: stored, created: before.is_none() });
    }
}
