//! Amounts in cells.

use serde_json::Value;

use crate::kinds::quantity::canonical;

/// The amount in the form the server writes it; one that was never set is zero, and what is none stays as it is.
pub(super) fn quantity(amount: Option<&Value>) -> String {
    let text = match amount {
        None | Some(Value::Null) => return "0".into(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    canonical(&text).unwrap_or(text)
}

/// The same for an amount that shows when it is missing.
pub(super) fn optional_quantity(amount: Option<&Value>) -> String {
    if amount.is_none() { "<nil>".into() } else { quantity(amount) }
}
