//! Uniqueness of the elements of sets and map lists.

use serde_json::{Map, Value};
use std::collections::HashMap;

use super::cause::{FieldError, shown};
use super::golang;
use super::limits;
use super::node::SchemaNode;
use super::path::ValuePath;

/// Reports every duplicate element of a set, or duplicate key of a map list.
pub(crate) fn check(value: &Value, node: &SchemaNode, path: &ValuePath<'_>, causes: &mut Vec<FieldError>) {
    if causes.len() > limits::PROBLEMS {
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if let Some(inner) = node.additional.schema() {
                    check(member, inner, &path.key(name), causes);
                }
                if let Some(inner) = node.properties.get(name) {
                    check(member, inner, &path.child(name), causes);
                }
            }
        }
        Value::Array(items) => {
            match node.list_type.as_deref() {
                Some("set") => {
                    for index in repeated(items.iter().map(identity)) {
                        let printed = items.get(index).map(shown);
                        causes.push(FieldError::duplicate(&path.index(index), printed.as_deref()));
                    }
                }
                Some("map") => check_map(items, &node.list_keys, path, causes),
                _ => {}
            }
            if let Some(inner) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    check(item, inner, &path.index(index), causes);
                }
            }
        }
        _ => {}
    }
}

fn check_map(items: &[Value], keys: &[String], path: &ValuePath<'_>, causes: &mut Vec<FieldError>) {
    let is_element = |item: &Value| item.is_null() || item.is_object();
    if let Some(index) = items.iter().position(|item| !is_element(item)) {
        let detail = "must be an object for an array of list-type map";
        return causes.push(FieldError::invalid(&path.index(index), &shown(&items[index]), detail));
    }
    let key_of = |item: &Value| -> Value {
        let held = item.as_object();
        let pairs = keys.iter().filter_map(|key| Some((key.clone(), held?.get(key)?.clone())));
        Value::Object(pairs.collect::<Map<_, _>>())
    };
    let identity_of = |item: &Value| match keys {
        [key] => item.get(key).map_or_else(String::new, identity),
        _ => golang::json(&key_of(item)),
    };
    for index in repeated(items.iter().map(identity_of)) {
        let printed = golang::json(&key_of(&items[index]));
        causes.push(FieldError::duplicate(&path.index(index), Some(&printed)));
    }
}

/// Returns a string that is equal for two values only if they are equal.
fn identity(value: &Value) -> String {
    match value {
        Value::Number(number) => match golang::number(number) {
            golang::Num::Int(int) => int.to_string(),
            golang::Num::Float(float) => format!("f{float}"),
        },
        other => golang::json(other),
    }
}

/// Returns the index of the second occurrence of each duplicate; later ones are not reported.
fn repeated(identities: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut repeated = Vec::new();
    for (index, identity) in identities.enumerate() {
        let times = seen.entry(identity).or_insert(0);
        *times += 1;
        if *times == 2 {
            repeated.push(index);
        }
    }
    repeated
}
