//! How a controller does.

use std::collections::BTreeSet;
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
    /// How many writes a cache did not show: not in time, or not at all because the object was deleted or is not selected.
    pub unseen_writes: u64,
    /// How often a mapping or a predicate panicked. Everything is reconciled after that.
    pub mapping_panics: u64,
    /// The last error, until that key succeeds.
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
    /// The keys that workers have.
    active: BTreeSet<ObjectKey>,
    reconciles: u64,
    failures: u64,
    unseen_writes: u64,
    mapping_panics: u64,
    last_error: Option<ReconcileError>,
}

/// A key that a worker has, until this is dropped.
pub(super) struct Attempt<'b> {
    board: &'b Board,
    key: ObjectKey,
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
            active: BTreeSet::new(),
            reconciles: 0,
            failures: 0,
            unseen_writes: 0,
            mapping_panics: 0,
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

    pub(super) fn attempt_begins(&self, key: &ObjectKey) -> Attempt<'_> {
        let mut state = self.state.lock();
        state.active.insert(key.clone());
        state.reconciles += 1;
        Attempt { board: self, key: key.clone() }
    }

    /// Returns the keys that workers have.
    pub(super) fn active_keys(&self) -> Vec<ObjectKey> {
        self.state.lock().active.iter().cloned().collect()
    }

    pub(super) fn attempt_ends(&self, key: &ObjectKey, failure: Option<String>) {
        let mut state = self.state.lock();
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

    pub(super) fn mapping_panicked(&self) {
        self.state.lock().mapping_panics += 1;
    }

    pub(super) fn mapping_panics(&self) -> u64 {
        self.state.lock().mapping_panics
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
            active: state.active.len(),
            reconciles: state.reconciles,
            failures: state.failures,
            unseen_writes: state.unseen_writes,
            mapping_panics: state.mapping_panics,
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

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.board.state.lock().active.remove(&self.key);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.board.state.lock();
        state.phase = ControllerPhase::Idle;
        if let Some((queue, _)) = state.run.take() {
            queue.shut_down();
        }
    }
}
