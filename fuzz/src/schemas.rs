//! Schemas of custom resources, and objects that are validated with them.

use kube_embedded_apiserver::ApiServer;
use serde_json::{Map, Value, json};

use crate::ask::{Ask, MERGE, differences};
use crate::choices::Choices;
use crate::things::{TABLE, THING, THINGS, define, in_time, thing, version_of};

/// Any schema in a CRD, and objects for it: the server accepts or refuses each, within the time limit. An accepted
/// object is accepted again as it was returned.
///
/// Input that begins like JSON has a line with the schema, and a line for each object. Both are generated from other
/// input.
pub fn schemas(input: &[u8]) {
    let (version, objects) = if input.first() == Some(&b'{') { written(input) } else { made(input) };
    in_time(|| {
        let server = ApiServer::builder().seed(1).build();
        crate::run(async {
            if define(&server, version.clone()).await {
                for object in &objects {
                    hold(&server, object, has_transitions(&version)).await;
                }
            }
        });
    });
}

/// Reads a version and objects from JSON.
fn written(input: &[u8]) -> (Value, Vec<Value>) {
    let mut lines = input.split(|byte| *byte == b'\n').map(|line| serde_json::from_slice(line).unwrap_or_default());
    let schema = lines.next().unwrap_or_default();
    (version_of(schema), lines.filter(Value::is_object).collect())
}

/// Generates a version and objects from bytes.
fn made(input: &[u8]) -> (Value, Vec<Value>) {
    let mut choices = Choices::new(input);
    let mut properties = Map::new();
    properties.insert("spec".into(), schema(&mut choices, 4));
    if choices.byte() % 4 == 1 {
        properties.insert(choices.pick(NAMES).to_owned(), schema(&mut choices, 3));
    }
    let mut version = version_of(json!({"type": "object", "properties": properties}));
    match choices.below(6) {
        1 => version["subresources"] = json!({"status": {}}),
        2 => version["subresources"] = scale(&mut choices),
        3 => version["additionalPrinterColumns"] = columns(&mut choices),
        4 => version["selectableFields"] = json!([{"jsonPath": choices.pick(PATHS)}]),
        _ => {}
    }
    let objects = (0..4).map(|_| json!({"spec": choices.json(NAMES, 4), "status": choices.json(NAMES, 2)}));
    (version, objects.collect())
}

fn scale(choices: &mut Choices<'_>) -> Value {
    let mut scale = json!({"status": {}, "scale": {"specReplicasPath": choices.pick(SCALED),
        "statusReplicasPath": choices.pick(SCALED), "labelSelectorPath": choices.pick(SCALED)}});
    if choices.coin() {
        scale = choices.varied(&scale);
    }
    scale
}

fn columns(choices: &mut Choices<'_>) -> Value {
    let path = match choices.below(3) {
        0 => String::from_utf8_lossy(choices.take(20)).into_owned(),
        _ => choices.pick(PATHS).to_owned(),
    };
    json!([{"name": "A", "type": choices.pick(&["string", "integer", "number", "boolean", "date"]), "jsonPath": path}])
}

/// Generates a schema that is likely to be valid.
fn schema(choices: &mut Choices<'_>, levels: usize) -> Value {
    let mut fields = Map::new();
    fields.insert("type".into(), choices.pick(TYPES).into());
    for _ in 0..choices.below(5) {
        let name = choices.pick(FIELDS);
        fields.insert(name.into(), field(name, choices, levels));
    }
    fields.into()
}

fn field(name: &str, choices: &mut Choices<'_>, levels: usize) -> Value {
    match name {
        "properties" | "patternProperties" if levels > 0 => {
            let names = (0..choices.below(4)).map(|_| (choices.pick(NAMES).to_owned(), schema(choices, levels - 1)));
            Value::Object(names.collect())
        }
        "items" | "additionalProperties" | "not" if levels > 0 => schema(choices, levels - 1),
        "allOf" | "anyOf" | "oneOf" if levels > 0 => {
            (0..choices.below(3)).map(|_| schema(choices, levels - 1)).collect()
        }
        "type" => choices.pick(TYPES).into(),
        "x-kubernetes-validations" => json!([{"rule": choices.pick(RULES), "messageExpression": choices.pick(RULES)}]),
        "x-kubernetes-list-type" | "x-kubernetes-map-type" => {
            choices.pick(&["set", "map", "atomic", "granular"]).into()
        }
        "x-kubernetes-list-map-keys" | "required" => json!([choices.pick(NAMES)]),
        "pattern" => choices.pick(PATTERNS).into(),
        "format" => choices.pick(FORMATS).into(),
        "nullable"
        | "uniqueItems"
        | "exclusiveMinimum"
        | "x-kubernetes-preserve-unknown-fields"
        | "x-kubernetes-embedded-resource"
        | "x-kubernetes-int-or-string" => (choices.byte() % 4 != 3).into(),
        "minimum" | "maximum" | "multipleOf" | "maxLength" | "minLength" | "maxItems" | "minItems"
        | "maxProperties" | "minProperties" => choices.number(),
        _ => choices.json(NAMES, 2),
    }
}

