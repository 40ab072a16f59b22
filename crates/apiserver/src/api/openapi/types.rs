//! The input of a document: the types of a group.

use serde_json::Value;

/// Looks up types by their schema names, such as `io.k8s.api.core.v1.Pod`.
pub(crate) trait Types {
    /// Returns the type of that name, if there is one.
    fn definition(&self, name: &str) -> Option<Definition>;
}

/// One type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Definition {
    /// An object with known fields.
    Object(Object),
    /// Another name for a simple type, such as a point in time.
    #[cfg_attr(not(test), allow(dead_code, reason = "what the real library can, and is compared with"))]
    Plain {
        /// Its description, in our own words.
        description: String,
        /// Its shape.
        shape: Shape,
    },
    /// A schema that is published unchanged, with its kinds: that of a custom resource.
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
    /// Its description, in our own words.
    pub(crate) description: String,
    /// Its fields.
    pub(crate) fields: Vec<Field>,
    /// The kinds whose objects have this type; none for a part of other objects.
    pub(crate) kinds: Vec<GroupVersionKind>,
    /// Whether an update replaces it whole, if the type says so.
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
    /// Its shape.
    pub(crate) shape: Shape,
    /// Its description, in our own words.
    pub(crate) description: String,
    /// Whether an object without it is refused.
    pub(crate) required: bool,
    /// The default value.
    pub(crate) default: Option<Value>,
    /// How updates of it are merged.
    pub(crate) merging: Merging,
}

/// How updates of a field are merged with the existing value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Merging {
    /// For strategic merge patches: `merge`, `replace`, `retainKeys` or several separated by commas.
    pub(crate) strategy: Option<String>,
    /// For strategic merge patches: the merge key of the list.
    pub(crate) key: Option<String>,
    /// For server-side apply: how elements of the list are identified.
    pub(crate) list: Option<ListType>,
    /// For server-side apply: whether the map or object is replaced whole, if the type says so.
    pub(crate) map: Option<MapType>,
}

/// How a map or object is updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MapType {
    /// It is replaced whole.
    Atomic,
    /// Each member is updated separately. This is the default.
    #[cfg_attr(not(test), allow(dead_code, reason = "what the real library can, and is compared with"))]
    Granular,
}

/// How elements of a list are identified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListType {
    /// Not at all: the list is replaced whole.
    Atomic,
    /// By value: each value occurs once.
    Set,
    /// By the values of those fields.
    Map(Vec<String>),
}

/// The shape of a field or type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// A string.
    Text,
    /// Bytes, in base 64.
    Bytes,
    /// A point in time.
    DateTime,
    /// A boolean.
    Boolean,
    /// A 32-bit integer.
    Integer,
    /// A 64-bit integer.
    LongInteger,
    /// A floating-point number.
    Double,
    /// An integer, or a string such as a percentage.
    IntegerOrText,
    /// A quantity such as `100m`.
    Quantity,
    /// An object of any form.
    AnyObject,
    /// Any value.
    Anything,
    /// A reference to the type of that name.
    Named(String),
    /// A list with elements of this shape.
    List(Box<Shape>),
    /// A map from strings to values of this shape.
    Map(Box<Shape>),
}

/// A kind that the group and version serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServedKind {
    /// The kind: `Pod`.
    pub(crate) kind: String,
    /// The plural name in paths: `pods`.
    pub(crate) plural: String,
    /// Whether its objects are namespaced.
    pub(crate) namespaced: bool,
    /// The name of its type.
    pub(crate) type_name: String,
    /// The name of the type of its lists, if it is published.
    pub(crate) list_type: Option<String>,
    /// Whether `status` is a subresource.
    pub(crate) status: bool,
    /// The name of the type of its scale, if it has one.
    pub(crate) scale: Option<String>,
    /// Whether it comes from a CRD: such kinds accept no strategic merge patches.
    pub(crate) custom: bool,
    /// Whether its objects can only be created, and are not stored: reviews.
    pub(crate) only_created: bool,
}
