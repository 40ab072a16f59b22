//! Checks a CRD beyond the structural requirements: whether its extensions are consistent and its rules compile.

use std::collections::HashSet;

use super::cause::FieldError;
use super::limits;
use super::node::{Additional, NodeKind, SchemaNode};
use super::path::ValuePath;
use super::programs::Programs;
use super::read::SchemaDefinition;
use super::{golang, rules};

/// The errors of a CRD. Errors of rules are only reported if there are no others.
#[derive(Default)]
pub(crate) struct CrdErrors {
    pub(crate) schema: Vec<FieldError>,
    pub(crate) rules: Vec<FieldError>,
    pub(crate) programs: Programs,
    /// The size of the schema's errors in bytes.
    bytes: usize,
}

impl CrdErrors {
    pub(crate) fn all(mut self) -> Vec<FieldError> {
        self.schema.append(&mut self.rules);
        self.schema
    }

    fn push(&mut self, cause: FieldError) {
        if !self.is_full() {
            self.bytes += cause.size();
            self.schema.push(cause);
        }
    }

    fn is_full(&self) -> bool {
        self.schema.len() >= limits::PROBLEMS || self.bytes >= limits::PROBLEM_BYTES
    }
}

/// Checks the requirements that apply only to the root of a schema.
pub(crate) fn root(root: &SchemaNode, definition: SchemaDefinition<'_>, path: &ValuePath<'_>) -> Vec<FieldError> {
    let mut causes = Vec::new();
    if definition.status_subresource {
        if !matches!(root.kind, NodeKind::Unset | NodeKind::Object) {
            let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource \
                          is enabled";
            causes.push(FieldError::invalid(&path.child("type"), &golang::quote(root.kind.name()), detail));
        } else if says_what_status_loses(root) {
            let detail = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum \
                          MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items \
                          Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at \
                          the root of the schema if the status subresource is enabled";
            causes.push(FieldError::invalid_unshown(path, detail));
        }
    }
    if root.nullable {
        causes.push(FieldError::forbidden(&path.child("nullable"), "nullable cannot be true at the root"));
    }
    causes
}

fn says_what_status_loses(root: &SchemaNode) -> bool {
    let checks = &root.checks;
    let nested = [&checks.all_of, &checks.any_of, &checks.one_of];
    root.default.is_some()
        || root.nullable
        || root.embedded
        || root.int_or_string
        || root.list_type.is_some()
        || !root.list_keys.is_empty()
        || root.map_type.is_some()
        || root.additional.is_set()
        || !checks.options.is_empty()
        || checks.max_properties.is_some()
        || checks.min_properties.is_some()
        || checks.not.is_some()
        || nested.iter().any(|nested| !nested.is_empty())
}

/// Checks a whole CRD. With `compile`, rules are compiled and kept.
pub(crate) fn definition(root: &SchemaNode, path: &ValuePath<'_>, compile: bool) -> CrdErrors {
    let mut found = CrdErrors::default();
    let here = Here { path, is_root: true, in_meta: false, no_defaults: None, uncorrelated: None, compile };
    here.check(root, &mut found);
    if found.schema.is_empty()
        && let Some(name) = first_unreported(root)
    {
        found.push(FieldError::invalid(path, "\"\"", &format!("OpenAPIV3Schema '{name}' is not supported")));
    }
    found
}

fn first_unreported(node: &SchemaNode) -> Option<&'static str> {
    node.read.unsupported.first().copied().or_else(|| node.inner().find_map(first_unreported))
}

/// The position of a check, and its context.
#[derive(Clone, Copy)]
struct Here<'a> {
    path: &'a ValuePath<'a>,
    is_root: bool,
    /// Whether the position is within the metadata of a resource.
    in_meta: bool,
    /// Why defaults are not allowed here.
    no_defaults: Option<&'a str>,
    /// The enclosing schema whose values cannot be correlated with old values on an update.
    uncorrelated: Option<&'a ValuePath<'a>>,
    /// Whether rules are compiled here: not inside value checks such as `allOf`.
    compile: bool,
}

impl<'a> Here<'a> {
    fn at<'b>(self, path: &'b ValuePath<'b>) -> Here<'b>
    where
        'a: 'b,
    {
        Here { path, is_root: false, ..self }
    }

