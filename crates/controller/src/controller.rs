//! Controllers: a change of an object, or of what belongs to it, has the object reconciled.
//!
//! # What a reconcile may rely on
//!
//! - Its key is with no other worker. What changes while it runs has it called once more.
//! - All caches that the controller was told of had caught up with the server when the run began: what an earlier run, or
//!   another program that led before, has written is there.
//! - It sees its own writes, if it says what it wrote ([`Request::write`]): its key is not handed out again before the cache
//!   has them.
//! - An error, a panic and a timeout are one failed attempt each. It is tried again when the queue's limiter says, and the
//!   failures so far are known ([`Request::failures`]).
//! - A key whose object is gone is handed out like any other.
//! - What was there when the run began, and what a resync shows again, comes after what changes now.
//!
//! It may not rely on being called once for each change: what changes often is called for once. And a write of others that the
//! cache has not seen yet is refused by the server only if the write names the version or the uid that it is about.

mod error;
mod handle;
mod next;
mod owner;
mod parking;
pub mod predicate;
mod request;
mod status;
mod watched;
mod worker;
mod writes;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, select_all, try_join_all};
use kube_informer::informer::{StartError, WaitError, Waiting};
use kube_informer::object::ResourceType;
use kube_informer::processor::HandlerGuard;
use kube_informer::{Object, ObjectKey, SharedInformer};
use tokio::task::{JoinError, JoinSet};
use tracing::{Instrument as _, info, info_span, warn};

pub use self::error::RunError;
pub use self::handle::ControllerHandle;
use self::next::panic_message;
pub use self::next::{BoxError, Next};
use self::owner::{Owners, owners_of};
use self::parking::{Keeper, Parking};
pub use self::request::Request;
use self::status::{Board, PLACES, Running};
pub use self::status::{ControllerPhase, ControllerStatus, ReconcileError};
pub use self::watched::Watched;
use self::watched::{Source, source};
use self::worker::{Reconcile, Workers};
use crate::limiter::{RateLimiter, default_controller_limiter};
use crate::metrics::ReconcileMetrics;
use crate::queue::WorkQueue;
use crate::term::Term;

const WORKERS: usize = 4;
/// A connection that went silent is noticed sooner than this.
const WRITE_DEADLINE: Duration = Duration::from_secs(180);
const DRAIN: Duration = Duration::from_secs(30);
/// How often it is looked after workers and handlers.
const LOOK: Duration = Duration::from_millis(500);

/// Has objects reconciled when they change, or when something changes that belongs to them.
///
/// What a reconcile may rely on stands [with the module](self). What differs from controller-runtime's: writes are awaited in
/// the caches, and one run is one term of a leader.
///
/// ```
/// use std::convert::Infallible;
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use kube_controller::{Controller, Next, Request};
/// use kube_informer::{CancellationToken, SharedInformerFactory};
///
/// async fn reconcile(request: Request<Pod>, done: Arc<CancellationToken>) -> Result<Next, Infallible> {
///     match request.object() {
///         Some(pod) => println!("{} is at version {:?}", request.key(), pod.metadata.resource_version),
///         None => println!("{} is gone", request.key()),
///     }
///     done.cancel(); // Enough for an example.
///     Ok(Next::Done)
/// }
///
/// # doc_server::with(async |server| {
/// let factory = SharedInformerFactory::new(server.client());
/// let (pods, maps) = (factory.informer::<Pod>()?, factory.informer::<ConfigMap>()?);
/// let cancel = CancellationToken::new();
/// Controller::new(&pods) // A change of a pod has it reconciled,
///     .watches(&maps, |map| kube_informer::ObjectKey::of(map)) // and so has one of its namesake's settings.
///     .workers(8)
///     .run(cancel.clone(), reconcile, Arc::new(cancel))
///     .await?;
/// # Ok(()) });
/// ```
pub struct Controller<T: Object> {
    name: Arc<str>,
    primary: SharedInformer<T>,
    kind: Option<ResourceType>,
    sources: Vec<Source>,
    caches: Vec<Cache>,
    workers: usize,
    timeout: Option<Duration>,
    write_deadline: Duration,
    drain: Duration,
    limiter: Arc<dyn RateLimiter<ObjectKey>>,
    board: Arc<Board>,
    /// It owns objects, and does not know of which kind its own are.
    unknown_kind: bool,
}

