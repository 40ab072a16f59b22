use super::{check, said, with_spec};
use serde_json::json;

#[test]
fn errors_have_the_messages_of_kube_apiserver() {
    check(
        json!({"type": "object", "required": ["name"], "properties": {
            "size": {"type": "integer"}, "name": {"type": "string"}, "tier": {"type": "string", "enum": ["a", "b"]},
        }}),
        json!({"size": "big", "tier": "x"}),
        &[
            "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
            "spec.tier: Unsupported value: \"x\": supported values: \"a\", \"b\"",
            "spec.name: Required value",
        ],
    );
    check(json!({"type": "string", "maxLength": 2}), json!("abc"), &["spec: Too long: may not be more than 2 bytes"]);
    check(
        json!({"type": "string", "pattern": "^a+$"}),
        json!("b"),
        &["spec: Invalid value: \"b\": spec in body should match '^a+$'"],
    );
    check(
        json!({"type": "integer", "minimum": 2}),
        json!(1),
        &["spec: Invalid value: 1: spec in body should be greater than or equal to 2"],
    );
    check(
        json!({"x-kubernetes-int-or-string": true}),
        json!(true),
        &["spec: Invalid value: \"boolean\": spec in body must be of type integer,string: \"boolean\""],
    );
}

#[test]
fn duplicate_elements_of_sets_and_map_lists_are_errors() {
    check(
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
        json!(["a", "b", "a"]),
        &["spec[2]: Duplicate value: \"a\""],
    );
    check(
        json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
        }),
        json!([{"name": "a"}, {"name": "a"}]),
        &["spec[1]: Duplicate value: {\"name\":\"a\"}"],
    );
}

#[test]
fn unknown_fields_are_removed_and_reported() {
    let schema = with_spec(json!({"type": "object", "properties": {
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}));
    let mut object = json!({
        "apiVersion": "a/v1", "kind": "A", "metadata": {"name": "x", "size": 1},
        "spec": {"list": [{"a": "1", "b": 2}], "free": {"any": {"thing": 1}}, "more": {"x": 1}}, "other": 1,
    });
    let unknown = schema.prune(&mut object);
    assert_eq!(unknown, ["metadata.size", "other", "spec.list[0].b", "spec.more"]);
    assert_eq!(
        object,
        json!({
            "apiVersion": "a/v1", "kind": "A", "metadata": {"name": "x"},
            "spec": {"list": [{"a": "1"}], "free": {"any": {"thing": 1}}},
        })
    );
}

#[test]
fn defaults_replace_missing_values_and_forbidden_nulls() {
    let schema = with_spec(json!({"type": "object", "default": {}, "properties": {
        "a": {"type": "integer", "default": 1},
        "b": {"type": "integer", "default": 2, "nullable": true},
        "c": {"type": "object", "default": {}, "properties": {"d": {"type": "string", "default": "x"}}},
        "e": {"type": "string"},
    }}));
    let mut object = json!({"spec": {"a": null, "b": null, "e": null}});
    schema.prune(&mut object);
    schema.apply_defaults(&mut object).expect("small");
    assert_eq!(object, json!({"spec": {"a": 1, "b": null, "c": {"d": "x"}}}));
    let mut object = json!({});
    schema.apply_defaults(&mut object).expect("small");
    assert_eq!(object, json!({"spec": {"a": 1, "b": 2, "c": {"d": "x"}}}));
}

#[test]
fn unchanged_errors_are_accepted_on_update() {
    let schema = with_spec(json!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 1}, "b": {"type": "string"},
    }}));
    let old = json!({"spec": {"a": "long", "b": "x"}});
    assert_eq!(said(&schema.validate(&json!({"spec": {"a": "long", "b": "y"}}), Some(&old))), [""; 0]);
    assert_eq!(
        said(&schema.validate(&json!({"spec": {"a": "longer", "b": "x"}}), Some(&old))),
        ["spec.a: Too long: may not be more than 1 byte"]
    );
}
