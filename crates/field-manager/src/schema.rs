//! What must be known of a type to compare, merge and patch its values.

use serde_json::Value;

/// The type of one place in an object. It is a small handle, copied freely.
pub trait FieldSchema<'s>: Copy {
    /// What kind of value stands here, and how far it is taken apart.
    fn shape(self) -> Shape;

    /// The type of a list's items.
    fn items(self) -> Self;

    /// The type of a member of a map or struct, or `None` where there is no such field.
    fn member(self, name: &str) -> Option<Member<Self>>;

    /// The keys by which the items of a [`Shape::MapList`] are told apart, in the order in which they are declared.
    fn keys(self) -> impl Iterator<Item = &'s str>;

    /// What stands for a key that an item of a [`Shape::MapList`] leaves out, such as `TCP` for `protocol`.
    fn key_default(self, key: &str) -> Option<Value>;

    /// How a strategic merge patch treats the list or map at this place.
    fn patch_rule(self) -> PatchRule<'s>;

    /// What the type is called, for messages only.
    fn name(self) -> &'s str {
        ""
    }
}

/// What kind of value stands at a place, and how far it is taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Nothing is known: maps are taken apart, lists and what is in them are not.
    Deduced,
    /// Nothing is known, and nothing is taken apart.
    Opaque,
    /// A text, number or truth value.
    Scalar(Scalar),
    /// A list that is owned as a whole.
    AtomicList,
    /// A list of scalars, each owned by itself.
    SetList,
    /// A list of maps, told apart by their keys.
    MapList,
    /// A map or struct that is owned as a whole.
    AtomicMap,
    /// A map or struct whose members are owned one by one.
    Map,
}

/// Which scalars may stand at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// Any scalar: a quantity, a time, an integer or text.
    Any,
    /// An integer or a decimal number.
    Number,
    /// A text.
    Text,
    /// True or false.
    Boolean,
}

/// The type of a member of a map or struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member<S> {
    /// A field that the type declares by name.
    Field(S),
    /// An entry of a map with free keys, or a field that is not declared but kept.
    Entry(S),
}

impl<S> Member<S> {
    /// The type, declared by name or not.
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
    /// The key by which the items of a merged list are told apart; none for a list of scalars.
    pub merge_key: Option<&'s str>,
}

/// Whether a strategic merge patch merges a list or map, or replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PatchStrategy {
    /// Nothing is declared: maps are merged, lists are replaced.
    #[default]
    Undeclared,
    /// Merged.
    Merge,
    /// Replaced as a whole.
    Replace,
}
