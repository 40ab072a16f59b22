//! Tests of set operations, and of the `fieldsV1` form of sets.

use serde_json::json;

use crate::path::PathElement;
use crate::set::FieldSet;
use crate::text;

fn set(fields: serde_json::Value) -> FieldSet {
    text::decode(&fields).unwrap()
}

#[test]
fn set_operations_hold_for_every_path() {
    let left = set(json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
    let right = set(json!({"f:a": {}, "f:c": {"f:d": {}}}));
    assert_eq!(text::encode(&left.intersection(&right)), json!({"f:a": {}}));
    let union = left.clone().union(right.clone());
    assert_eq!(text::encode(&union), json!({"f:a": {".": {}, "f:b": {}}, "f:c": {".": {}, "f:d": {}}}));
    assert_eq!(text::encode(&left.clone().difference(&right)), json!({"f:a": {"f:b": {}}, "f:c": {}}));
    assert_eq!(text::encode(&left.clone().recursive_difference(&right)), json!({"f:c": {}}));
    assert_eq!(text::encode(&union.leaves()), json!({"f:a": {"f:b": {}}, "f:c": {"f:d": {}}}));
    assert!(left.has(&[PathElement::field("a"), PathElement::field("b")]) && !right.has(&[PathElement::field("c")]));
}

#[test]
fn fields_v1_round_trips() {
    let fields = json!({
        "f:spec": {".": {}, "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}},
        "f:set": {"v:\"a<b\"": {}, "v:1": {}, "v:true": {}, "i:3": {}},
    });
    assert_eq!(text::encode(&set(fields.clone())), fields);
}

#[test]
fn equal_numbers_are_one_element() {
    assert_eq!(set(json!({"v:1": {}})), set(json!({"v:1.0": {}})));
}

#[test]
fn invalid_keys_are_errors_and_unknown_keys_are_omitted() {
    for broken in [json!({"spec": {}}), json!({"k:1": {}}), json!({"v:": {}}), json!({"i:x": {}}), json!({"f:a": 1})] {
        assert!(text::decode(&broken).is_err(), "{broken}");
    }
    assert_eq!(set(json!({"x:future": {}, "f:a": {}})), set(json!({"f:a": {}})));
}

#[test]
fn paths_are_formatted_as_by_kube_apiserver() {
    let texts = set(json!({"f:a": {"k:{\"name\":\"x\\\"y\",\"port\":80}": {"v:1.5": {}}, "f:b": {}}})).texts();
    assert_eq!(texts, [".a.b", ".a[name=\"x\\\"y\",port=80][=1.5]"]);
}
