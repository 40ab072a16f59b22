//! One informer: a cache of one resource, and the handlers of its changes.

mod any;
mod builder;
mod consumer;
mod error;
mod invalid;
mod lookup;
mod registration;
mod scopes;
mod tasks;
mod verify;
mod wait;

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, info, info_span};

pub use self::any::{AnyEvent, AnyInformer, EventKind};
pub use self::builder::InformerBuilder;
pub use self::consumer::{Consumer, ConsumerHandle};
pub use self::error::{StartError, StillRunning, VerifyError, WaitError};
pub use self::invalid::{InvalidChange, InvalidChanges};
pub use self::lookup::Lookup;
pub use self::registration::Registration;
use self::scopes::{Follower, Scopes};
pub use self::scopes::{NamespaceGuard, NamespaceState, ScopeError};
use self::tasks::{apply_all, keep_time, supervised};
pub use self::verify::Difference;
pub use self::wait::Wait;
use crate::apply::{Applier, Changes, ChangesSink, Outdated, StoreProgress, Waiters, Writing};
use crate::health::{HandlerHealth, Health, HealthBoard, HealthChanges, InformerError, LingeringHealth};
use crate::lister::Lister;
use crate::lock::Mutex;
use crate::object::{KeyRef, Object, ObjectKey, ResourceType, ResourceVersion, Scope};
use crate::processor::Listener;
use crate::source::ListWatch;
use crate::store::{Lingering, Store};

/// A cache of one resource that follows the API server, and calls any number of handlers with every change.
///
/// A clone is another handle. The informer runs as long as one handle, one [`HandlerGuard`](crate::HandlerGuard) or the
/// factory that made it exists. [`EventHandler`](crate::EventHandler) lists the guarantees for handlers.
///
/// client-go's `SharedIndexInformer`. The differences: handlers and indexes can be added at any time, each handler has
/// its own bounded mailbox, and the informer reports its health.
///
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::SharedInformer;
/// use kube_informer::parts::KubeSource;
/// # doc_server::with(async |server| {
/// let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).name("settings").build();
/// maps.on_event(|event| println!("{event:?}"));
/// maps.start()?;
/// maps.synced().within(Duration::from_secs(30)).await?;
/// assert!(maps.store().contains("web/a"));
/// maps.stop().await;
/// # Ok(()) });
/// ```
pub struct SharedInformer<T> {
    shared: Held,
    objects: PhantomData<fn() -> T>,
}

/// Counts the handles of an informer, and keeps it running.
pub(crate) struct Held(Arc<InformerShared>);

/// An informer without the type of its objects. Nearly all of its code is here, and is compiled once.
pub(crate) struct InformerShared {
    core: Arc<Core>,
    cancel: CancellationToken,
    lifecycle: Mutex<Lifecycle>,
    /// The tasks of an informer that is being stopped.
    ending: tokio::sync::Mutex<JoinSet<()>>,
    /// Cancelled when the informer stops waiting for handlers whose calls do not return.
    given_up: CancellationToken,
    /// How many [`Held`] exist. If the last one is dropped before the start, the informer can never start.
    handles: AtomicUsize,
}

/// The state that the tasks of an informer share. It does not keep them running.
struct Core {
    name: String,
    /// How many informers this process made before.
    number: u64,
    resource: Option<ResourceType>,
    /// The scopes that the informer follows, with their sources.
    scopes: Scopes,
    /// The scopes with which the applier began.
    first_scopes: BTreeSet<Scope>,
    /// True if the informer follows a set of namespaces, and not the whole resource.
    by_namespace: bool,
    /// How long too little data may arrive before a request fails.
    progress_deadline: Duration,
    store: Store<dyn Object>,
    sink: ChangesSink<dyn Object>,
    outdated: Outdated,
    writing: Arc<Writing>,
    health: HealthBoard,
    progress: watch::Receiver<StoreProgress>,
    waiters: Waiters,
    /// When [`SharedInformer::wait_for_latest`] last caused a relist.
    listed_for_latest: Mutex<Option<Instant>>,
    resync_period: Option<Duration>,
    figures: Figures,
    /// Called once, when the informer has stopped.
    on_stop: Mutex<Option<OnStop>>,
    /// Called at each period, to stop an informer that is not used. The factory sets it before the start.
    idle_check: OnceLock<(Duration, IdleCheck)>,
    /// How many handles of the store the informer itself has.
    own_stores: OnceLock<usize>,
}

