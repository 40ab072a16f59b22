//! Correlation of new and old values: unchanged errors are accepted on updates.

use serde_json::Value;
use std::collections::HashMap;

use super::golang;
use super::node::{NodeKind, SchemaNode};

/// A new value, its old value, and their schema.
#[derive(Clone, Copy)]
pub(crate) struct Correlation<'a> {
    pub(crate) new: &'a Value,
    pub(crate) old: &'a Value,
    pub(crate) node: &'a SchemaNode,
}

impl<'a> Correlation<'a> {
    pub(crate) fn member(self, name: &str) -> Option<Self> {
        let (Value::Object(new), Value::Object(old)) = (self.new, self.old) else {
            return None;
        };
        Some(Self { new: new.get(name)?, old: old.get(name)?, node: self.node.member(name)? })
    }

    /// Returns the elements of a map list by key.
    pub(crate) fn elements(self) -> Elements<'a> {
        Elements::of(self.node, Some(self.old))
    }

    pub(crate) fn element(self, elements: &Elements<'a>, new: &'a Value) -> Option<Self> {
        Some(Self { new, old: elements.get(new)?, node: self.node.items.as_deref()? })
    }

    /// Returns whether nothing has changed, as far as the schema allows a comparison.
    pub(crate) fn is_unchanged(self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                if !self.node.is_map_list() {
                    return self.new == self.old;
                }
                let elements = self.elements();
                new.iter().all(|item| self.element(&elements, item).is_some_and(Self::is_unchanged))
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len() && new.keys().all(|name| self.member(name).is_some_and(Self::is_unchanged))
            }
            (new, old) => new == old,
        }
    }
}

/// The elements of an old list by key; none if the list is not a map list.
pub(crate) struct Elements<'a> {
    keys: &'a [String],
    by_key: HashMap<String, &'a Value>,
}

impl<'a> Elements<'a> {
    pub(crate) fn of(node: &'a SchemaNode, old: Option<&'a Value>) -> Self {
        let mut elements = Self { keys: &node.list_keys, by_key: HashMap::new() };
        if let Some(Value::Array(items)) = old
            && node.kind == NodeKind::Array
            && node.is_map_list()
            && !node.list_keys.is_empty()
        {
            for item in items {
                if let Some(key) = elements.key(item) {
                    elements.by_key.entry(key).or_insert(item);
                }
            }
        }
        elements
    }

    pub(crate) fn get(&self, item: &Value) -> Option<&'a Value> {
        if self.by_key.is_empty() {
            return None;
        }
        self.by_key.get(&self.key(item)?).copied()
    }

    fn key(&self, item: &Value) -> Option<String> {
        let Value::Object(members) = item else {
            return None;
        };
        let mut key = String::new();
        for name in self.keys {
            match members.get(name)? {
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
                Value::Number(number) => match golang::number(number) {
                    golang::Num::Int(int) => key.push_str(&format!("{int},")),
                    golang::Num::Float(float) => key.push_str(&format!("f{float},")),
                },
                scalar => key.push_str(&format!("{scalar},")),
            }
        }
        Some(key)
    }
}
