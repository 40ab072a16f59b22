//! Removes the fields that a manager no longer applies, unless another manager owns them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::check::{Duplicates, check};
use super::extract::fields;
use super::manager::{ManagedEntries, ManagerIdentity};
use super::remove::remove;
use super::schema::FieldSchema;
use super::set::FieldSet;

/// The last apply of a manager.
pub(super) struct LastTime {
    pub(super) api_version: String,
    pub(super) fields: FieldSet,
}

/// Returns the merged object in version `version` without the fields that the manager no longer applies. `managed`
/// already contains the new apply.
///
/// # Errors
///
/// kube-apiserver converts the result between versions, and fails if an item lost its key. This function fails as well.
pub(super) fn prune<'s, S: FieldSchema<'s>>(
    schema: S,
    merged: Value,
    version: &str,
    managed: &ManagedEntries,
    last: Option<LastTime>,
) -> Result<Value, String> {
    let Some(last) = last.filter(|last| !last.fields.is_empty()) else { return Ok(merged) };
    let named = |set: FieldSet| set.with_named_fields(Some(schema));
    let last_fields = named(last.fields);
    let of_merged = named(fields(schema, &merged));
    let mut pruned = Versioned { value: remove(schema, &merged, &last_fields), version: &last.api_version };
    for (version, owned) in owned_by_version(managed, &last.api_version) {
        pruned.convert(schema, version).map_err(|misfits| {
            format!("failed add back owned items: failed to convert pruned object at version {version}: {misfits}")
        })?;
        let kept = named(fields(schema, &pruned.value)).union(named(owned));
        pruned.value = remove(schema, &merged, &of_merged.clone().difference(&kept));
    }
    pruned.convert(schema, &last.api_version).map_err(|misfits| {
        format!("failed add back dangling items: failed to convert pruned object to last applied version: {misfits}")
    })?;
    // Only fields of the last apply are removed. Other fields that were removed with them are restored.
    let of_pruned = named(fields(schema, &pruned.value));
    let gone = of_merged.difference(&of_pruned).intersection(&last_fields);
    pruned.value = remove(schema, &merged, &gone);
    pruned.convert(schema, version)?;
    Ok(pruned.value)
}

/// An object and its version.
struct Versioned<'v> {
    value: Value,
    version: &'v str,
}

impl<'v> Versioned<'v> {
    /// Checks that the object can be converted: it must fit its type. All versions have the same type here.
    fn convert<'s, S: FieldSchema<'s>>(&mut self, schema: S, version: &'v str) -> Result<(), String> {
        if self.version != version {
            check(schema, &self.value, Duplicates::Refused)?;
            self.version = version;
        }
        Ok(())
    }
}

/// Returns the fields of all managers by version, starting with the version of the manager's last apply.
fn owned_by_version<'m>(managed: &'m ManagedEntries, first: &str) -> Vec<(&'m str, FieldSet)> {
    let mut versions: BTreeMap<(bool, &str), Vec<FieldSet>> = BTreeMap::new();
    for entry in managed.entries.values() {
        let version = (entry.api_version != first, entry.api_version.as_str());
        versions.entry(version).or_default().push(entry.fields.clone());
    }
    versions.into_iter().map(|((_, version), sets)| (version, FieldSet::union_all(sets))).collect()
}

/// Removes the fields of the last apply from a manager's entry, and returns them.
pub(super) fn take_last(managed: &mut ManagedEntries, identity: &ManagerIdentity) -> Option<LastTime> {
    let entry = managed.entries.get_mut(identity)?;
    Some(LastTime { api_version: entry.api_version.clone(), fields: std::mem::take(&mut entry.fields) })
}
