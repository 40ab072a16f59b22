//! What a document is made from: the types of a group, as a table of ours tells them.

use serde_json::Value;

/// Where types are looked up by the names of their schemas, such as `io.k8s.api.core.v1.Pod`.
pub(crate) trait Types {
    /// The type of that name, if there is one.
    fn definition(&self, name: &str) -> Option<Definition>;
}

/// One type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Definition {
    /// An object with known fields.
    Object(Object),
    /// Another name for something simple, such as a point in time.
    #[cfg_attr(not(test), allow(dead_code, reason = "what the real library can, and is compared with"))]
    Plain {
        /// What it says, in our own words.
        description: String,
        /// What it holds.
        shape: Shape,
    },
    /// A schema that is published as it is, with the kind it belongs to: that of a custom resource.
    Given {
        /// The schema.
        schema: Value,
        /// The kinds whose objects have this type.
        kinds: Vec<GroupVersionKind>,
    },
}

/// An object with known fields.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Object {
    /// What it is, in our own words.
    pub(crate) description: String,
    /// Its fields.
    pub(crate) fields: Vec<Field>,
    /// The kinds whose objects have this type; none for a part of other objects.
    pub(crate) kinds: Vec<GroupVersionKind>,
    /// Whether an update replaces it whole, where that is said.
    pub(crate) map: Option<MapType>,
}

/// A kind, with its group and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupVersionKind {
    /// The group; empty for the core group.
    pub(crate) group: String,
    /// The version.
    pub(crate) version: String,
    /// The kind.
    pub(crate) kind: String,
}

/// One field of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    /// Its name in JSON.
    pub(crate) name: String,
    /// What it holds.
    pub(crate) shape: Shape,
    /// What it means, in our own words.
    pub(crate) description: String,
    /// Whether an object without it is refused.
    pub(crate) required: bool,
    /// What stands in for it where it is missing.
    pub(crate) default: Option<Value>,
    /// How updates of it are merged.
    pub(crate) merging: Merging,
}

/// How updates of a field are merged with what is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Merging {
    /// For strategic merge patches: `merge`, `replace`, `retainKeys` or several with commas between.
    pub(crate) strategy: Option<String>,
    /// For strategic merge patches: the field that tells elements of the list apart.
    pub(crate) key: Option<String>,
    /// For server-side apply: how elements of the list are told apart.
    pub(crate) list: Option<ListType>,
    /// For server-side apply: whether the map or object is replaced whole, where that is said.
    pub(crate) map: Option<MapType>,
}

/// How a map or object is updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MapType {
    /// It is replaced whole.
    Atomic,
    /// Each member by itself, as where nothing is said.
    #[cfg_attr(not(test), allow(dead_code, reason = "what the real library can, and is compared with"))]
    Granular,
}

/// How elements of a list are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListType {
    /// Not at all: the list is replaced whole.
    Atomic,
    /// Each value is there once.
    Set,
    /// By those fields.
    Map(Vec<String>),
}

/// What a field or type holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// Text.
    Text,
    /// Bytes, in base 64.
    Bytes,
    /// A point in time.
    DateTime,
    /// Yes or no.
    Boolean,
    /// A whole number of 32 bits.
    Integer,
    /// A whole number of 64 bits.
    LongInteger,
    /// A number with a fraction.
    Double,
    /// A whole number, or text such as a percentage.
    IntegerOrText,
    /// An amount such as `100m`.
    Quantity,
    /// An object of any form.
    AnyObject,
    /// Anything at all.
    Anything,
    /// The type of that name.
    Named(String),
    /// A list of those.
    List(Box<Shape>),
    /// A map from text to those.
    Map(Box<Shape>),
}

/// A kind that the group and version serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServedKind {
    /// The kind: `Pod`.
    pub(crate) kind: String,
    /// As paths name it: `pods`.
    pub(crate) plural: String,
    /// Whether its objects live in namespaces.
    pub(crate) namespaced: bool,
    /// The name of its type.
    pub(crate) type_name: String,
    /// The name of the type of its lists, if that is to be published.
    pub(crate) list_type: Option<String>,
    /// Whether `status` is written apart.
    pub(crate) status: bool,
    /// The name of the type of its scale, if it has one.
    pub(crate) scale: Option<String>,
    /// Whether a definition of a custom resource made it: such kinds take no strategic merge patches.
    pub(crate) custom: bool,
}
