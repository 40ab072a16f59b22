//! A queue behind a lock. Pushing waits for room, and popping waits for changes.
//!
//! The lock is held for one change or one piece of a list. A list is compared with the store outside of it.

use std::error::Error;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::list::Pieces;
use crate::lock::Mutex;
use crate::object::{Cached, Object, ObjectKey};
use crate::queue::{Batch, Comparison, Delta, DeltaQueue, ListPieces, PIECE, Pending, Piece, Replacement};
use crate::reflector::Sink;
use crate::store::{Snapshot, Store};

/// How many changes may wait. A push waits until there are fewer.
const BOUND: usize = 512;
/// How many bytes on the wire the waiting changes may have.
pub(crate) const BYTES: u64 = 8 * 1024 * 1024;

/// Pops changes from a queue, one batch after another: the loop of client-go's controller, for any queue and any
/// function.
///
/// An informer has its own. By hand, connect a reflector, a queue and a function:
///
/// ```
/// use kube_informer::parts::{Changes, OnError};
/// use kube_informer::parts::{Batch, DeltaFifo, KeyDelta, Work};
/// use kube_informer::{CancellationToken, InformerOptions, Store};
/// use kube_informer::parts::{KubeSource, Reflector};
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
    shared: Arc<ChangesShared<T>>,
}

/// Pushes changes into a queue. A clone is another handle.
pub struct ChangesSink<T: ?Sized> {
    shared: Arc<ChangesShared<T>>,
}

struct ChangesShared<T: ?Sized> {
    state: Mutex<ChangesState<T>>,
    /// The objects that are already applied.
    known: Store<T>,
    /// How many bytes on the wire the waiting changes may have.
    bytes: u64,
    /// True if the queue accepts lists and resyncs in pieces.
    takes_pieces: bool,
    arrived: Notify,
    room: Notify,
    processed: Notify,
}

struct ChangesState<T: ?Sized> {
    queue: Box<dyn DeltaQueue<T>>,
    /// True while one sink pushes the pieces of a list or a resync. All other pushes wait.
    in_pieces: bool,
    /// True once the consumer is gone.
    closed: bool,
}

/// The right of one sink to push pieces, until it is dropped.
struct Turn<'s, T: ?Sized>(&'s ChangesShared<T>);

/// A batch that was popped and is not processed yet. The queue compares new changes with it. Dropping the guard marks
/// the batch as processed.
pub struct BatchGuard<'c, T: ?Sized + 'static> {
    shared: &'c ChangesShared<T>,
    batch: Option<Batch<T>>,
}

/// Decides what happens to changes that could not be processed. The error is reported in any case.
pub enum OnError {
    /// Continues with the next batch.
    Report(Report),
    /// Puts the changes back, unless newer changes of the same object wait.
    Retry(Report),
}

/// A function that receives every error.
type Report = Box<dyn Fn(&(dyn Error + Send + Sync)) + Send + Sync>;

impl<T: Cached + ?Sized> Changes<T> {
    /// Returns the sink that puts changes into a queue, for a reflector, and the end that takes them out. A clone of
    /// the sink is another handle. `known` has the objects that are applied already: queues compare lists with them.
    pub fn new(queue: impl DeltaQueue<T>, known: Store<T>) -> (impl Sink<T> + Clone + std::fmt::Debug, Self) {
        Self::with_sink(queue, known)
    }

    /// Returns what [`Changes::new`] returns, with the type of the sink.
    #[doc(hidden)]
    pub fn with_sink(queue: impl DeltaQueue<T>, known: Store<T>) -> (ChangesSink<T>, Self) {
        Self::boxed(Box::new(queue), known, BYTES)
    }

    pub(crate) fn boxed(queue: Box<dyn DeltaQueue<T>>, known: Store<T>, bytes: u64) -> (ChangesSink<T>, Self) {
        let takes_pieces = queue.takes_pieces();
        let shared = Arc::new(ChangesShared {
            state: Mutex::new(ChangesState { queue, in_pieces: false, closed: false }),
            known,
            bytes,
            takes_pieces,
            arrived: Notify::new(),
            room: Notify::new(),
            processed: Notify::new(),
        });
        (ChangesSink { shared: shared.clone() }, Self { shared })
    }

