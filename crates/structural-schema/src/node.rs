//! The parsed schema: one node for each place of an object.

use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum NodeKind {
    #[default]
    Unset,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    /// An unsupported type: such a schema is refused.
    Other(String),
}

impl NodeKind {
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "" => Self::Unset,
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            other => Self::Other(other.to_owned()),
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Unset => "",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Other(name) => name,
        }
    }
}

/// The value of `additionalProperties`.
#[derive(Debug, Default)]
pub(crate) enum Additional {
    #[default]
    Unset,
    Allowed(bool),
    Schema(Box<SchemaNode>),
}

impl Additional {
    pub(crate) fn is_set(&self) -> bool {
        !matches!(self, Self::Unset)
    }

    pub(crate) fn schema(&self) -> Option<&SchemaNode> {
        match self {
            Self::Schema(node) => Some(node),
            _ => None,
        }
    }
}

/// One node of a schema.
#[derive(Debug, Default)]
pub(crate) struct SchemaNode {
    pub(crate) kind: NodeKind,
    pub(crate) properties: BTreeMap<String, SchemaNode>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<SchemaNode>>,
    pub(crate) nullable: bool,
    pub(crate) default: Option<Value>,
    /// The size of a copy of the default.
    pub(crate) default_size: usize,
    pub(crate) preserves: bool,
    pub(crate) embedded: bool,
    pub(crate) int_or_string: bool,
    pub(crate) list_type: Option<String>,
    pub(crate) list_keys: Vec<String>,
    pub(crate) map_type: Option<String>,
    pub(crate) rules: Vec<SchemaRule>,
    /// Whether this node or one below it has rules.
    pub(crate) has_rules: bool,
    pub(crate) checks: Checks,
    pub(crate) read: AsRead,
}

/// The checks of a value beyond its type.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(crate) format: String,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) pattern: String,
    pub(crate) regex: Option<Regex>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) unique_items: bool,
    pub(crate) max_properties: Option<i64>,
    pub(crate) min_properties: Option<i64>,
    pub(crate) options: Vec<Value>,
    pub(crate) required: Vec<String>,
    pub(crate) all_of: Vec<SchemaNode>,
    pub(crate) any_of: Vec<SchemaNode>,
    pub(crate) one_of: Vec<SchemaNode>,
    pub(crate) not: Option<Box<SchemaNode>>,
}

/// The fields that matter only while a CRD is checked.
#[derive(Debug, Default)]
pub(crate) struct AsRead {
    pub(crate) has_title: bool,
    pub(crate) has_description: bool,
    pub(crate) has_properties: bool,
    pub(crate) preserve_is_false: bool,
    pub(crate) items_is_list: bool,
    /// Fields that are not allowed in the schema of a custom resource, in the order of reports.
    pub(crate) unsupported: Vec<&'static str>,
}

/// A rule as in the schema.
#[derive(Debug, Default)]
pub(crate) struct SchemaRule {
    pub(crate) rule: String,
    pub(crate) message: String,
    pub(crate) message_expression: String,
    pub(crate) reason: Option<String>,
    pub(crate) field_path: String,
    pub(crate) optional_old_self: Option<bool>,
    /// The number of the rule in its schema, by which its program is found.
    pub(crate) number: usize,
}

impl SchemaNode {
    /// Returns all schemas directly below, in the structure and in the checks.
    pub(crate) fn inner_mut(&mut self) -> impl Iterator<Item = &mut SchemaNode> {
        let additional = match &mut self.additional {
            Additional::Schema(node) => Some(&mut **node),
            _ => None,
        };
        let checks = &mut self.checks;
        self.properties
            .values_mut()
            .chain(additional)
            .chain(self.items.as_deref_mut())
            .chain(&mut checks.all_of)
            .chain(&mut checks.any_of)
            .chain(&mut checks.one_of)
            .chain(checks.not.as_deref_mut())
    }

    /// Returns all schemas directly below.
    pub(crate) fn inner(&self) -> impl Iterator<Item = &SchemaNode> {
        let checks = &self.checks;
        self.properties
            .values()
            .chain(self.additional.schema())
            .chain(self.items.as_deref())
            .chain(&checks.all_of)
            .chain(&checks.any_of)
            .chain(&checks.one_of)
            .chain(checks.not.as_deref())
    }

    /// Returns whether the schema has parts that the tree does not represent.
    pub(crate) fn has_unreadable(&self) -> bool {
        self.read.items_is_list
            || self.read.preserve_is_false
            || !self.read.unsupported.is_empty()
            || self.inner().any(Self::has_unreadable)
    }

    /// Returns whether this is a map list, whose elements have keys.
    pub(crate) fn is_map_list(&self) -> bool {
        self.list_type.as_deref() == Some("map")
    }

    /// Returns the schema of a member: a property, or that of additional properties.
    pub(crate) fn member(&self, name: &str) -> Option<&SchemaNode> {
        self.properties.get(name).or_else(|| self.additional.schema())
    }
}
