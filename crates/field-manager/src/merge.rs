//! Merges one value into another of the same type. Nothing is removed.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::atom::{self, Atom, atom, items, members};
use super::compare::zip;
use super::item;
use super::path::PathElement;
use super::schema::FieldSchema;
use super::weave::{Pick, weave};

/// Returns the object with `over` merged into it. Both fit their type, and `over` has no duplicate items.
pub(super) fn merge<'s, S: FieldSchema<'s>>(schema: S, object: &Value, over: &Value) -> Value {
    match atom(schema, over) {
        Atom::Scalar(_) | Atom::AtomicList | Atom::AtomicMap => over.clone(),
        Atom::OpenList => match (items(Some(object)), items(Some(over))) {
            ([], []) => over.clone(),
            (old, new) => list(schema, old, new),
        },
        Atom::OpenMap => match (members(Some(object)), members(Some(over))) {
            (None, None) => over.clone(),
            (old, new) => map(schema, old, new),
        },
    }
}

fn side_by_side<'s, S: FieldSchema<'s>>(schema: S, old: Option<&Value>, new: Option<&Value>) -> Value {
    match (old, new) {
        (Some(old), Some(new)) => merge(schema, old, new),
        (Some(value), None) | (None, Some(value)) => value.clone(),
        (None, None) => Value::Null,
    }
}

fn map<'s, S: FieldSchema<'s>>(schema: S, old: Option<&Map<String, Value>>, new: Option<&Map<String, Value>>) -> Value {
    let merged = zip(old, new).filter_map(|(name, old, new)| {
        let member = atom::member(schema, name)?;
        Some((name.to_owned(), side_by_side(member.schema(), old, new)))
    });
    Value::Object(merged.collect())
}

/// The items of a list, with a number for each distinct item.
struct Items<'v> {
    /// The number of each item, in list order.
    numbers: Vec<usize>,
    /// The item for each number, or null if the list has duplicates of it.
    values: BTreeMap<usize, &'v Value>,
}

/// Assigns numbers to path elements, the same in both lists.
#[derive(Default)]
struct Numbers {
    known: BTreeMap<PathElement, usize>,
}

static NULL: Value = Value::Null;

impl Numbers {
    fn items<'s, 'v, S: FieldSchema<'s>>(&mut self, schema: S, list: &'v [Value]) -> Items<'v> {
        let mut items = Items { numbers: Vec::with_capacity(list.len()), values: BTreeMap::new() };
        for value in list {
            let Ok(element) = item::element(schema, value) else { continue };
            let next = self.known.len();
            let number = *self.known.entry(element).or_insert(next);
            items.numbers.push(number);
            items.values.entry(number).and_modify(|several| *several = &NULL).or_insert(value);
        }
        items
    }
}

fn list<'s, S: FieldSchema<'s>>(schema: S, old_list: &[Value], new_list: &[Value]) -> Value {
    let mut numbers = Numbers::default();
    let new = numbers.items(schema, new_list);
    let old = numbers.items(schema, old_list);
    let value = |pick| match pick {
        Pick::Old(place) => old_list.get(place).cloned(),
        Pick::New(number) => {
            let (old, new) = (old.values.get(&number).copied(), new.values.get(&number).copied());
            Some(side_by_side(schema.items(), old, new))
        }
    };
    Value::Array(weave(&old.numbers, &new.numbers).into_iter().filter_map(value).collect())
}
