//! The queue with the waiting that goes with it.

use std::error::Error;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::object::Object;
use crate::queue::{Delta, Queue};
use crate::reflector::Sink;
use crate::store::Store;

/// So many changes may wait; beyond that those who push do.
const BOUND: usize = 2000;

/// Changes between those who learn of them and the one who makes them: the classic controller's loop, for any queue and
/// any process function. Cloning gives another handle.
///
/// An informer uses one by itself; by hand it is a reflector, a queue and a function:
///
/// ```
/// use kube_informer::apply::{Changes, OnError};
/// use kube_informer::queue::{Delta, DeltaFifo};
/// use kube_informer::reflector::{Reflector, ReflectorOptions};
/// use kube_informer::{CancellationToken, Store};
/// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
/// # let source = ListWatchFns::new(
/// #     |_: ListOptions| async {
/// #         let thing = Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "7".to_owned() };
/// #         Ok(Items::complete([thing], ListEnd { version: Some("7".into()), ..ListEnd::default() }))
/// #     },
/// #     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
/// # );
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let (store, mut writer) = Store::new(0);
/// let changes = Changes::new(DeltaFifo::new().emit_replaced(true), store.clone());
/// let reflector = Reflector::new(source, changes.sink(), ReflectorOptions::default());
/// let cancel = CancellationToken::new();
/// let process = |batch: Vec<Delta<Identity>>| {
///     for delta in batch {
///         match delta {
///             Delta::Updated(object) => { writer.put(object); }
///             Delta::Listed(_) => cancel.cancel(), // Enough for an example.
///             other => return Err(format!("{other:?} is for another day").into()),
///         }
///     }
///     Ok(())
/// };
/// let report = OnError::Report(Box::new(|error| panic!("{error}")));
/// tokio::join!(reflector.run(cancel.clone()), changes.process(process, report, cancel.clone()));
/// assert!(store.contains("web/a"));
/// # });
/// ```
pub struct Changes<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    queue: Mutex<Box<dyn Queue<T>>>,
    /// What the queue may ask for what is known already.
    known: Store<T>,
    arrived: Notify,
    room: Notify,
}

/// What to do with changes that could not be processed. They are reported in any case.
///
/// A function that fails once gets the same changes again:
///
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::source::Identity;
/// # let thing = |key: &str, version: &str| {
/// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
/// # };
/// # use kube_informer::{CancellationToken, Delta, Store};
/// use kube_informer::apply::{Changes, OnError};
/// use kube_informer::queue::OrderedQueue;
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let changes = Changes::new(OrderedQueue::new(), Store::new(0).0);
/// changes.push(Delta::Added(thing("web/a", "1"))).await;
/// let (cancel, mut attempts) = (CancellationToken::new(), 0);
/// let process = |batch: Vec<Delta<Identity>>| {
///     assert_eq!(batch[0].key(), Some("web/a".into()));
///     attempts += 1;
///     if attempts == 1 {
///         return Err("not today".into());
///     }
///     cancel.cancel();
///     Ok(())
/// };
/// let retry = OnError::Retry(Box::new(|error| assert_eq!(error.to_string(), "not today")));
/// changes.process(process, retry, cancel.clone()).await;
/// assert_eq!(attempts, 2);
/// # });
/// ```
pub enum OnError {
    /// Go on with the next.
    Report(Report),
    /// Put them back, unless newer changes of the same object wait.
    Retry(Report),
}

/// Told of every failure.
type Report = Box<dyn Fn(&(dyn Error + Send + Sync)) + Send + Sync>;

impl<T: Object> Changes<T> {
    /// Nothing waits yet. `known` is what is known already, for queues that ask.
    pub fn new(queue: impl Queue<T>, known: Store<T>) -> Self {
        Self::boxed(Box::new(queue), known)
    }

