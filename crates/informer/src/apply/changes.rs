//! The queue with the waiting that goes with it.

use std::error::Error;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::object::{Cached, Object};
use crate::queue::{Batch, Delta, Queue};
use crate::reflector::Sink;
use crate::store::Store;

/// So many changes may wait; beyond that those who push do.
const BOUND: usize = 512;
/// So many bytes, as they came over the wire.
pub(crate) const BYTES: u64 = 8 * 1024 * 1024;

/// Takes changes out of a queue, one batch after the other: the classic controller's loop, for any queue and any process
/// function.
///
/// An informer uses one by itself; by hand it is a reflector, a queue and a function:
///
/// ```
/// use kube_informer::apply::{Changes, OnError};
/// use kube_informer::queue::{Batch, DeltaFifo, KeyDelta, Work};
/// use kube_informer::{CancellationToken, InformerOptions, Reflector, Store, source::kube::KubeSource};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # doc_server::with(async |server| {
/// let (store, mut writer) = Store::<ConfigMap>::new(0);
/// let (sink, mut changes) = Changes::new(DeltaFifo::new().emit_replaced(true), store.clone());
/// let reflector = Reflector::new(KubeSource::new(server.client()), sink, &InformerOptions::new());
/// let cancel = CancellationToken::new();
/// let process = |batch: Batch<ConfigMap>| {
///     match batch.work {
///         Work::Object(_, deltas) => for delta in deltas {
///             let KeyDelta::Replaced(object) = delta else { return Err("for another day".into()) };
///             writer.put(object);
///         },
///         Work::Listed(_) => cancel.cancel(), // Enough for an example.
///         _ => {}
///     }
///     Ok(())
/// };
/// let report = OnError::Report(Box::new(|error| panic!("{error}")));
/// tokio::join!(reflector.run(cancel.clone()), changes.process(process, report, cancel.clone()));
/// assert!(store.contains("web/a"));
/// # Ok(()) });
/// ```
pub struct Changes<T: ?Sized> {
    shared: Arc<Shared<T>>,
}

/// Puts changes into a queue. Cloning gives another handle.
pub struct ChangesSink<T: ?Sized> {
    shared: Arc<Shared<T>>,
}

struct Shared<T: ?Sized> {
    state: Mutex<State<T>>,
    /// What the queue may ask for what is known already.
    known: Store<T>,
    bytes: u64,
    arrived: Notify,
    room: Notify,
    processed: Notify,
}

struct State<T: ?Sized> {
    queue: Box<dyn Queue<T>>,
    /// True once nobody takes anything out any more.
    closed: bool,
}

/// A batch that was taken out and is not yet processed: whatever is pushed meanwhile is judged by it. Dropping says that it
/// is processed.
pub struct InHand<'c, T: ?Sized + 'static> {
    shared: &'c Shared<T>,
    batch: Option<Batch<T>>,
}

/// What to do with changes that could not be processed. They are reported in any case.
pub enum OnError {
    /// Go on with the next.
    Report(Report),
    /// Put them back, unless newer changes of the same object wait.
    Retry(Report),
}

/// Told of every failure.
type Report = Box<dyn Fn(&(dyn Error + Send + Sync)) + Send + Sync>;

impl<T: Cached + ?Sized> Changes<T> {
    /// An empty queue, and where to put changes in. `known` is what is known already, for queues that ask.
    pub fn new(queue: impl Queue<T>, known: Store<T>) -> (ChangesSink<T>, Self) {
        Self::boxed(Box::new(queue), known, BYTES)
    }

    pub(crate) fn boxed(queue: Box<dyn Queue<T>>, known: Store<T>, bytes: u64) -> (ChangesSink<T>, Self) {
        let shared = Arc::new(Shared {
            state: Mutex::new(State { queue, closed: false }),
            known,
            bytes,
            arrived: Notify::new(),
            room: Notify::new(),
            processed: Notify::new(),
        });
        (ChangesSink { shared: shared.clone() }, Self { shared })
    }