    /// Waits for the next batch, and calls a function with it. Until the function returns, the batch counts as queued:
    /// a queue compares new changes with it. client-go's `Pop`.
    ///
    /// # Cancel safety
    ///
    /// A batch is popped only if the function is called.
    pub async fn pop<R>(&mut self, process: impl FnOnce(Batch<T>) -> R) -> R {
        loop {
            let mut guard = self.next().await;
            if let Some(batch) = guard.take() {
                return process(batch);
            }
        }
    }

    /// Returns how many changes wait.
    pub fn len(&self) -> usize {
        self.shared.state.lock().queue.len()
    }

    /// Returns true if no change waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many bytes on the wire the waiting changes took.
    pub fn bytes(&self) -> u64 {
        self.shared.state.lock().queue.bytes()
    }

    /// Returns true once the first list is processed.
    pub fn has_synced(&self) -> bool {
        self.shared.state.lock().queue.has_synced()
    }

    /// Waits for the next batch, and pops it.
    ///
    /// # Cancel safety
    ///
    /// A batch is popped only if it is returned.
    #[doc(hidden)]
    pub async fn next(&mut self) -> BatchGuard<'_, T> {
        loop {
            let (batch, has_room) = {
                let mut state = self.shared.state.lock();
                (state.queue.pop(), self.shared.has_room(&*state.queue))
            };
            if let Some(batch) = batch {
                if has_room {
                    self.shared.room.notify_waiters();
                }
                return BatchGuard { shared: &self.shared, batch: Some(batch) };
            }
            self.shared.arrived.notified().await;
        }
    }

    /// Passes each batch to a function, until cancelled. Batches that still wait then are not processed.
    pub async fn process<F>(&mut self, mut process: F, on_error: OnError, cancel: CancellationToken)
    where
        F: FnMut(Batch<T>) -> Result<(), Box<dyn Error + Send + Sync>>,
    {
        let forever = async {
            loop {
                let mut in_progress = self.next().await;
                let copy = in_progress.batch().filter(|_| matches!(on_error, OnError::Retry(_))).cloned();
                let Some(batch) = in_progress.take() else { continue };
                let Err(error) = process(batch) else { continue };
                let (OnError::Report(report) | OnError::Retry(report)) = &on_error;
                report(&*error);
                if let Some(batch) = copy {
                    in_progress.shared.state.lock().queue.put_back(batch);
                    drop(in_progress);
                    // A function that always fails must not stop other tasks from running.
                    tokio::task::yield_now().await;
                }
            }
        };
        cancel.run_until_cancelled(forever).await;
    }
}

impl<T: Cached + ?Sized> ChangesSink<T> {
    /// Pushes a change that took `bytes` bytes on the wire, as soon as there is room. A change of any size fits if
    /// nothing else waits.
    ///
    /// A queue that splits lists receives them in pieces, each as soon as there is room. Other pushes wait until the
    /// list is complete.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the first pieces of a list in the queue. No batch is [settled](Batch::settled)
    /// then until the next list is complete.
    pub async fn push(&self, delta: Delta<T>, bytes: u64) {
        let shared = &*self.shared;
        match delta {
            Delta::Replaced(list) if shared.takes_pieces => shared.push_list(list, bytes).await,
            Delta::Resync if shared.takes_pieces => shared.push_resync().await,
            delta => drop(shared.put(None, |state| state.queue.push(delta, bytes, &shared.known)).await),
        }
    }

    /// Waits until every change pushed so far is processed, or the consumer is gone.
    pub async fn settled(&self) {
        let ChangesShared { state, processed, .. } = &*self.shared;
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

    /// Returns how many changes wait.
    pub fn len(&self) -> usize {
        self.shared.state.lock().queue.len()
    }

    /// Returns true if no change waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many bytes on the wire the waiting changes took.
    pub fn bytes(&self) -> u64 {
        self.shared.state.lock().queue.bytes()
    }

    /// Returns true once the first list is processed.
    pub fn has_synced(&self) -> bool {
        self.shared.state.lock().queue.has_synced()
    }
}

impl<T: Cached + ?Sized> ChangesShared<T> {
    fn has_room(&self, queue: &dyn DeltaQueue<T>) -> bool {
        queue.len() < BOUND && (queue.bytes() < self.bytes || queue.is_empty())
    }

