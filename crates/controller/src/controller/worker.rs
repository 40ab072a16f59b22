//! Takes one key after the other, and has it reconciled.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, FutureExt as _};
use kube_informer::{Object, ObjectKey, SharedInformer};
use tokio::time::Instant;
use tracing::{debug, warn};

use super::next::{BoxError, Failure, Next, panic_message};
use super::parking::Parking;
use super::request::Request;
use super::status::Board;
use super::writes::{Seen, Writes};
use crate::metrics::{Outcome, ReconcileMetrics};
use crate::queue::{Item, WorkQueue};
use crate::term::Term;

/// What is called for each key, whatever its type.
pub(super) type Reconcile<T> = Box<dyn Fn(Request<T>) -> BoxFuture<'static, Result<Next, BoxError>> + Send + Sync>;

/// What the workers of one run share.
pub(super) struct Workers<T: Object> {
    pub(super) name: String,
    pub(super) primary: SharedInformer<T>,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) parking: Arc<Parking>,
    pub(super) board: Arc<Board>,
    pub(super) metrics: ReconcileMetrics,
    pub(super) term: Term,
    pub(super) timeout: Option<Duration>,
    pub(super) reconcile: Reconcile<T>,
}

impl<T: Object> Workers<T> {
    /// One worker: ends when nothing more is to be done, or may be.
    pub(super) async fn work(self: Arc<Self>) {
        while let Some(item) = self.queue.get().await {
            if !self.term.is_valid() {
                return;
            }
            if !self.parking.defers(&item) {
                self.attempt(item).await;
            }
            // A reconcile may never wait: those who bring today's changes must get their turn all the same.
            tokio::task::yield_now().await;
        }
    }

    async fn attempt(&self, item: Item<ObjectKey>) {
        let (object, writes) = (self.primary.store().get(&*item), Arc::new(Writes::default()));
        let uid = object.as_ref().map(|object| object.id().uid.to_owned());
        let request = Request { key: item.clone(), object, failures: item.num_requeues(), writes: writes.clone() };
        self.board.attempt_begins();
        let began = Instant::now();
        let active = self.metrics.begins();
        let outcome = self.call(request).await;
        drop(active);
        // What failed is tried again in any case.
        let settled = !matches!(outcome, Err(Failure::Error(_) | Failure::Panicked(_) | Failure::TimedOut(_)));
        // Before the key is done: it may be wanted again already.
        let seen = match writes.take() {
            Either::Left(seen) => {
                if settled && seen == Seen::Otherwise {
                    self.queue.add_rate_limited_with(item.clone(), item.priority());
                }
                seen == Seen::AsWritten
            }
            Either::Right(unseen) => {
                self.parking.park(&item, settled, self.for_this_owner(&item, uid, unseen));
                false
            }
        };
        self.metrics.ended(began.elapsed(), outcome_of(&outcome));
        self.board.attempt_ends(&item, outcome.as_ref().err().map(ToString::to_string));
        self.settle(item, outcome, seen);
    }

    async fn call(&self, request: Request<T>) -> Result<Next, Failure> {
        let attempt = AssertUnwindSafe(async { (self.reconcile)(request).await }).catch_unwind();
        let outcome = match self.timeout {
            Some(limit) => tokio::time::timeout(limit, attempt).await.map_err(|_| Failure::TimedOut(limit))?,
            None => attempt.await,
        };
        match outcome {
            Ok(Ok(Next::Failed(error))) => Err(Failure::Final(error)),
            Ok(Ok(next)) => Ok(next),
            Ok(Err(error)) => Err(Failure::Error(error)),
            Err(panic) => Err(Failure::Panicked(panic_message(&*panic))),
        }
    }

    /// What was written for an object that is gone says nothing of its namesake.
    fn for_this_owner(
        &self,
        key: &ObjectKey,
        uid: Option<String>,
        unseen: BoxFuture<'static, Seen>,
    ) -> BoxFuture<'static, Seen> {
        let Some(uid) = uid else { return unseen };
        let another = self.primary.wait_for(key, move |object| object.is_some_and(|object| object.id().uid != uid));
        async move {
            tokio::select! {
                biased;
                seen = unseen => seen,
                _ = another.into_future() => Seen::AsWritten,
            }
        }
        .boxed()
    }

    /// What comes next. Its failures are forgotten if the caches show what was written; who is parked forgets later.
    fn settle(&self, item: Item<ObjectKey>, outcome: Result<Next, Failure>, seen: bool) {
        let (controller, key) = (&*self.name, item.clone());
        match outcome {
            Ok(Next::After(delay)) => {
                if seen {
                    item.forget();
                }
                item.retry_after(delay);
            }
            Ok(_) if seen => item.forget(),
            Ok(_) => {}
            Err(error @ Failure::Final(_)) => {
                item.forget();
                warn!(controller, %key, %error, "reconcile failed for good");
            }
            Err(error) => {
                let attempt = item.num_requeues() + 1;
                item.retry();
                warn!(controller, %key, attempt, %error, "reconcile failed; trying again");
            }
        }
        debug!(controller, %key, "reconciled");
    }
}

fn outcome_of(outcome: &Result<Next, Failure>) -> Outcome {
    match outcome {
        Ok(Next::After(_)) => Outcome::RequeueAfter,
        Ok(_) => Outcome::Success,
        Err(Failure::Error(_)) => Outcome::Error,
        Err(Failure::Final(_)) => Outcome::TerminalError,
        Err(Failure::Panicked(_)) => Outcome::Panic,
        Err(Failure::TimedOut(_)) => Outcome::Timeout,
    }
}
