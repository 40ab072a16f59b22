//! Strategic merge patch: a merge patch that uses the object's type to merge lists by their keys.

mod list;
mod order;

use std::fmt;

use serde_json::{Map, Value};

use super::atom::type_name;
use super::schema::{FieldSchema, Member, PatchRule, PatchStrategy, Shape};

/// The members of a JSON object.
type JsonMembers = Map<String, Value>;

/// The directive that replaces or deletes a map or an item instead of merging it.
const DIRECTIVE: &str = "$patch";
/// Lists the only members that a map keeps.
const RETAIN_KEYS: &str = "$retainKeys";
/// Lists the items to remove from a list of scalars.
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
/// Sets the order of a list.
const ELEMENT_ORDER: &str = "$setElementOrder";

/// Why a patch cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StrategicMergeError {
    /// A directive is malformed: 400.
    BadRequest(String),
    /// The patch is not possible: 422.
    Unprocessable(String),
    /// The patch does not fit the object: 500, as in kube-apiserver.
    Internal(String),
}

impl fmt::Display for StrategicMergeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadRequest(reason) | Self::Unprocessable(reason) | Self::Internal(reason) => out.write_str(reason),
        }
    }
}

impl std::error::Error for StrategicMergeError {}

fn malformed(reason: &str) -> StrategicMergeError {
    StrategicMergeError::BadRequest(reason.to_owned())
}

fn unfit(reason: impl Into<String>) -> StrategicMergeError {
    StrategicMergeError::Internal(reason.into())
}

fn wrong_type(expected: &str, actual: &Value) -> StrategicMergeError {
    let actual = type_name(actual);
    unfit(format!("expected a {expected}, but received a {actual}"))
}

fn no_merge_key(key: &str) -> StrategicMergeError {
    unfit(format!("an item of a list does not contain the merge key {key:?}"))
}

fn unknown_directive(directive: &Value) -> StrategicMergeError {
    unfit(format!("unknown patch type: {}", directive))
}

/// Returns the object with the patch applied.
///
/// # Errors
///
/// The patch is malformed, or does not fit the object.
pub fn strategic_merge_patch<'s, S: FieldSchema<'s>>(
    original: &Value,
    patch: &Value,
    schema: S,
) -> Result<Value, StrategicMergeError> {
    match (original, patch) {
        (Value::Object(original), Value::Object(patch)) => {
            merge_map(original.clone(), patch.clone(), schema).map(Value::Object)
        }
        _ => Err(malformed("invalid JSON document")),
    }
}

fn merge_map<'s, S: FieldSchema<'s>>(
    mut original: JsonMembers,
    mut patch: JsonMembers,
    schema: S,
) -> Result<JsonMembers, StrategicMergeError> {
    match patch.get(DIRECTIVE) {
        Some(Value::String(directive)) if directive == "replace" => {
            patch.remove(DIRECTIVE);
            return Ok(patch);
        }
        Some(Value::String(directive)) if directive == "delete" => return Ok(JsonMembers::new()),
        Some(directive) => return Err(unknown_directive(directive)),
        None => {}
    }
    retain_keys(&mut original, &mut patch)?;
    order::merge_ordered_lists(&mut original, &mut patch, schema)?;
    for (name, value) in patch {
        match name.strip_prefix(DELETE_FROM_LIST) {
            Some(rest) => {
                let reason = "invalid patch format of primitive list";
                let list = rest.strip_prefix('/').ok_or_else(|| malformed(reason))?;
                delete_from_list(&mut original, list, value, schema)?;
            }
            None => merge_member(&mut original, name, value, schema)?,
        }
    }
    Ok(original)
}

