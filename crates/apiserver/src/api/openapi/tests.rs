//! Tests of documents made from a small table of types, from kube-apiserver's documents, and from the built-in kinds.

use serde_json::{Map, Value, json};

use super::types::{Definition, Field, GroupVersionKind, ListType, MapType, Merging, Object, ServedKind, Shape, Types};
use super::{Served, document, index};
use crate::kinds::Catalog;
use crate::truth::{Agreement, cases, same};

/// Types read back from a document of kube-apiserver, instead of from our table.
struct Published(Value);

impl Types for Published {
    fn definition(&self, name: &str) -> Option<Definition> {
        let schema = self.0["components"]["schemas"].get(name)?;
        if schema.get("properties").is_none() && schema.get("x-kubernetes-group-version-kind").is_none() {
            return Some(Definition::Plain { description: text(schema, "description"), shape: shape(schema) });
        }
        let required: Vec<&Value> = schema["required"].as_array().into_iter().flatten().collect();
        let properties = schema["properties"].as_object().into_iter().flatten();
        let fields = properties.map(|(name, schema)| Field {
            name: name.clone(),
            shape: shape(schema),
            description: text(schema, "description"),
            required: required.contains(&&json!(name)),
            default: schema.get("default").cloned(),
            merging: merging(schema),
        });
        let kinds = schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten().map(kind);
        Some(Definition::Object(Object {
            description: text(schema, "description"),
            fields: fields.collect(),
            kinds: kinds.collect(),
            map: map_type(schema),
        }))
    }
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or("").to_owned()
}

fn kind(value: &Value) -> GroupVersionKind {
    GroupVersionKind { group: text(value, "group"), version: text(value, "version"), kind: text(value, "kind") }
}

fn merging(schema: &Value) -> Merging {
    let texts = |member: &str| schema[member].as_str().map(str::to_owned);
    let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
    Merging {
        strategy: texts("x-kubernetes-patch-strategy"),
        key: texts("x-kubernetes-patch-merge-key"),
        list: match schema["x-kubernetes-list-type"].as_str() {
            Some("atomic") => Some(ListType::Atomic),
            Some("set") => Some(ListType::Set),
            Some("map") => Some(ListType::Map(keys.map(|key| key.as_str().unwrap().to_owned()).collect())),
            _ => None,
        },
        map: map_type(schema),
    }
}

fn map_type(schema: &Value) -> Option<MapType> {
    match schema["x-kubernetes-map-type"].as_str() {
        Some("atomic") => Some(MapType::Atomic),
        Some("granular") => Some(MapType::Granular),
        _ => None,
    }
}

fn shape(schema: &Value) -> Shape {
    let named = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    if let Some(name) = named {
        return Shape::Named(name.trim_start_matches("#/components/schemas/").to_owned());
    }
    if let Some(items) = schema.get("items") {
        return Shape::List(Box::new(shape(items)));
    }
    if let Some(values) = schema.get("additionalProperties") {
        return Shape::Map(Box::new(shape(values)));
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("string"), Some("byte")) => Shape::Bytes,
        (Some("string"), Some("date-time")) => Shape::DateTime,
        (Some("string"), None) => Shape::Text,
        (Some("boolean"), None) => Shape::Boolean,
        (Some("integer"), Some("int32")) => Shape::Integer,
        (Some("integer"), Some("int64")) => Shape::LongInteger,
        (Some("number"), Some("double")) => Shape::Double,
        (Some("object"), None) => Shape::AnyObject,
        (None, Some("int-or-string")) => Shape::IntegerOrText,
        (None, None) if schema.get("oneOf").is_some() => Shape::Quantity,
        (None, None) => Shape::Anything,
        other => panic!("{other:?} in {schema}"),
    }
}

/// Returns the kinds of a published document: every path whose last step is a name in braces.
fn served(published: &Value) -> Vec<ServedKind> {
    let paths = published["paths"].as_object().unwrap();
    let mut kinds = Vec::new();
    for (path, item) in paths.iter().filter(|(path, item)| path.ends_with("/{name}") && item.get("patch").is_some()) {
        let operation = &item["get"];
        let reference = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        let Shape::Named(type_name) = shape(reference) else { continue };
        let scale = paths.get(&format!("{path}/scale"));
        kinds.push(ServedKind {
            kind: text(&operation["x-kubernetes-group-version-kind"], "kind"),
            plural: path.trim_end_matches("/{name}").rsplit('/').next().unwrap().to_owned(),
            namespaced: path.contains("{namespace}"),
            list_type: Some(format!("{type_name}List")),
            type_name,
            status: paths.contains_key(&format!("{path}/status")),
            scale: scale.map(|_| "io.k8s.api.autoscaling.v1.Scale".to_owned()),
            custom: false,
            only_created: false,
        });
    }
    kinds
}