    pub(crate) fn boxed(queue: Box<dyn Queue<T>>, known: Store<T>) -> Self {
        let shared = Shared { queue: Mutex::new(queue), known, arrived: Notify::new(), room: Notify::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Where a reflector can put what it learns.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{Delta, Store, apply::Changes, queue::OrderedQueue};
    /// use kube_informer::reflector::Sink as _;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let changes = Changes::new(OrderedQueue::new(), Store::new(0).0);
    /// changes.sink().push(Delta::Added(thing("web/a", "1"))).await;
    /// assert_eq!(changes.len(), 1);
    /// # });
    /// ```
    pub fn sink(&self) -> ChangesSink<T> {
        ChangesSink(self.clone())
    }

    /// Puts a change in, once there is room for it.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{Delta, Store, apply::Changes, queue::OrderedQueue};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let changes = Changes::new(OrderedQueue::new(), Store::new(0).0);
    /// changes.push(Delta::Added(thing("web/a", "1"))).await;
    /// changes.push(Delta::Updated(thing("web/a", "2"))).await;
    /// assert_eq!(changes.len(), 2);
    /// # });
    /// ```
    pub async fn push(&self, delta: Delta<T>) {
        let Shared { queue, known, arrived, room } = &*self.shared;
        loop {
            // Listened for from before the look, so that room made in between is not missed.
            let mut room = std::pin::pin!(room.notified());
            room.as_mut().enable();
            {
                let mut queue = queue.lock();
                if queue.len() < BOUND {
                    queue.push(delta, known);
                    arrived.notify_one();
                    return;
                }
            }
            room.await;
        }
    }

    /// Takes the next batch out, once there is one, and says whether anything older still waits. All of the batch before is
    /// taken for processed.
    ///
    /// # Cancel safety
    ///
    /// Nothing is taken out unless it is returned.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{Delta, Store, apply::Changes, queue::DeltaFifo};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let changes = Changes::new(DeltaFifo::new(), Store::new(0).0);
    /// changes.push(Delta::Added(thing("web/a", "1"))).await;
    /// changes.push(Delta::Added(thing("web/b", "2"))).await;
    /// let (batch, settled) = changes.next().await;
    /// assert_eq!((batch.len(), settled), (1, false), "b still waits");
    /// assert!(changes.next().await.1, "nothing else does");
    /// # });
    /// ```
    pub async fn next(&self) -> (Vec<Delta<T>>, bool) {
        loop {
            {
                let mut queue = self.shared.queue.lock();
                queue.processed();
                let batch = queue.pop_batch();
                if !batch.is_empty() {
                    let settled = queue.is_settled();
                    drop(queue);
                    self.shared.room.notify_waiters();
                    return (batch, settled);
                }
            }
            self.shared.arrived.notified().await;
        }
    }

    /// Hands batch after batch to a function, until cancelled. What still waits then is not processed.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{CancellationToken, Delta, Store, queue::OrderedQueue};
    /// use kube_informer::apply::{Changes, OnError};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let (store, mut writer) = Store::new(0);
    /// let changes = Changes::new(OrderedQueue::new(), store.clone());
    /// changes.push(Delta::Added(thing("web/a", "1"))).await;
    /// let cancel = CancellationToken::new();
    /// let put = |batch| {
    ///     for delta in batch {
    ///         let Delta::Added(object) = delta else { return Err("only what is new".into()) };
    ///         writer.put(object);
    ///     }
    ///     cancel.cancel();
    ///     Ok(())
    /// };
    /// changes.process(put, OnError::Report(Box::new(|error| panic!("{error}"))), cancel.clone()).await;
    /// assert!(store.contains("web/a"));
    /// # });
    /// ```
    pub async fn process<F>(&self, mut process: F, on_error: OnError, cancel: CancellationToken)
    where
        F: FnMut(Vec<Delta<T>>) -> Result<(), Box<dyn Error + Send + Sync>>,
    {
        let forever = async {
            loop {
                let (batch, _) = self.next().await;
                let copy = matches!(on_error, OnError::Retry(_)).then(|| batch.clone());
                let Err(error) = process(batch) else { continue };
                let (OnError::Report(report) | OnError::Retry(report)) = &on_error;
                report(&*error);
                if let Some(batch) = copy {
                    self.shared.queue.lock().put_back(batch);
                    // A function that fails every time must not keep others from running.
                    tokio::task::yield_now().await;
                }
            }
        };
        cancel.run_until_cancelled(forever).await;
    }

    /// How many changes wait.
    pub fn len(&self) -> usize {
        self.shared.queue.lock().len()
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True once the first population is processed.
    ///
    /// ```
    /// # use kube_informer::{Delta, Store, apply::Changes, source::Identity};
    /// # use kube_informer::queue::{ListMark, OrderedQueue, Replacement};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// let changes = Changes::<Identity>::new(OrderedQueue::new(), Store::new(0).0);
    /// let empty = Replacement { mark: ListMark::default(), objects: Vec::new(), undecodable: Vec::new() };
    /// changes.push(Delta::Replaced(empty)).await;
    /// changes.next().await;
    /// assert!(!changes.has_synced(), "it is in our hands");
    /// # changes.push(Delta::Resync).await;
    /// changes.next().await;
    /// assert!(changes.has_synced());
    /// # });
    /// ```
    pub fn has_synced(&self) -> bool {
        self.shared.queue.lock().has_synced()
    }
}

/// Puts what a reflector learns into [`Changes`].
pub struct ChangesSink<T>(Changes<T>);

impl<T: Object> Sink<T> for ChangesSink<T> {
    async fn push(&mut self, delta: Delta<T>) {
        self.0.push(delta).await;
    }
}

impl<T> Clone for Changes<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T: Object> std::fmt::Debug for Changes<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Changes").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T: Object> std::fmt::Debug for ChangesSink<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ChangesSink").field(&self.0).finish()
    }
}

impl std::fmt::Debug for OnError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Self::Report(_)) { "Report" } else { "Retry" })
    }
}