/// Removes the members that the patch does not retain. The patch must retain all members that it sets.
fn retain_keys(original: &mut JsonMembers, patch: &mut JsonMembers) -> Result<(), StrategicMergeError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let bad = || malformed("invalid patch format of retainKeys");
    let Value::Array(retained) = retained else { return Err(bad()) };
    let retained: std::collections::BTreeSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let is_covered = |(name, value): (&String, &Value)| {
        value.is_null()
            || name.starts_with(DELETE_FROM_LIST)
            || name.starts_with(ELEMENT_ORDER)
            || retained.contains(name.as_str())
    };
    if !patch.iter().all(is_covered) {
        return Err(bad());
    }
    original.retain(|name, _| retained.contains(name.as_str()));
    Ok(())
}

fn merge_member<'s, S: FieldSchema<'s>>(
    original: &mut JsonMembers,
    name: String,
    value: Value,
    schema: S,
) -> Result<(), StrategicMergeError> {
    if value.is_null() {
        original.remove(&name);
        return Ok(());
    }
    let merged = match (original.get_mut(&name).map(Value::take), value) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            let member = member(schema, &name)?;
            match member.patch_rule().strategy {
                PatchStrategy::Replace => Some(Value::Object(new)),
                _ => Some(Value::Object(merge_map(old, new, member)?)),
            }
        }
        (Some(Value::Array(old)), Value::Array(new)) => {
            let (items, rule) = list_member(schema, &name)?;
            match rule.strategy {
                PatchStrategy::Merge => Some(Value::Array(list::merge(old, new, items, rule)?)),
                _ => Some(Value::Array(new)),
            }
        }
        (Some(old), value) if type_name(&old) == type_name(&value) => Some(value),
        (_, value) => without_directives(without_nulls(value)),
    };
    match merged {
        Some(merged) => original.insert(name, merged),
        None => original.remove(&name),
    };
    Ok(())
}

fn delete_from_list<'s, S: FieldSchema<'s>>(
    original: &mut JsonMembers,
    name: &str,
    value: Value,
    schema: S,
) -> Result<(), StrategicMergeError> {
    if value.is_null() {
        original.remove(name);
        return Ok(());
    }
    match (original.get_mut(name), value) {
        (Some(Value::Array(items)), Value::Array(deleted)) => {
            let (schema, rule) = list_member(schema, name)?;
            *items = list::delete(std::mem::take(items), deleted, schema, rule)?;
        }
        (Some(Value::Object(old)), Value::Object(new)) => {
            let member = member(schema, name)?;
            *old = match member.patch_rule().strategy {
                PatchStrategy::Replace => new,
                _ => merge_map(std::mem::take(old), new, member)?,
            };
        }
        (Some(old), value) if type_name(old) == type_name(&value) => *old = value,
        _ => {}
    }
    Ok(())
}

/// Returns the type of a merged member. An undeclared member cannot be merged.
fn member<'s, S: FieldSchema<'s>>(schema: S, name: &str) -> Result<S, StrategicMergeError> {
    match (schema.shape(), super::atom::member(schema, name)) {
        (Shape::Map | Shape::AtomicMap, Some(Member::Field(member))) => Ok(member),
        (Shape::Map | Shape::AtomicMap, None) => {
            Err(unfit(format!("unable to find api field in struct {} for the json field {name:?}", schema.name())))
        }
        (Shape::Map | Shape::AtomicMap, Some(Member::Entry(_))) => {
            Err(unfit("merging an object in json but data type is not struct, instead is: map"))
        }
        _ => Err(unfit(format!("unable to find api field in struct {} for the json field {name:?}", schema.name()))),
    }
}

fn list_member<'s, S: FieldSchema<'s>>(schema: S, name: &str) -> Result<(S, PatchRule<'s>), StrategicMergeError> {
    let member = member(schema, name)?;
    Ok((member.items(), member.patch_rule()))
}

/// Returns the value without members that are null, at any depth.
fn without_nulls(mut value: Value) -> Value {
    discard_nulls(&mut value);
    value
}

fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// Returns the value without maps that are directives, or `None` if it is one itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(DIRECTIVE) => None,
        Value::Object(members) => {
            let kept = members.into_iter().filter_map(|(name, member)| Some((name, without_directives(member)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        other => Some(other),
    }
}
