//! The selectable fields of a CRD.

use serde_json::Value;
use std::collections::BTreeSet;

use crate::status::StatusCause;

/// The maximum number of selectable fields of a version.
const MOST: usize = 8;

/// Checks the selectable fields of a version. There may be none without a schema that all versions share.
pub(super) fn check(fields: &[Value], schema: Option<&Value>, place: &str, causes: &mut Vec<StatusCause>) {
    if fields.is_empty() {
        return;
    }
    let Some(schema) = schema else {
        return causes.push(StatusCause::invalid(place, "\"\": may only be set when validations.schema is included"));
    };
    // The schema of a resource described in code does not describe its selectable fields. kube-apiserver would refuse
    // it.
    if schema["properties"].is_null() && schema["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    let mut known = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let (path, at) = (field["jsonPath"].as_str().unwrap_or_default(), format!("{place}[{index}].jsonPath"));
        if path.is_empty() {
            causes.push(StatusCause::required(&at, ""));
            continue;
        }
        let (steps, found) = match find(path, schema) {
            Ok(found) => found,
            Err(why) => {
                causes.push(StatusCause::invalid(&at, format!("{path:?}: is an invalid path: {why}")));
                continue;
            }
        };
        if steps.first() == Some(&"metadata") {
            causes.push(StatusCause::invalid(&at, format!("{path:?}: must not point to fields in metadata")));
        }
        if !matches!(found["type"].as_str(), Some("string" | "boolean" | "integer")) {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are \
                       allowed.";
            causes.push(StatusCause::invalid(&at, format!("{path:?}: {why}")));
        }
        if !known.insert(steps) {
            causes.push(StatusCause::new("FieldValueDuplicate", at, format!("Duplicate value: {path:?}")));
        }
    }
    if known.len() > MOST {
        let why = format!("Too many: {}: must have at most {MOST} items", known.len());
        causes.push(StatusCause::new("FieldValueTooMany", place, why));
    }
}

/// Returns the steps of a path, and the schema at its end.
fn find<'a>(path: &'a str, schema: &'a Value) -> Result<(Vec<&'a str>, &'a Value), String> {
    let (mut steps, mut schema, mut rest) = (Vec::new(), schema, path);
    while !rest.is_empty() {
        match next(&mut rest) {
            "." => {}
            "[" => return Err("array notation is not allowed".into()),
            other => return Err(format!("expected [ or . but got: {other}")),
        }
        if rest.is_empty() {
            return Err("unexpected end of JSON path".into());
        }
        let step = next(&mut rest);
        let inner = match (&schema["properties"], &schema["additionalProperties"]) {
            (Value::Object(properties), _) if !properties.is_empty() => properties.get(step),
            (_, additional @ Value::Object(_)) => Some(additional),
            _ => None,
        };
        schema = inner.ok_or("does not refer to a valid field")?;
        steps.push(step);
    }
    Ok((steps, schema))
}

/// Takes the next special character, or the text before it.
fn next<'a>(rest: &mut &'a str) -> &'a str {
    let end = match rest.chars().next() {
        Some('.' | '[' | ']') => 1,
        Some('\'') => rest[1..].find('\'').map_or(rest.len(), |end| end + 2),
        _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
    };
    let (token, after) = rest.split_at(end);
    *rest = after;
    token
}
