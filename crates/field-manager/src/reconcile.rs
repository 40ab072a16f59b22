//! Updates field sets after a type has changed: if a value is now atomic, it is owned whole.

use super::atom;
use super::path::PathElement;
use super::schema::{FieldSchema, Shape};
use super::set::{Branch, FieldSet, SetNode};

/// Returns the set for the current type.
pub(super) fn reconcile<'s, S: FieldSchema<'s>>(schema: S, set: FieldSet) -> FieldSet {
    if !is_outdated(schema, &set) {
        return set;
    }
    below(schema, set)
}

fn below<'s, S: FieldSchema<'s>>(schema: S, set: FieldSet) -> FieldSet {
    let nodes = set.into_nodes().into_iter().map(|node| {
        let branch = match step(schema, &node.element) {
            Some(schema) if has_become_whole(schema, &node.branch) => Branch::leaf(),
            Some(schema) => Branch { below: below(schema, node.branch.below), ..node.branch },
            None => node.branch,
        };
        SetNode { element: node.element, branch }
    });
    FieldSet::from_nodes(nodes.collect())
}

/// Returns whether the set has a field below an atomic value, which is rare.
fn is_outdated<'s, S: FieldSchema<'s>>(schema: S, set: &FieldSet) -> bool {
    set.nodes().iter().any(|node| {
        step(schema, &node.element)
            .is_some_and(|schema| has_become_whole(schema, &node.branch) || is_outdated(schema, &node.branch.below))
    })
}

fn has_become_whole<'s, S: FieldSchema<'s>>(schema: S, branch: &Branch) -> bool {
    let whole = matches!(schema.shape(), Shape::AtomicList | Shape::AtomicMap | Shape::Opaque);
    whole && !branch.below.is_empty()
}

fn step<'s, S: FieldSchema<'s>>(schema: S, element: &PathElement) -> Option<S> {
    match (schema.shape(), element) {
        (Shape::Map, PathElement::Field(name)) => atom::member(schema, name).map(|member| member.schema()),
        (Shape::MapList | Shape::SetList, _) => Some(schema.items()),
        _ => None,
    }
}
