//! Reads a schema from JSON to the tree, and checks the types of its keywords and its size.

use serde_json::{Map, Value};

use super::cause::{FieldError, shown};
use super::limits;
use super::node::{Additional, AsRead, Checks, NodeKind, SchemaNode, SchemaRule};
use super::path::ValuePath;

/// A schema as a CRD gives it, before it is checked.
#[derive(Debug, Clone, Copy)]
pub struct SchemaDefinition<'a> {
    /// The value of `openAPIV3Schema`.
    pub schema: &'a Value,
    /// The path of the schema in the CRD, for messages: `spec.versions[0].schema.openAPIV3Schema`.
    pub path: &'a str,
    /// Whether the version has the status subresource. Fewer keywords are allowed at the root then.
    pub status_subresource: bool,
}

/// Reads a schema, or returns the errors in it.
pub(crate) fn read(schema: &Value, path: &ValuePath<'_>) -> Result<SchemaNode, Vec<FieldError>> {
    let mut reader = SchemaReader { problems: Vec::new(), nodes: 0, rules: 0 };
    let node = reader.node(schema, path, 0);
    if reader.problems.is_empty() { Ok(node) } else { Err(reader.problems) }
}

struct SchemaReader {
    problems: Vec<FieldError>,
    nodes: usize,
    rules: usize,
}

/// Fields that the API has and custom resources do not support. The first of each pair is reported as the second.
const UNSUPPORTED: [(&str, &str); 7] = [
    ("id", "id"),
    ("additionalItems", "additionalItems"),
    ("patternProperties", "patternProperties"),
    ("definitions", "definitions"),
    ("dependencies", "dependencies"),
    ("$ref", "$ref"),
    ("$schema", "schema"),
];

impl SchemaReader {
    fn node(&mut self, schema: &Value, path: &ValuePath<'_>, depth: usize) -> SchemaNode {
        self.nodes += 1;
        if depth > limits::DEPTH || self.nodes > limits::NODES {
            self.too_large(path, depth);
            return SchemaNode::default();
        }
        let Value::Object(fields) = schema else {
            self.wrong(path, schema, "object");
            return SchemaNode::default();
        };
        let mut node = SchemaNode {
            kind: NodeKind::of(&self.text(fields, "type", path)),
            nullable: self.flag(fields, "nullable", path),
            default: fields.get("default").filter(|value| !value.is_null()).cloned(),
            embedded: self.flag(fields, "x-kubernetes-embedded-resource", path),
            int_or_string: self.flag(fields, "x-kubernetes-int-or-string", path),
            list_type: self.optional_text(fields, "x-kubernetes-list-type", path),
            list_keys: self.texts(fields, "x-kubernetes-list-map-keys", path),
            map_type: self.optional_text(fields, "x-kubernetes-map-type", path),
            checks: self.checks(fields, path, depth),
            read: self.as_read(fields, path),
            ..SchemaNode::default()
        };
        node.default_size = node.default.as_ref().map_or(0, size);
        let preserve = self.optional_flag(fields, "x-kubernetes-preserve-unknown-fields", path);
        node.preserves = preserve == Some(true);
        node.read.preserve_is_false = preserve == Some(false);
        self.shape(&mut node, fields, path, depth);
        self.rules(&mut node, fields, path);
        let inner_has_rules = node.properties.values().chain(node.items.as_deref()).chain(node.additional.schema());
        node.has_rules = !node.rules.is_empty() || inner_has_rules.into_iter().any(|inner| inner.has_rules);
        node
    }

