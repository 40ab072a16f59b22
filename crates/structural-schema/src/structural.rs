//! Checks that a schema is structural: every node has a type, and value checks refer only to existing nodes.

use super::cause::FieldError;
use super::node::{Additional, Checks, NodeKind, SchemaNode};
use super::path::ValuePath;
use super::{golang, pattern};

/// Returns every violation of the structural requirements, in the order of the messages.
pub(crate) fn check(root: &SchemaNode, path: &ValuePath<'_>) -> Vec<FieldError> {
    let mut found = FoundErrors(Vec::new());
    found.place(root, Level::Root, path);
    found.complete(&root.checks, Some(root), path, path);
    found.0.sort_by_cached_key(ToString::to_string);
    found.0
}

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

struct FoundErrors(Vec<FieldError>);

impl FoundErrors {
    fn push(&mut self, cause: FieldError) {
        if self.0.len() < super::limits::PROBLEMS {
            self.0.push(cause);
        }
    }

    fn place(&mut self, node: &SchemaNode, level: Level, path: &ValuePath<'_>) {
        if node.kind == NodeKind::Array && node.items.is_none() {
            self.push(FieldError::required(&path.child("items"), "must be specified"));
        }
        if let Some(items) = &node.items {
            self.place(items, Level::Item, &path.child("items"));
        }
        let members = path.child("properties");
        for (name, member) in &node.properties {
            self.place(member, Level::Field, &members.key(name));
        }
        let additional = path.child("additionalProperties");
        if node.additional.is_set() && level == Level::Root {
            self.push(FieldError::forbidden(&additional, "must not be used at the root"));
        }
        if let Some(inner) = node.additional.schema() {
            self.place(inner, Level::Field, &additional);
        }
        self.extensions(node, path);
        let skip_any_of = is_int_or_string(&node.checks.any_of);
        let skip_first_all_of = node.checks.all_of.first().is_some_and(|first| is_int_or_string(&first.checks.any_of));
        self.value_checks(&node.checks, skip_any_of, skip_first_all_of, path);
        self.kind(node, level, path);
        self.meta(node, level, path);
    }

    fn extensions(&mut self, node: &SchemaNode, path: &ValuePath<'_>) {
        let detail = "must be false if x-kubernetes-int-or-string is true";
        if node.int_or_string && node.preserves {
            self.push(FieldError::invalid(&path.child("x-kubernetes-preserve-unknown-fields"), "true", detail));
        }
        if node.int_or_string && node.embedded {
            self.push(FieldError::invalid(&path.child("x-kubernetes-embedded-resource"), "true", detail));
        }
    }

