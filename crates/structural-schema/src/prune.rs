//! Pruning: removes unknown fields.

use serde_json::{Map, Value};

use super::meta;
use super::node::{Additional, SchemaNode};
use super::unknown::{Unknown, push_name};

/// Removes unknown fields, and nulls that are not allowed, and returns the unknown fields.
///
/// `apiVersion`, `kind` and `metadata` stay, in the object and in embedded resources. Unknown fields of metadata are
/// removed. A path reads
/// `spec.list[0].name`; paths in metadata come first.
pub(crate) fn prune(root: &SchemaNode, object: &mut Value) -> Vec<String> {
    let mut pruner = Pruner::default();
    let mut unknown = Unknown::default();
    meta::prune_root(object, &mut unknown);
    let mut unknown = unknown.paths;
    if let Value::Object(members) = object {
        pruner.members(members, root, true);
    }
    pruner.unknown.paths.sort();
    unknown.append(&mut pruner.unknown.paths);
    drop_nulls(object, Some(root));
    let mut inner = Unknown::default();
    meta::prune_embedded(object, root, &mut String::new(), &mut inner);
    inner.paths.sort();
    unknown.append(&mut inner.paths);
    unknown
}

/// Removes unknown fields and changes nothing else.
pub(crate) fn fields_only(value: &mut Value, node: &SchemaNode, is_resource: bool) {
    let mut pruner = Pruner::default();
    match value {
        Value::Object(members) => pruner.members(members, node, is_resource),
        other => pruner.value(other, Some(node)),
    }
}

#[derive(Default)]
struct Pruner {
    path: String,
    unknown: Unknown,
}

pub(crate) fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

impl Pruner {
    /// Runs `work` one level deeper.
    fn inside(&mut self, step: impl FnOnce(&mut String), work: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        step(&mut self.path);
        work(self);
        self.path.truncate(length);
    }

    fn value(&mut self, value: &mut Value, node: Option<&SchemaNode>) {
        match (value, node) {
            (Value::Object(members), Some(node)) => self.members(members, node, node.embedded),
            (Value::Object(members), None) => {
                for name in std::mem::take(members).keys() {
                    self.record(name);
                }
            }
            (Value::Array(items), node) => {
                let preserves = node.is_some_and(|node| node.preserves);
                let inner = node.and_then(|node| node.items.as_deref());
                for (index, item) in items.iter_mut().enumerate() {
                    // Elements of a list that preserves unknown fields preserve them, too.
                    if preserves && inner.is_none() {
                        continue;
                    }
                    let step = |path: &mut String| path.push_str(&format!("[{index}]"));
                    if preserves {
                        self.inside(step, |this| this.preserved(item, inner));
                    } else {
                        self.inside(step, |this| this.value(item, inner));
                    }
                }
            }
            _ => {}
        }
    }

    /// Prunes an element of a list that preserves unknown fields.
    fn preserved(&mut self, value: &mut Value, node: Option<&SchemaNode>) {
        match (value, node) {
            (Value::Object(members), Some(node)) => self.known_members(members, node, node.embedded),
            (Value::Array(items), Some(node)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let step = |path: &mut String| path.push_str(&format!("[{index}]"));
                    self.inside(step, |this| this.preserved(item, node.items.as_deref()));
                }
            }
            _ => {}
        }
    }

    fn members(&mut self, members: &mut Map<String, Value>, node: &SchemaNode, is_resource: bool) {
        if !node.preserves && !node.additional.is_set() {
            members.retain(|name, _| {
                let known = (is_resource && is_meta(name)) || node.properties.contains_key(name);
                // At the root these fields are always known.
                let is_own = is_meta(name) && self.path.is_empty();
                if !known && !is_own {
                    self.record(name);
                }
                known
            });
        }
        self.known_members(members, node, is_resource);
    }

    fn known_members(&mut self, members: &mut Map<String, Value>, node: &SchemaNode, is_resource: bool) {
        for (name, member) in members.iter_mut().filter(|(name, _)| !(is_resource && is_meta(name))) {
            let inner = match (node.properties.get(name), &node.additional) {
                (Some(inner), _) => Some(inner),
                (None, Additional::Unset) => continue,
                (None, additional) => additional.schema(),
            };
            self.inside(|path| push_name(path, name), |this| this.value(member, inner));
        }
    }

    fn record(&mut self, name: &str) {
        self.unknown.record(&self.path, name);
    }
}

/// Removes nulls that are not allowed, unless a default will replace them.
pub(crate) fn drop_nulls(value: &mut Value, node: Option<&SchemaNode>) {
    match value {
        Value::Object(members) => members.retain(|name, member| {
            let inner = node.and_then(|node| node.member(name));
            let drop = member.is_null() && inner.is_some_and(|node| !node.nullable && node.default.is_none());
            if !drop {
                drop_nulls(member, inner);
            }
            !drop
        }),
        Value::Array(items) => {
            let inner = node.and_then(|node| node.items.as_deref());
            for item in items {
                drop_nulls(item, inner);
            }
        }
        _ => {}
    }
}
