//! Tests of schemas: examples, and comparisons with the Go libraries.

use serde_json::{Value, json};

use super::{FieldError, SchemaDefinition, StructuralSchema};

mod columns;
mod definition;
mod hostile;
mod objects;
mod patterns;
mod rules;
mod truth;

fn parse(schema: &Value) -> Result<StructuralSchema, Vec<FieldError>> {
    StructuralSchema::parse(SchemaDefinition { schema, path: "schema", status_subresource: false })
}

/// Returns the schema of an object with this `spec`.
fn with_spec(spec: Value) -> StructuralSchema {
    match parse(&json!({"type": "object", "properties": {"spec": spec}})) {
        Ok(schema) => schema,
        Err(causes) => panic!("{causes:#?}"),
    }
}

fn said(causes: &[FieldError]) -> Vec<String> {
    causes.iter().map(ToString::to_string).collect()
}

/// Checks the errors of an object with this `spec`.
fn check(schema: Value, spec: Value, expected: &[&str]) {
    let causes = with_spec(schema).validate(&json!({"spec": spec}), None);
    assert_eq!(said(&causes), expected);
}