/// The figures of the representation.
type Figures = Box<dyn Fn() -> Vec<(&'static str, f64)> + Send + Sync>;
type OnStop = Box<dyn FnOnce(Ended) + Send>;
type IdleCheck = Box<dyn Fn() + Send + Sync>;

/// Why an informer stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The program stopped it.
    Asked,
    /// A task of it panicked, or its runtime was dropped.
    ByItself,
}

enum Lifecycle {
    New { follower: Box<Follower>, applier: Box<Applier>, changes: Changes<dyn Object>, handlers: Vec<PendingHandler> },
    Running { tasks: JoinSet<()>, runtime: Handle },
    Stopped,
}

/// A handler that waits for the start.
type PendingHandler = (Arc<Listener>, BoxFuture<'static, ()>);

impl<T: Object> SharedInformer<T> {
    /// Configures an informer over a source.
    pub fn builder(source: impl ListWatch<T>) -> InformerBuilder<T> {
        InformerBuilder::whole(source)
    }

    /// Configures an informer of some namespaces. The function makes the source of a namespace; it is called again for
    /// each namespace that [`set_namespaces`](Self::set_namespaces) adds. For the labels of metrics, set
    /// [`InformerBuilder::resource`].
    ///
    /// # Errors
    ///
    /// [`ScopeError::Namespace`] if a name is invalid.
    pub fn builder_in<S: AsRef<str>, L: ListWatch<T>>(
        namespaces: impl IntoIterator<Item = S>,
        source: impl Fn(&str) -> L + Send + Sync + 'static,
    ) -> Result<InformerBuilder<T>, ScopeError> {
        Ok(InformerBuilder::in_namespaces(scopes::valid(namespaces)?, source))
    }

    /// Makes a handle with the type of the objects.
    pub(crate) fn of(shared: Held) -> Self {
        Self { shared, objects: PhantomData }
    }

    /// Returns the name in logs, messages and metrics.
    pub fn name(&self) -> &str {
        &self.shared.core.name
    }

    /// Starts the informer on the current runtime. A second start does nothing.
    ///
    /// # Errors
    ///
    /// [`StartError::NoRuntime`] outside of a runtime, [`StartError::Stopped`] if it was stopped.
    pub fn start(&self) -> Result<(), StartError> {
        self.shared.start()
    }

    /// Stops the informer, and waits until all its tasks have ended: as long as the last call of a handler takes.
    ///
    /// Inside a handler it stops the informer and does not wait.
    pub async fn stop(&self) {
        self.shared.stop().await;
    }

    /// Stops the informer, and waits at most for this duration for handlers whose call does not return.
    ///
    /// # Errors
    ///
    /// [`StillRunning`] names the handlers that still run. The informer has stopped nevertheless.
    pub async fn stop_within(&self, limit: Duration) -> Result<(), StillRunning> {
        self.shared.stop_within(limit).await
    }

    /// Returns the cache.
    pub fn store(&self) -> Store<T> {
        self.shared.core.store.cast()
    }

    /// Returns a lister, which reads the cache by namespace and labels.
    pub fn lister(&self) -> Lister<T> {
        Lister::new(self.store())
    }

    /// Returns a reader of the objects that were deleted a short time ago; see [`InformerOptions::linger`].
    ///
    /// [`InformerOptions::linger`]: crate::InformerOptions::linger
    pub fn lingering(&self) -> Lingering<T> {
        Lingering::new(self.store())
    }

    /// Waits until the first list is in the cache. [`Wait::within`] sets a limit.
    ///
    /// While the API server does not answer, the wait goes on: set a limit, or an [error
    /// hook](SharedInformer::on_error).
    pub fn synced(&self) -> Wait<'static, ()> {
        self.shared.synced()
    }

    /// Waits until the cache reflects every change up to a version, such as that of an object just written.
    ///
    /// On a quiet collection that can take until the API server's next bookmark, about a minute. It fails with
    /// [`WaitError::VersionsRestarted`] if the API server was restored to an older state and the version is from before
    /// that, and with [`WaitError::NotComparable`] if versions are not numbers, so that none is known to be older.
    pub fn wait_for_version(&self, version: &ResourceVersion) -> Wait<'static, ()> {
        self.shared.wait_for_version(version.clone())
    }

    /// Waits until a predicate is true of an object, or of its absence (`None`).
    ///
    /// The predicate is called at once, and then each time the object has changed in the cache.
    pub fn wait_for<'w, 'k>(
        &self,
        key: impl Into<KeyRef<'k>>,
        mut predicate: impl FnMut(Option<&T>) -> bool + Send + 'w,
    ) -> Wait<'w, Option<Arc<T>>> {
        let (shared, seen, key) = (self.shared.0.clone(), self.shared.0.clone(), ObjectKey::from(key.into()));
        let wanted = key.clone();
        let wait = async move {
            let waiter = shared.core.waiters.for_key(wanted.clone());
            loop {
                let object = shared.core.store.cast::<T>().get(&wanted);
                if predicate(object.as_deref()) {
                    return Ok(object);
                }
                shared.unless_stopped(waiter.woken()).await?;
            }
        };
        Wait::new(wait, move || seen.sight_of(&key))
    }

    /// Waits until the cache reflects a write, whichever client made it. Returns the object as the cache holds it: the
    /// written state or a later one. Returns `None` if the cache does not hold it: the object was deleted meanwhile, or
    /// this informer does not select it.
    ///
    /// `written` is the object in the response of the API server. In a controller, `Request::write` needs no wait.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_client::{Api, api::PostParams};
    /// # use kube_informer::SharedInformerFactory;
    /// # doc_server::with(async |server| {
    /// # let client = server.client();
    /// # let mut map = ConfigMap::default();
    /// # map.metadata.name = Some("b".into());
    /// # let factory = SharedInformerFactory::new(client.clone());
    /// # let maps = factory.informer::<ConfigMap>()?;
    /// # factory.start()?;
    /// let api: Api<ConfigMap> = Api::namespaced(client, "web");
    /// let written = api.create(&PostParams::default(), &map).await?;
    /// let cached = maps.saw(&written).within(Duration::from_secs(30)).await?;
    /// assert!(cached.is_some() && maps.store().contains("web/b"));
    /// # Ok(()) });
    /// ```
    ///
    /// If the cache does not hold the object, that can take until the API server's next bookmark, about a minute. The
    /// wait fails with [`WaitError::VersionsRestarted`] if the API server was restored to a state before the write.
    pub fn saw(&self, written: &impl Object) -> Wait<'static, Option<Arc<T>>> {
        let id = written.id();
        let (key, uid, version) = (ObjectKey::from(id.key), id.uid.to_owned(), ResourceVersion::from(id.version));
        let (shared, seen, store) = (self.shared.0.clone(), self.shared.0.clone(), self.store());
        let wanted = key.clone();
        // True if the absence of the object reflects the write: the cache held it before, or never holds it.
        let mut may_be_absent = self.excludes(written).is_some();
        let shown = version.clone();
        let in_cache = self.wait_for(&key, move |object| match object {
            Some(object) => {
                may_be_absent |= !uid.is_empty() && object.id().uid == uid;
                ResourceVersion::from(object.id().version).is_at_least(&shown)
            }
            None => may_be_absent,
        });
        let wait = async move {
            // Versions that are not numbers cannot be compared.
            if version.is_number() {
                tokio::select! {
                    biased;
                    object = in_cache.into_future() => return object,
                    _ = shared.reach_version(&version) => {}
                }
            }
            // The store has passed the version, and does not show the write. A server that was restored from a backup
            // has lower versions, so ask the API server for its current version.
            shared.wait_for_latest().await?;
            match store.get(&wanted) {
                Some(object) if ResourceVersion::from(object.id().version).is_older_than(&version) => {
                    Err(WaitError::VersionsRestarted)
                }
                object => Ok(object),
            }
        };
        Wait::new(wait, move || seen.sight_of(&key))
    }

    /// Lists again, in the most recent state of the API server, and waits until the list is applied. Handlers receive
    /// no event for an unchanged object. Before the start, this waits for the first list.
    ///
    /// The informer lists again even if the result is not awaited.
    pub fn relist(&self) -> Wait<'static, ()> {
        self.shared.relist()
    }

    /// Waits until the cache is as new as the API server is at this moment, like a read from the API server. Use it
    /// before a program acts for the first time, or after a write whose response was lost.
    ///
    /// The informer asks the API server for its current version. If the cache does not reach that version within a
    /// second, and a short watch does not show that nothing changed, the informer lists again, for this reason at most
    /// twice a minute. It also lists again if the key of an object in the last list could not be decoded. If the key
    /// still cannot be decoded, that object is missing, and [`Health`] says so.
    pub fn wait_for_latest(&self) -> Wait<'static, ()> {
        self.shared.wait_for_latest()
    }

    /// Compares the cache with the API server, by keys, uids and versions, and returns the differences.
    ///
    /// A healthy informer has no differences. The comparison is made twice, so changes that happen meanwhile are not
    /// reported.
    ///
    /// # Errors
    ///
    /// [`VerifyError`] if the API server did not answer.
    pub async fn verify(&self) -> Result<Vec<Difference>, VerifyError> {
        verify::verify(&self.shared).await
    }

    /// Returns why this informer's selection leaves an object out, so that the cache never holds it: another namespace,
    /// labels that do not match, another name.
    ///
    /// `None` if the object matches, or if only the API server can tell. Other field selectors, and the selection of a
    /// source that was built by hand, are not evaluated here.
    pub fn excludes(&self, object: &impl Object) -> Option<String> {
        self.shared.core.scopes.selection().excludes(object)
    }

    /// Returns the health.
    pub fn health(&self) -> Health {
        self.shared.core.health()
    }

    /// Returns the health as it changes. Counters that change with each event are as of the last other change.
    pub fn health_changes(&self) -> HealthChanges {
        self.shared.core.health.changes()
    }

    /// Sets the function that is called with every error, in place of the one set before. Without one, errors are
    /// logged as warnings.
    pub fn on_error(&self, hook: impl Fn(&InformerError) + Send + Sync + 'static) {
        self.shared.core.health.set_error_hook(Arc::new(hook));
    }

    /// Returns this informer without its type.
    pub fn any(&self) -> AnyInformer {
        AnyInformer::new(&self.shared)
    }

    #[cfg(feature = "kube")]
    pub(crate) fn held(&self) -> &Held {
        &self.shared
    }
}