    fn check(self, node: &SchemaNode, found: &mut CrdErrors) {
        let before = found.schema.len();
        self.standard(node, found);
        self.inside(node, found);
        self.map_type(node, found);
        self.list_type(node, found);
        self.list_keys(node, found);
        self.items_of_sets_and_maps(node, found);
        rules::check(node, self.path, &mut found.schema);
        if self.compile && before == found.schema.len() && !node.rules.is_empty() {
            let is_resource = self.is_root || node.embedded;
            rules::compile(node, is_resource, self.path, self.uncorrelated, (&mut found.rules, &mut found.programs));
        }
    }

    fn standard(self, node: &SchemaNode, found: &mut CrdErrors) {
        let path = self.path;
        if let NodeKind::Other(name) = &node.kind {
            let known = ["array", "boolean", "integer", "number", "object", "string"];
            found.push(FieldError::not_supported(&path.child("type"), &golang::quote(name), known));
            if name == "null" {
                let detail = "type cannot be set to null, use nullable as an alternative";
                found.push(FieldError::forbidden(&path.child("type"), detail));
            }
        }
        if node.default.is_some()
            && let Some(why) = self.no_defaults
        {
            found.push(FieldError::forbidden(&path.child("default"), &format!("must not be set {why}")));
        }
        for name in node.read.unsupported.iter().filter(|name| **name != "schema") {
            found.push(FieldError::forbidden(&path.child(name), &format!("{name} is not supported")));
        }
        if node.read.items_is_list {
            found.push(FieldError::forbidden(&path.child("items"), "items must be a schema object and not an array"));
        }
        if self.in_meta && node.embedded {
            let at = path.child("x-kubernetes-embedded-resource");
            found.push(FieldError::forbidden(&at, "must not be used inside of resource meta"));
        }
        if node.checks.unique_items {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            found.push(FieldError::forbidden(&path.child("uniqueItems"), detail));
        }
        if !node.properties.is_empty() && !matches!(node.additional, Additional::Unset | Additional::Allowed(true)) {
            let detail = "additionalProperties and properties are mutual exclusive";
            found.push(FieldError::forbidden(&path.child("additionalProperties"), detail));
        }
        if node.read.preserve_is_false {
            let at = path.child("x-kubernetes-preserve-unknown-fields");
            found.push(FieldError::invalid(&at, "false", "must be true or undefined"));
        }
    }

