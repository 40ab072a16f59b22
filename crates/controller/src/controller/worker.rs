//! The workers of a controller: each takes one key after the other, and reconciles it.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use futures_util::future::{BoxFuture, Either, FutureExt as _};
use kube_informer::{Lookup, NamespaceGuard, Object, ObjectKey, SharedInformer, Undecodable};
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::{Instrument as _, debug, error, info_span, warn};

use super::action::{Action, BoxError, ReconcileFailure, Requeue, catch, describe, panic_message};
use super::outcome::{Outcome, OutcomeHook};
use super::parking::{NotSeen, Parking};
use super::request::Request;
use super::scopes::{CacheScopes, KeyScope, hold};
use super::status::StatusBoard;
use super::writes::{WriteSeen, Writes};
use crate::metrics::{ReconcileMetrics, ReconcileOutcome};
use crate::queue::{Item, WorkQueue};
use crate::term::Term;

/// How long a key with an undecodable object waits at most. An object that is deleted before it could be decoded causes
/// no event.
const UNDECODABLE: Duration = Duration::from_secs(30);

/// How long a key waits at most until the caches are checked again for its namespace. Everything is reconciled when they
/// have changed, so only a key whose object is deleted meanwhile waits that long.
const NAMESPACE_PENDING: Duration = Duration::from_secs(30);

/// The reconcile function, without its types.
pub(super) type Reconcile<T> = Box<dyn Fn(Request<T>) -> BoxFuture<'static, Result<Action, BoxError>> + Send + Sync>;

/// Finds the undecodable objects in one cache that may belong to an object.
pub(super) type UndecodableChildren<T> = Arc<dyn Fn(&T) -> Vec<ObjectKey> + Send + Sync>;

/// The parts that the workers of one run share.
pub(super) struct Workers<T: Object> {
    pub(super) name: Arc<str>,
    pub(super) primary: SharedInformer<T>,
    /// One for each kind that the controller owns.
    pub(super) undecodable_children: Vec<UndecodableChildren<T>>,
    pub(super) scopes: CacheScopes,
    /// True if objects that cannot be decoded are reconciled, too.
    pub(super) reconcile_invalid: bool,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) parking: Arc<Parking>,
    pub(super) board: Arc<StatusBoard>,
    pub(super) metrics: ReconcileMetrics,
    pub(super) term: Term,
    pub(super) timeout: Option<Duration>,
    pub(super) reconcile: Reconcile<T>,
    pub(super) on_outcome: Option<OutcomeHook>,
    /// How often each key failed since its last success.
    pub(super) failures: Mutex<HashMap<ObjectKey, u32, RandomState>>,
}

/// The state of the object of a key.
struct Found<T> {
    /// The object, or the last state of an invalid one that could be decoded.
    object: Option<Arc<T>>,
    invalid: Option<Undecodable>,
}