impl InformerShared {
    pub(crate) fn start(&self) -> Result<(), StartError> {
        let Self { core, cancel, lifecycle, .. } = self;
        // Before the lock: a metrics recorder is user code.
        core.health.take_metrics(core.resource.as_ref());
        let mut lifecycle = lifecycle.lock();
        match &*lifecycle {
            _ if self.is_stopped() => return Err(StartError::Stopped(core.name.clone())),
            Lifecycle::Running { .. } => return Ok(()),
            Lifecycle::Stopped => return Err(StartError::Stopped(core.name.clone())),
            Lifecycle::New { .. } => {}
        }
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let started = Lifecycle::Running { tasks: JoinSet::new(), runtime: runtime.clone() };
        let before = std::mem::replace(&mut *lifecycle, started);
        let Lifecycle::New { follower, applier, changes, handlers } = before else { return Ok(()) };
        let Lifecycle::Running { tasks, .. } = &mut *lifecycle else { return Ok(()) };
        core.health.started();
        let resync_check = core.writing.lock().processor.start();
        let mut spawn = |part, work: BoxFuture<'static, ()>| {
            tasks.spawn_on(supervised(part, work, core.clone(), cancel.clone()).instrument(core.span()), &runtime);
        };
        spawn("the reflectors", Box::pin(follower.run(cancel.clone())));
        spawn("the applier", Box::pin(apply_all(core.clone(), *applier, changes, cancel.clone())));
        spawn("the clock", Box::pin(keep_time(core.clone(), resync_check, cancel.clone())));
        for (_, delivery) in handlers.into_iter().filter(|(listener, _)| listener.starts()) {
            tasks.spawn_on(delivery.instrument(core.span()), &runtime);
        }
        drop(lifecycle);
        info!(name = %core.name, "informer started");
        Ok(())
    }

    pub(crate) async fn stop(&self) {
        let Self { core, cancel, lifecycle, ending, .. } = self;
        core.end(cancel, Ended::Asked);
        if core.writing.lock().processor.is_called_from_one() {
            return;
        }
        let mut ending = ending.lock().await;
        let before = std::mem::replace(&mut *lifecycle.lock(), Lifecycle::Stopped);
        if let Lifecycle::Running { tasks, .. } = before {
            *ending = tasks;
        }
        while ending.join_next().await.is_some() {}
        info!(name = %core.name, "informer stopped");
    }

    pub(crate) async fn stop_within(&self, limit: Duration) -> Result<(), StillRunning> {
        if tokio::time::timeout(limit, self.stop()).await.is_ok() {
            return Ok(());
        }
        let handlers = self.core.writing.lock().processor.running();
        // A callback that awaits is dropped. A callback that blocks continues until it returns.
        self.given_up.cancel();
        Err(StillRunning { name: self.core.name.clone(), handlers })
    }

    /// Returns true once the informer was stopped, or its runtime is gone: the only place that decides this.
    pub(crate) fn is_stopped(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Returns true once the first list is in the cache.
    #[cfg(feature = "kube")]
    pub(crate) fn is_synced(&self) -> bool {
        self.core.progress.borrow().synced
    }

    #[cfg(feature = "kube")]
    pub(crate) fn name(&self) -> &str {
        &self.core.name
    }

    /// Returns the number of the informer in this process.
    #[cfg(feature = "kube")]
    pub(crate) fn number(&self) -> u64 {
        self.core.number
    }

    /// Returns true if the program does not use the informer: there is one handle, that of the factory, and no handler,
    /// stream, store, lister or index.
    #[cfg(feature = "kube")]
    pub(crate) fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
            && self.core.own_stores.get().is_some_and(|own| self.core.store.handles() <= *own)
            && self.core.writing.lock().processor.is_idle()
    }

    /// Sets the function that is called at each period while the informer runs.
    #[cfg(feature = "kube")]
    pub(crate) fn check_idle(&self, period: Duration, check: impl Fn() + Send + Sync + 'static) {
        let _ = self.core.idle_check.set((period, Box::new(check)));
    }

    /// Stops all parts, and does not wait for their end.
    #[cfg(feature = "kube")]
    pub(crate) fn end(&self) {
        self.core.end(&self.cancel, Ended::Asked);
    }

    /// Calls a function once the informer has stopped, for any reason.
    #[cfg(feature = "kube")]
    pub(crate) fn on_stop(&self, call: impl FnOnce(Ended) + Send + 'static) {
        *self.core.on_stop.lock() = Some(Box::new(call));
    }
}