/// Validates an object with the schema. An accepted object stays valid and unchanged.
async fn hold(server: &ApiServer, object: &Value, has_transitions: bool) {
    let answer = Ask::json("POST", THINGS, &thing(object.clone())).send(server).await;
    if !answer.is_success() {
        return;
    }
    let kept = answer.value();
    let shown = Ask { accept: TABLE, ..Ask::get(THING) }.send(server).await;
    assert_eq!(shown.code, 200, "{shown:?}");
    let put = Ask::json("PUT", THING, &kept);
    let patch = Ask { content_type: MERGE, ..Ask::json("PATCH", THING, &json!({})) };
    for again in [put, patch] {
        let again = again.send(server).await;
        assert!(again.code == 200 || has_transitions, "{kept} is refused the second time: {again:?}");
        let changes = if again.code == 200 { differences(&kept, &again.value()) } else { Vec::new() };
        assert!(changes.is_empty(), "the object has changed: {changes:#?}");
    }
    change_parts(server).await;
    assert_eq!(Ask::json("DELETE", THING, &json!({})).send(server).await.code, 200);
    let again = Ask::json("POST", THINGS, &thing(kept.clone())).send(server).await;
    assert_eq!(again.code, 201, "{kept} is refused the second time: {again:?}");
    let changes = differences(&thing(kept), &thing(again.value()));
    assert!(changes.is_empty(), "the object has changed: {changes:#?}");
    Ask::json("DELETE", THING, &json!({})).send(server).await;
}

/// Writes to the subresources of an object. Its kind and name do not change, whatever paths the CRD names.
async fn change_parts(server: &ApiServer) {
    for (part, change) in [("scale", json!({"spec": {"replicas": 3}})), ("status", json!({"status": {"a": 3}}))] {
        let path = format!("{THING}/{part}");
        Ask::get(&path).send(server).await;
        Ask { content_type: MERGE, ..Ask::json("PATCH", &path, &change) }.send(server).await;
        let thing = Ask::get(THING).send(server).await.value();
        let is_same =
            thing["kind"] == "Thing" && thing["metadata"]["name"] == "a" && thing["metadata"]["uid"].is_string();
        assert!(is_same, "{part} was changed: {thing}");
    }
}

/// Returns true if a rule may compare with the old object, and so refuse an unchanged one.
fn has_transitions(version: &Value) -> bool {
    version.to_string().contains("oldSelf")
}

const SCALED: &[&str] =
    &[".spec.a", ".status.a", ".spec.a.b", ".spec", ".metadata.name", ".metadata", ".kind", "spec.a", "", ".spec.a[0]"];
const TYPES: &[&str] = &["object", "array", "string", "integer", "number", "boolean"];
const NAMES: &[&str] = &["a", "b", "metadata", "name", "a-b", "kind", "spec", "é"];
#[rustfmt::skip]
const PATHS: &[&str] = &[
    ".spec.a",
    ".spec",
    ".metadata.name",
    ".spec.a[0]",
    ".spec.a[?(@.b=='x')].b",
    "..a",
    ".spec['a-b']",
    ".spec.a[*].b",
];
#[rustfmt::skip]
const PATTERNS: &[&str] =
    &["a", "[", "^(a|b)*$", "\\d{3}", "a{1000}{2}", "\\p{L}", "(?i)a", "[[:alpha:]]", "(?=a)", "\\Qa\\E"];
#[rustfmt::skip]
const FORMATS: &[&str] = &[
    "date-time",
    "date",
    "duration",
    "byte",
    "int32",
    "int64",
    "uuid",
    "ipv4",
    "cidr",
    "email",
    "quantity",
    "uri",
    "password",
    "k8s-short-name",
];
#[rustfmt::skip]
const FIELDS: &[&str] = &[
    "type",
    "properties",
    "items",
    "additionalProperties",
    "required",
    "enum",
    "default",
    "nullable",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "multipleOf",
    "maxLength",
    "minLength",
    "maxItems",
    "minItems",
    "maxProperties",
    "minProperties",
    "uniqueItems",
    "exclusiveMinimum",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "patternProperties",
    "title",
    "example",
    "$ref",
    "externalDocs",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-validations",
    "properties",
];
#[rustfmt::skip]
const RULES: &[&str] = &[
    "true",
    "self.a == 1",
    "self.all(x, x > 1)",
    "size(self) < 2",
    "self.map(x, [x, x]).size() > 0",
    "'%s'.format([self])",
    "self.?a.orValue(1) == 1",
    "has(self.a)",
    "self == self",
    "self[0] == 'a'",
    "self > 0",
    "self.matches('a+')",
    "string(self)",
    "self.a.all(x, x.b == 'x')",
    "!(self.exists_one(x, x == 1))",
    "self.metadata.name == 'a'",
];
