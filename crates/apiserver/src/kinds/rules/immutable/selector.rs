//! Label selectors.

use serde_json::Value;

use super::{Cause, name};
use crate::kinds::rules::json::{Object, child, items, length, text};

/// Returns whether a selector is empty, and so selects everything.
pub(super) fn is_empty(selector: &Object) -> bool {
    length(selector, "matchLabels") + length(selector, "matchExpressions") == 0
}

/// Checks a selector, and returns whether it can be evaluated.
pub(super) fn check(selector: &Object, field: &str, causes: &mut Vec<Cause>) -> bool {
    let before = causes.len();
    for (key, value) in child(selector, "matchLabels").into_iter().flatten() {
        name::check_label_key(key, &format!("{field}.matchLabels"), causes);
        name::check_label_value(value.as_str().unwrap_or_default(), &format!("{field}.matchLabels"), causes);
    }
    for (index, expression) in items(selector, "matchExpressions").enumerate() {
        check_expression(expression, &format!("{field}.matchExpressions[{index}]"), causes);
    }
    causes.len() == before
}

fn check_expression(expression: &Object, field: &str, causes: &mut Vec<Cause>) {
    let values = format!("{field}.values");
    match (text(expression, "operator"), length(expression, "values")) {
        ("In" | "NotIn", 0) => {
            causes.push(Cause::required(&values, "must be specified when `operator` is 'In' or 'NotIn'"));
        }
        ("In" | "NotIn", _) | ("Exists" | "DoesNotExist", 0) => {}
        ("Exists" | "DoesNotExist", _) => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.push(Cause::forbidden(&values, detail));
        }
        _ => {
            let detail = "not a valid selector operator";
            causes.push(Cause::invalid(format!("{field}.operator"), expression.get("operator"), detail));
        }
    }
    name::check_label_key(text(expression, "key"), &format!("{field}.key"), causes);
    let list = expression.get("values").and_then(Value::as_array).into_iter().flatten();
    for (index, value) in list.filter_map(Value::as_str).enumerate() {
        name::check_label_value(value, &format!("{values}[{index}]"), causes);
    }
}

/// Returns whether a selector matches these labels.
pub(super) fn matches(selector: &Object, labels: Option<&Object>) -> bool {
    let value = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let by_labels =
        child(selector, "matchLabels").into_iter().flatten().all(|(key, wanted)| value(key) == wanted.as_str());
    by_labels
        && items(selector, "matchExpressions").all(|expression| {
            let found = value(text(expression, "key"));
            let is_listed = found.is_some_and(|found| {
                expression.get("values").and_then(Value::as_array).into_iter().flatten().any(|value| value == found)
            });
            match text(expression, "operator") {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => true,
            }
        })
}
