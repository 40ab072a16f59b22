//! The status of a controller.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kube_informer::internal::after;
use kube_informer::{FailingItem, ObjectKey, WorkTimes};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::RunError;
use super::parking::Parking;
use crate::queue::{QueueStatus, WorkQueue};

/// The status of a controller at one point in time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ControllerStatus {
    /// The name of the controller.
    pub name: String,
    /// The phase of the controller.
    pub phase: ControllerPhase,
    /// The status of its queue, while the controller runs.
    pub queue: Option<QueueStatus>,
    /// The number of keys that wait until a cache shows the writes for them.
    pub parked: usize,
    /// The number of reconciles that run now.
    pub active: usize,
    /// The number of reconciles so far, including those that run now.
    pub reconciles: u64,
    /// The number of reconciles that failed, for any reason.
    pub failures: u64,
    /// The number of writes that a cache did not show: not in time, or not at all because the object was deleted or the
    /// informer does not select it.
    pub unseen_writes: u64,
    /// How often a mapping or a predicate panicked. Everything is reconciled after that.
    pub mapping_panics: u64,
    /// How often the hook of [`Controller::on_outcome`](crate::Controller::on_outcome) panicked.
    pub hook_panics: u64,
    /// The last error, until that key succeeds.
    pub last_error: Option<ReconcileError>,
    /// The keys whose last reconcile failed: at most 20, those with the most attempts first.
    pub failing: Vec<FailingItem>,
    /// The number of keys whose last reconcile failed.
    pub failing_keys: usize,
    /// How long the last 100 reconciles took; `None` before the first.
    pub times: Option<WorkTimes>,
}

/// The phase of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ControllerPhase {
    /// The controller does not run.
    Idle,
    /// The controller waits until its caches have caught up with the API server.
    Starting,
    /// The controller reconciles objects.
    Running,
    /// The controller finishes the work that has begun.
    Ending,
}

/// The error of one key.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReconcileError {
    /// The key.
    pub key: ObjectKey,
    /// The message of the error.
    pub error: String,
    /// When the error happened.
    pub at: Instant,
}

/// The number of failing keys in a status.
const WORST: usize = 20;
/// The number of reconciles whose time is kept.
const TIMES: usize = 100;

/// The state that a controller shares with its handles and its workers.
pub(super) struct StatusBoard {
    state: Mutex<StatusState>,
    /// Each worker has one permit. A run that was dropped cannot wait for its workers, so the next run waits for them.
    places: Arc<Semaphore>,
}

/// The number of permits: more than any controller has workers.
pub(super) const PLACES: u32 = 1 << 20;

struct StatusState {
    phase: ControllerPhase,
    run: Option<(WorkQueue<ObjectKey>, Arc<Parking>)>,
    /// The keys that workers have.
    active: BTreeSet<ObjectKey>,
    reconciles: u64,
    failures: u64,
    unseen_writes: u64,
    mapping_panics: u64,
    hook_panics: u64,
    last_error: Option<ReconcileError>,
    /// The keys of this run whose last reconcile failed. A key of an object that does not exist and is not tried again
    /// is not one of them.
    failing: BTreeMap<ObjectKey, FailingKey>,
    /// How long the last reconciles took.
    times: VecDeque<Duration>,
}

/// A key whose last reconcile failed.
struct FailingKey {
    attempts: u32,
    error: String,
    next_try: Option<Instant>,
}

/// A key that a worker reconciles, until this is dropped.
pub(super) struct ReconcileAttempt<'b> {
    board: &'b StatusBoard,
    key: ObjectKey,
}

/// A run. Dropping it ends the run.
pub(super) struct RunGuard<'b> {
    board: &'b StatusBoard,
}

impl StatusBoard {
    pub(super) fn new() -> Self {
        let state = StatusState {
            phase: ControllerPhase::Idle,
            run: None,
            active: BTreeSet::new(),
            reconciles: 0,
            failures: 0,
            unseen_writes: 0,
            mapping_panics: 0,
            hook_panics: 0,
            last_error: None,
            failing: BTreeMap::new(),
            times: VecDeque::new(),
        };
        Self { state: Mutex::new(state), places: Arc::new(Semaphore::new(PLACES as usize)) }
    }

