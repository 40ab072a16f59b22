//! What a reflector is doing, and why it asks for everything.

use std::fmt;

use tokio::time::Instant;

/// What a reflector is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Nothing yet.
    New,
    /// Asks for everything by a list.
    Listing {
        /// How many objects came so far.
        received: u64,
        /// How many are to come, if the server says so.
        remaining: Option<u64>,
    },
    /// Asks for everything by a watch that begins with it.
    Streaming {
        /// How many objects came so far.
        received: u64,
    },
    /// Follows the changes.
    Watching,
    /// Waits before it asks again.
    BackingOff {
        /// Until when.
        until: Instant,
        /// What went wrong.
        why: String,
    },
    /// There is no such resource on the server; it is asked once in a while whether there is.
    Parked {
        /// When it is asked next.
        until: Instant,
        /// What the server said.
        why: String,
    },
    /// It is over.
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
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// Why everything is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ListReason {
    /// It is the first time.
    First,
    /// The server has forgotten the version to go on from.
    Expired,
    /// Something went wrong.
    Failed,
    /// Somebody asked for it, or it was time.
    Requested,
    /// The server was restored to an older state.
    Restored,
}

impl ListReason {
    /// One word, as metrics have it.
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
