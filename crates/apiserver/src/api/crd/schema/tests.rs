//! What schemas promise: in examples, and compared with the Go libraries.

use serde_json::{Value, json};

use super::{Cause, Definition, Schema};

mod columns;
mod definition;
mod hostile;
mod objects;
mod place;
mod rules;
mod truth;

fn parse(schema: &Value) -> Result<Schema, Vec<Cause>> {
    Schema::parse(Definition { schema, path: "schema", status_subresource: false })
}

/// The schema of an object whose `spec` is this.
fn with_spec(spec: Value) -> Schema {
    match parse(&json!({"type": "object", "properties": {"spec": spec}})) {
        Ok(schema) => schema,
        Err(causes) => panic!("{causes:#?}"),
    }
}

fn said(causes: &[Cause]) -> Vec<String> {
    causes.iter().map(ToString::to_string).collect()
}

/// What is said of an object with this `spec`.
fn check(schema: Value, spec: Value, expected: &[&str]) {
    let causes = super::validate(&with_spec(schema), &json!({"spec": spec}), None);
    assert_eq!(said(&causes), expected);
}
