//! Controllers: they reconcile an object when it changes, or when an object that belongs to it changes.
//!
//! # Guarantees for a reconcile
//!
//! - No other worker has its key. If the object changes while the reconcile runs, it is called once more.
//! - All informers of the controller had caught up with the API server when the run began: their caches hold everything
//!   that an earlier run, or another leader before, has written.
//! - It sees its own writes if it sends them through [`Request::write`]: its key is not handed out again before the
//!   cache shows them.
//! - An error, a panic and a timeout are one failed attempt each. The key is tried again when the limiter allows;
//!   [`Request::failures`] counts the attempts.
//! - While a key is reconciled, its namespace stays in the caches of the controller. A key of a namespace that the
//!   controller's informer does not follow is dropped. See [`SharedInformer::set_namespaces`].
//! - `request.object()` is `None` only if the object does not exist. While the object, or one that it owns, cannot be
//!   decoded, the attempt fails and reconcile is not called.
//! - Nothing is written through the request after the term is over.
//! - New changes come before objects that existed when the run began, and before a resync.
//!
//! There is no guarantee of one call for each change: several changes may cause one call. The cache may not show a
//! write of another client yet. In that case the API server refuses a conflicting write only if the write names the
//! resource version or the uid of the object.

mod error;
mod handle;
mod action;
mod outcome;
mod owner;
mod parking;
pub mod predicate;
mod request;
mod run;
mod scopes;
mod status;
mod watch_source;
mod worker;
mod writes;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use kube_informer::{Event, Object, ObjectKey, ResourceType, SharedInformer, StartError, Wait};
use tracing::{Instrument as _, info_span};

pub(crate) use self::action::Requeue;
pub use self::action::{Action, BoxError, ReconcileFailure};
pub use self::error::{RunError, WriteError};
pub use self::handle::ControllerHandle;
pub use self::outcome::Outcome;
use self::outcome::OutcomeHook;
use self::owner::{Owners, owners_of};
pub use self::request::Request;
use self::scopes::{CacheRole, HoldNamespace, NamespaceChanges, hold_in};
pub use self::status::{ControllerPhase, ControllerStatus, ReconcileError};
use self::status::{PLACES, StatusBoard};
pub use self::watch_source::WatchSource;
use self::watch_source::{KeySource, Predicate, async_source, primary_source, source};
use self::worker::{Reconcile, UndecodableChildren};
use crate::limiter::{RateLimiter, default_controller_limiter};
use crate::term::Term;

const WORKERS: usize = 4;
/// Longer than an informer takes to notice that its connection went silent.
const WRITE_DEADLINE: Duration = Duration::from_secs(180);
const SYNC: Duration = Duration::from_secs(120);
/// Kubernetes gives a program 30 seconds to end. The workers, the lease and the informers need a part of that time.
const DRAIN: Duration = Duration::from_secs(15);

/// Reconciles objects when they change, or when an object that belongs to them changes.
///
/// The [module](self) lists the guarantees for a reconcile. There are two differences from controller-runtime: a key
/// waits until the caches show its writes, and one run is one term of a leader.
///
/// ```
/// use std::convert::Infallible;
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use kube_controller::{Controller, Action, Request};
/// use kube_informer::{CancellationToken, SharedInformerFactory};
///
/// async fn reconcile(request: Request<Pod>, done: Arc<CancellationToken>) -> Result<Action, Infallible> {
///     match request.object() {
///         Some(pod) => println!("{} is at version {:?}", request.key(), pod.metadata.resource_version),
///         None => println!("{} is gone", request.key()),
///     }
///     done.cancel(); // Enough for an example.
///     Ok(Action::await_change())
/// }
///
/// # doc_server::with(async |server| {
/// let factory = SharedInformerFactory::new(server.client());
/// let (pods, maps) = (factory.informer::<Pod>()?, factory.informer::<ConfigMap>()?);
/// let cancel = CancellationToken::new();
/// Controller::new(&pods) // A change of a pod reconciles the pod.
///     .watches(&maps, |map| kube_informer::ObjectKey::of(map)) // So does a change of the ConfigMap of that name.
///     .workers(8)
///     .run(cancel.clone(), reconcile, Arc::new(cancel))
///     .await?;
/// # Ok(()) });
/// ```
pub struct Controller<T: Object> {
    name: Arc<str>,
    primary: SharedInformer<T>,
    kind: Option<ResourceType>,
    sources: Vec<KeySource>,
    caches: Vec<Cache>,
    workers: usize,
    timeout: Option<Duration>,
    write_deadline: Duration,
    sync: Duration,
    drain: Duration,
    debounce: Duration,
    predicates: Vec<Predicate<dyn Object>>,
    undecodable_children: Vec<UndecodableChildren<T>>,
    ignore_undecodable: bool,
    reconcile_invalid: bool,
    limiter: Arc<dyn RateLimiter<ObjectKey>>,
    on_outcome: Option<OutcomeHook>,
    board: Arc<StatusBoard>,
    /// True if the controller owns objects, but does not know the kind of its primary objects.
    unknown_kind: bool,
}

