//! The schema as a type for field management.

use serde_json::Value;

use kube_field_manager::{FieldSchema, Member, PatchRule, Scalar, Shape};

use super::node::{NodeKind, SchemaNode};

/// A place in the schema of an object, as field management sees it.
#[derive(Debug, Clone, Copy)]
pub struct SchemaPlace<'a>(PlaceKind<'a>);

#[derive(Debug, Clone, Copy)]
enum PlaceKind<'a> {
    /// Nothing is known. If `root` is set, this is the root of a resource.
    Unknown {
        root: bool,
    },
    Node(&'a SchemaNode),
    /// A resource, which has a kind and metadata beside its schema.
    Resource(&'a SchemaNode),
    Text,
}

impl<'a> SchemaPlace<'a> {
    pub(crate) fn of_resource(root: &'a SchemaNode) -> Self {
        Self(PlaceKind::Resource(root))
    }

    /// Returns the place of a whole object that has no schema.
    pub fn untyped() -> Self {
        Self(PlaceKind::Unknown { root: true })
    }

    fn unknown() -> Self {
        Self(PlaceKind::Unknown { root: false })
    }

    fn of(node: &'a SchemaNode) -> Self {
        Self(if node.embedded { PlaceKind::Resource(node) } else { PlaceKind::Node(node) })
    }

    /// Returns whether this is the place of a resource, which has metadata.
    pub fn has_metadata(self) -> bool {
        matches!(self.0, PlaceKind::Resource(_) | PlaceKind::Unknown { root: true })
    }
}

impl<'a> FieldSchema<'a> for SchemaPlace<'a> {
    fn shape(self) -> Shape {
        match self.0 {
            PlaceKind::Unknown { root: true } | PlaceKind::Resource(_) => Shape::Map,
            PlaceKind::Unknown { root: false } => Shape::Deduced,
            PlaceKind::Text => Shape::Scalar(Scalar::Text),
            PlaceKind::Node(node) => shape_of(node),
        }
    }

    fn items(self) -> Self {
        match self.0 {
            PlaceKind::Node(SchemaNode { items: Some(items), .. }) => Self::of(items),
            _ => Self::unknown(),
        }
    }

    fn member(self, name: &str) -> Option<Member<Self>> {
        match self.0 {
            PlaceKind::Resource(_) | PlaceKind::Unknown { root: true } if matches!(name, "apiVersion" | "kind") => {
                Some(Member::Field(Self(PlaceKind::Text)))
            }
            PlaceKind::Unknown { .. } => Some(Member::Entry(Self::unknown())),
            PlaceKind::Text => None,
            PlaceKind::Resource(node) | PlaceKind::Node(node) => member_of(node, name),
        }
    }

    fn keys(self) -> impl Iterator<Item = &'a str> {
        let keys = if let PlaceKind::Node(node) = self.0 { node.list_keys.as_slice() } else { &[] };
        keys.iter().map(String::as_str)
    }

    fn key_default(self, key: &str) -> Option<Value> {
        let PlaceKind::Node(SchemaNode { items: Some(items), .. }) = self.0 else { return None };
        items.properties.get(key)?.default.clone()
    }

    /// Returns no rule: custom resources have no strategic merge patch.
    fn patch_rule(self) -> PatchRule<'a> {
        PatchRule::default()
    }
}

fn shape_of(node: &SchemaNode) -> Shape {
    match (&node.kind, node.list_type.as_deref()) {
        _ if node.int_or_string => Shape::Scalar(Scalar::Any),
        (NodeKind::Array, Some("set")) => Shape::SetList,
        (NodeKind::Array, Some("map")) => Shape::MapList,
        (NodeKind::Array, _) => Shape::AtomicList,
        (NodeKind::Object, _) if node.map_type.as_deref() == Some("atomic") => Shape::AtomicMap,
        (NodeKind::Object, _) if knows_members(node) => Shape::Map,
        (NodeKind::Object, _) if node.preserves => Shape::Deduced,
        (NodeKind::Object, _) => Shape::Map,
        (NodeKind::Unset | NodeKind::Other(_), _) => Shape::Deduced,
        (NodeKind::String, _) => Shape::Scalar(Scalar::Text),
        (NodeKind::Integer | NodeKind::Number, _) => Shape::Scalar(Scalar::Number),
        (NodeKind::Boolean, _) => Shape::Scalar(Scalar::Boolean),
    }
}

fn knows_members(node: &SchemaNode) -> bool {
    !node.properties.is_empty() || node.additional.schema().is_some()
}

fn member_of<'a>(node: &'a SchemaNode, name: &str) -> Option<Member<SchemaPlace<'a>>> {
    match node.properties.get(name) {
        Some(member) => Some(Member::Field(SchemaPlace::of(member))),
        None => match node.additional.schema() {
            Some(values) => Some(Member::Entry(SchemaPlace::of(values))),
            None if node.preserves || node.additional.is_set() => Some(Member::Entry(SchemaPlace::unknown())),
            None => None,
        },
    }
}
