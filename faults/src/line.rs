//! What a client says of itself.

use serde::{Deserialize, Serialize};

/// One line of a client's output: printed whenever it differs from the last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// Whether the client says that it holds everything.
    pub(crate) synced: bool,
    /// Whether the last that the program heard of it is that something is wrong.
    pub(crate) unwell: bool,
    /// What the cache holds.
    pub(crate) store: String,
    /// What a handler was told of, put together.
    pub(crate) told: String,
}