/// Returns kube-apiserver's documents, without descriptions: group, version, and the parts that no earlier document
/// had.
fn published() -> impl Iterator<Item = (String, String, Value)> {
    cases("openapi.jsonl").map(|document| (text(&document, "group"), text(&document, "version"), document))
}

/// Removes unions, which kube-apiserver publishes for client generators. This server does not publish them.
fn without_unions(schema: &Value) -> Value {
    let mut schema = schema.clone();
    schema.as_object_mut().unwrap().remove("x-kubernetes-unions");
    schema
}

/// Compares schemas with those of kube-apiserver.
fn check<'s>(schemas: &Value, theirs: impl Fn(&str) -> Option<&'s Value>, agreement: &mut Agreement) {
    for (name, schema) in schemas.as_object().unwrap() {
        let Some(theirs) = theirs(name) else {
            agreement.count(name, Err("it is not there".to_owned()));
            continue;
        };
        let mut theirs = without_unions(theirs);
        normalize(&mut theirs);
        agreement.count(name, same(schema, &theirs));
    }
}

#[test]
fn schemas_match_kube_apiserver() {
    let mut agreement = Agreement::of("schemas by the server's own types");
    for (group, version, published) in published() {
        let types = Published(published);
        let ours = document(&group, &version, &served(&types.0), &types);
        check(&ours["components"]["schemas"], |name| types.0["components"]["schemas"].get(name), &mut agreement);
    }
    agreement.conclude();
}

/// Reduces a schema of kube-apiserver to the form used here: types outside the table are inlined, and values that mean
/// the default are left out.
fn simplify(schema: &mut Value, all: &Map<String, Value>, types: &Served<'_>) {
    let name = schema["allOf"][0]["$ref"].as_str().or(schema["$ref"].as_str());
    let name = name.map(|name| name.trim_start_matches("#/components/schemas/"));
    let plain = name.filter(|name| types.definition(name).is_none()).and_then(|name| all.get(name)).cloned();
    let members = schema.as_object_mut().unwrap();
    if let Some(Value::Object(plain)) = plain {
        members.retain(|member, _| member != "allOf" && member != "$ref");
        members.extend(plain);
    }
    members.retain(|member, value| !(member == "default" && *value == json!({}) || value == "granular"));
    if members.get("type").is_some_and(|kind| kind == "string") {
        // Go's bytes are marked as a list. The mark means nothing on a string.
        members.remove("x-kubernetes-list-type");
    }
    let inner = ["items", "additionalProperties"];
    let inner = inner.iter().filter_map(|member| Some((*member, schema.get(member)?.clone()))).collect::<Vec<_>>();
    for (member, mut value) in inner.into_iter().filter(|(_, value)| value.is_object()) {
        simplify(&mut value, all, types);
        schema[member] = value;
    }
    for (_, property) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        simplify(property, all, types);
    }
}

#[test]
fn schemas_of_built_in_kinds_match_kube_apiserver() {
    let all: Map<String, Value> = published()
        .flat_map(|(_, _, document)| document["components"]["schemas"].as_object().cloned().unwrap())
        .collect();
    let catalog = Catalog::built_in();
    let types = Served(&catalog);
    let mut theirs = all.clone();
    for (name, schema) in &mut theirs {
        simplify(schema, &all, &types);
        // A type without a path of its own is not marked as a kind.
        if matches!(types.definition(name), Some(Definition::Object(object)) if object.kinds.is_empty()) {
            schema.as_object_mut().unwrap().remove("x-kubernetes-group-version-kind");
        }
    }
    let mut agreement = Agreement::of("schemas of built-in kinds");
    for (group, version, _) in published() {
        let ours = document(&group, &version, &types.kinds(&group, &version), &types);
        check(&ours["components"]["schemas"], |name| theirs.get(name), &mut agreement);
    }
    agreement.conclude();
}

/// Normalizes references to one form. The order of names is ours.
fn normalize(schema: &mut Value) {
    for (_, property) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        if let Some(reference) = property.as_object_mut().unwrap().remove("$ref") {
            property["allOf"] = json!([{ "$ref": reference }]);
        }
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.sort_by_key(Value::to_string);
    }
}