    /// Changes the queue once there is room in it. Returns `None` if the consumer is gone.
    async fn put<R>(&self, turn: Option<&Turn<'_, T>>, put: impl FnOnce(&mut ChangesState<T>) -> R) -> Option<R> {
        let may_put = |state: &ChangesState<T>| self.has_room(&*state.queue) && (turn.is_some() || !state.in_pieces);
        loop {
            {
                let mut state = self.state.lock();
                if state.closed {
                    return None;
                }
                if may_put(&state) {
                    let result = put(&mut state);
                    drop(state);
                    self.arrived.notify_one();
                    return Some(result);
                }
            }
            // Registered before the next check, so that a notification in between is not missed.
            let mut room = std::pin::pin!(self.room.notified());
            room.as_mut().enable();
            let still_full = {
                let state = self.state.lock();
                !state.closed && !may_put(&state)
            };
            if still_full {
                room.await;
            }
        }
    }

    /// Waits until no other sink pushes pieces. Returns the turn, the pending objects and the known objects, all of one
    /// instant.
    async fn take_turn(&self) -> Option<(Turn<'_, T>, Pending<T>, Snapshot<T>)> {
        self.put(None, |state| {
            state.in_pieces = true;
            (Turn(self), state.queue.pending(), self.known.snapshot())
        })
        .await
    }

    async fn put_piece(&self, turn: &Turn<'_, T>, piece: Piece<T>, bytes: u64) {
        self.put(Some(turn), |state| state.queue.push_piece(piece, bytes, &self.known)).await;
    }

    /// Pushes a list, a piece at a time. It is compared with the pending and the known objects as of its beginning. No
    /// other change is pushed until the list is complete, so objects only move from pending to known meanwhile.
    async fn push_list(&self, list: Replacement<T>, bytes: u64) {
        let Some((turn, pending, known)) = self.take_turn().await else { return };
        let mut pieces = Pieces::default();
        let mut comparison = Comparison::new(&list);
        for object in &list.objects {
            comparison.add_listed(object.id().key);
            pieces.next().await;
        }
        let listed = comparison.listed();
        if list.is_conclusive() {
            for key in list.undecodable_keys() {
                comparison.add_listed(key);
                pieces.next().await;
            }
            comparison.add_pending(pending);
            for object in known.objects() {
                comparison.add_known(object);
                pieces.next().await;
            }
        }
        let missing = comparison.into_missing();
        drop(known);
        for (piece, bytes) in ListPieces::new(list, bytes, listed, missing) {
            self.put_piece(&turn, piece, bytes).await;
        }
    }

    /// Pushes a resync of every known object, a piece at a time.
    async fn push_resync(&self) {
        let Some((turn, _, known)) = self.take_turn().await else { return };
        let mut keys = Vec::with_capacity(PIECE);
        for object in known.objects() {
            keys.push(ObjectKey::from(object.id().key));
            if keys.len() == PIECE {
                self.put_piece(&turn, Piece::Resync(std::mem::take(&mut keys)), 0).await;
            }
        }
        self.put_piece(&turn, Piece::Resync(keys), 0).await;
        self.put_piece(&turn, Piece::ResyncEnds, 0).await;
    }
}

impl<T: ?Sized> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.0.state.lock().in_pieces = false;
        self.0.room.notify_waiters();
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

impl<T: ?Sized + 'static> BatchGuard<'_, T> {
    /// Returns the batch, unless it was taken out.
    pub fn batch(&self) -> Option<&Batch<T>> {
        self.batch.as_ref()
    }

    /// Takes the batch out of the guard. Until the guard is dropped, the batch counts as not processed.
    pub fn take(&mut self) -> Option<Batch<T>> {
        self.batch.take()
    }
}

impl<T: ?Sized + 'static> Drop for BatchGuard<'_, T> {
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

impl<T: Object + ?Sized> std::fmt::Debug for BatchGuard<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BatchGuard").field(&self.batch).finish()
    }
}

impl std::fmt::Debug for OnError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Self::Report(_)) { "Report" } else { "Retry" })
    }
}
