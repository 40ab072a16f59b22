use super::{check, said, with_spec};
use crate::cause::FieldErrorReason;
use serde_json::{Value, json};

fn numbers(rules: Value) -> Value {
    json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "x-y": {"type": "string"}},
        "x-kubernetes-validations": rules,
    })
}

#[test]
fn failed_rule_is_reported() {
    let schema = numbers(json!([{"rule": "self.a < self.b"}]));
    check(schema.clone(), json!({"a": 1, "b": 2}), &[]);
    check(schema.clone(), json!({"a": 2, "b": 1}), &["spec: Invalid value: failed rule: self.a < self.b"]);
    check(
        schema,
        json!({"a": 2}),
        &["spec: Invalid value: \"object\": no such key: b evaluating rule: self.a < self.b"],
    );
    check(
        json!({"type": "string", "x-kubernetes-validations": [{"rule": "self.startsWith('a')"}]}),
        json!("b"),
        &["spec: Invalid value: \"b\": failed rule: self.startsWith('a')"],
    );
}

#[test]
fn message_reason_and_path_come_from_the_rule() {
    let schema = with_spec(numbers(json!([
        {"rule": "false", "messageExpression": "'a is %d'.format([self.a])", "reason": "FieldValueForbidden"},
        {"rule": "has(self.x__dash__y)", "message": "needs x-y", "fieldPath": "['x-y']", "reason": "FieldValueRequired"},
    ])));
    let causes = schema.validate(&json!({"spec": {"a": 7}}), None);
    assert_eq!(said(&causes), ["spec: Forbidden: a is 7", "spec.x-y: Required value: needs x-y"]);
    assert_eq!(causes[1].reason, FieldErrorReason::Required);
}

#[test]
fn transition_rules_run_only_with_an_old_value() {
    let schema = with_spec(numbers(json!([{"rule": "self.a >= oldSelf.a", "message": "a must not shrink"}])));
    let (small, large) = (json!({"spec": {"a": 1}}), json!({"spec": {"a": 2}}));
    assert_eq!(schema.validate(&small, None), []);
    assert_eq!(schema.validate(&large, Some(&small)), []);
    assert_eq!(said(&schema.validate(&small, Some(&large))), ["spec: Invalid value: a must not shrink"]);
    let schema = with_spec(numbers(json!([{"rule": "oldSelf.hasValue() || self.a == 1", "optionalOldSelf": true}])));
    assert_eq!(schema.validate(&small, None), []);
    assert_eq!(schema.validate(&large, None).len(), 1);
    assert_eq!(schema.validate(&large, Some(&small)), []);
}

#[test]
fn rules_do_not_run_on_objects_of_the_wrong_shape() {
    check(
        numbers(json!([{"rule": "self.a < self.b"}])),
        json!({"a": "x", "b": 1}),
        &[
            "spec.a: Invalid value: \"string\": spec.a in body must be of type integer: \"string\"",
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct \
             the existing errors to complete validation",
        ],
    );
}
