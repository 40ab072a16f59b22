//! Paths such as `spec.containers[].ports[].name`, which name a field of each element of a list.

use serde_json::Value;

use crate::kinds::rules::json::is_zero;

/// Returns the value at a path without lists, unless it is missing, zero or empty.
pub(super) fn find<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(object, |value, step| value.get(step)).filter(|value| !is_zero(Some(value)))
}

/// Returns every field that a path names, with its value. A missing list has no fields.
pub(super) fn each<'a>(object: &'a Value, path: &str) -> Vec<(String, Option<&'a Value>)> {
    let mut found = vec![(String::new(), Some(object))];
    for step in path.split('.') {
        let (name, is_list) = step.strip_suffix("[]").map_or((step, false), |name| (name, true));
        let mut next = Vec::new();
        for (field, value) in found {
            let dot = if field.is_empty() { "" } else { "." };
            let (field, value) = (format!("{field}{dot}{name}"), value.and_then(|value| value.get(name)));
            if !is_list {
                next.push((field, value));
                continue;
            }
            let items = value.and_then(Value::as_array).into_iter().flatten().enumerate();
            next.extend(items.map(|(index, item)| (format!("{field}[{index}]"), Some(item))));
        }
        found = next;
    }
    found
}
