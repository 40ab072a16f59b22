//! Everything one server is made of, shared by its handles and its open watches.

use std::time::Duration;

use crate::chance::Chance;
use crate::clock::Clock;
use crate::fault::Faults;
use crate::journal::Journal;
use crate::storage::Storage;

/// The parts of one server.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) storage: Storage,
    pub(crate) chance: Chance,
    pub(crate) clock: Clock,
    pub(crate) faults: Faults,
    pub(crate) journal: Journal,
    pub(crate) settings: Settings,
}

/// What the builder decided.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) bookmark_interval: Duration,
    /// Whether watches can begin with initial events, as servers do since 1.34.
    pub(crate) streaming_lists: bool,
    /// A watch that is further behind is closed.
    pub(crate) max_watch_lag: Option<usize>,
}
