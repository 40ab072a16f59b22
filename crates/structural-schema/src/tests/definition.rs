use super::{parse, said};
use serde_json::{Value, json};

fn refused(spec: Value, expected: &[&str]) {
    let causes = parse(&json!({"type": "object", "properties": {"spec": spec}})).expect_err("it is wrong");
    assert_eq!(said(&causes), expected);
}

#[test]
fn every_node_needs_a_type() {
    refused(
        json!({}),
        &["schema.properties[spec].type: Required value: must not be empty for specified object fields"],
    );
    refused(json!({"type": "array"}), &["schema.properties[spec].items: Required value: must be specified"]);
}

#[test]
fn map_lists_need_required_keys() {
    refused(
        json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}}},
        }),
        &["schema.properties[spec].items.properties[name].default: Required value: this property is in \
           x-kubernetes-list-map-keys, so it must have a default or be a required property"],
    );
}

#[test]
fn defaults_must_be_valid_and_pruned() {
    refused(
        json!({"type": "integer", "default": "a"}),
        &["schema.properties[spec].default: Invalid value: \"string\":  in body must be of type integer: \"string\""],
    );
    refused(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}}),
        &["schema.properties[spec].default: Invalid value: {\"b\":1}: must not have unknown fields"],
    );
}

#[test]
fn rules_with_unknown_fields_are_refused() {
    let causes = parse(&json!({
        "type": "object",
        "properties": {"spec": {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.b > 1"}, {"rule": "semver('1.0.0').major() == 1"}],
        }},
    }))
    .expect_err("neither is known");
    let said = said(&causes);
    assert!(said[0].contains("compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b > 1\n | ....^"));
    assert!(said[1].contains("undeclared reference to 'semver'"));
}

#[test]
fn patterns_that_do_not_compile_are_refused() {
    refused(
        json!({"type": "string", "pattern": "(a"}),
        &["schema.properties[spec].pattern: Invalid value: \"(a\": must be a valid regular expression, but isn't: \
           unclosed group"],
    );
}
