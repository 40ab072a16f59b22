//! The type information that comparing, merging and patching values require.

use serde_json::Value;

/// The type of one place in an object. It is a small `Copy` handle.
pub trait FieldSchema<'s>: Copy {
    /// Returns the kind of value, and how far it is divided.
    fn shape(self) -> Shape;

    /// Returns the type of a list's items.
    fn items(self) -> Self;

    /// Returns the type of a member of a map or struct, or `None` if there is no such field.
    fn member(self, name: &str) -> Option<Member<Self>>;

    /// Returns the keys that identify the items of a [`Shape::MapList`], in the order of their declaration.
    fn keys(self) -> impl Iterator<Item = &'s str>;

    /// Returns the default of a key that an item of a [`Shape::MapList`] omits, such as `TCP` for `protocol`.
    fn key_default(self, key: &str) -> Option<Value>;

    /// Returns how a strategic merge patch treats the list or map at this place.
    fn patch_rule(self) -> PatchRule<'s>;

    /// Returns the name of the type, for messages only.
    fn name(self) -> &'s str {
        ""
    }
}

/// The kind of value at a place, and how far it is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The type is unknown: maps are divided, lists are not.
    Deduced,
    /// The type is unknown, and the value is not divided.
    Opaque,
    /// A string, number or boolean.
    Scalar(Scalar),
    /// A list that is owned whole.
    AtomicList,
    /// A list of scalars, each owned by itself.
    SetList,
    /// A list of maps, identified by their keys.
    MapList,
    /// A map or struct that is owned whole.
    AtomicMap,
    /// A map or struct whose members are owned one by one.
    Map,
}

/// Which scalars are allowed at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// Any scalar: a quantity, a time, an integer or a string.
    Any,
    /// An integer or a decimal number.
    Number,
    /// A string.
    Text,
    /// A boolean.
    Boolean,
}

/// The type of a member of a map or struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member<S> {
    /// A field that the type declares by name.
    Field(S),
    /// An entry of a map with free keys, or a field that is preserved without a declaration.
    Entry(S),
}

impl<S> Member<S> {
    /// Returns the type, declared by name or not.
    pub fn schema(self) -> S {
        match self {
            Member::Field(schema) | Member::Entry(schema) => schema,
        }
    }
}

/// How a strategic merge patch treats a list or map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PatchRule<'s> {
    /// Whether it is merged or replaced.
    pub strategy: PatchStrategy,
    /// The key that identifies the items of a merged list; `None` for a list of scalars.
    pub merge_key: Option<&'s str>,
}

/// Whether a strategic merge patch merges a list or map, or replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PatchStrategy {
    /// The default: maps are merged, lists are replaced.
    #[default]
    Undeclared,
    /// Merged.
    Merge,
    /// Replaced whole.
    Replace,
}
