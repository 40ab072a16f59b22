//! How a create, an update, a patch or a subresource write changes the owners of fields.

use std::sync::LazyLock;

use serde_json::Value;

use super::check::{Duplicates, check};
use super::compare::compare;
use super::manager::{ManagedEntries, ManagerEntry, Operation, is_reset, list_of, set_list};
use super::reconcile::reconcile;
use super::schema::FieldSchema;
use super::set::FieldSet;
use super::write::Write;

/// Fields without an owner: the identity of an object, and fields that only the server sets.
static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    let metadata = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let top: [&[&str]; 3] = [&["apiVersion"], &["kind"], &["metadata"]];
    let below = metadata.map(|name| ["metadata", name]);
    FieldSet::of_fields(top.into_iter().chain(below.iter().map(<[&str; 2]>::as_slice)))
});

/// Returns the fields without those that have no owner.
pub(super) fn owned(fields: FieldSet) -> FieldSet {
    fields.difference(&NEVER_OWNED)
}

/// Sets `new.metadata.managedFields` for a write that turns `live` into `new`. For a create, `live` is an object with
/// only version and kind.
///
/// The manager becomes the only owner of the fields that it sets. If the objects do not fit their type, the entries of
/// `live` are kept.
pub fn update<'s, S: FieldSchema<'s>>(request: &Write<'_, S>, live: &Value, new: &mut Value) {
    let managed = known_entries(request, live, new);
    set_list(new, None);
    let list = match updated(request, live, new, managed, request.manager) {
        Ok(managed) => managed.encode(),
        Err(_) => list_of(live).cloned(),
    };
    set_list(new, list);
}

/// Returns the entries before an update: those in the request, if there are valid ones.
fn known_entries<S>(request: &Write<'_, S>, live: &Value, new: &Value) -> ManagedEntries {
    let of_live = || ManagedEntries::decode(list_of(live)).unwrap_or_default();
    let sent = list_of(new);
    if !request.subresource.is_empty() {
        return of_live();
    }
    if is_reset(sent) {
        return ManagedEntries::default();
    }
    ManagedEntries::decode(sent).ok().filter(|managed| !managed.entries.is_empty()).unwrap_or_else(of_live)
}

/// Returns the entries after a write by `manager`. An error says which object does not fit its type.
pub(super) fn updated<'s, S: FieldSchema<'s>>(
    request: &Write<'_, S>,
    live: &Value,
    new: &Value,
    managed: ManagedEntries,
    manager: &str,
) -> Result<ManagedEntries, String> {
    let uid = live.get("metadata").and_then(|metadata| metadata.get("uid")).and_then(Value::as_str);
    if managed.entries.is_empty() && uid.is_some_and(|uid| !uid.is_empty()) {
        // The client cleared the owners, so they stay unknown until the next apply.
        return Ok(managed);
    }
    let managed = track(request, live, new, managed, manager)?;
    Ok(managed)
}

fn track<'s, S: FieldSchema<'s>>(
    request: &Write<'_, S>,
    live: &Value,
    new: &Value,
    managed: ManagedEntries,
    manager: &str,
) -> Result<ManagedEntries, String> {
    for (object, which) in [(new, "new"), (live, "live")] {
        check(request.schema, object, Duplicates::Allowed).map_err(|misfits| {
            format!("failed to convert {which} object ({}) to smd typed: {misfits}", Write::<S>::name_of(object))
        })?;
    }
    if knows_other_versions(request, &managed) {
        check_conversion(request, live)?;
        check_conversion(request, new)?;
    }
    let mut managed = reconciled(request.schema, managed);
    let (set, removed) = compare(request.schema, live, new).filtered(request.filter).into_set_and_removed();
    for entry in managed.entries.values_mut() {
        let fields = std::mem::take(&mut entry.fields);
        entry.fields = fields.difference(&set).difference(&removed);
    }
    managed.entries.retain(|_, entry| !entry.fields.is_empty());
    let fields = owned(set);
    if fields.is_empty() {
        return Ok(managed);
    }
    let own = ManagerEntry { time: request.now.to_owned(), ..request.entry(manager, Operation::Update) };
    let known = managed.entries.remove(&own.identity()).map(|known| known.fields).unwrap_or_default();
    managed.entries.insert(own.identity(), ManagerEntry { fields: fields.union(known), ..own });
    Ok(managed)
}

/// Returns whether an entry has another version, for which kube-apiserver converts the object.
pub(super) fn knows_other_versions<S>(request: &Write<'_, S>, managed: &ManagedEntries) -> bool {
    managed.entries.values().any(|entry| entry.api_version != request.api_version)
}

/// Returns whether the object can be converted: it must not have duplicate items.
pub(super) fn check_conversion<'s, S: FieldSchema<'s>>(request: &Write<'_, S>, object: &Value) -> Result<(), String> {
    check(request.schema, object, Duplicates::Refused)
}

/// Returns the entries for the current type.
pub(super) fn reconciled<'s, S: FieldSchema<'s>>(schema: S, mut managed: ManagedEntries) -> ManagedEntries {
    for entry in managed.entries.values_mut() {
        entry.fields = reconcile(schema, std::mem::take(&mut entry.fields));
    }
    managed
}
