//! The tasks of an informer: the applier, the clock, and the supervision that stops the informer if a task panics.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Core, Ended};
use crate::apply::{Applier, Changes};
use crate::health::{Contact, InformerError};
use crate::object::{Object, Scope};
use crate::queue::Delta;
use crate::reflector::{ListReason, Phase, ReflectorError, Sink};
use crate::time::after;

/// How often the backlog of each handler is measured.
const MEASURED: Duration = Duration::from_secs(15);
/// How many lingering objects are freed before other tasks may run.
const PIECE: usize = 256;

/// Runs one task of the informer. If the task panics, or is dropped with its runtime, the whole informer stops and
/// reports that: a cache without updates must not look healthy.
pub(super) fn supervised(
    part: &'static str,
    work: BoxFuture<'static, ()>,
    core: Arc<Core>,
    cancel: CancellationToken,
) -> impl Future<Output = ()> + Send {
    // Made before the first poll, because a task may be dropped before it has run.
    let ends = InformerEndGuard { core, cancel };
    async move {
        if let Err(panic) = AssertUnwindSafe(work).catch_unwind().await {
            let message = crate::panic_message(&*panic);
            ends.core.health.report(&InformerError::Panicked { part, message });
        }
        drop(ends);
    }
}

/// Stops the informer when one of its tasks ends for any reason.
struct InformerEndGuard {
    core: Arc<Core>,
    cancel: CancellationToken,
}

impl Drop for InformerEndGuard {
    fn drop(&mut self) {
        self.core.end(&self.cancel, Ended::ByItself);
    }
}

/// Applies all changes that the reflectors push, until cancelled.
pub(super) async fn apply_all(
    core: Arc<Core>,
    mut applier: Applier,
    mut changes: Changes<dyn Object>,
    cancel: CancellationToken,
) {
    let forever = async {
        loop {
            let mut in_progress = changes.next().await;
            let start = Instant::now();
            crate::yield_point::maybe_yield().await;
            let Some(batch) = in_progress.take() else { continue };
            let applied = applier.apply(batch).await;
            drop(in_progress);
            applied.failed.iter().for_each(|error| core.health.report(error));
            if let Some(metrics) = core.health.metrics() {
                metrics.processed(core.sink.len(), start.elapsed());
            }
            applied.attend().await;
            tokio::task::coop::consume_budget().await;
        }
    };
    cancel.run_until_cancelled(forever).await;
}

/// Does the periodic work until cancelled: resyncs and measurements.
pub(super) async fn keep_time(core: Arc<Core>, resync_check: Option<Duration>, cancel: CancellationToken) {
    let resyncs = async {
        let Some(check) = resync_check else { return std::future::pending().await };
        let mut due = after(Instant::now(), check);
        loop {
            tokio::time::sleep_until(due).await;
            due = after(due, check);
            crate::yield_point::maybe_yield().await;
            // Under one lock, so that a mailbox holds exactly the changes that are in the snapshot.
            let state = core.writing.lock();
            state.processor.resync(&core.store.snapshot());
        }
    };
    let measuring = async {
        let Some(metrics) = core.health.metrics() else { return std::future::pending().await };
        loop {
            tokio::time::sleep(MEASURED).await;
            for handler in core.handlers() {
                metrics.backlog(&handler.name, handler.backlog, handler.folds);
            }
            if let Some(age) = core.health.health().age() {
                metrics.last_contact(age);
            }
            metrics.figures(&(core.figures)());
        }
    };
    let forever = async { tokio::join!(resyncs, measuring, free_lingering(&core), check_idle(&core)) };
    let _: Option<((), (), (), ())> = cancel.run_until_cancelled(forever).await;
}

/// Frees deleted objects that have lingered long enough, as long as the informer runs.
async fn free_lingering(core: &Core) {
    loop {
        let Some(ends) = core.store.lingering_ends() else {
            core.store.lingered().await;
            continue;
        };
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(ends) => {
                let freed = core.writing.lock().writer.expire(Instant::now(), PIECE);
                drop(freed); // Outside the lock: it may free many objects.
                tokio::task::yield_now().await;
            }
            () = core.store.lingered() => {}
        }
    }
}

/// Checks at each period whether the informer is used.
async fn check_idle(core: &Core) {
    let Some((period, check)) = core.idle_check.get() else { return std::future::pending().await };
    loop {
        tokio::time::sleep(*period).await;
        crate::yield_point::maybe_yield().await;
        check();
    }
}

/// The sink of a reflector of an informer.
pub(super) struct CoreSink {
    pub(super) core: Arc<Core>,
    pub(super) scope: Scope,
    pub(super) contact: Contact,
}

impl Sink<dyn Object> for CoreSink {
    async fn push(&mut self, delta: Delta<dyn Object>, bytes: u64) {
        self.core.sink.push(delta, bytes).await;
        crate::yield_point::maybe_yield().await;
    }

    async fn settled(&mut self) {
        self.core.sink.settled().await;
    }

    fn known(&self, object: &dyn Object) -> Option<Arc<dyn Object>> {
        // A state from before a restore is not reused, although the current state may have the same version.
        self.core.store.get(object.id().key).filter(|_| !self.core.outdated.contains(object.id().key))
    }

    fn phase(&mut self, phase: Phase) {
        self.core.health.phase(&self.scope, phase);
    }

    fn contact(&mut self, bytes: u64) {
        self.contact.record(bytes);
    }

    fn listing(&mut self, reason: ListReason) {
        self.core.health.listing(reason);
    }

    fn failed(&mut self, error: &ReflectorError) {
        let error = InformerError::Reflector { scope: self.scope.clone(), error: error.clone() };
        self.core.health.report(&error);
    }
}
