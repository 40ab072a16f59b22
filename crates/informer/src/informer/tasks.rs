//! What runs inside an informer: it applies, keeps time, and ends aloud if something panics.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Core;
use crate::health::{InformerError, Phase};
use crate::object::Object;
use crate::queue::{Delta, Scope};
use crate::reflector::{ListReason, ReflectorError, Sink};

/// How often what waits for each handler is measured.
const MEASURED: Duration = Duration::from_secs(15);

/// Runs a part of the informer. If it panics, all of it ends and says so: a cache that nobody feeds must not look alive.
pub(super) async fn supervised<T: Object>(
    part: &'static str,
    work: BoxFuture<'static, ()>,
    core: Arc<Core<T>>,
    cancel: CancellationToken,
) {
    if let Err(panic) = AssertUnwindSafe(work).catch_unwind().await {
        core.health.report(&InformerError::Panicked { part, message: crate::panic_text(&*panic) });
        cancel.cancel();
        core.applier.lock().processor.close();
        core.health.stopped();
    }
}

/// Applies whatever the reflectors push, until cancelled.
pub(super) async fn apply_all<T: Object>(core: Arc<Core<T>>, cancel: CancellationToken) {
    let forever = async {
        loop {
            let (batch, settled) = core.changes.next().await;
            let start = Instant::now();
            core.applier.lock().apply(batch, settled);
            core.health.report_noted();
            if let Some(metrics) = core.health.metrics() {
                metrics.processed(core.changes.len(), start.elapsed());
            }
            tokio::task::coop::consume_budget().await;
        }
    };
    cancel.run_until_cancelled(forever).await;
}

/// Does what is to be done from time to time, until cancelled: resyncs, and measuring.
pub(super) async fn keep_time<T: Object>(
    core: Arc<Core<T>>,
    resync_check: Option<Duration>,
    cancel: CancellationToken,
) {
    let resyncs = async {
        let Some(check) = resync_check else { return std::future::pending().await };
        let mut due = Instant::now() + check;
        loop {
            tokio::time::sleep_until(due).await;
            due += check;
            let anybody = core.applier.lock().processor.mark_due();
            if anybody {
                core.changes.push(Delta::Resync).await;
            }
        }
    };
    let measuring = async {
        let Some(metrics) = core.health.metrics() else { return std::future::pending().await };
        loop {
            tokio::time::sleep(MEASURED).await;
            core.applier
                .lock()
                .processor
                .backlogs()
                .for_each(|(name, waiting, folds)| metrics.backlog(name, waiting, folds));
            if let Some(age) = core.health.health().age() {
                metrics.last_contact(age);
            }
        }
    };
    let forever = async { tokio::join!(resyncs, measuring) };
    let _: Option<((), ())> = cancel.run_until_cancelled(forever).await;
}

/// What a reflector of an informer writes to.
pub(super) struct CoreSink<T> {
    pub(super) core: Arc<Core<T>>,
    pub(super) scope: Scope,
}

impl<T: Object> Sink<T> for CoreSink<T> {
    async fn push(&mut self, delta: Delta<T>) {
        self.core.changes.push(delta).await;
    }

    fn phase(&mut self, phase: Phase) {
        self.core.health.phase(&self.scope, phase);
    }

    fn contact(&mut self) {
        self.core.health.contact(&self.scope);
    }

    fn listing(&mut self, reason: ListReason) {
        self.core.health.listing(reason);
    }

    fn failed(&mut self, error: &ReflectorError) {
        let error = InformerError::Reflector { scope: self.scope.clone(), error: error.clone() };
        self.core.health.report(&error);
    }
}
