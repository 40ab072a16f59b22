//! The document of OpenAPI version 2, for old clients: the schemas of all kinds, without paths.
//!
//! kubectl up to 1.28 needs it for `apply`, and newer ones read it for kinds that accept no patch. They request protobuf,
//! in the messages of `github.com/google/gnostic-models/openapiv2`.

use serde_json::{Map, Value, json};

use crate::message::protobuf::{put_bytes, put_text};

/// The media type of the document in protobuf.
pub(crate) const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// Part of all names of that media type.
const PROTOBUF_NAME: &str = "com.github.proto-openapi.spec.v2";

/// Returns whether a client requests the document in protobuf.
pub(crate) fn wants_protobuf(accept: &str) -> bool {
    accept.contains(PROTOBUF_NAME)
}

const NEW_REFERENCE: &str = "#/components/schemas/";
const OLD_REFERENCE: &str = "#/definitions/";
/// The members of a schema that both versions have, and that hold no other schemas.
const SHARED: [&str; 4] = ["description", "format", "required", "type"];

/// Returns the document with these schemas of version 3.
pub(super) fn document(schemas: &Map<String, Value>) -> Value {
    let definitions: Map<String, Value> =
        schemas.iter().map(|(name, schema)| (name.clone(), older(schema, schemas))).collect();
    json!({
        "swagger": "2.0",
        "info": { "title": "Kubernetes", "version": "unversioned" },
        "paths": {},
        "definitions": definitions,
    })
}

/// Converts a schema of version 3. Version 2 lacks alternatives, so a value with several types gets none.
fn older(schema: &Value, known: &Map<String, Value>) -> Value {
    let Some(members) = schema.as_object() else { return json!({}) };
    if let Some(name) = referenced(schema) {
        let mut older = extensions(members);
        // kubectl refuses a document with a reference to a missing definition.
        if known.contains_key(name) {
            older.insert("$ref".into(), format!("{OLD_REFERENCE}{name}").into());
        }
        return older.into();
    }
    let mut older = extensions(members);
    if members.contains_key("oneOf") || schema["x-kubernetes-int-or-string"] == true {
        return older.into();
    }
    let shared = members.iter().filter(|(name, _)| SHARED.contains(&name.as_str()));
    older.extend(shared.map(|(name, value)| (name.clone(), value.clone())));
    if let Some(properties) = schema["properties"].as_object() {
        let properties = properties.iter().map(|(name, schema)| (name.clone(), self::older(schema, known)));
        older.insert("properties".into(), properties.collect());
    }
    for name in ["items", "additionalProperties"] {
        if let Some(inner) = members.get(name).filter(|inner| inner.is_object()) {
            older.insert(name.into(), self::older(inner, known));
        }
    }
    older.into()
}

/// Returns the name of the schema to which a schema refers, directly or inside `allOf`.
fn referenced(schema: &Value) -> Option<&str> {
    let reference = schema.get("$ref").or_else(|| schema.get("allOf")?.get(0)?.get("$ref"));
    reference?.as_str()?.strip_prefix(NEW_REFERENCE)
}

fn extensions(members: &Map<String, Value>) -> Map<String, Value> {
    let own = members.iter().filter(|(name, _)| name.starts_with("x-kubernetes-"));
    own.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns a document in protobuf.
pub(crate) fn encode(document: &Value) -> Vec<u8> {
    let mut info = Vec::new();
    put_member(1, &document["info"]["title"], &mut info);
    put_member(2, &document["info"]["version"], &mut info);
    let mut out = Vec::new();
    put_member(1, &document["swagger"], &mut out);
    put_bytes(2, &info, &mut out);
    put_bytes(8, &[], &mut out);
    put_bytes(9, &schemas(&document["definitions"]), &mut out);
    out
}

/// Encodes schemas by name.
fn schemas(named: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in named.as_object().into_iter().flatten() {
        put_bytes(1, &pair(name, &schema(value)), &mut out);
    }
    out
}

fn schema(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    put_member(1, &value["$ref"], &mut out);
    put_member(2, &value["format"], &mut out);
    put_member(4, &value["description"], &mut out);
    for name in value["required"].as_array().into_iter().flatten() {
        put_member(19, name, &mut out);
    }
    // The schema and the type are each the only field of another message.
    for (number, member) in [(21, "additionalProperties"), (23, "items")] {
        if let Some(inner) = value.get(member) {
            put_bytes(number, &single(&schema(inner)), &mut out);
        }
    }
    if let Some(name) = value["type"].as_str() {
        put_bytes(22, &single(name.as_bytes()), &mut out);
    }
    if value["properties"].is_object() {
        put_bytes(25, &schemas(&value["properties"]), &mut out);
    }
    for (name, value) in value.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-")) {
        // An extension is a string of YAML, and JSON is YAML.
        let mut any = Vec::new();
        put_text(2, &value.to_string(), &mut any);
        put_bytes(31, &pair(name, &any), &mut out);
    }
    out
}

fn single(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(1, bytes, &mut out);
    out
}

/// Encodes a name and its value.
fn pair(name: &str, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_text(1, name, &mut out);
    put_bytes(2, value, &mut out);
    out
}

fn put_member(number: u32, value: &Value, out: &mut Vec<u8>) {
    if let Some(text) = value.as_str() {
        put_text(number, text, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_encoded_as_messages_with_field_numbers() {
        let properties = json!({"b": {"$ref": "#/definitions/A"}});
        let named = json!({"A": {"type": "object", "required": ["b"], "properties": properties}});
        let expected = b"\x0a\x2f\x0a\x01A\x12\x2a\x9a\x01\x01b\xb2\x01\x08\x0a\x06object\
            \xca\x01\x18\x0a\x16\x0a\x01b\x12\x11\x0a\x0f#/definitions/A";
        assert_eq!(schemas(&named), expected);
    }

    #[test]
    fn values_of_several_types_and_references_to_nothing_become_schemas_without_a_type() {
        let known = Map::new();
        for newer in [
            json!({"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"}),
            json!({"allOf": [{"$ref": "#/components/schemas/Missing"}]}),
            json!({"anyOf": [{"type": "integer"}], "x-kubernetes-int-or-string": false, "nullable": true}),
        ] {
            let older = older(&newer, &known);
            assert!(
                ["type", "format", "$ref", "oneOf", "allOf", "anyOf"].iter().all(|name| older.get(*name).is_none())
            );
        }
    }
}