    /// Takes the next batch out, once there is one.
    ///
    /// # Cancel safety
    ///
    /// Nothing is taken out unless it is returned.
    pub async fn next(&mut self) -> InHand<'_, T> {
        loop {
            if let Some(batch) = self.shared.state.lock().queue.pop() {
                self.shared.room.notify_waiters();
                return InHand { shared: &self.shared, batch: Some(batch) };
            }
            self.shared.arrived.notified().await;
        }
    }

    /// Hands batch after batch to a function, until cancelled. What still waits then is not processed.
    pub async fn process<F>(&mut self, mut process: F, on_error: OnError, cancel: CancellationToken)
    where
        F: FnMut(Batch<T>) -> Result<(), Box<dyn Error + Send + Sync>>,
    {
        let forever = async {
            loop {
                let mut in_hand = self.next().await;
                let copy = in_hand.batch().filter(|_| matches!(on_error, OnError::Retry(_))).cloned();
                let Some(batch) = in_hand.take() else { continue };
                let Err(error) = process(batch) else { continue };
                let (OnError::Report(report) | OnError::Retry(report)) = &on_error;
                report(&*error);
                if let Some(batch) = copy {
                    in_hand.shared.state.lock().queue.put_back(batch);
                    drop(in_hand);
                    // A function that fails every time must not keep others from running.
                    tokio::task::yield_now().await;
                }
            }
        };
        cancel.run_until_cancelled(forever).await;
    }
}

impl<T: Cached + ?Sized> ChangesSink<T> {
    /// Puts a change in, which took so many bytes on the wire, once there is room for it. One of any size is let through if
    /// nothing else waits.
    pub async fn push(&self, delta: Delta<T>, bytes: u64) {
        let Shared { state, known, bytes: limit, arrived, room, .. } = &*self.shared;
        let has_room = |queue: &dyn Queue<T>| queue.len() < BOUND && (queue.bytes() < *limit || queue.is_empty());
        loop {
            {
                let mut state = state.lock();
                if state.closed {
                    return;
                }
                if has_room(&*state.queue) {
                    state.queue.push(delta, bytes, known);
                    drop(state);
                    arrived.notify_one();
                    return;
                }
            }
            // Listened for from before the next look, so that room made in between is not missed.
            let mut room = std::pin::pin!(room.notified());
            room.as_mut().enable();
            let still_full = {
                let state = state.lock();
                !state.closed && !has_room(&*state.queue)
            };
            if still_full {
                room.await;
            }
        }
    }

    /// Waits until everything pushed so far is processed, or nobody processes anything any more.
    pub async fn settled(&self) {
        let Shared { state, processed, .. } = &*self.shared;
        let all = state.lock().queue.progress().0;
        loop {
            let mut processed = std::pin::pin!(processed.notified());
            processed.as_mut().enable();
            {
                let state = state.lock();
                if state.closed || state.queue.progress().1 >= all {
                    return;
                }
            }
            processed.await;
        }
    }

    /// How many changes wait.
    pub fn len(&self) -> usize {
        self.shared.state.lock().queue.len()
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes all that waits took on the wire.
    pub fn bytes(&self) -> u64 {
        self.shared.state.lock().queue.bytes()
    }

    /// True once the first population is processed.
    pub fn has_synced(&self) -> bool {
        self.shared.state.lock().queue.has_synced()
    }
}

impl<T: Cached + ?Sized> Sink<T> for ChangesSink<T> {
    async fn push(&mut self, delta: Delta<T>, bytes: u64) {
        Self::push(self, delta, bytes).await;
    }

    async fn settled(&mut self) {
        Self::settled(self).await;
    }

    fn known(&self, object: &T) -> Option<Arc<T>> {
        self.shared.known.get(object.id().key)
    }
}

impl<T: ?Sized + 'static> InHand<'_, T> {
    /// The batch, unless it was taken out.
    pub fn batch(&self) -> Option<&Batch<T>> {
        self.batch.as_ref()
    }

    /// Takes the batch out of the guard, which goes on to say that it is in hand.
    pub fn take(&mut self) -> Option<Batch<T>> {
        self.batch.take()
    }
}

impl<T: ?Sized + 'static> Drop for InHand<'_, T> {
    fn drop(&mut self) {
        self.shared.state.lock().queue.processed();
        self.shared.processed.notify_waiters();
    }
}

impl<T: ?Sized> Drop for Changes<T> {
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.room.notify_waiters();
        self.shared.processed.notify_waiters();
    }
}

impl<T: ?Sized> Clone for ChangesSink<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T: ?Sized> std::fmt::Debug for Changes<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Changes")
    }
}

impl<T: Cached + ?Sized> std::fmt::Debug for ChangesSink<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangesSink").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T: Object + ?Sized> std::fmt::Debug for InHand<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("InHand").field(&self.batch).finish()
    }
}

impl std::fmt::Debug for OnError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Self::Report(_)) { "Report" } else { "Retry" })
    }
}
