//! Labels and label selectors as strings.

use serde_json::{Map, Value};

use super::read::ReadMember;

/// The cell for no labels.
const NONE: &str = "<none>";

/// Labels as `key=value` pairs, in order.
pub(super) fn labels(map: Option<&Map<String, Value>>) -> String {
    let texts = map.into_iter().flatten().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or("")));
    let mut pairs: Vec<String> = texts.collect();
    // Sorted by the whole string: `a-b=1` comes before `a=1`.
    pairs.sort_unstable();
    if pairs.is_empty() { NONE.into() } else { pairs.join(",") }
}

/// Returns the requirements of a label selector in the order of their keys.
pub(super) fn requirements(selector: &Value) -> String {
    let mut found: Vec<(&str, String)> = Vec::new();
    for (key, value) in selector.map("matchLabels").into_iter().flatten() {
        found.push((key, format!("{key}={}", value.as_str().unwrap_or(""))));
    }
    found.extend(selector.list("matchExpressions").iter().map(|one| (one.text("key"), requirement(one))));
    found.sort_by_key(|(key, _)| *key);
    let texts: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
    texts.join(",")
}

/// Returns one of the selector's expressions.
fn requirement(expression: &Value) -> String {
    let key = expression.text("key");
    let mut values: Vec<&str> = expression.list("values").iter().map(|value| value.as_str().unwrap_or("")).collect();
    values.sort_unstable();
    let values = values.join(",");
    match expression.text("operator") {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        _ => key.to_owned(),
    }
}