/// An informer that has to catch up before anything is reconciled, and must not stop before the end.
struct Cache {
    start: Box<dyn Fn() -> Result<Wait<'static, ()>, StartError> + Send + Sync>,
    /// Ends when the informer has stopped, and returns the name of the informer.
    stopped: Box<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>,
    role: CacheRole,
    hold: HoldNamespace,
    namespace_changes: NamespaceChanges,
}

impl<T: Object> Controller<T> {
    /// Makes a controller that reconciles the objects of an informer when they change. The controller has the name of
    /// the informer, unless you set another [`name`](Self::name).
    pub fn new(primary: impl Into<WatchSource<T>>) -> Self {
        let primary = primary.into();
        let informer = primary.informer.clone();
        Self {
            name: informer.name().into(),
            kind: informer.any().resource().cloned(),
            caches: vec![Cache::new(&informer, CacheRole::Primary)],
            primary: informer,
            sources: vec![primary_source(primary)],
            workers: WORKERS,
            timeout: None,
            write_deadline: WRITE_DEADLINE,
            sync: SYNC,
            drain: DRAIN,
            debounce: Duration::ZERO,
            predicates: Vec::new(),
            undecodable_children: Vec::new(),
            ignore_undecodable: false,
            reconcile_invalid: false,
            limiter: Arc::new(default_controller_limiter()),
            on_outcome: None,
            board: Arc::new(StatusBoard::new()),
            unknown_kind: false,
        }
    }

