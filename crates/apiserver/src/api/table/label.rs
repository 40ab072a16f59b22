//! Labels and label selectors as strings.

use serde_json::{Map, Value};

use super::read::Read;

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

/// Returns a label selector as most kinds show it: `<none>` if it is empty.
pub(super) fn selector(selector: Option<&Value>) -> String {
    match requirements(selector) {
        Some(text) if text.is_empty() => NONE.into(),
        Some(text) => text,
        None => "<error>".into(),
    }
}

/// Returns a label selector as deployments show it: an empty string if it is empty.
pub(super) fn plain_selector(selector: Option<&Value>) -> String {
    requirements(selector).unwrap_or_else(|| "<invalid>".into())
}

/// Returns the requirements in the order of their keys, or `None` if one of them is invalid.
fn requirements(selector: Option<&Value>) -> Option<String> {
    let Some(selector) = selector else { return Some(String::new()) };
    let mut found: Vec<(&str, String)> = Vec::new();
    for (key, value) in selector.map("matchLabels").into_iter().flatten() {
        let value = value.as_str().unwrap_or("");
        (is_key(key) && is_value(value)).then_some(())?;
        found.push((key, format!("{key}={value}")));
    }
    for expression in selector.list("matchExpressions") {
        found.push((expression.text("key"), requirement(expression)?));
    }
    found.sort_by_key(|(key, _)| *key);
    let texts: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
    Some(texts.join(","))
}

/// Returns one of the selector's expressions.
fn requirement(expression: &Value) -> Option<String> {
    let key = expression.text("key");
    let mut values: Vec<&str> = expression.list("values").iter().map(|value| value.as_str().unwrap_or("")).collect();
    (is_key(key) && values.iter().all(|value| is_value(value))).then_some(())?;
    values.sort_unstable();
    let values = (!values.is_empty()).then(|| values.join(","));
    match (expression.text("operator"), values) {
        ("In", Some(values)) => Some(format!("{key} in ({values})")),
        ("NotIn", Some(values)) => Some(format!("{key} notin ({values})")),
        ("Exists", None) => Some(key.into()),
        ("DoesNotExist", None) => Some(format!("!{key}")),
        _ => None,
    }
}

/// Returns whether this is a valid label key: a name with an optional domain.
fn is_key(key: &str) -> bool {
    let (domain, name) = key.split_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    !name.is_empty() && is_value(name) && domain.is_none_or(is_domain)
}

/// Returns whether this is a valid label value.
fn is_value(value: &str) -> bool {
    let outer = |byte: Option<u8>| byte.is_none_or(|byte| byte.is_ascii_alphanumeric());
    value.len() <= 63
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && outer(value.bytes().next())
        && outer(value.bytes().next_back())
}

fn is_domain(domain: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let part = |part: &str| {
        part.bytes().all(|byte| inner(byte) || byte == b'-')
            && part.bytes().next().is_some_and(inner)
            && part.bytes().next_back().is_some_and(inner)
    };
    domain.len() <= 253 && domain.split('.').all(part)
}