    fn kind(&mut self, node: &SchemaNode, level: Level, path: &ValuePath<'_>) {
        let at = path.child("type");
        let kind = golang::quote(node.kind.name());
        if node.embedded && node.kind != NodeKind::Object {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            let unset = node.kind == NodeKind::Unset;
            self.push(if unset { FieldError::required(&at, detail) } else { FieldError::invalid(&at, &kind, detail) });
        } else if node.kind == NodeKind::Unset && !node.int_or_string && !node.preserves {
            let detail = match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            };
            self.push(FieldError::required(&at, detail));
        }
        if node.embedded && node.additional.is_set() {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            self.push(FieldError::forbidden(&path.child("additionalProperties"), detail));
        }
        if level == Level::Root && !matches!(node.kind, NodeKind::Unset | NodeKind::Object) {
            self.push(FieldError::invalid(&at, &kind, "must be object at the root"));
        }
    }

    fn meta(&mut self, node: &SchemaNode, level: Level, path: &ValuePath<'_>) {
        let is_resource = level == Level::Root || node.embedded;
        let members = path.child("properties");
        for name in ["kind", "apiVersion"] {
            if let Some(member) = node.properties.get(name)
                && is_resource
                && member.kind != NodeKind::String
            {
                let kind = golang::quote(member.kind.name());
                self.push(FieldError::invalid(&members.key(name).child("type"), &kind, "must be string"));
            }
        }
        if let Some(metadata) = node.properties.get("metadata") {
            let at = members.key("metadata");
            if is_resource && metadata.kind != NodeKind::Object {
                let kind = golang::quote(metadata.kind.name());
                self.push(FieldError::invalid(&at.child("type"), &kind, "must be object"));
            }
            if level == Level::Root && says_more_than_names(metadata) {
                let detail = "must not specify anything other than name and generateName, but metadata is implicitly \
                              specified";
                self.push(FieldError::forbidden(&at, detail));
            }
        }
        if node.embedded && !node.preserves && node.properties.is_empty() {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                          x-kubernetes-preserve-unknown-fields";
            self.push(FieldError::required(&members, detail));
        }
    }

    fn value_checks(&mut self, checks: &Checks, skip_any_of: bool, skip_first_all_of: bool, path: &ValuePath<'_>) {
        if !skip_any_of {
            let at = path.child("anyOf");
            for (index, inner) in checks.any_of.iter().enumerate() {
                self.nested(inner, false, &at.index(index));
            }
        }
        let at = path.child("allOf");
        for (index, inner) in checks.all_of.iter().enumerate() {
            self.nested(inner, skip_first_all_of && index == 0, &at.index(index));
        }
        let at = path.child("oneOf");
        for (index, inner) in checks.one_of.iter().enumerate() {
            self.nested(inner, false, &at.index(index));
        }
        if let Some(inner) = &checks.not {
            self.nested(inner, false, &path.child("not"));
        }
        if !checks.pattern.is_empty()
            && checks.regex.is_none()
            && let Err(error) = pattern::compile(&checks.pattern)
        {
            let detail = format!("must be a valid regular expression, but isn't: {error}");
            self.push(FieldError::invalid(&path.child("pattern"), &golang::quote(&checks.pattern), &detail));
        }
    }

    fn nested(&mut self, node: &SchemaNode, skip_any_of: bool, path: &ValuePath<'_>) {
        self.value_checks(&node.checks, skip_any_of, false, path);
        if let Some(items) = &node.items {
            self.nested(items, false, &path.child("items"));
        }
        let members = path.child("properties");
        for (name, member) in &node.properties {
            self.nested(member, false, &members.key(name));
        }
        let allows_more = matches!(node.additional, Additional::Schema(_) | Additional::Allowed(true));
        let undefined = "must be undefined to be structural";
        let empty = "must be empty to be structural";
        let unset = "must be false to be structural";
        for (wrong, name, detail) in [
            (node.kind != NodeKind::Unset, "type", empty),
            (allows_more, "additionalProperties", undefined),
            (node.default.is_some(), "default", undefined),
            (node.read.has_title, "title", empty),
            (node.read.has_description, "description", empty),
            (node.nullable, "nullable", unset),
            (node.preserves, "x-kubernetes-preserve-unknown-fields", unset),
            (node.embedded, "x-kubernetes-embedded-resource", unset),
            (node.int_or_string, "x-kubernetes-int-or-string", unset),
            (!node.list_keys.is_empty(), "x-kubernetes-list-map-keys", empty),
            (node.list_type.is_some(), "x-kubernetes-list-type", undefined),
            (node.map_type.is_some(), "x-kubernetes-map-type", undefined),
            (!node.rules.is_empty(), "x-kubernetes-validations", empty),
        ] {
            if wrong {
                self.push(FieldError::forbidden(&path.child(name), detail));
            }
        }
        if node.properties.contains_key("metadata") {
            self.push(FieldError::forbidden(&members.key("metadata"), "must not be specified in a nested context"));
        }
    }

    /// Checks that `checks` refers only to nodes of the schema itself.
    fn complete(&mut self, checks: &Checks, place: Option<&SchemaNode>, path: &ValuePath<'_>, from: &ValuePath<'_>) {
        if let Some(inner) = &checks.not {
            self.complete_nested(inner, place, path, &from.child("not"));
        }
        for (name, inner) in [("allOf", &checks.all_of), ("anyOf", &checks.any_of), ("oneOf", &checks.one_of)] {
            let from = from.child(name);
            for (index, inner) in inner.iter().enumerate() {
                self.complete_nested(inner, place, path, &from.index(index));
            }
        }
    }

    fn complete_nested(
        &mut self,
        node: &SchemaNode,
        place: Option<&SchemaNode>,
        path: &ValuePath<'_>,
        from: &ValuePath<'_>,
    ) {
        let Some(held) = place else {
            return self.push(FieldError::required(path, &format!("because it is defined in {from}")));
        };
        self.complete(&node.checks, place, path, from);
        if let Some(items) = &node.items {
            self.complete_nested(items, held.items.as_deref(), &path.child("items"), &from.child("items"));
        }
        let (members, from_members) = (path.child("properties"), from.child("properties"));
        for (name, member) in &node.properties {
            let inner = held.properties.get(name);
            self.complete_nested(member, inner, &members.key(name), &from_members.key(name));
        }
    }
}

/// Returns whether this is the pattern that `x-kubernetes-int-or-string` allows: either an integer or a string, and
/// nothing else.
fn is_int_or_string(options: &[SchemaNode]) -> bool {
    let [int, string] = options else {
        return false;
    };
    says_only_its_kind(int)
        && int.kind == NodeKind::Integer
        && says_only_its_kind(string)
        && string.kind == NodeKind::String
}

fn says_only_its_kind(node: &SchemaNode) -> bool {
    node.properties.is_empty()
        && !node.read.has_properties
        && !node.additional.is_set()
        && node.items.is_none()
        && !node.nullable
        && node.default.is_none()
        && !node.preserves
        && !node.embedded
        && !node.int_or_string
        && node.list_type.is_none()
        && node.list_keys.is_empty()
        && node.map_type.is_none()
        && node.rules.is_empty()
        && !node.read.has_title
        && !node.read.has_description
        && says_nothing(&node.checks)
}

fn says_nothing(checks: &Checks) -> bool {
    let numbers = [checks.maximum, checks.minimum, checks.multiple_of];
    let counts = [
        checks.max_length,
        checks.min_length,
        checks.max_items,
        checks.min_items,
        checks.max_properties,
        checks.min_properties,
    ];
    checks.format.is_empty()
        && checks.pattern.is_empty()
        && numbers.iter().all(Option::is_none)
        && counts.iter().all(Option::is_none)
        && !(checks.exclusive_maximum || checks.exclusive_minimum || checks.unique_items)
        && checks.options.is_empty()
        && checks.required.is_empty()
        && checks.all_of.is_empty()
        && checks.any_of.is_empty()
        && checks.one_of.is_empty()
        && checks.not.is_none()
}

/// Returns whether the schema of metadata restricts more than the names. The server has its own schema for metadata.
fn says_more_than_names(metadata: &SchemaNode) -> bool {
    let only_names = metadata.properties.keys().all(|name| name == "name" || name == "generateName");
    let silent = says_nothing(&metadata.checks)
        && !metadata.additional.is_set()
        && metadata.items.is_none()
        && !metadata.nullable
        && !metadata.preserves
        && !metadata.embedded
        && !metadata.int_or_string
        && metadata.list_type.is_none()
        && metadata.list_keys.is_empty()
        && metadata.map_type.is_none()
        && metadata.rules.is_empty()
        && !metadata.read.has_title
        && !metadata.read.has_description;
    !only_names || !silent
}
