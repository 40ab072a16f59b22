//! Semantic equality: an empty list equals an absent one, and quantities are compared by value.

use serde_json::Value;

use kube_structural_schema::Quantity;

/// Objects whose members are quantities.
const LISTS: [&str; 14] = [
    "limits",
    "requests",
    "overhead",
    "capacity",
    "allocatable",
    "hard",
    "used",
    "max",
    "min",
    "default",
    "defaultRequest",
    "maxLimitRequestRatio",
    "allocatedResources",
    "allocations",
];
/// Members that are quantities themselves.
const SINGLE: [&str; 6] = ["sizeLimit", "divisor", "averageValue", "tolerance", "capacity", "maximumVolumeSize"];

/// Returns whether kube-apiserver sees no difference.
pub(crate) fn same(left: Option<&Value>, right: Option<&Value>) -> bool {
    same_in("", "", left, right)
}

fn same_in(outer: &str, key: &str, left: Option<&Value>, right: Option<&Value>) -> bool {
    match (left, right) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            left.iter().all(|(name, value)| same_in(key, name, Some(value), right.get(name)))
                && right.iter().all(|(name, value)| left.contains_key(name) || is_nothing(Some(value)))
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| same_in(outer, key, Some(left), Some(right)))
        }
        (Some(left), Some(right)) if left == right => true,
        (Some(Value::String(left)), Some(Value::String(right))) if is_quantity(outer, key) => {
            match (Quantity::parse(left), Quantity::parse(right)) {
                (Ok(left), Ok(right)) => left == right,
                _ => false,
            }
        }
        _ => is_nothing(left) && is_nothing(right),
    }
}

/// Returns whether a value is absent, or equal to absent in Go.
fn is_nothing(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(elements)) => elements.is_empty(),
        Some(_) => false,
    }
}

/// Returns whether the string at this place is a quantity. A `value` can also be that of an environment variable.
fn is_quantity(outer: &str, key: &str) -> bool {
    SINGLE.contains(&key) || LISTS.contains(&outer) || (key == "value" && matches!(outer, "target" | "current"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_quantities_are_compared_by_value() {
        let check = |left, right, expected| assert_eq!(same(Some(&left), Some(&right)), expected, "{left} {right}");
        check(json!({"limits": {"cpu": "1000m"}}), json!({"limits": {"cpu": "1"}}), true);
        check(json!({"env": [{"value": "1000m"}]}), json!({"env": [{"value": "1"}]}), false);
        check(json!({"sizeLimit": "1Ki"}), json!({"sizeLimit": "1024"}), true);
        check(json!({"command": []}), json!({}), true);
        check(json!({}), json!({"securityContext": {}}), false);
        check(json!({"target": {"value": "1k"}}), json!({"target": {"value": "1000"}}), true);
    }
}
