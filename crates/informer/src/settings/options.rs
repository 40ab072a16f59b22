//! How a collection is asked for, and how it is kept.

use std::time::Duration;

use super::BackoffOptions;
use crate::queue::QueueOrder;

/// How a collection is asked for, and how it is kept. Any `Duration`, `MAX` included, is a legal setting.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::{InformerOptions, SharedInformerFactory};
/// # doc_server::with(async |server| {
/// # let client = server.client();
/// let options = InformerOptions::new().page_size(500).resync_period(Duration::from_secs(600));
/// let factory = SharedInformerFactory::builder(client).options(options).build();
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InformerOptions {
    pub(crate) streaming: Option<bool>,
    pub(crate) page_size: Option<usize>,
    pub(crate) watch_timeout: Option<Duration>,
    pub(crate) progress_deadline: Option<Duration>,
    pub(crate) backoff: Option<BackoffOptions>,
    pub(crate) queue_order: Option<QueueOrder>,
    pub(crate) queue_bytes: Option<u64>,
    pub(crate) resync_period: Option<Duration>,
    pub(crate) relist_period: Option<Duration>,
    pub(crate) object_limit: Option<usize>,
    pub(crate) seed: Option<u64>,
}

impl InformerOptions {
    /// As if nothing had been said.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to ask for the initial state by a watch where the source can. On unless said otherwise.
    #[must_use]
    pub fn streaming(self, streaming: bool) -> Self {
        Self { streaming: Some(streaming), ..self }
    }

    /// How many objects a list asks for at a time.
    #[must_use]
    pub fn page_size(self, page_size: usize) -> Self {
        Self { page_size: Some(page_size), ..self }
    }

    /// The shortest time a watch is asked to last, five minutes at least; the longest is twice that.
    #[must_use]
    pub fn watch_timeout(self, timeout: Duration) -> Self {
        Self { watch_timeout: Some(timeout), ..self }
    }

    /// How long a list or a stream may bring next to nothing before it is given up: 30 seconds unless said otherwise.
    #[must_use]
    pub fn progress_deadline(self, deadline: Duration) -> Self {
        Self { progress_deadline: Some(deadline), ..self }
    }

    /// How long to wait between attempts.
    #[must_use]
    pub fn backoff(self, backoff: BackoffOptions) -> Self {
        Self { backoff: Some(backoff), ..self }
    }

    /// Which queue changes pass through on their way to the cache.
    #[must_use]
    pub fn queue_order(self, order: QueueOrder) -> Self {
        Self { queue_order: Some(order), ..self }
    }

    /// How many bytes, as they came over the wire, may wait to be applied before no more are read: 8 MiB unless said
    /// otherwise. One change of any size is always let through.
    #[must_use]
    pub fn queue_bytes(self, bytes: u64) -> Self {
        Self { queue_bytes: Some(bytes), ..self }
    }

    /// How often handlers are shown the cache again, unless they ask for another period. Never unless given.
    #[must_use]
    pub fn resync_period(self, period: Duration) -> Self {
        Self { resync_period: Some(period), ..self }
    }

    /// How often the server is asked for everything again though nothing is wrong. Never unless given.
    #[must_use]
    pub fn relist_period(self, period: Duration) -> Self {
        Self { relist_period: Some(period), ..self }
    }

    /// The largest object that is read: 32 MiB unless said otherwise.
    #[must_use]
    pub fn object_limit(self, bytes: usize) -> Self {
        Self { object_limit: Some(bytes), ..self }
    }

    /// Sets the seed of all random numbers: the same seed gives the same delays.
    ///
    /// A factory derives a seed for each of its informers from its own, so that they do not all retry at the same instants. A seed in an
    /// [`InformerRequest`](crate::InformerRequest) is used as it is.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// These, and others where nothing was said.
    #[cfg(feature = "kube")]
    pub(crate) fn or(self, other: &Self) -> Self {
        Self {
            streaming: self.streaming.or(other.streaming),
            page_size: self.page_size.or(other.page_size),
            watch_timeout: self.watch_timeout.or(other.watch_timeout),
            progress_deadline: self.progress_deadline.or(other.progress_deadline),
            backoff: self.backoff.or_else(|| other.backoff.clone()),
            queue_order: self.queue_order.or(other.queue_order),
            queue_bytes: self.queue_bytes.or(other.queue_bytes),
            resync_period: self.resync_period.or(other.resync_period),
            relist_period: self.relist_period.or(other.relist_period),
            object_limit: self.object_limit.or(other.object_limit),
            seed: self.seed.or(other.seed),
        }
    }
}