    /// Reads the structure of a schema: the schemas of its members and elements.
    fn shape(&mut self, node: &mut SchemaNode, fields: &Map<String, Value>, path: &ValuePath<'_>, depth: usize) {
        if let Some(Value::Object(members)) = self.held(fields, "properties", Value::is_object, "object", path) {
            let path = path.child("properties");
            for (name, schema) in members {
                if self.is_full() {
                    return;
                }
                let member = self.node(schema, &path.key(name), depth + 1);
                node.properties.insert(name.clone(), member);
            }
        }
        match fields.get("items") {
            None | Some(Value::Null) => {}
            Some(Value::Array(list)) => node.read.items_is_list = !list.is_empty(),
            Some(schema) => node.items = Some(Box::new(self.node(schema, &path.child("items"), depth + 1))),
        }
        node.additional = match fields.get("additionalProperties") {
            None | Some(Value::Null) => Additional::Unset,
            Some(Value::Bool(allowed)) => Additional::Allowed(*allowed),
            Some(schema) => {
                Additional::Schema(Box::new(self.node(schema, &path.child("additionalProperties"), depth + 1)))
            }
        };
    }

    fn checks(&mut self, fields: &Map<String, Value>, path: &ValuePath<'_>, depth: usize) -> Checks {
        Checks {
            format: self.text(fields, "format", path),
            maximum: self.float(fields, "maximum", path),
            exclusive_maximum: self.flag(fields, "exclusiveMaximum", path),
            minimum: self.float(fields, "minimum", path),
            exclusive_minimum: self.flag(fields, "exclusiveMinimum", path),
            multiple_of: self.float(fields, "multipleOf", path),
            max_length: self.int(fields, "maxLength", path),
            min_length: self.int(fields, "minLength", path),
            pattern: self.text(fields, "pattern", path),
            regex: None,
            max_items: self.int(fields, "maxItems", path),
            min_items: self.int(fields, "minItems", path),
            unique_items: self.flag(fields, "uniqueItems", path),
            max_properties: self.int(fields, "maxProperties", path),
            min_properties: self.int(fields, "minProperties", path),
            options: match self.held(fields, "enum", Value::is_array, "array", path) {
                Some(Value::Array(options)) => options.clone(),
                _ => Vec::new(),
            },
            required: self.texts(fields, "required", path),
            all_of: self.nodes(fields, "allOf", path, depth),
            any_of: self.nodes(fields, "anyOf", path, depth),
            one_of: self.nodes(fields, "oneOf", path, depth),
            not: match fields.get("not") {
                None | Some(Value::Null) => None,
                Some(schema) => Some(Box::new(self.node(schema, &path.child("not"), depth + 1))),
            },
        }
    }