    /// Sets the name for logs, errors and metrics. The default is the name of the informer. Two controllers of a
    /// [`Manager`](crate::Manager) must not have the same name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into().into();
        self
    }

    /// Reconciles the owner of an object when one of these objects changes: the owner that is marked as its controller.
    /// The owner is found by group and kind.
    ///
    /// While an object that may belong to the owner cannot be decoded, the owner is not reconciled, because the
    /// reconcile would create that object a second time. [`ignore_undecodable`](Self::ignore_undecodable) turns that
    /// off.
    #[must_use]
    pub fn owns<C: Object>(self, children: impl Into<WatchSource<C>>) -> Self {
        self.owned(children.into(), Owners::Controller)
    }

    /// Does the same as [`owns`](Self::owns), for every owner of the kind and not only for the one that is marked as
    /// controller.
    #[must_use]
    pub fn owns_any<C: Object>(self, children: impl Into<WatchSource<C>>) -> Self {
        self.owned(children.into(), Owners::All)
    }

    /// Reconciles other objects when one of these objects changes. The function maps a state of the changed object to
    /// keys: one key, or any number of keys. It is called for the old state and for the new state. Use an index to find
    /// the keys.
    ///
    /// If the function panics, the panic is counted and everything is reconciled.
    #[must_use]
    pub fn watches<O, F, I>(mut self, others: impl Into<WatchSource<O>>, map: F) -> Self
    where
        O: Object,
        F: Fn(&O) -> I + Send + Sync + 'static,
        I: IntoIterator<Item = ObjectKey>,
    {
        let others = others.into();
        self.caches.push(Cache::new(&others.informer, CacheRole::Watched));
        self.sources.push(source(others, move |object, add| map(object).into_iter().for_each(add)));
        self
    }

    /// Does the same as [`watches`](Self::watches), with an async function, which may wait for a lock or for a response
    /// of another system. The next event of this informer is mapped when the function has returned.
    #[must_use]
    pub fn watches_async<O, F, R, I>(mut self, others: impl Into<WatchSource<O>>, map: F) -> Self
    where
        O: Object,
        F: Fn(Arc<O>) -> R + Send + Sync + 'static,
        R: Future<Output = I> + Send + 'static,
        I: IntoIterator<Item = ObjectKey>,
    {
        let others = others.into();
        self.caches.push(Cache::new(&others.informer, CacheRole::Watched));
        self.sources.push(async_source(others, map));
        self
    }

    /// Ignores the events of all informers of this controller for which the predicate is false. If this is called
    /// several times, all predicates must be true.
    ///
    /// [`WatchSource::when`] does the same for one informer, with the type of its objects.
    #[must_use]
    pub fn when(mut self, predicate: impl Fn(&Event<dyn Object>) -> bool + Send + Sync + 'static) -> Self {
        self.predicates.push(Arc::new(predicate));
        self
    }

    /// Waits this long after the first event for a key before the key is reconciled, so that many changes cause one
    /// reconcile. By default the controller does not wait. Retries and [`ControllerHandle::enqueue`] do not wait.
    #[must_use]
    pub fn debounce(mut self, delay: Duration) -> Self {
        self.debounce = delay;
        self
    }

    /// Reconciles owners even if objects that may belong to them cannot be decoded.
    ///
    /// The caches do not show such objects. A reconcile that creates a missing child has to ask
    /// [`SharedInformer::lookup`] or [`SharedInformer::undecodable_owned_by`] first.
    #[must_use]
    pub fn ignore_undecodable(mut self) -> Self {
        self.ignore_undecodable = true;
        self
    }

    /// Reconciles objects of the controller's own informer that cannot be decoded, too, so that it can write an Event or
    /// a condition on them.
    ///
    /// By default such a key fails, and reconcile is not called. With this setting, reconcile is called when the object
    /// becomes invalid, when its generation or its error changes, and when another change names its key. Check
    /// [`Request::invalid`] first: [`Request::object`] is then the last state that could be decoded, or `None`, although
    /// the object exists. `Api<DynamicObject>` patches its status:
    ///
    /// ```
    /// use std::sync::Arc;
    /// use kube_client::core::{ApiResource, DynamicObject};
    /// use kube_client::{Api, Client, api::{Patch, PatchParams}};
    /// use kube_controller::{Action, Request};
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use serde_json::json;
    ///
    /// async fn reconcile(request: Request<Deployment>, client: Arc<Client>) -> Result<Action, kube_client::Error> {
    ///     if let Some(invalid) = request.invalid() {
    ///         let condition = json!({
    ///             "type": "Available", "status": "False", "reason": "Invalid", "message": invalid.error,
    ///             "lastTransitionTime": null,
    ///         });
    ///         let resource = ApiResource::erase::<Deployment>(&());
    ///         let namespace = request.key().namespace().unwrap_or_default();
    ///         let api = Api::<DynamicObject>::namespaced_with(Client::clone(&client), namespace, &resource);
    ///         let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    ///         api.patch_status(request.key().name(), &PatchParams::default(), &patch).await?;
    ///         return Ok(Action::await_change());
    ///     }
    ///     // …
    ///     Ok(Action::await_change())
    /// }
    /// ```
    #[must_use]
    pub fn reconcile_invalid(mut self) -> Self {
        self.reconcile_invalid = true;
        self
    }

    /// Waits until the cache of this informer has synced before anything is reconciled. Changes of its objects do not
    /// cause a reconcile.
    #[must_use]
    pub fn waits_for<O: Object>(mut self, others: &SharedInformer<O>) -> Self {
        self.caches.push(Cache::new(others, CacheRole::Watched));
        self
    }

    /// Sets how many objects are reconciled at a time: 4 by default, and at least one.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.clamp(1, PLACES as usize);
        self
    }

    /// Sets how long a reconcile may take before it is dropped and counted as failed. There is no limit by default.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Sets the limiter, which decides when a failed key is tried again; see [`default_controller_limiter`].
    #[must_use]
    pub fn limiter(mut self, limiter: impl RateLimiter<ObjectKey>) -> Self {
        self.limiter = Arc::new(limiter);
        self
    }

    /// Calls a hook after each reconcile, with its [`Outcome`]. A second call replaces the hook.
    ///
    /// The hook must not block: the worker that calls it waits for it, and no other worker gets the key meanwhile. No
    /// lock is held, so it may use a [`ControllerHandle`]. A panic in it is logged and counted, and nothing else
    /// happens. It is not called for a reconcile that is dropped because the run ends.
    ///
    /// ```
    /// # fn counted<T: kube_informer::Object>(controller: kube_controller::Controller<T>) -> kube_controller::Controller<T> {
    /// controller.on_outcome(|outcome| match &outcome.result {
    ///     Ok(()) => println!("{} took {:?}", outcome.key, outcome.duration),
    ///     Err(error) => println!("{}, attempt {}: {error}", outcome.key, outcome.attempt),
    /// })
    /// # }
    /// ```
    #[must_use]
    pub fn on_outcome(mut self, hook: impl Fn(&Outcome) + Send + Sync + 'static) -> Self {
        self.on_outcome = Some(Arc::new(hook));
        self
    }

    /// Sets how long a key waits for a cache to show its writes: three minutes by default. After that the key does not
    /// wait any longer, and log, status and metrics show that.
    #[must_use]
    pub fn write_deadline(mut self, limit: Duration) -> Self {
        self.write_deadline = limit;
        self
    }

    /// Sets how long the caches may take to catch up with the API server when a run begins: two minutes by default.
    /// Then the run fails with [`RunError::NotSynced`].
    ///
    /// Without a limit a leader whose permission or custom resource definition is missing would keep its lease and do
    /// nothing.
    #[must_use]
    pub fn sync_within(mut self, limit: Duration) -> Self {
        self.sync = limit;
        self
    }

    /// Sets how long waiting keys may take to be reconciled once the run was asked to end: 15 seconds by default.
    /// Kubernetes kills a program 30 seconds after it sent the signal to end.
    #[must_use]
    pub fn drain_within(mut self, limit: Duration) -> Self {
        self.drain = limit;
        self
    }

    /// Returns a handle, with which other parts of the program can use the controller while it runs.
    pub fn handle(&self) -> ControllerHandle<T> {
        ControllerHandle { name: self.name.clone(), primary: self.primary.clone(), board: self.board.clone() }
    }

    /// Returns the status of the controller.
    pub fn status(&self) -> ControllerStatus {
        self.board.status(&self.name)
    }

    /// Starts the informers that do not run yet, waits until all have caught up with the API server, and reconciles
    /// objects until the term is [ending](Term::ending). Then it accepts no more keys, finishes the keys that wait, and
    /// returns. It can run again.
    ///
    /// Informers that start here begin with the most recent state. Informers that ran before have to catch up: see
    /// [`SharedInformer::wait_for_latest`].
    ///
    /// # Errors
    ///
    /// [`RunError`] if the controller could not start, lost one of its caches or its leadership, or could not end a
    /// reconcile.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops all work at once. A reconcile that runs on another thread at that moment ends at its
    /// next `.await`. The next run waits for it.
    pub async fn run<C, F, R, E>(&self, term: impl Into<Term>, reconcile: F, context: Arc<C>) -> Result<(), RunError>
    where
        C: Send + Sync + 'static,
        F: Fn(Request<T>, Arc<C>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let reconcile: Reconcile<T> = Box::new(move |request| {
            reconcile(request, context.clone()).map(|outcome| outcome.map_err(Into::into)).boxed()
        });
        let span = info_span!("controller", name = &*self.name);
        self.run_term(term.into(), reconcile).instrument(span).await
    }

    fn owned<C: Object>(mut self, children: WatchSource<C>, owners: Owners) -> Self {
        self.caches.push(Cache::new(&children.informer, CacheRole::Owned));
        match self.kind.clone() {
            Some(kind) => {
                let informer = children.informer.clone();
                self.undecodable_children.push(Arc::new(move |owner| informer.undecodable_owned_by(owner)));
                self.sources.push(source(children, move |child, add| owners_of(child, &kind, owners, add)));
            }
            None => self.unknown_kind = true,
        }
        self
    }
}

impl Cache {
    fn new<O: Object>(informer: &SharedInformer<O>, role: CacheRole) -> Self {
        let (start, stopped, scoped) = (informer.clone(), informer.clone(), informer.clone());
        Self {
            role,
            hold: hold_in(informer),
            namespace_changes: Box::new(move || scoped.namespace_changes()),
            start: Box::new(move || {
                if start.health().is_live() {
                    return Ok(start.wait_for_latest());
                }
                // The relist is requested before the start, so the informer begins with the most recent state.
                let most_recent = start.relist();
                start.start().map(|()| most_recent)
            }),
            stopped: Box::new(move || {
                let (mut changes, name) = (stopped.health_changes(), stopped.name().to_owned());
                async move {
                    // Without a sender the informer has stopped.
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