impl Core {
    fn span(&self) -> Span {
        info_span!("informer", name = %self.name)
    }

    fn health(&self) -> Health {
        // One after another, so that no lock is held while the next one is taken or the representation is called.
        let (handlers, figures) = (self.handlers(), (self.figures)());
        let lingering = self.store.lingering_counts().map(LingeringHealth::from);
        let (objects, queued) = (self.store.len(), self.sink.len());
        Health { objects, lingering, queued, handlers, figures, ..self.health.health() }
    }

    /// Returns the health of every handler.
    fn handlers(&self) -> Vec<HandlerHealth> {
        let listeners = self.writing.lock().processor.listeners();
        listeners.iter().map(|listener| listener.health()).collect()
    }

    /// Stops all parts: nothing more is received, applied or delivered, and every wait ends. A second call does
    /// nothing.
    fn end(&self, cancel: &CancellationToken, how: Ended) {
        cancel.cancel();
        let listeners = {
            let mut state = self.writing.lock();
            state.writer.close();
            state.processor.close()
        };
        listeners.iter().for_each(|listener| listener.mailbox.close(false));
        self.scopes.clear();
        self.health.stopped();
        let on_stop = self.on_stop.lock().take();
        if let Some(on_stop) = on_stop {
            on_stop(how);
        }
    }
}

