//! How a reflector asks, and why.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

use super::backoff::BackoffOptions;
use crate::queue::Scope;

/// Why everything is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ListReason {
    /// Nothing is known yet.
    First,
    /// The server has forgotten the version to go on from.
    Expired,
    /// Something went wrong that a new watch would not cure.
    Failed,
    /// Somebody asked for it, or it was time to.
    Requested,
    /// The server was restored to an older state.
    Restored,
}

impl ListReason {
    /// One word for metrics.
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

/// How a reflector asks.
///
/// A reflector that asks for everything again when told to:
///
///
/// ```
/// use kube_informer::reflector::ReflectorOptions;
/// use tokio::sync::watch;
///
/// let (relist, requests) = watch::channel(0);
/// let options = ReflectorOptions { relist_requests: Some(requests), ..ReflectorOptions::default() };
/// relist.send_modify(|requests| *requests += 1);
/// assert!(options.streaming && options.relist_requests.unwrap().has_changed()?);
/// # Ok::<(), watch::error::RecvError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ReflectorOptions {
    /// What it follows: one namespace of a set, or everything its source has.
    pub scope: Scope,
    /// True to ask for the initial state by a watch where the source can; false to always list.
    pub streaming: bool,
    /// How many objects to ask for at a time; `None` to decide as client-go does.
    pub page_size: Option<usize>,
    /// The shortest time a watch is asked to last; the longest is twice that. At least five minutes.
    pub watch_timeout: Duration,
    /// How long a list or an initial stream may stand still before it is given up.
    pub progress_deadline: Duration,
    /// How long to wait between attempts.
    pub backoff: BackoffOptions,
    /// How often to ask for everything again though nothing is wrong; `None` for never.
    pub relist_period: Option<Duration>,
    /// Counts requests to ask for everything again; each change is one.
    pub relist_requests: Option<watch::Receiver<u64>>,
    /// So many first lists may run at once, of all reflectors that share this; `None` for any number.
    pub first_lists: Option<Arc<Semaphore>>,
    /// Where all chance comes from.
    pub seed: u64,
}

impl Default for ReflectorOptions {
    fn default() -> Self {
        Self {
            scope: None,
            streaming: true,
            page_size: None,
            watch_timeout: Duration::from_secs(300),
            progress_deadline: Duration::from_secs(30),
            backoff: BackoffOptions::default(),
            relist_period: None,
            relist_requests: None,
            first_lists: None,
            seed: rand::random(),
        }
    }
}
