//! One run of a controller: waits for the caches, starts the workers, and ends them with the term.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, select_all};
use kube_informer::{HandlerGuard, InvalidChange, InvalidChanges, Object, ObjectKey, WaitError};
use parking_lot::Mutex;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout};
use tracing::{Instrument as _, info, warn};

use super::action::panic_message;
use super::parking::{Keeper, Parking};
use super::status::RunGuard;
use super::watch_source::Target;
use super::worker::{Reconcile, Workers};
use super::{Controller, RunError};
use crate::metrics::ReconcileMetrics;
use crate::queue::WorkQueue;
use crate::term::Term;

/// How long workers may take to end after they were aborted. A worker ends at its next `.await`, unless it blocks its
/// thread.
const ABORT: Duration = Duration::from_secs(2);
/// How often the controller checks its workers and handlers.
const LOOK: Duration = Duration::from_millis(500);
/// The shortest time between two reconciles of everything because of mappings that panic.
const RECONCILE_ALL: Duration = Duration::from_secs(10);

impl<T: Object> Controller<T> {
    pub(super) async fn run_term(&self, term: Term, reconcile: Reconcile<T>) -> Result<(), RunError> {
        if self.unknown_kind {
            return Err(RunError::UnknownKind(self.name.to_string()));
        }
        let running = self.board.begin(&self.name)?;
        tokio::select! {
            biased;
            () = term.lost() => return Err(self.leadership_lost()),
            () = term.ending() => return Ok(()),
            ready = async {
                if timeout(self.sync, self.board.no_workers()).await.is_err() {
                    return Err(self.still_running());
                }
                self.wait_for_latest().await
            } => ready?,
        }
        info!(controller = &*self.name, workers = self.workers, "controller started");
        let outcome = self.work(&running, term, reconcile).await;
        info!(controller = &*self.name, "controller ended");
        outcome
    }

    /// Starts all informers, and waits until they have caught up with the API server.
    async fn wait_for_latest(&self) -> Result<(), RunError> {
        let started: Result<Vec<_>, _> = self.caches.iter().map(|cache| (cache.start)()).collect();
        let started = started.map_err(|source| RunError::Start { name: self.name.to_string(), source })?;
        let ready = join_all(started.into_iter().map(|waiting| waiting.within(self.sync)));
        // A stopped informer ends the run at once, although other informers may still sync.
        let ready = tokio::select! {
            biased;
            lost = self.cache_lost() => return Err(lost),
            ready = ready => ready,
        };
        let mut caches = Vec::new();
        for ready in ready {
            match ready {
                Ok(()) => {}
                Err(WaitError::TimedOut { saw, .. }) => caches.push(saw),
                Err(source) => return Err(RunError::CacheLost { name: self.name.to_string(), source }),
            }
        }
        if caches.is_empty() {
            return Ok(());
        }
        Err(RunError::NotSynced { name: self.name.to_string(), within: self.sync, caches })
    }

    async fn work(&self, running: &RunGuard<'_>, term: Term, reconcile: Reconcile<T>) -> Result<(), RunError> {
        let queue = WorkQueue::named(&*self.name, self.limiter.clone());
        let (parking, keeper) = Parking::new();
        let parking = Arc::new(parking);
        running.works(&queue, &parking);
        let target = Target {
            name: self.name.clone(),
            queue: queue.clone(),
            board: self.board.clone(),
            predicates: self.predicates.clone().into(),
            debounce: self.debounce,
        };
        // Before the first key is added, so that no later change is missed.
        let namespace_changes = self.namespace_changes();
        let handlers: Vec<HandlerGuard> = self.sources.iter().map(|attach| attach(target.clone())).collect();
        let shared = Arc::new(Workers {
            name: self.name.clone(),
            primary: self.primary.clone(),
            undecodable_children: if self.ignore_undecodable { Vec::new() } else { self.undecodable_children.clone() },
            reconcile_invalid: self.reconcile_invalid,
            scopes: self.caches.iter().map(|cache| (cache.role, cache.hold.clone())).collect(),
            queue: queue.clone(),
            parking: parking.clone(),
            board: self.board.clone(),
            metrics: ReconcileMetrics::new(&self.name, self.workers),
            term: term.clone(),
            timeout: self.timeout,
            reconcile,
            on_outcome: self.on_outcome.clone(),
            failures: Mutex::default(),
        });
        // Both join sets abort their tasks when they are dropped.
        let (mut workers, mut others) = (JoinSet::new(), JoinSet::new());
        for _ in 0..self.workers {
            let (place, work) = (self.board.place(), shared.clone().work());
            workers.spawn(async move { (work.await, place).0 }.in_current_span());
        }
        others.spawn(keep(keeper, shared.clone(), self.write_deadline).in_current_span());
        if self.reconcile_invalid {
            others.spawn(follow_invalid(self.primary.invalid_changes(), queue.clone()).in_current_span());
        }
        let mut ended = tokio::select! {
            biased;
            () = term.lost() => Err(self.leadership_lost()),
            () = term.ending() => Ok(()),
            lost = self.cache_lost() => Err(lost),
            () = self.look_after(&handlers, &queue, namespace_changes) => Ok(()),
            // Workers end by themselves only if the term is over, or if a part that the program supplied panics.
            ended = workers.join_next() => Err(self.panicked(ended).unwrap_or_else(|| self.leadership_lost())),
            // This task ends only if a part that the program supplied panics.
            ended = others.join_next() => Err(self.panicked(ended).unwrap_or_else(|| self.leadership_lost())),
        };
        running.ends();
        drop(handlers);
        let late = queue.shut_down().len();
        if ended.is_ok() {
            let drained = async {
                while let Some(worker) = workers.join_next().await {
                    ended = self.panicked(Some(worker)).map_or(Ok(()), Err).and(std::mem::replace(&mut ended, Ok(())));
                }
            };
            tokio::select! {
                biased;
                () = term.lost() => return Err(self.leadership_lost()),
                drained = timeout(self.drain, drained) => if drained.is_err() {
                    let (left, keys) = (queue.len(), self.board.active_keys());
                    warn!(controller = &*self.name, left, ?keys, "controller did not finish in time; the rest is dropped");
                }
            }
            info!(controller = &*self.name, late, parked = parking.len(), "delayed and parked keys are dropped");
        }
        if timeout(ABORT, workers.shutdown()).await.is_err() {
            return ended.and(Err(self.still_running()));
        }
        ended
    }

