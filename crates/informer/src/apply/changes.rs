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
/// ```no_run
/// # use kube_informer::apply::{Changes, OnError};
/// # use kube_informer::queue::DeltaFifo;
/// # use kube_informer::{Reflector, Store};
/// # use kube_informer::source::kube::KubeSource;
/// # use k8s_openapi::api::core::v1::Pod;
/// # async fn example(client: kube_client::Client, cancel: tokio_util::sync::CancellationToken) {
/// let (store, _writer) = Store::new(0);
/// let changes = Changes::new(DeltaFifo::new().emit_replaced(true), store);
/// let reflector = Reflector::new(KubeSource::<Pod>::new(client), changes.sink(), Default::default());
/// let process = |batch| { println!("{batch:?}"); Ok(()) };
/// tokio::join!(reflector.run(cancel.clone()), changes.process(process, OnError::Report(Box::new(|_| {})), cancel));
/// # }
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
    pub fn sink(&self) -> ChangesSink<T> {
        ChangesSink(self.clone())
    }

    /// Puts a change in, once there is room for it.
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
