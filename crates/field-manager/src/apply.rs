//! Server-side apply: a manager sends its configuration, and owns exactly these fields.

use std::fmt;

use serde_json::Value;

use super::check::{Duplicates, check};
use super::compare::compare;
use super::conflict::Conflicts;
use super::extract::fields;
use super::last_applied;
use super::manager::{ManagedEntries, ManagerEntry, ManagerIdentity, Operation, list_of, set_list};
use super::merge::merge;
use super::order;
use super::prune::{prune, take_last};
use super::schema::FieldSchema;
use super::update::{check_conversion, knows_other_versions, owned, reconciled, updated};
use super::write::{Write, kind_text};

/// The manager of the fields that an object had before its first apply, if no manager was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// How an apply treats fields of other managers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// Refuses the apply, and reports the owners.
    No,
    /// Takes over the fields.
    Yes,
}

/// Why an apply was refused.
#[derive(Debug, Clone)]
pub enum ApplyError {
    /// The request is invalid: 400.
    BadRequest(String),
    /// Other managers own fields that the apply sets: 409, with a cause for each field.
    Conflict(Conflicts),
    /// An object does not fit its type, or its entries cannot be read: 500, as on kube-apiserver.
    Internal(String),
}

impl fmt::Display for ApplyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadRequest(message) | Self::Internal(message) => out.write_str(message),
            Self::Conflict(conflicts) => conflicts.fmt(out),
        }
    }
}

impl std::error::Error for ApplyError {}

/// Applies `patch` to `live`, and returns the object with its `metadata.managedFields`.
///
/// `empty` is an object with only version and kind. It is also `live` if no object exists yet. An apply that changes
/// nothing returns an object equal to `live`. A map or list that loses all its content may become null. For built-in
/// kinds, whose structs have no null, the caller must remove it.
///
/// # Errors
///
/// See [`ApplyError`].
pub fn apply<'s, S: FieldSchema<'s>>(
    request: &Write<'_, S>,
    empty: &Value,
    live: &Value,
    patch: &Value,
    force: Force,
) -> Result<Value, ApplyError> {
    let managed = ManagedEntries::decode(list_of(live))
        .map_err(|bad| ApplyError::Internal(format!("failed to decode managed fields: {bad}")))?;
    check_request(request, patch)?;
    let managed = first_apply(request, empty, live, managed)?;
    let (mut object, managed) = match request.manager {
        last_applied::KUBECTL => applied_by_kubectl(request, live, patch, managed, force)?,
        _ => applied(request, live, patch, managed, force)?,
    };
    set_list(&mut object, managed.encode());
    Ok(object)
}

/// Applies for kubectl, which may take over the fields of its client-side apply, and renews the last-applied
/// annotation.
fn applied_by_kubectl<'s, S: FieldSchema<'s>>(
    request: &Write<'_, S>,
    live: &Value,
    patch: &Value,
    managed: ManagedEntries,
    force: Force,
) -> Result<(Value, ManagedEntries), ApplyError> {
    let outcome = match applied(request, live, patch, managed.clone(), force) {
        Err(ApplyError::Conflict(conflicts)) => {
            let allowed = last_applied::fields_of(request.schema, request.api_version, live);
            let left = conflicts.without(&allowed.unwrap_or_default());
            if !left.is_empty() {
                return Err(ApplyError::Conflict(left));
            }
            applied(request, live, patch, managed, Force::Yes)
        }
        outcome => outcome,
    };
    let (mut object, managed) = outcome?;
    last_applied::renew(&mut object, patch);
    Ok((object, managed))
}

fn check_request<S>(request: &Write<'_, S>, patch: &Value) -> Result<(), ApplyError> {
    let text = |name: &str| patch.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind = kind_text(text("apiVersion"), text("kind"));
    if kind != kind_text(request.api_version, request.kind) {
        return Err(ApplyError::BadRequest(format!("invalid object type: {kind}")));
    }
    match list_of(patch) {
        Some(_) => Err(ApplyError::BadRequest("metadata.managedFields must be nil".into())),
        None => Ok(()),
    }
}

/// Returns the entries of an object before an apply. Fields without a known owner belong to the manager
/// `before-first-apply`.
fn first_apply<'s, S: FieldSchema<'s>>(
    request: &Write<'_, S>,
    empty: &Value,
    live: &Value,
    managed: ManagedEntries,
) -> Result<ManagedEntries, ApplyError> {
    if !managed.entries.is_empty() {
        return Ok(managed);
    }
    updated(request, empty, live, managed, BEFORE_FIRST_APPLY)
        .map_err(|misfits| ApplyError::Internal(format!("failed to create manager for existing fields: {misfits}")))
}

fn applied<'s, S: FieldSchema<'s>>(
    request: &Write<'_, S>,
    live: &Value,
    patch: &Value,
    managed: ManagedEntries,
    force: Force,
) -> Result<(Value, ManagedEntries), ApplyError> {
    for (object, which, duplicates) in [(patch, "patch", Duplicates::Refused), (live, "live", Duplicates::Allowed)] {
        check(request.schema, object, duplicates).map_err(|misfits| {
            let name = Write::<S>::name_of(object);
            ApplyError::Internal(format!("failed to create typed {which} object ({name}): {misfits}"))
        })?;
    }
    if knows_other_versions(request, &managed) {
        check_conversion(request, live).map_err(ApplyError::Internal)?;
    }
    let schema = request.schema;
    let mut managed = reconciled(schema, managed);
    let own = request.entry(request.manager, Operation::Apply);
    let identity = own.identity();
    let last = take_last(&mut managed, &identity);
    let time = managed.entries.get(&identity).map(|known| known.time.clone()).unwrap_or_default();
    let wanted = request.filter.apply(fields(schema, patch));
    managed.entries.insert(identity.clone(), ManagerEntry { time, fields: wanted, ..own });
    let object = prune(schema, merge(schema, live, patch), request.api_version, &managed, last)
        .map_err(|reason| ApplyError::Internal(format!("failed to prune fields: {reason}")))?;
    check(schema, &object, Duplicates::Allowed)
        .map_err(|misfits| ApplyError::Internal(format!("failed to compare objects: {misfits}")))?;
    take_from_others(request, live, &object, &mut managed, &identity, force)?;
    let changed = !order::equal(live, &object);
    if let Some(own) = managed.entries.get_mut(&identity) {
        own.fields = owned(std::mem::take(&mut own.fields));
        if changed {
            request.now.clone_into(&mut own.time);
        }
    }
    managed.entries.retain(|_, entry| !entry.fields.is_empty());
    Ok((if changed { object } else { live.clone() }, managed))
}

/// Takes over the fields that the apply changes, if that is allowed.
fn take_from_others<'s, S: FieldSchema<'s>>(
    request: &Write<'_, S>,
    live: &Value,
    object: &Value,
    managed: &mut ManagedEntries,
    own: &ManagerIdentity,
    force: Force,
) -> Result<(), ApplyError> {
    let comparison = compare(request.schema, live, object).filtered(request.filter);
    let (set, removed) = comparison.into_set_and_removed();
    let mut conflicts = Conflicts::default();
    for (identity, entry) in managed.entries.iter().filter(|(identity, _)| *identity != own) {
        conflicts.add(identity, entry, entry.fields.intersection(&set));
    }
    if force == Force::No && !conflicts.is_empty() {
        return Err(ApplyError::Conflict(conflicts));
    }
    for (_, entry) in managed.entries.iter_mut().filter(|(identity, _)| *identity != own) {
        entry.fields = std::mem::take(&mut entry.fields).difference(&set).difference(&removed);
    }
    Ok(())
}
