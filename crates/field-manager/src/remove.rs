//! Removes fields from a value.

use serde_json::{Map, Value};

use super::atom::{self, Atom, atom};
use super::item;
use super::schema::FieldSchema;
use super::set::FieldSet;

/// Returns the object without the fields in the set. A value that loses all its content becomes null.
pub(super) fn remove<'s, S: FieldSchema<'s>>(schema: S, value: &Value, fields: &FieldSet) -> Value {
    match (atom(schema, value), value) {
        (Atom::Scalar(_), _) => value.clone(),
        (Atom::OpenList, Value::Array(items)) => list(schema, items, fields),
        (Atom::OpenMap, Value::Object(members)) => map(schema, members, fields),
        _ => Value::Null,
    }
}

fn list<'s, S: FieldSchema<'s>>(schema: S, items: &[Value], fields: &FieldSet) -> Value {
    let kept = items.iter().filter_map(|value| {
        let branch = item::element(schema, value).ok().and_then(|element| fields.at(&element));
        match branch {
            None => Some(value.clone()),
            Some(branch) if branch.member => None,
            Some(branch) => Some(remove(schema.items(), value, &branch.below)),
        }
    });
    let kept: Vec<_> = kept.collect();
    if kept.is_empty() { Value::Null } else { Value::Array(kept) }
}

fn map<'s, S: FieldSchema<'s>>(schema: S, members: &Map<String, Value>, fields: &FieldSet) -> Value {
    let kept = members.iter().filter_map(|(name, value)| {
        let branch = fields.at_field(name);
        let value = match (branch, atom::member(schema, name)) {
            (None, _) | (_, None) => value.clone(),
            (Some(branch), _) if branch.member => return None,
            (Some(branch), Some(member)) => remove(member.schema(), value, &branch.below),
        };
        Some((name.clone(), value))
    });
    let kept: Map<_, _> = kept.collect();
    if kept.is_empty() { Value::Null } else { Value::Object(kept) }
}
