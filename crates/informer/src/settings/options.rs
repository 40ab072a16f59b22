//! How an informer lists and watches, and how it keeps objects.

use std::time::Duration;

use super::BackoffOptions;

/// Sets how an informer lists and watches, and how it keeps objects. Every `Duration` is legal, also `Duration::MAX`.
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
    pub(crate) optional: Option<bool>,
    pub(crate) linger: Option<Duration>,
    pub(crate) linger_at_most: Option<(usize, u64)>,
    pub(crate) seed: Option<u64>,
}

impl InformerOptions {
    /// Makes options that leave everything at its default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether the initial state is requested by a watch, if the source supports that. The default is true.
    #[must_use]
    pub fn streaming(self, streaming: bool) -> Self {
        Self { streaming: Some(streaming), ..self }
    }

    /// Sets how many objects a page of a list has.
    #[must_use]
    pub fn page_size(self, page_size: usize) -> Self {
        Self { page_size: Some(page_size), ..self }
    }

    /// Sets the shortest timeout of a watch: at least five minutes. The longest is twice as long.
    #[must_use]
    pub fn watch_timeout(self, timeout: Duration) -> Self {
        Self { watch_timeout: Some(timeout), ..self }
    }

    /// Sets after how long without progress a list is abandoned. The default is 30 seconds.
    #[must_use]
    pub fn progress_deadline(self, deadline: Duration) -> Self {
        Self { progress_deadline: Some(deadline), ..self }
    }

    /// Sets the delays between attempts.
    #[must_use]
    pub fn backoff(self, backoff: BackoffOptions) -> Self {
        Self { backoff: Some(backoff), ..self }
    }

    /// Sets the queue between reflector and cache.
    #[must_use]
    pub fn queue_order(self, order: QueueOrder) -> Self {
        Self { queue_order: Some(order), ..self }
    }

    /// Sets how many bytes on the wire may wait to be applied before the reflector stops reading. The default is 8 MiB.
    /// One change of any size always fits.
    #[must_use]
    pub fn queue_bytes(self, bytes: u64) -> Self {
        Self { queue_bytes: Some(bytes), ..self }
    }

    /// Sets how often handlers receive a resync, unless they set another period. The default is never.
    #[must_use]
    pub fn resync_period(self, period: Duration) -> Self {
        Self { resync_period: Some(period), ..self }
    }

    /// Sets how often the reflector lists again without a reason. The default is never.
    #[must_use]
    pub fn relist_period(self, period: Duration) -> Self {
        Self { relist_period: Some(period), ..self }
    }

    /// Sets the size of the largest object that is decoded. The default is 32 MiB.
    #[must_use]
    pub fn object_limit(self, bytes: usize) -> Self {
        Self { object_limit: Some(bytes), ..self }
    }

    /// Sets whether the API server may lack the resource, because its CRD or its aggregated API server is not installed.
    /// The default is false: an informer without its resource never syncs, and reports an error.
    ///
    /// While the resource is absent, the informer is synced and empty, and [`Health::absent_since`](crate::Health::absent_since)
    /// says since when; a wrong name of a resource shows there. When the CRD is installed, the informer lists within a few
    /// seconds if it may watch CRDs, or else within 30 seconds. When the CRD is removed, handlers receive a delete for each
    /// object. The API server must confirm in its discovery that it does not serve the resource, so that a broken proxy
    /// deletes nothing.
    #[must_use]
    pub fn optional(self, optional: bool) -> Self {
        Self { optional: Some(optional), ..self }
    }

    /// Sets how long the last states of deleted objects stay readable with
    /// [`SharedInformer::lingering`](crate::SharedInformer::lingering). The default is zero: they do not.
    #[must_use]
    pub fn linger(self, time: Duration) -> Self {
        Self { linger: Some(time), ..self }
    }

    /// Sets how many deleted objects may linger, and how many bytes of memory they may take, estimated from the bytes on
    /// the wire. The default is 10,000 objects and 64 MiB. Beyond that those that were deleted first are dropped.
    #[must_use]
    pub fn linger_at_most(self, objects: usize, bytes: u64) -> Self {
        Self { linger_at_most: Some((objects, bytes)), ..self }
    }

    /// Sets the seed of all random numbers: the same seed gives the same delays.
    ///
    /// A factory derives a seed for each of its informers from its own, so that they do not all retry at the same
    /// instants. A seed in an [`InformerRequest`](crate::InformerRequest) is used as it is.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Returns these options, with those of `other` where these have none.
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
            optional: self.optional.or(other.optional),
            object_limit: self.object_limit.or(other.object_limit),
            linger: self.linger.or(other.linger),
            linger_at_most: self.linger_at_most.or(other.linger_at_most),
            seed: self.seed.or(other.seed),
        }
    }
}

/// Selects the queue of an informer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum QueueOrder {
    /// Keeps all changes in the order of the stream, and a relist is one change:
    /// [`OrderedQueue`](crate::parts::OrderedQueue).
    #[default]
    Ordered,
    /// Keeps the changes of one object together: [`DeltaFifo`](crate::parts::DeltaFifo).
    PerObject,
}