impl Drop for InformerShared {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl Held {
    fn new(shared: InformerShared) -> Self {
        shared.handles.fetch_add(1, Ordering::Relaxed);
        Self(Arc::new(shared))
    }
}

impl std::ops::Deref for Held {
    type Target = Arc<InformerShared>;

    fn deref(&self) -> &Arc<InformerShared> {
        &self.0
    }
}

impl Clone for Held {
    fn clone(&self) -> Self {
        self.0.handles.fetch_add(1, Ordering::Relaxed);
        Self(self.0.clone())
    }
}

/// An informer that has not started and cannot start any more is stopped, so that streams of its events end, too.
impl Drop for Held {
    fn drop(&mut self) {
        if self.0.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            let new = matches!(*self.0.lifecycle.lock(), Lifecycle::New { .. });
            if new {
                self.0.core.end(&self.0.cancel, Ended::Asked);
            }
        }
    }
}

/// Equal if both are handles to the same informer.
impl<T> PartialEq for SharedInformer<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared.0, &other.shared.0)
    }
}

impl<T> Eq for SharedInformer<T> {}

impl<T> Clone for SharedInformer<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), objects: PhantomData }
    }
}

impl<T: Object> fmt::Debug for SharedInformer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformer")
            .field("name", &self.name())
            .field("store", &self.store())
            .finish_non_exhaustive()
    }
}
