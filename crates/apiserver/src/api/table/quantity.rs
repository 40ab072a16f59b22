//! Quantities in cells.

use serde_json::Value;

use crate::kinds::quantity::canonical;

/// Returns the quantity as kube-apiserver writes it. A missing one is zero, and an invalid one stays unchanged.
pub(super) fn quantity(amount: Option<&Value>) -> String {
    let text = match amount {
        None | Some(Value::Null) => return "0".into(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    canonical(&text).unwrap_or(text)
}

/// Returns the same, but `<nil>` for a missing quantity.
pub(super) fn optional_quantity(amount: Option<&Value>) -> String {
    if amount.is_none() { "<nil>".into() } else { quantity(amount) }
}
