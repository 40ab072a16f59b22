//! The user of every request.

use serde_json::{Value, json};

/// Returns the user that every client of the server is, with its groups.
pub(crate) fn user() -> Value {
    json!({"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]})
}
