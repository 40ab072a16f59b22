//! How a controller does.

use std::sync::Arc;

use kube_informer::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::RunError;
use super::parking::Parking;
use crate::queue::{QueueStatus, WorkQueue};

/// How a controller does.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ControllerStatus {
    /// Its name.
    pub name: String,
    /// What it is doing.
    pub phase: ControllerPhase,
    /// How its queue does, while it runs.
    pub queue: Option<QueueStatus>,
    /// How many keys wait until a cache has seen what was written for them.
    pub parked: usize,
    /// How many reconciles are under way.
    pub active: usize,
    /// How many reconciles there were.
    pub reconciles: u64,
    /// How many of them failed, in whatever way.
    pub failures: u64,
    /// How often a cache had not seen a write in time, so that the key went on without.
    pub unseen_writes: u64,
    /// What went wrong last, until that key goes well.
    pub last_error: Option<ReconcileError>,
}

/// What a controller is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ControllerPhase {
    /// It does not run.
    Idle,
    /// It waits until its caches have caught up with the server.
    Starting,
    /// It works.
    Running,
    /// It finishes what is begun.
    Ending,
}

/// What went wrong with one key.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReconcileError {
    /// Which one.
    pub key: ObjectKey,
    /// What was said.
    pub error: String,
    /// When.
    pub at: Instant,
}

/// What a controller, its handles and its workers know of each other.
pub(super) struct Board {
    state: Mutex<State>,
    /// Each worker has one place. A run that was dropped cannot wait for its workers; the next one does.
    places: Arc<Semaphore>,
}

/// More workers than anybody has.
pub(super) const PLACES: u32 = 1 << 20;

struct State {
    phase: ControllerPhase,
    run: Option<(WorkQueue<ObjectKey>, Arc<Parking>)>,
    active: usize,
    reconciles: u64,
    failures: u64,
    unseen_writes: u64,
    last_error: Option<ReconcileError>,
}

/// A run; its drop ends it.
pub(super) struct Running<'b> {
    board: &'b Board,
}

impl Board {
    pub(super) fn new() -> Self {
        let state = State {
            phase: ControllerPhase::Idle,
            run: None,
            active: 0,
            reconciles: 0,
            failures: 0,
            unseen_writes: 0,
            last_error: None,
        };
        Self { state: Mutex::new(state), places: Arc::new(Semaphore::new(PLACES as usize)) }
    }

    /// There is one run at a time.
    pub(super) fn begin(&self, name: &str) -> Result<Running<'_>, RunError> {
        let mut state = self.state.lock();
        if state.phase != ControllerPhase::Idle {
            return Err(RunError::AlreadyRunning(name.to_owned()));
        }
        state.phase = ControllerPhase::Starting;
        Ok(Running { board: self })
    }

    /// Waits until no worker of an earlier run is left.
    pub(super) async fn no_workers(&self) {
        // It is never closed.
        drop(self.places.acquire_many(PLACES).await);
    }

    /// A place for a worker, which gives it back when it ends, however that happens.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    pub(super) fn queue(&self) -> Option<WorkQueue<ObjectKey>> {
        self.state.lock().run.as_ref().map(|(queue, _)| queue.clone())
    }

    pub(super) fn attempt_begins(&self) {
        let mut state = self.state.lock();
        state.active += 1;
        state.reconciles += 1;
    }

    pub(super) fn attempt_ends(&self, key: &ObjectKey, failure: Option<String>) {
        let mut state = self.state.lock();
        state.active = state.active.saturating_sub(1);
        if let Some(error) = failure {
            state.failures += 1;
            state.last_error = Some(ReconcileError { key: key.clone(), error, at: Instant::now() });
        } else if state.last_error.as_ref().is_some_and(|last| last.key == *key) {
            state.last_error = None;
        }
    }

    pub(super) fn write_not_seen(&self) {
        self.state.lock().unseen_writes += 1;
    }

    pub(super) fn status(&self, name: &str) -> ControllerStatus {
        let state = self.state.lock();
        let (queue, parked) = match &state.run {
            Some((queue, parking)) => (Some(queue.status()), parking.len()),
            None => (None, 0),
        };
        ControllerStatus {
            name: name.to_owned(),
            phase: state.phase,
            queue,
            parked,
            active: state.active,
            reconciles: state.reconciles,
            failures: state.failures,
            unseen_writes: state.unseen_writes,
            last_error: state.last_error.clone(),
        }
    }
}

impl Running<'_> {
    pub(super) fn works(&self, queue: &WorkQueue<ObjectKey>, parking: &Arc<Parking>) {
        let mut state = self.board.state.lock();
        state.phase = ControllerPhase::Running;
        state.run = Some((queue.clone(), parking.clone()));
    }

    pub(super) fn ends(&self) {
        self.board.state.lock().phase = ControllerPhase::Ending;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.board.state.lock();
        state.phase = ControllerPhase::Idle;
        state.active = 0;
        if let Some((queue, _)) = state.run.take() {
            queue.shut_down();
        }
    }
}
