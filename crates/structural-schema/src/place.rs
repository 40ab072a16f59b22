//! The schema as a type for field management.

use serde_json::Value;

use kube_field_manager::{FieldSchema, Member, PatchRule, Scalar, Shape};

use super::node::{Kind, Node};

/// A place in the schema of an object, as field management sees it.
#[derive(Debug, Clone, Copy)]
pub struct SchemaPlace<'a>(Inner<'a>);

#[derive(Debug, Clone, Copy)]
enum Inner<'a> {
    /// Nothing is known. If `root` is set, this is the root of a resource.
    Unknown {
        root: bool,
    },
    Node(&'a Node),
    /// A resource, which has a kind and metadata beside its schema.
    Resource(&'a Node),
    Text,
}

impl<'a> SchemaPlace<'a> {
    pub(crate) fn of_resource(root: &'a Node) -> Self {
        Self(Inner::Resource(root))
    }

    /// Returns the place of a whole object that has no schema.
    pub fn untyped() -> Self {
        Self(Inner::Unknown { root: true })
    }

    fn unknown() -> Self {
        Self(Inner::Unknown { root: false })
    }

    fn of(node: &'a Node) -> Self {
        Self(if node.embedded { Inner::Resource(node) } else { Inner::Node(node) })
    }

    /// Returns whether this is the place of a resource, which has metadata.
    pub fn has_metadata(self) -> bool {
        matches!(self.0, Inner::Resource(_) | Inner::Unknown { root: true })
    }
}

impl<'a> FieldSchema<'a> for SchemaPlace<'a> {
    fn shape(self) -> Shape {
        match self.0 {
            Inner::Unknown { root: true } | Inner::Resource(_) => Shape::Map,
            Inner::Unknown { root: false } => Shape::Deduced,
            Inner::Text => Shape::Scalar(Scalar::Text),
            Inner::Node(node) => shape_of(node),
        }
    }

    fn items(self) -> Self {
        match self.0 {
            Inner::Node(Node { items: Some(items), .. }) => Self::of(items),
            _ => Self::unknown(),
        }
    }

    fn member(self, name: &str) -> Option<Member<Self>> {
        match self.0 {
            Inner::Resource(_) | Inner::Unknown { root: true } if matches!(name, "apiVersion" | "kind") => {
                Some(Member::Field(Self(Inner::Text)))
            }
            Inner::Unknown { .. } => Some(Member::Entry(Self::unknown())),
            Inner::Text => None,
            Inner::Resource(node) | Inner::Node(node) => member_of(node, name),
        }
    }

    fn keys(self) -> impl Iterator<Item = &'a str> {
        let keys = if let Inner::Node(node) = self.0 { node.list_keys.as_slice() } else { &[] };
        keys.iter().map(String::as_str)
    }

    fn key_default(self, key: &str) -> Option<Value> {
        let Inner::Node(Node { items: Some(items), .. }) = self.0 else { return None };
        items.properties.get(key)?.default.clone()
    }

    /// Returns no rule: custom resources have no strategic merge patch.
    fn patch_rule(self) -> PatchRule<'a> {
        PatchRule::default()
    }
}

fn shape_of(node: &Node) -> Shape {
    match (&node.kind, node.list_type.as_deref()) {
        _ if node.int_or_string => Shape::Scalar(Scalar::Any),
        (Kind::Array, Some("set")) => Shape::SetList,
        (Kind::Array, Some("map")) => Shape::MapList,
        (Kind::Array, _) => Shape::AtomicList,
        (Kind::Object, _) if node.map_type.as_deref() == Some("atomic") => Shape::AtomicMap,
        (Kind::Object, _) if knows_members(node) => Shape::Map,
        (Kind::Object, _) if node.preserves => Shape::Deduced,
        (Kind::Object, _) => Shape::Map,
        (Kind::Unset | Kind::Other(_), _) => Shape::Deduced,
        (Kind::String, _) => Shape::Scalar(Scalar::Text),
        (Kind::Integer | Kind::Number, _) => Shape::Scalar(Scalar::Number),
        (Kind::Boolean, _) => Shape::Scalar(Scalar::Boolean),
    }
}

fn knows_members(node: &Node) -> bool {
    !node.properties.is_empty() || node.additional.schema().is_some()
}

fn member_of<'a>(node: &'a Node, name: &str) -> Option<Member<SchemaPlace<'a>>> {
    match node.properties.get(name) {
        Some(member) => Some(Member::Field(SchemaPlace::of(member))),
        None => match node.additional.schema() {
            Some(values) => Some(Member::Entry(SchemaPlace::of(values))),
            None if node.preserves || node.additional.is_set() => Some(Member::Entry(SchemaPlace::unknown())),
            None => None,
        },
    }
}