    fn inside(self, node: &SchemaNode, found: &mut CrdErrors) {
        let path = self.path;
        if let Some(inner) = node.additional.schema() {
            let at = path.child("additionalProperties");
            let why = self.in_meta.then_some("inside additionalProperties applying to object metadata");
            Here { no_defaults: why.or(self.no_defaults), ..self.at(&at) }.check(inner, found);
        }
        let members = path.child("properties");
        for (name, member) in &node.properties {
            let at = members.key(name);
            let why = format!("in top-level {name}");
            let mut here = self.at(&at);
            if (self.is_root || node.embedded) && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
                here.in_meta = true;
                here.no_defaults = if self.is_root { Some(&why) } else { here.no_defaults };
            }
            if !matches!(node.map_type.as_deref(), None | Some("granular" | "atomic")) {
                here.uncorrelated = here.uncorrelated.or(Some(path));
            }
            here.check(member, found);
        }
        let checks = &node.checks;
        for (name, inner) in [("allOf", &checks.all_of), ("oneOf", &checks.one_of), ("anyOf", &checks.any_of)] {
            let at = path.child(name);
            for (index, inner) in inner.iter().enumerate() {
                Here { compile: false, ..self.at(&at.index(index)) }.check(inner, found);
            }
        }
        if let Some(inner) = &checks.not {
            Here { compile: false, ..self.at(&path.child("not")) }.check(inner, found);
        }
        if let Some(inner) = &node.items {
            let at = path.child("items");
            let mut here = self.at(&at);
            if !node.is_map_list() {
                here.uncorrelated = here.uncorrelated.or(Some(path));
            }
            here.check(inner, found);
        }
    }

    fn map_type(self, node: &SchemaNode, found: &mut CrdErrors) {
        let Some(map_type) = &node.map_type else {
            return;
        };
        self.wants_kind(node, &NodeKind::Object, "must be object if x-kubernetes-map-type is specified", found);
        if map_type != "atomic" && map_type != "granular" {
            let at = self.path.child("x-kubernetes-map-type");
            found.push(FieldError::not_supported(&at, &golang::quote(map_type), ["atomic", "granular"]));
        }
    }

    fn wants_kind(self, node: &SchemaNode, kind: &NodeKind, detail: &str, found: &mut CrdErrors) {
        let at = self.path.child("type");
        if node.kind == NodeKind::Unset {
            found.push(FieldError::required(&at, detail));
        } else if node.kind != *kind {
            found.push(FieldError::invalid(&at, &golang::quote(node.kind.name()), detail));
        }
    }

    fn list_type(self, node: &SchemaNode, found: &mut CrdErrors) {
        let Some(list_type) = &node.list_type else {
            return;
        };
        self.wants_kind(node, &NodeKind::Array, "must be array if x-kubernetes-list-type is specified", found);
        if node.kind == NodeKind::Array
            && list_type == "set"
            && let Some(items) = &node.items
        {
            let printed = items.list_type.as_deref().map_or("null".to_owned(), golang::quote);
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            let at = self.path.child("items");
            if items.kind == NodeKind::Array && !matches!(items.list_type.as_deref(), None | Some("atomic")) {
                found.push(FieldError::invalid(&at.child("x-kubernetes-list-type"), &printed, detail));
            }
            if items.kind == NodeKind::Object && items.map_type.as_deref() != Some("atomic") {
                found.push(FieldError::invalid(&at.child("x-kubernetes-map-type"), &printed, detail));
            }
        }
        if !matches!(list_type.as_str(), "atomic" | "set" | "map") {
            let at = self.path.child("x-kubernetes-list-type");
            found.push(FieldError::not_supported(&at, &golang::quote(list_type), ["atomic", "set", "map"]));
        }
    }

    fn list_keys(self, node: &SchemaNode, found: &mut CrdErrors) {
        let path = self.path;
        if !node.list_keys.is_empty() && !node.is_map_list() {
            let at = path.child("x-kubernetes-list-type");
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            found.push(match &node.list_type {
                None => FieldError::required(&at, detail),
                Some(list_type) => FieldError::invalid(&at, &golang::quote(list_type), detail),
            });
        }
        if !node.is_map_list() {
            return;
        }
        let at_keys = path.child("x-kubernetes-list-map-keys");
        if node.list_keys.is_empty() {
            found.push(FieldError::required(&at_keys, "must not be empty if x-kubernetes-list-type is map"));
        }
        let at_items = path.child("items");
        let Some(items) = &node.items else {
            if !node.read.items_is_list {
                found.push(FieldError::required(&at_items, "must have a schema if x-kubernetes-list-type is map"));
            }
            return;
        };
        if items.kind != NodeKind::Object {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            let kind = golang::quote(items.kind.name());
            return found.push(FieldError::invalid(&at_items.child("type"), &kind, detail));
        }
        let printed = golang::json(&node.list_keys.clone().into());
        let mut known = HashSet::new();
        for key in &node.list_keys {
            if found.is_full() {
                return;
            }
            match items.properties.get(key) {
                None => {
                    let detail = "entries must all be names of item properties";
                    found.push(FieldError::invalid(&at_keys, &printed, detail));
                }
                Some(member) if matches!(member.kind, NodeKind::Array | NodeKind::Object) => {
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    let at = at_items.child("properties");
                    found.push(FieldError::invalid(&at.key(key).child("type"), "\"object\"", detail));
                }
                Some(_) => {}
            }
            if !known.insert(key) {
                found.push(FieldError::invalid(&at_keys, &printed, "must not contain duplicate entries"));
            }
        }
    }

    fn items_of_sets_and_maps(self, node: &SchemaNode, found: &mut CrdErrors) {
        let (Some(items), Some(list_type @ ("set" | "map"))) = (&node.items, node.list_type.as_deref()) else {
            return;
        };
        let at_items = self.path.child("items");
        if items.nullable {
            let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            found.push(FieldError::forbidden(&at_items.child("nullable"), &detail));
        }
        if list_type == "set" {
            return;
        }
        let members = at_items.child("properties");
        let required: HashSet<&String> = items.checks.required.iter().collect();
        for (key, member) in node.list_keys.iter().filter_map(|key| items.properties.get_key_value(key)) {
            let at = members.key(key);
            if member.default.is_none() && !required.contains(key) {
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a \
                              required property";
                found.push(FieldError::required(&at.child("default"), detail));
            }
            if member.nullable {
                let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                found.push(FieldError::forbidden(&at.child("nullable"), detail));
            }
        }
    }
}