#[test]
fn operation_names_match_kube_apiserver() {
    let mut agreement = Agreement::of("operations");
    for (group, version, published) in published() {
        let ours = document(&group, &version, &served(&published), &Published(published.clone()));
        for (path, item) in ours["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap().iter().filter(|(method, _)| *method != "parameters") {
                let theirs = &published["paths"][path][method];
                if theirs.is_null() {
                    continue;
                }
                let members = ["operationId", "x-kubernetes-action", "x-kubernetes-group-version-kind"];
                let named = |of: &Value| members.iter().map(|member| of[member].clone()).collect::<Value>();
                agreement.count(&format!("{method} {path}"), same(&named(operation), &named(theirs)));
            }
        }
    }
    agreement.conclude();
}

struct Small;

impl Types for Small {
    fn definition(&self, name: &str) -> Option<Definition> {
        let field = |name: &str, shape: Shape| Field {
            name: name.into(),
            shape,
            description: String::new(),
            required: false,
            default: None,
            merging: Merging::default(),
        };
        match name {
            "Box" => Some(Definition::Object(Object {
                description: "Holds things.".into(),
                kinds: vec![GroupVersionKind { group: "g".into(), version: "v1".into(), kind: "Box".into() }],
                fields: vec![Field {
                    required: true,
                    merging: Merging {
                        strategy: Some("merge".into()),
                        key: Some("name".into()),
                        list: Some(ListType::Map(vec!["name".into()])),
                        map: None,
                    },
                    ..field("things", Shape::List(Box::new(Shape::Named("Thing".into()))))
                }],
                map: None,
            })),
            "Thing" => Some(Definition::Object(Object {
                // A type may refer to itself.
                fields: vec![field("name", Shape::Text), field("inner", Shape::Named("Thing".into()))],
                ..Object::default()
            })),
            "Given" => Some(Definition::Given {
                schema: json!({ "type": "object", "properties": { "spec": { "type": "object" } } }),
                kinds: vec![GroupVersionKind { group: "g".into(), version: "v1".into(), kind: "Given".into() }],
            }),
            _ => None,
        }
    }
}

fn small(kind: &str, custom: bool) -> ServedKind {
    ServedKind {
        kind: kind.into(),
        plural: "boxes".into(),
        namespaced: true,
        type_name: kind.into(),
        list_type: None,
        status: true,
        scale: None,
        custom,
        only_created: false,
    }
}

#[test]
fn custom_kind_shows_its_schema_and_no_strategic_merge() {
    let made = document("g", "v1", &[small("Given", true)], &Small);
    let patch = &made["paths"]["/apis/g/v1/namespaces/{namespace}/boxes/{name}"]["patch"];
    assert!(patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_none());
    assert!(patch["requestBody"]["content"].get("application/merge-patch+json").is_some());
    let schema = &made["components"]["schemas"]["Given"];
    assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], "Given");
    assert_eq!(schema["properties"]["spec"]["type"], "object");
}

#[test]
fn kind_has_everything_kubectl_needs() {
    let made = document("g", "v1", &[small("Box", false)], &Small);
    let path = &made["paths"]["/apis/g/v1/namespaces/{namespace}/boxes/{name}"];
    let patch = &path["patch"];
    assert_eq!(patch["x-kubernetes-group-version-kind"], json!({ "group": "g", "version": "v1", "kind": "Box" }));
    assert!(patch["parameters"].as_array().unwrap().iter().any(|one| one["name"] == "fieldValidation"));
    assert!(patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_some());
    let things = &made["components"]["schemas"]["Box"]["properties"]["things"];
    assert_eq!(things["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(things["items"]["$ref"], "#/components/schemas/Thing");
    let names: Vec<&String> = made["components"]["schemas"].as_object().map(Map::keys).unwrap().collect();
    assert_eq!(names, ["Box", "Thing"]);
}

#[test]
fn index_lists_document_locations() {
    let made = index([("", "v1", "A"), ("apps", "v1", "B")]);
    assert_eq!(made["paths"]["api/v1"]["serverRelativeURL"], "/openapi/v3/api/v1?hash=A");
    assert_eq!(made["paths"]["apis/apps/v1"]["serverRelativeURL"], "/openapi/v3/apis/apps/v1?hash=B");
}
