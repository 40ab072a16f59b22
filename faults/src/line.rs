//! The state that a client prints.

use serde::{Deserialize, Serialize};

/// A line of a client's output, printed whenever it changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// True if the client reports that it is synced.
    pub(crate) synced: bool,
    /// True if the last report of the client was an error.
    pub(crate) unwell: bool,
    /// The digest of the cache.
    pub(crate) store: String,
    /// The digest of the objects that a handler derives from its events.
    pub(crate) told: String,
}
