//! The schemas of types: from the table of kinds, and from CRDs.

use serde_json::{Map, Value, json};

use crate::kinds::types::{self, FieldType, ListKind, ScalarType, Struct, StructMember};
use crate::kinds::{Catalog, Resource};

/// Where a reference finds schemas.
const REFERENCE: &str = "#/components/schemas/";

/// Go packages, and their prefixes in schema names.
const PACKAGES: [(&str, &str); 4] = [
    ("meta/", "io.k8s.apimachinery.pkg.apis.meta."),
    ("apiextensions/", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions."),
    ("apiregistration/", "io.k8s.kube-aggregator.pkg.apis.apiregistration."),
    ("", "io.k8s.api."),
];

/// Returns the schemas of those types, and of all types that they refer to.
pub(super) fn reachable(names: impl IntoIterator<Item = String>, catalog: &Catalog) -> Map<String, Value> {
    let mut schemas = Map::new();
    let mut waiting: Vec<String> = names.into_iter().collect();
    while let Some(name) = waiting.pop() {
        if schemas.contains_key(&name) {
            continue;
        }
        let Some(schema) = schema_named(&name, catalog) else { continue };
        collect_references(&schema, &mut waiting);
        schemas.insert(name, schema);
    }
    schemas
}

fn collect_references(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            let reference = members.get("$ref").and_then(Value::as_str);
            names.extend(reference.and_then(|reference| reference.strip_prefix(REFERENCE)).map(str::to_owned));
            members.values().for_each(|value| collect_references(value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, names)),
        _ => {}
    }
}

/// Returns the schema of this name, if there is one.
pub(super) fn schema_named(name: &str, catalog: &Catalog) -> Option<Value> {
    let resources = || catalog.served().filter(|resource| name_of(resource) == name);
    let mut schema = match resources().find(|resource| resource.rules.custom) {
        Some(resource) => published(resource),
        None => {
            let of = PACKAGES.iter().find_map(|(package, prefix)| {
                let (path, kind) = name.strip_prefix(prefix)?.rsplit_once('.')?;
                types::named(&format!("{package}{}.{kind}", path.replace('.', "/")))
            })?;
            of_struct(of)
        }
    };
    let kinds: Vec<Value> =
        resources().map(|resource| of_kind(&resource.group, &resource.version, &resource.kind)).collect();
    if !kinds.is_empty() {
        schema["x-kubernetes-group-version-kind"] = kinds.into();
    }
    Some(schema)
}

/// Returns the schema name of a resource: by its package, or by its reversed group.
pub(super) fn name_of(resource: &Resource) -> String {
    if let Some(of) = resource.of {
        return name_of_struct(of);
    }
    let mut steps: Vec<&str> = resource.group.split('.').rev().collect();
    steps.extend([resource.version.as_str(), resource.kind.as_str()]);
    steps.join(".")
}

fn name_of_struct(of: &Struct) -> String {
    let found = PACKAGES.iter().find_map(|(package, prefix)| Some((of.name.strip_prefix(package)?, prefix)));
    let (rest, prefix) = found.unwrap_or((of.name, &"io.k8s.api."));
    format!("{prefix}{}", rest.replace('/', "."))
}

/// Returns the schema of a custom resource, with the members that every object has.
fn published(resource: &Resource) -> Value {
    let mut schema = resource.rules.published.clone().unwrap_or_else(|| json!({"type": "object"}));
    let text = |description: &str| json!({"type": "string", "description": description});
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    schema["properties"]["apiVersion"] = text("The group and version of the object.");
    schema["properties"]["kind"] = text("The kind of the object.");
    let metadata = reference("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    schema["properties"]["metadata"] = json!({"allOf": [metadata], "description": "What every object has."});
    schema
}

/// Returns a kind for the extension `x-kubernetes-group-version-kind`.
pub(super) fn of_kind(group: &str, version: &str, kind: &str) -> Value {
    json!({ "group": group, "version": version, "kind": kind })
}

/// Returns a reference to the type of that name.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{REFERENCE}{name}") })
}

fn of_struct(of: &'static Struct) -> Value {
    let mut schema = json!({ "type": "object" });
    let fields: Map<String, Value> = of.shown().map(|member| (member.name.to_owned(), of_member(member))).collect();
    let required: Vec<&str> = of.shown().filter(|member| member.required).map(|member| member.name).collect();
    if !fields.is_empty() {
        schema["properties"] = fields.into();
    }
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if of.atomic {
        schema["x-kubernetes-map-type"] = "atomic".into();
    }
    schema
}

fn of_member(member: &'static StructMember) -> Value {
    let mut schema = match &member.of {
        // A reference cannot have siblings, so it is nested in `allOf`.
        FieldType::Struct(_) => json!({ "allOf": [of_type(&member.of)] }),
        of => of_type(of),
    };
    if let Some(default) = &member.default {
        schema["default"] = default.clone();
    }
    let strategies =
        [("merge", member.patch.merge), ("replace", member.patch.replace), ("retainKeys", member.patch.retain_keys)];
    let strategies: Vec<&str> = strategies.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect();
    if !strategies.is_empty() {
        schema["x-kubernetes-patch-strategy"] = strategies.join(",").into();
    }
    if let Some(key) = member.patch.key {
        schema["x-kubernetes-patch-merge-key"] = key.into();
    }
    if matches!(member.of, FieldType::List { .. }) {
        schema["x-kubernetes-list-type"] = match &member.list {
            ListKind::Atomic => "atomic",
            ListKind::Set => "set",
            ListKind::Map(_) => "map",
        }
        .into();
    }
    if let ListKind::Map(keys) = &member.list {
        schema["x-kubernetes-list-map-keys"] = json!(keys);
    }
    if member.atomic {
        schema["x-kubernetes-map-type"] = "atomic".into();
    }
    schema
}

fn of_type(of: &FieldType) -> Value {
    let formatted = |kind: &str, format: &str| json!({ "type": kind, "format": format });
    match of {
        FieldType::Struct(_) => of.as_struct().map_or_else(|| json!({}), |of| reference(&name_of_struct(of))),
        FieldType::List { items, .. } => json!({ "type": "array", "items": of_type(items) }),
        FieldType::Map(values) => json!({ "type": "object", "additionalProperties": of_type(values) }),
        FieldType::Scalar(scalar) => match scalar {
            ScalarType::Text | ScalarType::Duration => json!({ "type": "string" }),
            ScalarType::Bool => json!({ "type": "boolean" }),
            ScalarType::Int32 => formatted("integer", "int32"),
            ScalarType::Int64 => formatted("integer", "int64"),
            ScalarType::Float => formatted("number", "double"),
            ScalarType::Bytes => formatted("string", "byte"),
            ScalarType::Time | ScalarType::MicroTime => formatted("string", "date-time"),
            ScalarType::Quantity => json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }),
            ScalarType::IntOrString => {
                json!({ "oneOf": [{ "type": "integer" }, { "type": "string" }], "format": "int-or-string" })
            }
            ScalarType::RawExtension | ScalarType::FieldsV1 => json!({ "type": "object" }),
            ScalarType::Json | ScalarType::SchemaOrArray | ScalarType::SchemaOrBool | ScalarType::SchemaOrStrings => {
                json!({})
            }
        },
    }
}