    fn as_read(&mut self, fields: &Map<String, Value>, path: &ValuePath<'_>) -> AsRead {
        let is_empty = |value: &Value| match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Object(members) => members.is_empty(),
            _ => false,
        };
        AsRead {
            has_title: !self.text(fields, "title", path).is_empty(),
            has_description: !self.text(fields, "description", path).is_empty(),
            has_properties: fields.get("properties").is_some_and(Value::is_object),
            unsupported: UNSUPPORTED
                .iter()
                .filter(|(name, _)| fields.get(*name).is_some_and(|value| !is_empty(value)))
                .map(|(_, reported)| *reported)
                .collect(),
            ..AsRead::default()
        }
    }

    fn nodes(
        &mut self,
        fields: &Map<String, Value>,
        name: &str,
        path: &ValuePath<'_>,
        depth: usize,
    ) -> Vec<SchemaNode> {
        let Some(Value::Array(schemas)) = self.held(fields, name, Value::is_array, "array", path) else {
            return Vec::new();
        };
        let path = path.child(name);
        let mut nodes = Vec::new();
        for (index, schema) in schemas.iter().enumerate() {
            if self.is_full() {
                break;
            }
            nodes.push(self.node(schema, &path.index(index), depth + 1));
        }
        nodes
    }

    fn rules(&mut self, node: &mut SchemaNode, fields: &Map<String, Value>, path: &ValuePath<'_>) {
        let name = "x-kubernetes-validations";
        let Some(Value::Array(rules)) = self.held(fields, name, Value::is_array, "array", path) else {
            return;
        };
        let path = path.child(name);
        for (index, rule) in rules.iter().enumerate() {
            let path = path.index(index);
            self.nodes += 1;
            if self.nodes > limits::NODES {
                return self.too_large(&path, 0);
            }
            let Value::Object(fields) = rule else {
                self.wrong(&path, rule, "object");
                continue;
            };
            self.rules += 1;
            node.rules.push(SchemaRule {
                number: self.rules,
                rule: self.text(fields, "rule", &path),
                message: self.text(fields, "message", &path),
                message_expression: self.text(fields, "messageExpression", &path),
                reason: self.optional_text(fields, "reason", &path),
                field_path: self.text(fields, "fieldPath", &path),
                optional_old_self: self.optional_flag(fields, "optionalOldSelf", &path),
            });
        }
    }

    fn is_full(&self) -> bool {
        self.nodes > limits::NODES || self.problems.len() >= limits::PROBLEMS
    }

    fn too_large(&mut self, path: &ValuePath<'_>, depth: usize) {
        let what = if depth > limits::DEPTH { "levels" } else { "schemas" };
        let most = if depth > limits::DEPTH { limits::DEPTH } else { limits::NODES };
        self.problems.push(FieldError::forbidden(path, &format!("a schema must not have more than {most} {what}")));
    }

    fn wrong(&mut self, path: &ValuePath<'_>, value: &Value, wanted: &str) {
        if self.problems.len() < limits::PROBLEMS {
            let found = match value {
                Value::Array(_) | Value::Object(_) => "\"\"".to_owned(),
                scalar => shown(scalar),
            };
            self.problems.push(FieldError::type_invalid(path, &found, &format!("must be of type {wanted}")));
        }
    }

    fn held<'a>(
        &mut self,
        fields: &'a Map<String, Value>,
        name: &str,
        fits: fn(&Value) -> bool,
        wanted: &str,
        path: &ValuePath<'_>,
    ) -> Option<&'a Value> {
        let value = fields.get(name).filter(|value| !value.is_null())?;
        if fits(value) {
            return Some(value);
        }
        self.wrong(&path.child(name), value, wanted);
        None
    }

    fn optional_text(&mut self, fields: &Map<String, Value>, name: &str, path: &ValuePath<'_>) -> Option<String> {
        self.held(fields, name, Value::is_string, "string", path)?.as_str().map(str::to_owned)
    }

    fn text(&mut self, fields: &Map<String, Value>, name: &str, path: &ValuePath<'_>) -> String {
        self.optional_text(fields, name, path).unwrap_or_default()
    }

    fn optional_flag(&mut self, fields: &Map<String, Value>, name: &str, path: &ValuePath<'_>) -> Option<bool> {
        self.held(fields, name, Value::is_boolean, "boolean", path)?.as_bool()
    }

    fn flag(&mut self, fields: &Map<String, Value>, name: &str, path: &ValuePath<'_>) -> bool {
        self.optional_flag(fields, name, path).unwrap_or(false)
    }

    fn float(&mut self, fields: &Map<String, Value>, name: &str, path: &ValuePath<'_>) -> Option<f64> {
        self.held(fields, name, Value::is_number, "number", path)?.as_f64()
    }

    fn int(&mut self, fields: &Map<String, Value>, name: &str, path: &ValuePath<'_>) -> Option<i64> {
        self.held(fields, name, Value::is_i64, "integer", path)?.as_i64()
    }

    fn texts(&mut self, fields: &Map<String, Value>, name: &str, path: &ValuePath<'_>) -> Vec<String> {
        let Some(Value::Array(texts)) = self.held(fields, name, Value::is_array, "array", path) else {
            return Vec::new();
        };
        let mut read = Vec::with_capacity(texts.len());
        for (index, text) in texts.iter().enumerate() {
            match text {
                Value::String(text) => read.push(text.clone()),
                other => self.wrong(&path.child(name).index(index), other, "string"),
            }
        }
        read
    }
}

/// Returns the approximate size of a value in bytes.
fn size(value: &Value) -> usize {
    let inner = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + 32 + size(value)).sum(),
        _ => 0,
    };
    inner + 32
}
