//! Compares documents with those of kube-apiserver.

use serde_json::{Map, Value, json};

use super::{document, index, schemas};
use crate::kinds::{Catalog, Resource};
use crate::truth::{Agreement, cases, same};

/// Returns kube-apiserver's documents, without descriptions: group, version, and the parts that no earlier document
/// had.
fn published() -> impl Iterator<Item = (String, String, Value)> {
    let text = |document: &Value, member: &str| document[member].as_str().unwrap().to_owned();
    cases("openapi.jsonl").map(move |document| (text(&document, "group"), text(&document, "version"), document))
}

/// Reduces a schema of kube-apiserver to the form used here: types outside the table are inlined, and values that mean
/// the default are left out.
fn simplify(schema: &mut Value, all: &Map<String, Value>, catalog: &Catalog) {
    let name = schema["allOf"][0]["$ref"].as_str().or(schema["$ref"].as_str());
    let name = name.map(|name| name.trim_start_matches("#/components/schemas/"));
    let is_plain = |name: &&str| schemas::schema_named(name, catalog).is_none();
    let plain = name.filter(is_plain).and_then(|name| all.get(name)).cloned();
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
    for member in ["items", "additionalProperties"] {
        if schema.get(member).is_some_and(Value::is_object) {
            simplify(&mut schema[member], all, catalog);
        }
    }
    for (_, property) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        simplify(property, all, catalog);
    }
}

/// Normalizes references and the order of names. Unions are for generators of clients, and not published here.
fn normalize(schema: &mut Value) {
    schema.as_object_mut().unwrap().remove("x-kubernetes-unions");
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
fn schemas_of_built_in_kinds_match_kube_apiserver() {
    let all: Map<String, Value> = published()
        .flat_map(|(_, _, document)| document["components"]["schemas"].as_object().cloned().unwrap())
        .collect();
    let catalog = Catalog::built_in();
    let mut agreement = Agreement::of("schemas of built-in kinds");
    for (group, version, _) in published() {
        let ours = document(&group, &version, &catalog);
        for (name, schema) in ours["components"]["schemas"].as_object().unwrap() {
            let Some(mut theirs) = all.get(name).cloned() else {
                agreement.count(name, Err("it is not there".to_owned()));
                continue;
            };
            simplify(&mut theirs, &all, &catalog);
            normalize(&mut theirs);
            if schema.get("x-kubernetes-group-version-kind").is_none() {
                // A type without a path of its own is not marked as a kind.
                theirs.as_object_mut().unwrap().remove("x-kubernetes-group-version-kind");
            }
            agreement.count(name, same(schema, &theirs));
        }
    }
    agreement.conclude();
}

#[test]
fn operation_names_match_kube_apiserver() {
    let catalog = Catalog::built_in();
    let mut agreement = Agreement::of("operations");
    for (group, version, published) in published() {
        let ours = document(&group, &version, &catalog);
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

#[test]
fn custom_kind_shows_its_schema_and_no_strategic_merge() {
    let mut catalog = Catalog::built_in();
    let mut boxes = Resource::custom("g", "v1", "boxes", "Box");
    boxes.rules.published = Some(json!({"type": "object", "properties": {"spec": {"type": "object"}}}));
    catalog.put(vec![boxes]);
    let made = document("g", "v1", &catalog);
    let patch = &made["paths"]["/apis/g/v1/namespaces/{namespace}/boxes/{name}"]["patch"];
    assert!(patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_none());
    assert!(patch["requestBody"]["content"].get("application/merge-patch+json").is_some());
    assert!(patch["parameters"].as_array().unwrap().iter().any(|one| one["name"] == "fieldValidation"));
    let schema = &made["components"]["schemas"]["g.v1.Box"];
    assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], "Box");
    assert_eq!(schema["properties"]["spec"]["type"], "object");
}

#[test]
fn index_lists_document_locations() {
    let made = index([("", "v1"), ("apps", "v1")], "A");
    assert_eq!(made["paths"]["api/v1"]["serverRelativeURL"], "/openapi/v3/api/v1?hash=A");
    assert_eq!(made["paths"]["apis/apps/v1"]["serverRelativeURL"], "/openapi/v3/apis/apps/v1?hash=A");
}