    /// Begins a run. Returns an error if the controller runs already.
    pub(super) fn begin(&self, name: &str) -> Result<RunGuard<'_>, RunError> {
        let mut state = self.state.lock();
        if state.phase != ControllerPhase::Idle {
            return Err(RunError::AlreadyRunning(name.to_owned()));
        }
        state.phase = ControllerPhase::Starting;
        Ok(RunGuard { board: self })
    }

    /// Waits until no worker of an earlier run is left.
    pub(super) async fn no_workers(&self) {
        // The semaphore is never closed, so this cannot fail.
        drop(self.places.acquire_many(PLACES).await);
    }

    /// Returns a permit for a worker. The worker drops it when it ends, for any reason.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    pub(super) fn queue(&self) -> Option<WorkQueue<ObjectKey>> {
        self.state.lock().run.as_ref().map(|(queue, _)| queue.clone())
    }

    pub(super) fn attempt_begins(&self, key: &ObjectKey) -> ReconcileAttempt<'_> {
        let mut state = self.state.lock();
        state.active.insert(key.clone());
        state.reconciles += 1;
        ReconcileAttempt { board: self, key: key.clone() }
    }

    /// Returns the keys that workers have.
    pub(super) fn active_keys(&self) -> Vec<ObjectKey> {
        self.state.lock().active.iter().cloned().collect()
    }

    /// Records the end of a reconcile. `attempts` is the number of failures since the last success, or 0 if they do not
    /// count any more. The key is reconciled again after the delay, if there is one.
    pub(super) fn attempt_ends(
        &self,
        key: &ObjectKey,
        took: Duration,
        failure: Option<String>,
        attempts: u32,
        requeue_after: Option<Duration>,
    ) {
        let mut state = self.state.lock();
        let surplus = (state.times.len() + 1).saturating_sub(TIMES);
        state.times.drain(..surplus);
        state.times.push_back(took);
        state.failing.remove(key);
        if let Some(error) = failure {
            if attempts > 0 {
                let next_try = requeue_after.map(|delay| after(Instant::now(), delay));
                state.failing.insert(key.clone(), FailingKey { attempts, error: error.clone(), next_try });
            }
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

    pub(super) fn hook_panicked(&self) {
        self.state.lock().hook_panics += 1;
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
            hook_panics: state.hook_panics,
            last_error: state.last_error.clone(),
            failing: state.worst(),
            failing_keys: state.failing.len(),
            times: state.times(),
        }
    }
}

impl StatusState {
    /// Returns the failing keys with the most attempts.
    fn worst(&self) -> Vec<FailingItem> {
        let order = |(key, failing): &(&ObjectKey, &FailingKey)| (Reverse(failing.attempts), (*key).clone());
        let mut failing: Vec<(&ObjectKey, &FailingKey)> = self.failing.iter().collect();
        // The state is locked, so all failing keys are not sorted.
        if failing.len() > WORST {
            failing.select_nth_unstable_by_key(WORST, order);
            failing.truncate(WORST);
        }
        failing.sort_unstable_by_key(order);
        let now = Instant::now();
        let item = |(key, failing): (&ObjectKey, &FailingKey)| {
            let mut item = FailingItem::default();
            (item.item, item.attempts, item.error) = (key.to_string(), failing.attempts, failing.error.clone());
            item.next_try = failing.next_try.map(|at| at.saturating_duration_since(now));
            item
        };
        failing.into_iter().map(item).collect()
    }

    fn times(&self) -> Option<WorkTimes> {
        let mut sorted: Vec<Duration> = self.times.iter().copied().collect();
        sorted.sort_unstable();
        let mut times = WorkTimes::default();
        (times.median, times.longest) = (*sorted.get((sorted.len().max(1) - 1) / 2)?, *sorted.last()?);
        Some(times)
    }
}

impl RunGuard<'_> {
    pub(super) fn works(&self, queue: &WorkQueue<ObjectKey>, parking: &Arc<Parking>) {
        let mut state = self.board.state.lock();
        state.phase = ControllerPhase::Running;
        state.run = Some((queue.clone(), parking.clone()));
    }

    pub(super) fn ends(&self) {
        self.board.state.lock().phase = ControllerPhase::Ending;
    }
}

impl Drop for ReconcileAttempt<'_> {
    fn drop(&mut self) {
        self.board.state.lock().active.remove(&self.key);
    }
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.board.state.lock();
        state.phase = ControllerPhase::Idle;
        state.failing.clear();
        if let Some((queue, _)) = state.run.take() {
            queue.shut_down();
        }
    }
}
