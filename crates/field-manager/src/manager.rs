//! The entries of `metadata.managedFields`: which manager set which fields, how and when.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use super::set::FieldSet;
use super::text;

/// How a manager set its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// One entry of `metadata.managedFields`.
#[derive(Debug, Clone)]
pub(super) struct ManagerEntry {
    pub(super) manager: String,
    pub(super) operation: Operation,
    pub(super) api_version: String,
    pub(super) subresource: String,
    /// When its fields last changed, as `2006-01-02T15:04:05Z`; empty if unknown.
    pub(super) time: String,
    pub(super) fields: FieldSet,
}

/// The identity of an entry. kube-apiserver sorts by its string form, so it is kept in that form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ManagerIdentity(String);

impl ManagerEntry {
    /// Returns the identity of the manager. An apply manager is the same in every version.
    pub(super) fn identity(&self) -> ManagerIdentity {
        let api_version = match self.operation {
            Operation::Apply => "",
            Operation::Update => self.api_version.as_str(),
        };
        let parts = [
            ("manager", self.manager.as_str()),
            ("operation", self.operation.name()),
            ("apiVersion", api_version),
            ("subresource", self.subresource.as_str()),
        ];
        let parts = parts.into_iter().filter(|(_, value)| !value.is_empty());
        let parts: Vec<String> = parts.map(|(name, value)| format!("{name:?}:{}", Value::from(value))).collect();
        ManagerIdentity(format!("{{{}}}", parts.join(",")))
    }

    /// Returns the manager as shown in messages about conflicts.
    pub(super) fn description(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource);
        }
        match self.operation {
            Operation::Update => format!("{text} using {}", self.api_version),
            Operation::Apply => text,
        }
    }

    /// Returns the sort key of entries in an object.
    fn rank(&self) -> (Operation, &str, &str, &str, &str) {
        (self.operation, &self.time, &self.manager, &self.api_version, &self.subresource)
    }

    fn encode(&self) -> Value {
        let mut entry = json!({
            "operation": self.operation.name(),
            "apiVersion": self.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": text::encode(&self.fields),
        });
        if !self.manager.is_empty() {
            entry["manager"] = Value::from(self.manager.as_str());
        }
        if !self.subresource.is_empty() {
            entry["subresource"] = Value::from(self.subresource.as_str());
        }
        if !self.time.is_empty() {
            entry["time"] = Value::from(self.time.as_str());
        }
        entry
    }
}

/// All entries of an object.
#[derive(Debug, Clone, Default)]
pub(super) struct ManagedEntries {
    pub(super) entries: BTreeMap<ManagerIdentity, ManagerEntry>,
}

impl ManagedEntries {
    /// Reads `metadata.managedFields`. A missing list counts as empty.
    pub(super) fn decode(list: Option<&Value>) -> Result<Self, BadEntries> {
        let Some(list) = list.and_then(Value::as_array) else { return Ok(Self::default()) };
        let mut managed = Self::default();
        for (index, entry) in list.iter().enumerate() {
            let entry = decode_entry(index, entry)?;
            managed.entries.insert(entry.identity(), entry);
        }
        Ok(managed)
    }

    /// Returns the entries as the server writes them: apply entries first, then by time.
    pub(super) fn encode(&self) -> Option<Value> {
        if self.entries.is_empty() {
            return None;
        }
        let mut entries: Vec<_> = self.entries.values().collect();
        entries.sort_by(|entry, other| entry.rank().cmp(&other.rank()));
        Some(entries.into_iter().map(ManagerEntry::encode).collect())
    }
}

/// The error of an invalid `metadata.managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadEntries(String);

impl fmt::Display for BadEntries {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for BadEntries {}

fn decode_entry(index: usize, entry: &Value) -> Result<ManagerEntry, BadEntries> {
    let bad = |reason: &str| Err(BadEntries(reason.to_owned()));
    let Some(members) = entry.as_object() else { return bad("an entry is not a map") };
    let operation = match text_of(members, "operation")? {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return bad("operation must be `Apply` or `Update`"),
    };
    let api_version = text_of(members, "apiVersion")?;
    if api_version.is_empty() {
        return bad("apiVersion must not be empty");
    }
    match text_of(members, "fieldsType")? {
        "FieldsV1" => {}
        "" => return bad(&format!("missing fieldsType in managed fields entry {index}")),
        other => return bad(&format!("invalid fieldsType {other:?} in managed fields entry {index}")),
    }
    let fields = match members.get("fieldsV1") {
        Some(fields) => text::decode(fields).map_err(|bad| BadEntries(format!("error decoding set: {bad}")))?,
        None => FieldSet::default(),
    };
    Ok(ManagerEntry {
        manager: text_of(members, "manager")?.to_owned(),
        operation,
        api_version: api_version.to_owned(),
        subresource: text_of(members, "subresource")?.to_owned(),
        time: text_of(members, "time")?.to_owned(),
        fields,
    })
}

fn text_of<'v>(members: &'v Map<String, Value>, name: &str) -> Result<&'v str, BadEntries> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(BadEntries(format!("{name} is not a text"))),
    }
}

/// Returns whether this list asks to clear all entries: an empty list, or one empty entry.
pub(super) fn is_reset(list: Option<&Value>) -> bool {
    let is_empty = |entry: &Value| entry.as_object().is_some_and(Map::is_empty);
    match list.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => is_empty(only),
        _ => false,
    }
}

/// Returns the list of entries of an object.
pub(super) fn list_of(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields").filter(|list| list.is_array())
}

/// Sets or removes the entries of an object.
pub(super) fn set_list(object: &mut Value, list: Option<Value>) {
    let Some(members) = object.as_object_mut() else { return };
    match list {
        Some(list) => {
            let metadata = members.entry("metadata").or_insert_with(|| json!({}));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("managedFields".into(), list);
            }
        }
        None => {
            if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
        }
    }
}

/// Restores the old times of entries if nothing else in the object changed. The caller does this last, so that a write
/// that changes nothing is recognized.
pub fn keep_times(old: &Value, new: &mut Value) {
    let (Some(before), Some(after)) = (list_of(old), list_of(new)) else { return };
    if before == after || !same_but_times(before, after) || !same_but_entries(old, new) {
        return;
    }
    let before = before.clone();
    set_list(new, Some(before));
}

fn same_but_times(before: &Value, after: &Value) -> bool {
    let (Some(before), Some(after)) = (before.as_array(), after.as_array()) else { return false };
    let same = |(before, after): (&Value, &Value)| same_members(before, after, "time", |_, _| true);
    before.len() == after.len() && before.iter().zip(after).all(same)
}

fn same_but_entries(old: &Value, new: &Value) -> bool {
    let metadata = |old: &Value, new: &Value| same_members(old, new, "managedFields", |_, _| true);
    same_members(old, new, "metadata", metadata)
}

/// Returns whether two maps are equal, except for one member, which `same` compares.
fn same_members(left: &Value, right: &Value, except: &str, same: impl Fn(&Value, &Value) -> bool) -> bool {
    let (Some(left), Some(right)) = (left.as_object(), right.as_object()) else { return left == right };
    let rest = |members: &'_ Map<String, Value>| members.len() - usize::from(members.contains_key(except));
    rest(left) == rest(right)
        && left.iter().all(|(name, value)| match (name == except, right.get(name)) {
            (true, Some(other)) => same(value, other),
            (true, None) => true,
            (false, other) => other == Some(value),
        })
}