/// An informer that has to have caught up before anything is reconciled, and must not stop before the end.
struct Cache {
    start: Box<dyn Fn() -> Result<Waiting<'static, ()>, StartError> + Send + Sync>,
    /// Ends, with its name, when it has stopped.
    stopped: Box<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>,
}

impl<T: Object> Controller<T> {
    /// A controller of the objects of an informer: a change of one has it reconciled. It is called as the informer, unless
    /// it is given a [`name`](Self::name).
    pub fn new(primary: impl Into<Watched<T>>) -> Self {
        let primary = primary.into();
        let informer = primary.informer.clone();
        let itself = |object: &T, add: &mut dyn FnMut(ObjectKey)| {
            // What has no name is no object of a server.
            if let Ok(key) = ObjectKey::of(object) {
                add(key);
            }
        };
        Self {
            name: informer.name().into(),
            kind: informer.any().resource().cloned(),
            caches: vec![Cache::new(&informer)],
            primary: informer,
            sources: vec![source(primary, itself)],
            workers: WORKERS,
            timeout: None,
            write_deadline: WRITE_DEADLINE,
            drain: DRAIN,
            limiter: Arc::new(default_controller_limiter()),
            board: Arc::new(Board::new()),
            unknown_kind: false,
        }
    }

    /// The name that logs, messages and metrics use; that of the informer unless given.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into().into();
        self
    }

    /// A change of one of these has the object reconciled that manages it: its controller, by group and kind.
    #[must_use]
    pub fn owns<C: Object>(self, children: impl Into<Watched<C>>) -> Self {
        self.owned(children.into(), Owners::Controller)
    }

    /// The same for every owner of the kind, and not only the one that manages it.
    #[must_use]
    pub fn owns_any<C: Object>(self, children: impl Into<Watched<C>>) -> Self {
        self.owned(children.into(), Owners::All)
    }

    /// A change of one of these has the objects reconciled whose keys a function gives, for the old state and for the new: one
    /// key, or any number of them. Look them up by an index, if need be.
    #[must_use]
    pub fn watches<O, F, I>(mut self, others: impl Into<Watched<O>>, map: F) -> Self
    where
        O: Object,
        F: Fn(&O) -> I + Send + Sync + 'static,
        I: IntoIterator<Item = ObjectKey>,
    {
        let others = others.into();
        self.caches.push(Cache::new(&others.informer));
        self.sources.push(source(others, move |object, add| map(object).into_iter().for_each(add)));
        self
    }

    /// These are read: nothing is reconciled before they are there. Their changes have nothing reconciled.
    #[must_use]
    pub fn reads<O: Object>(mut self, others: &SharedInformer<O>) -> Self {
        self.caches.push(Cache::new(others));
        self
    }

    /// How many objects are reconciled at a time: 4 unless given, and at least one.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.clamp(1, PLACES as usize);
        self
    }

    /// How long a reconcile may take before it is dropped and counted as failed; as long as it likes unless given.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// When what failed is tried again; see [`default_controller_limiter`].
    #[must_use]
    pub fn limiter(mut self, limiter: impl RateLimiter<ObjectKey>) -> Self {
        self.limiter = Arc::new(limiter);
        self
    }

    /// How long a key waits for a cache to see what was written for it: three minutes unless given. Then it goes on, and that
    /// is told in log, status and metrics.
    #[must_use]
    pub fn write_deadline(mut self, limit: Duration) -> Self {
        self.write_deadline = limit;
        self
    }

    /// How long what waits may take at the end, once the run has been told to end: 30 seconds unless given.
    #[must_use]
    pub fn drain_within(mut self, limit: Duration) -> Self {
        self.drain = limit;
        self
    }

    /// Asks things of it from elsewhere.
    pub fn handle(&self) -> ControllerHandle<T> {
        ControllerHandle { name: self.name.clone(), primary: self.primary.clone(), board: self.board.clone() }
    }

    /// How it does.
    pub fn status(&self) -> ControllerStatus {
        self.board.status(&self.name)
    }

    /// Starts the informers that have not been, waits until all have caught up with the server, and has objects reconciled
    /// until told to end. Then it takes in nothing more, finishes what waits, and returns. It can run again.
    ///
    /// Informers that begin here begin with the server's most recent state. Those that ran before are asked to catch up, which
    /// may take a list of everything: see [`SharedInformer::caught_up`].
    ///
    /// # Errors
    ///
    /// [`RunError`] if it could not begin, lost one of its caches, or lost its leadership.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops all work at once: what is in the middle of a step on another thread ends behind that step. It can run
    /// again, and then waits for those.
    pub async fn run<C, F, R, E>(&self, term: impl Into<Term>, reconcile: F, context: Arc<C>) -> Result<(), RunError>
    where
        C: Send + Sync + 'static,
        F: Fn(Request<T>, Arc<C>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Next, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let reconcile: Reconcile<T> = Box::new(move |request| {
            reconcile(request, context.clone()).map(|outcome| outcome.map_err(Into::into)).boxed()
        });
        let span = info_span!("controller", name = &*self.name);
        self.run_term(term.into(), reconcile).instrument(span).await
    }

    async fn run_term(&self, term: Term, reconcile: Reconcile<T>) -> Result<(), RunError> {
        if self.unknown_kind {
            return Err(RunError::UnknownKind(self.name.to_string()));
        }
        let running = self.board.begin(&self.name)?;
        tokio::select! {
            biased;
            () = term.lost() => return Err(self.leadership_lost()),
            () = term.ending() => return Ok(()),
            ready = async {
                self.board.no_workers().await;
                self.caught_up().await
            } => ready?,
        }
        info!(controller = &*self.name, workers = self.workers, "controller started");
        let outcome = self.work(&running, term, reconcile).await;
        info!(controller = &*self.name, "controller ended");
        outcome
    }

    /// Starts all informers, and waits until they have caught up with the server.
    async fn caught_up(&self) -> Result<(), RunError> {
        let started: Result<Vec<_>, _> = self.caches.iter().map(|cache| (cache.start)()).collect();
        let started = started.map_err(|source| RunError::Start { name: self.name.to_string(), source })?;
        let ready = try_join_all(started.into_iter().map(IntoFuture::into_future)).await;
        ready.map(|_| ()).map_err(|source| RunError::CacheLost { name: self.name.to_string(), source })
    }

    async fn work(&self, running: &Running<'_>, term: Term, reconcile: Reconcile<T>) -> Result<(), RunError> {
        let queue = WorkQueue::named(&*self.name, self.limiter.clone());
        let (parking, keeper) = Parking::new();
        let parking = Arc::new(parking);
        running.works(&queue, &parking);
        let handlers: Vec<HandlerGuard> = self.sources.iter().map(|attach| attach(&self.name, &queue)).collect();
        let shared = Arc::new(Workers {
            name: self.name.to_string(),
            primary: self.primary.clone(),
            queue: queue.clone(),
            parking: parking.clone(),
            board: self.board.clone(),
            metrics: ReconcileMetrics::new(&self.name, self.workers),
            term: term.clone(),
            timeout: self.timeout,
            reconcile,
        });
        // Both abort what is left if this is dropped.
        let (mut workers, mut others) = (JoinSet::new(), JoinSet::new());
        for _ in 0..self.workers {
            let (place, work) = (self.board.place(), shared.clone().work());
            workers.spawn(async move { (work.await, place).0 }.in_current_span());
        }
        others.spawn(self.keep(keeper, parking.clone(), queue.clone()).in_current_span());
        let mut ended = tokio::select! {
            biased;
            () = term.lost() => Err(self.leadership_lost()),
            () = term.ending() => Ok(()),
            lost = self.cache_lost() => Err(lost),
            () = self.look_after(&handlers, &queue) => Ok(()),
            // They end by themselves only if they may not go on, or if something that they were given panics.
            ended = workers.join_next() => Err(self.panicked(ended).unwrap_or_else(|| self.leadership_lost())),
            // It ends only if something that it was given panics.
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
                drained = tokio::time::timeout(self.drain, drained) => if drained.is_err() {
                    let left = queue.len();
                    warn!(controller = &*self.name, left, "controller did not finish in time; the rest is dropped");
                }
            }
            info!(controller = &*self.name, late, parked = parking.len(), "what was to come later is dropped");
        }
        workers.shutdown().await;
        ended
    }

    /// Lets parked keys go.
    fn keep(
        &self,
        keeper: Keeper,
        parking: Arc<Parking>,
        queue: WorkQueue<ObjectKey>,
    ) -> impl Future<Output = ()> + Send + use<T> {
        let (name, board, limit) = (self.name.clone(), self.board.clone(), self.write_deadline);
        async move {
            let not_seen = |key: &ObjectKey| {
                board.write_not_seen();
                crate::metrics::write_not_seen(&name);
                warn!(controller = &*name, %key, ?limit, "the cache has not seen what was written; going on without");
            };
            keeper.run(&parking, &queue, limit, not_seen).await;
        }
    }

    /// Brings gauges up to date that grow with time alone, so that a worker that is stuck shows; and has everything reconciled
    /// if the mappings were so slow that they were not told of every change. For ever.
    async fn look_after(&self, handlers: &[HandlerGuard], queue: &WorkQueue<ObjectKey>) {
        let mut known = 0;
        loop {
            tokio::time::sleep(LOOK).await;
            queue.status();
            let folds = handlers.iter().map(|handler| handler.folds()).sum();
            if folds > known {
                known = folds;
                warn!(controller = &*self.name, "changes were folded; everything is reconciled");
                self.handle().reconcile_all();
            }
        }
    }

    /// Waits until one of the informers has stopped.
    async fn cache_lost(&self) -> RunError {
        let (stopped, ..) = select_all(self.caches.iter().map(|cache| (cache.stopped)())).await;
        RunError::CacheLost { name: self.name.to_string(), source: WaitError::Stopped(stopped) }
    }

    fn owned<C: Object>(mut self, children: Watched<C>, owners: Owners) -> Self {
        self.caches.push(Cache::new(&children.informer));
        match self.kind.clone() {
            Some(kind) => {
                self.sources.push(source(children, move |child, add| owners_of(child, &kind, owners, add)));
            }
            None => self.unknown_kind = true,
        }
        self
    }

    /// What a task said that panicked.
    fn panicked(&self, ended: Option<Result<(), JoinError>>) -> Option<RunError> {
        let error = ended?.err().filter(JoinError::is_panic)?;
        let message = panic_message(&*error.into_panic());
        Some(RunError::WorkerPanicked { name: self.name.to_string(), message })
    }

    fn leadership_lost(&self) -> RunError {
        RunError::LeadershipLost(self.name.to_string())
    }
}

impl Cache {
    fn new<O: Object>(informer: &SharedInformer<O>) -> Self {
        let (start, stopped) = (informer.clone(), informer.clone());
        Self {
            start: Box::new(move || {
                if start.health().is_live() {
                    return Ok(start.caught_up());
                }
                // Asked for before the start, the most recent state is what it begins with.
                let most_recent = start.relist();
                start.start().map(|()| most_recent)
            }),
            stopped: Box::new(move || {
                let (mut changes, name) = (stopped.health_changes(), stopped.name().to_owned());
                async move {
                    // If nobody is left to tell, it has stopped.
                    let _ = changes.wait_for(|health| health.stopped).await;
                    name
                }
                .boxed()
            }),
        }
    }
}

impl<T: Object> fmt::Debug for Controller<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Controller").field(&self.status()).finish()
    }
}
