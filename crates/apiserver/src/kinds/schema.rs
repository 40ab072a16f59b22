//! The types of built-in and custom objects, for field management.

use kube_field_manager::{self as field_manager, FieldSchema, Member, PatchRule, PatchStrategy, Shape};
use kube_structural_schema::SchemaPlace;
use serde_json::Value;

use super::resource::Resource;
use super::types::{self, FieldType, ListKind, ScalarType, Struct};

/// A place in an object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TypePlace<'s> {
    Known(KnownPlace),
    Custom(SchemaPlace<'s>),
}

impl<'s> TypePlace<'s> {
    /// Returns the place of a whole object of this resource.
    pub(crate) fn root(resource: &'s Resource) -> Self {
        match resource.of {
            Some(of) => Self::Known(KnownPlace::root(of)),
            None => Self::Custom(resource.schema.as_ref().map_or(SchemaPlace::untyped(), |schema| schema.place())),
        }
    }
}

impl TypePlace<'static> {
    /// Returns the place of a whole object of this type.
    pub(crate) fn of(of: &'static Struct) -> Self {
        Self::Known(KnownPlace::root(of))
    }
}

impl<'s> FieldSchema<'s> for TypePlace<'s> {
    fn shape(self) -> Shape {
        match self {
            Self::Known(place) => place.shape(),
            Self::Custom(place) => place.shape(),
        }
    }

    fn items(self) -> Self {
        match self {
            Self::Known(place) => Self::Known(place.items()),
            Self::Custom(place) => Self::Custom(place.items()),
        }
    }

    fn member(self, name: &str) -> Option<Member<Self>> {
        match self {
            Self::Known(place) => place.member(name),
            Self::Custom(place) if place.has_metadata() && name == "metadata" => {
                types::named("meta/v1.ObjectMeta").map(|of| Member::Field(Self::Known(KnownPlace::root(of))))
            }
            Self::Custom(place) => place.member(name).map(|member| match member {
                Member::Field(place) => Member::Field(Self::Custom(place)),
                Member::Entry(place) => Member::Entry(Self::Custom(place)),
            }),
        }
    }

    fn keys(self) -> impl Iterator<Item = &'s str> {
        let (known, custom) = match self {
            Self::Known(place) => (place.keys(), None),
            Self::Custom(place) => (&[][..], Some(place.keys())),
        };
        known.iter().copied().chain(custom.into_iter().flatten())
    }

    fn key_default(self, key: &str) -> Option<Value> {
        match self {
            Self::Known(place) => place.key_default(key),
            Self::Custom(place) => place.key_default(key),
        }
    }

    fn patch_rule(self) -> PatchRule<'s> {
        match self {
            Self::Known(place) => place.patch_rule(),
            Self::Custom(_) => PatchRule::default(),
        }
    }

    fn name(self) -> &'s str {
        match self {
            Self::Known(place) => place.structure().map_or("", Struct::short_name),
            Self::Custom(_) => "",
        }
    }
}

/// A place in an object of a built-in kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownPlace {
    of: Of,
    /// The member at this place; `None` at the root, and in the items of a list or map.
    member: Option<&'static types::StructMember>,
}

#[derive(Debug, Clone, Copy)]
enum Of {
    Root(&'static Struct),
    Type(&'static FieldType),
}

impl KnownPlace {
    fn root(of: &'static Struct) -> Self {
        Self { of: Of::Root(of), member: None }
    }

    fn inside(of: &'static FieldType) -> Self {
        Self { of: Of::Type(of), member: None }
    }

    fn structure(self) -> Option<&'static Struct> {
        match self.of {
            Of::Root(of) => Some(of),
            Of::Type(of) => of.as_struct(),
        }
    }

    fn shape(self) -> Shape {
        let atomic = self.member.is_some_and(|member| member.atomic);
        if let Some(structure) = self.structure() {
            return if atomic || structure.atomic { Shape::AtomicMap } else { Shape::Map };
        }
        match (self.of, self.member.map(|member| &member.list)) {
            (Of::Type(FieldType::Map(_)), _) if atomic => Shape::AtomicMap,
            (Of::Type(FieldType::Map(_)) | Of::Root(_), _) => Shape::Map,
            (Of::Type(FieldType::List { .. }), Some(ListKind::Set)) => Shape::SetList,
            (Of::Type(FieldType::List { .. }), Some(ListKind::Map(_))) => Shape::MapList,
            (Of::Type(FieldType::List { .. }), _) => Shape::AtomicList,
            (Of::Type(FieldType::Scalar(scalar)), _) => shape_of(*scalar),
            (Of::Type(FieldType::Struct(_)), _) => Shape::Map,
        }
    }

    fn items(self) -> Self {
        match self.of {
            Of::Type(FieldType::List { items, .. }) => Self::inside(items),
            _ => self,
        }
    }

    fn member(self, name: &str) -> Option<Member<TypePlace<'static>>> {
        if let Some(structure) = self.structure() {
            let member = structure.member(name)?;
            return Some(Member::Field(TypePlace::Known(Self { of: Of::Type(&member.of), member: Some(member) })));
        }
        match self.of {
            Of::Type(FieldType::Map(values)) => Some(Member::Entry(TypePlace::Known(Self::inside(values)))),
            _ => None,
        }
    }

    fn keys(self) -> &'static [&'static str] {
        match self.member.map(|member| &member.list) {
            Some(ListKind::Map(keys)) => keys,
            _ => &[],
        }
    }

    fn key_default(self, key: &str) -> Option<Value> {
        self.items().structure()?.member(key)?.default.clone()
    }

    fn patch_rule(self) -> PatchRule<'static> {
        let Some(rule) = self.member.map(|member| member.patch) else { return PatchRule::default() };
        let strategy = match rule {
            rule if rule.merge => PatchStrategy::Merge,
            rule if rule.replace => PatchStrategy::Replace,
            _ => PatchStrategy::Undeclared,
        };
        PatchRule { strategy, merge_key: rule.key }
    }
}

fn shape_of(scalar: ScalarType) -> Shape {
    match scalar {
        ScalarType::Text | ScalarType::Bytes | ScalarType::Time | ScalarType::MicroTime | ScalarType::Duration => {
            Shape::Scalar(field_manager::Scalar::Text)
        }
        ScalarType::Bool => Shape::Scalar(field_manager::Scalar::Boolean),
        ScalarType::Int32 | ScalarType::Int64 | ScalarType::Float => Shape::Scalar(field_manager::Scalar::Number),
        ScalarType::Quantity | ScalarType::IntOrString => Shape::Scalar(field_manager::Scalar::Any),
        ScalarType::RawExtension
        | ScalarType::FieldsV1
        | ScalarType::Json
        | ScalarType::SchemaOrArray
        | ScalarType::SchemaOrBool
        | ScalarType::SchemaOrStrings => Shape::Deduced,
    }
}
