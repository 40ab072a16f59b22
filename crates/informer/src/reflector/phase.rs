//! The phase of a reflector, and the reason of a list.

use std::fmt;

use tokio::time::Instant;

/// The phase of a reflector.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// The reflector was not started yet.
    New,
    /// Gets the initial state by a list.
    Listing {
        /// How many objects arrived so far.
        received: u64,
        /// How many objects are left, if the API server reports it.
        remaining: Option<u64>,
    },
    /// Gets the initial state by a watch (a streaming list).
    Streaming {
        /// How many objects arrived so far.
        received: u64,
    },
    /// Watches for changes.
    Watching,
    /// Waits before the next request.
    BackingOff {
        /// The end of the wait.
        until: Instant,
        /// The error.
        why: String,
    },
    /// The API server does not have the resource. The reflector asks again every second, and after a minute every 30
    /// seconds.
    Parked {
        /// The time of the next request.
        until: Instant,
        /// The message of the API server.
        why: String,
    },
    /// The API server does not serve the resource, which is [optional](crate::InformerOptions::optional). The collection
    /// counts as empty.
    Absent {
        /// When the reflector learned that.
        since: Instant,
    },
    /// The reflector has stopped.
    Stopped,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = |until: &Instant| until.saturating_duration_since(Instant::now()).as_secs_f64();
        match self {
            Self::New => f.write_str("not started"),
            Self::Listing { received, remaining: Some(remaining) } => {
                write!(f, "listing, {received} received, {remaining} to come")
            }
            Self::Listing { received, remaining: None } => write!(f, "listing, {received} received"),
            Self::Streaming { received } => write!(f, "streaming, {received} received"),
            Self::Watching => f.write_str("watching"),
            Self::BackingOff { until, why } => write!(f, "backing off for {:.1} s: {why}", left(until)),
            Self::Parked { until, why } => write!(f, "parked, asks again in {:.0} s: {why}", left(until)),
            Self::Absent { since } => {
                write!(
                    f,
                    "absent for {:.0} s: the server does not serve this optional resource",
                    since.elapsed().as_secs_f64()
                )
            }
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// The reason of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ListReason {
    /// The first list.
    First,
    /// The version to watch from has expired.
    Expired,
    /// An error ended the round before.
    Failed,
    /// The program asked for it, or the relist period is over.
    Requested,
    /// The API server was restored to an older state.
    Restored,
}

impl ListReason {
    /// Returns the label in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Expired => "expired",
            Self::Failed => "failed",
            Self::Requested => "requested",
            Self::Restored => "restored",
        }
    }
}