/// The number of the next reconcile in this process.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl<T: Object> Workers<T> {
    /// Runs one worker. It ends when the queue is shut down and empty, or when the term is over.
    pub(super) async fn work(self: Arc<Self>) {
        while let Some(item) = self.queue.get().await {
            if !self.term.is_valid() {
                return;
            }
            if !self.parking.defers(&item)
                && let Some((item, held)) = self.in_scope(item)
            {
                self.attempt(item, held).await;
            }
            // A reconcile that never waits must not keep handlers from running.
            tokio::task::yield_now().await;
        }
    }

    /// Holds the namespace of a key. Drops the key if the controller's informer does not follow the namespace: nothing is
    /// known about its object. Adds it again later if another cache does not hold the namespace yet.
    fn in_scope(&self, item: Item<ObjectKey>) -> Option<(Item<ObjectKey>, Vec<NamespaceGuard>)> {
        match hold(&self.scopes, &item) {
            KeyScope::Held(guards) => return Some((item, guards)),
            KeyScope::Pending => {
                debug!(controller = &*self.name, key = %*item, "key waits: a cache does not hold its namespace");
                let delay = item.retry_delay().min(NAMESPACE_PENDING);
                item.retry_after(delay);
            }
            KeyScope::OutOfScope => {
                debug!(controller = &*self.name, key = %*item, "key dropped: its namespace is not followed");
                self.failures.lock().remove(&*item);
                item.forget();
            }
        }
        None
    }

    async fn attempt(&self, item: Item<ObjectKey>, held: Vec<NamespaceGuard>) {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let span = info_span!("reconcile", controller = &*self.name, key = %*item, id);
        self.attempt_once(item, id).instrument(span).await;
        drop(held);
    }

    async fn attempt_once(&self, item: Item<ObjectKey>, id: u64) {
        let attempt = self.board.attempt_begins(&item);
        let began = Instant::now();
        let active = self.metrics.begins();
        let writes = Arc::new(Writes::default());
        let earlier_failures = self.failures_of(&item);
        let (mut outcome, object) = match self.decoded(&item) {
            Ok(Found { object, invalid }) => {
                let (key, failures) = (item.clone(), earlier_failures);
                let (term, writes) = (self.term.clone(), writes.clone());
                let request = Request { key, object: object.clone(), invalid, failures, id, term, writes };
                (self.call(request).await, object)
            }
            Err(failure) => (Err(failure), None),
        };
        drop(active);
        if let Some(why) = writes.refused() {
            outcome = Err(ReconcileFailure::Final(why));
        }
        self.count_failures(&item, &outcome, object.is_some());
        // A failed key is tried again in any case.
        let settled = matches!(outcome, Ok(_) | Err(ReconcileFailure::Final(_)));
        let mut requeue_after = self.requeue_after(&item, &outcome);
        // The key is parked before it is done, because it may have been added again already.
        let seen = match writes.take() {
            Either::Left(seen) => {
                if seen == WriteSeen::Missing {
                    self.not_seen(&item, NotSeen::AtAll);
                }
                if settled && seen != WriteSeen::AsWritten {
                    requeue_after = Some(requeue_after.unwrap_or(Duration::MAX).min(item.retry_delay()));
                }
                seen == WriteSeen::AsWritten
            }
            Either::Right(unseen) => {
                let uid = object.as_ref().map(|object| object.id().uid.to_owned());
                self.parking.park(&item, settled, self.for_this_owner(&item, uid, unseen));
                false
            }
        };
        let took = began.elapsed();
        self.metrics.ended(took, outcome_of(&outcome));
        let failure = outcome.as_ref().err().map(ToString::to_string);
        self.board.attempt_ends(&item, took, failure, self.failures_of(&item), requeue_after);
        if let Some(hook) = &self.on_outcome {
            let outcome = Outcome {
                key: item.clone(),
                result: outcome.as_ref().map(|_| ()).map_err(Clone::clone),
                attempt: earlier_failures.saturating_add(1),
                duration: took,
                requeue_after: requeue_after.filter(|_| !self.queue.is_shut_down()),
            };
            if let Err(panic) = catch(|| hook(&outcome)) {
                error!(controller = &*self.name, key = %*item, panic, "outcome hook panicked");
                self.board.hook_panicked();
            }
        }
        drop(attempt);
        self.settle(item, outcome, seen, requeue_after);
    }

    /// Returns the object of a key, or an error if the object, or one that it owns, cannot be decoded. Then reconcile
    /// must not be called, because an object that exists would look as if it did not exist.
    fn decoded(&self, key: &ObjectKey) -> Result<Found<T>, ReconcileFailure> {
        let object = match self.primary.lookup(key) {
            Lookup::Present(object) => object,
            Lookup::Absent => return Ok(Found { object: None, invalid: None }),
            Lookup::Undecodable { why, last_good } if self.reconcile_invalid => {
                return Ok(Found { object: last_good, invalid: Some(why) });
            }
            Lookup::Undecodable { why, .. } => {
                let text = format!("{key} exists but cannot be decoded, so reconcile was not called: {why}");
                return Err(ReconcileFailure::Undecodable(text));
            }
            // The namespace is held, so this does not happen.
            Lookup::OutOfScope => {
                return Err(ReconcileFailure::Undecodable(format!("nothing is known about the namespace of {key}")));
            }
        };
        let children = self.undecodable_children.iter().flat_map(|children| children(&object));
        let children: Vec<String> = children.take(3).map(|key| key.to_string()).collect();
        if children.is_empty() {
            return Ok(Found { object: Some(object), invalid: None });
        }
        Err(ReconcileFailure::Undecodable(format!(
            "objects that may belong to {key} cannot be decoded, so reconcile was not called: {} (see `Controller::ignore_undecodable`)",
            children.join(", ")
        )))
    }

    async fn call(&self, request: Request<T>) -> Result<Action, ReconcileFailure> {
        let mut attempt = AssertUnwindSafe(async { (self.reconcile)(request).await }).catch_unwind().boxed();
        let outcome = match self.timeout {
            Some(limit) => {
                tokio::time::timeout(limit, &mut attempt).await.map_err(|_| ReconcileFailure::TimedOut(limit))
            }
            None => Ok((&mut attempt).await),
        };
        let dropped = catch(|| drop(attempt));
        match outcome? {
            Ok(Ok(Action(Requeue::Failed(error)))) => Err(ReconcileFailure::Final(describe(error))),
            Ok(Ok(action)) => dropped.map(|()| action).map_err(ReconcileFailure::Panicked),
            Ok(Err(error)) => Err(ReconcileFailure::Error(describe(error))),
            Err(panic) => Err(ReconcileFailure::Panicked(panic_message(&*panic))),
        }
    }

    /// Stops waiting for the writes of an object when another object has its name. Those writes do not matter to the
    /// new object.
    fn for_this_owner(
        &self,
        key: &ObjectKey,
        uid: Option<String>,
        unseen: BoxFuture<'static, WriteSeen>,
    ) -> BoxFuture<'static, WriteSeen> {
        let Some(uid) = uid else { return unseen };
        let another = self.primary.wait_for(key, move |object| object.is_some_and(|object| object.id().uid != uid));
        async move {
            tokio::select! {
                biased;
                seen = unseen => seen,
                _ = another.into_future() => WriteSeen::AsWritten,
            }
        }
        .boxed()
    }

    fn failures_of(&self, key: &ObjectKey) -> u32 {
        self.failures.lock().get(key).copied().unwrap_or_default()
    }

    fn count_failures(&self, key: &ObjectKey, outcome: &Result<Action, ReconcileFailure>, exists: bool) {
        let mut failures = self.failures.lock();
        match outcome {
            Ok(_) => drop(failures.remove(key)),
            // The key is not tried again and its object does not exist, so no later event would remove the count.
            Err(ReconcileFailure::Final(_)) if !exists => drop(failures.remove(key)),
            Err(_) => {
                let count = failures.entry(key.clone()).or_default();
                *count = count.saturating_add(1);
            }
        }
    }

    /// Counts a write that a cache did not show.
    pub(super) fn not_seen(&self, key: &ObjectKey, how: NotSeen) {
        let controller = &*self.name;
        self.board.write_not_seen();
        crate::metrics::write_not_seen(controller);
        match how {
            NotSeen::InTime => {
                warn!(controller, %key, "the cache did not show a write in time; the key does not wait any longer")
            }
            NotSeen::AtAll => warn!(
                controller, %key,
                "the cache has passed the version of a write and does not show it: the object was deleted, or the informer does not select it"
            ),
        }
    }

    /// Returns the delay after which the key is reconciled again by itself, or `None` if it waits for a change.
    fn requeue_after(&self, item: &Item<ObjectKey>, outcome: &Result<Action, ReconcileFailure>) -> Option<Duration> {
        match outcome {
            Ok(Action(Requeue::After(delay))) => Some(*delay),
            Ok(_) | Err(ReconcileFailure::Final(_)) => None,
            Err(ReconcileFailure::Undecodable(_)) => Some(item.retry_delay().min(UNDECODABLE)),
            Err(_) => Some(item.retry_delay()),
        }
    }

    /// Releases the key. Its failures are forgotten if the caches show its writes. The failures of a parked key are
    /// forgotten when it is released.
    fn settle(
        &self,
        item: Item<ObjectKey>,
        outcome: Result<Action, ReconcileFailure>,
        seen: bool,
        requeue_after: Option<Duration>,
    ) {
        let (controller, key, attempt) = (&*self.name, item.clone(), self.failures_of(&item));
        if seen && matches!(outcome, Ok(_) | Err(ReconcileFailure::Final(_))) {
            item.forget();
        }
        match requeue_after {
            Some(delay) => item.retry_after(delay),
            None => drop(item),
        }
        match outcome {
            Ok(_) => debug!(controller, %key, ?requeue_after, "reconciled"),
            Err(error @ ReconcileFailure::Final(_)) => warn!(controller, %key, %error, "reconcile failed for good"),
            Err(error) => warn!(controller, %key, attempt, %error, "reconcile failed; trying again"),
        }
    }
}

fn outcome_of(outcome: &Result<Action, ReconcileFailure>) -> ReconcileOutcome {
    match outcome {
        Ok(Action(Requeue::After(_))) => ReconcileOutcome::RequeueAfter,
        Ok(_) => ReconcileOutcome::Success,
        Err(ReconcileFailure::Error(_) | ReconcileFailure::Undecodable(_)) => ReconcileOutcome::Error,
        Err(ReconcileFailure::Final(_)) => ReconcileOutcome::TerminalError,
        Err(ReconcileFailure::Panicked(_)) => ReconcileOutcome::Panic,
        Err(ReconcileFailure::TimedOut(_)) => ReconcileOutcome::Timeout,
    }
}