    /// Updates the gauges that grow with time alone, so that they show a stuck worker. Reconciles everything if a
    /// mapping panicked, or was so slow that it did not receive every change, or if an informer follows other namespaces:
    /// no event says that an object was deleted while its namespace was not followed. Runs for ever.
    async fn look_after(&self, handlers: &[HandlerGuard], queue: &WorkQueue<ObjectKey>, mut known_changes: u64) {
        let (mut known_folds, mut known_panics) = (0, self.board.mapping_panics());
        let mut last: Option<Instant> = None;
        loop {
            tokio::time::sleep(LOOK).await;
            queue.status();
            let (folds, panics) = (handlers.iter().map(|handler| handler.folds()).sum(), self.board.mapping_panics());
            let panicked = panics > known_panics && last.is_none_or(|last| last.elapsed() >= RECONCILE_ALL);
            if folds > known_folds || panicked {
                (known_folds, known_panics, last) = (folds, panics, Some(Instant::now()));
                warn!(
                    controller = &*self.name,
                    folds, panics, "events were folded or not mapped; everything is reconciled"
                );
                self.handle().reconcile_all();
            }
            let changes = self.namespace_changes();
            if std::mem::replace(&mut known_changes, changes) < changes {
                info!(controller = &*self.name, "an informer follows other namespaces; everything is reconciled");
                self.handle().reconcile_all();
            }
        }
    }

    /// Returns how many changes of their namespaces the caches have completed.
    fn namespace_changes(&self) -> u64 {
        self.caches.iter().map(|cache| (cache.namespace_changes)()).sum()
    }

    /// Waits until one of the informers has stopped.
    async fn cache_lost(&self) -> RunError {
        let (stopped, ..) = select_all(self.caches.iter().map(|cache| (cache.stopped)())).await;
        RunError::CacheLost { name: self.name.to_string(), source: WaitError::Stopped(stopped) }
    }

    /// Returns the error of a task that panicked.
    fn panicked(&self, ended: Option<Result<(), JoinError>>) -> Option<RunError> {
        let error = ended?.err().filter(JoinError::is_panic)?;
        let message = panic_message(&*error.into_panic());
        Some(RunError::WorkerPanicked { name: self.name.to_string(), message })
    }

    fn leadership_lost(&self) -> RunError {
        RunError::LeadershipLost(self.name.to_string())
    }

    fn still_running(&self) -> RunError {
        RunError::StillRunning { name: self.name.to_string(), keys: self.board.active_keys() }
    }
}

/// Runs the keeper, which releases parked keys.
async fn keep<T: Object>(keeper: Keeper, workers: Arc<Workers<T>>, limit: Duration) {
    keeper.run(&workers.parking, &workers.queue, limit, |key, how| workers.not_seen(key, how)).await;
}

/// Adds the keys of objects that become invalid, and of those that are not invalid any more. A change of the version alone
/// is no reason: the reconcile itself may have written the status. Runs until it is aborted.
async fn follow_invalid(mut changes: InvalidChanges, queue: WorkQueue<ObjectKey>) {
    let mut known = HashMap::new();
    while let Some(change) = changes.next().await {
        let key = match change {
            InvalidChange::Cleared { key } => {
                known.remove(&key);
                key
            }
            InvalidChange::Invalid { key, object } => {
                let version = if object.generation.is_some() { None } else { object.version };
                let state = (object.uid, object.generation, version, object.error);
                if known.get(&key) == Some(&state) {
                    continue;
                }
                known.insert(key.clone(), state);
                key
            }
        };
        queue.add(key);
    }
    std::future::pending().await
}
