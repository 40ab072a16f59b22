//! The fields of a value.

use serde_json::{Map, Value};

use super::atom::{self, Atom, atom, items, members};
use super::item;
use super::path::PathElement;
use super::schema::{FieldSchema, Member};
use super::set::{Branch, FieldSet, SetNode};

/// Returns the fields of an object that fits its type: every leaf, every item of a list and every entry of a map.
pub(super) fn fields<'s, S: FieldSchema<'s>>(schema: S, object: &Value) -> FieldSet {
    place(schema, object).below
}

fn place<'s, S: FieldSchema<'s>>(schema: S, value: &Value) -> Branch {
    match atom(schema, value) {
        Atom::Scalar(_) | Atom::AtomicList | Atom::AtomicMap => Branch::leaf(),
        Atom::OpenList => Branch { member: false, below: list(schema, items(Some(value))) },
        Atom::OpenMap => match members(Some(value)) {
            Some(members) => Branch { member: false, below: map(schema, members) },
            None => Branch::default(),
        },
    }
}

fn map<'s, S: FieldSchema<'s>>(schema: S, members: &Map<String, Value>) -> FieldSet {
    let mut nodes = Vec::with_capacity(members.len());
    for (name, value) in members {
        let Some(member) = atom::member(schema, name) else { continue };
        let mut branch = place(member.schema(), value);
        branch.member |= matches!(member, Member::Entry(_)) || is_bare(value);
        nodes.push(SetNode { element: PathElement::field(name), branch });
    }
    FieldSet::from_nodes(nodes)
}

/// Returns whether no field below the value represents it.
fn is_bare(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn list<'s, S: FieldSchema<'s>>(schema: S, items: &[Value]) -> FieldSet {
    // An item without its key still shows that the list is not empty.
    let element = |value| item::element(schema, value).unwrap_or(PathElement::Index(i64::MAX));
    let mut known: Vec<_> = items.iter().map(|value| (element(value), value)).collect();
    known.sort_by(|(element, _), (other, _)| element.cmp(other));
    let same = known.chunk_by(|(element, _), (other, _)| element == other);
    let nodes = same.filter_map(|same| {
        // Duplicate items count as one: their owner owns them all.
        let below = match same {
            [(_, value)] => place(schema.items(), value).below,
            _ => FieldSet::default(),
        };
        let (element, _) = same.first()?;
        Some(SetNode { element: element.clone(), branch: Branch { member: true, below } })
    });
    FieldSet::from_nodes(nodes.collect())
}
