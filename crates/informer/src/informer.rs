//! One informer: a cache that keeps itself in step with the server, and tells everybody who asked.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, info, info_span};

use crate::apply::{Applier, Intake, Progress};
use crate::health::{Health, HealthBoard, InformerError, Phase};
use crate::lister::Lister;
use crate::object::{Object, ResourceVersion};
use crate::processor::{AnyHandler, Delivery, Event, EventHandler, HandlerHandle, Listener};
use crate::queue::{Delta, Scope};
use crate::reflector::{BackoffOptions, Reflector, ReflectorError, ReflectorOptions, Sink};
use crate::source::ListWatch;
use crate::store::{Index, IndexError, IndexValues, Store, index_function};

/// A cache of one collection that keeps itself in step with the server, and tells any number of handlers of every change.
///
/// Cloning gives another handle to the same informer. Its tasks live as long as one of them, or the factory it came
/// from, does; [`SharedInformer::stop`] ends it earlier and waits for the end.
///
/// client-go's `SharedIndexInformer`. What differs: it is typed, and it is started by one call, once.
pub struct SharedInformer<T> {
    shared: Arc<Shared<T>>,
}

/// Ends the informer's tasks when the last handle is gone: it owns them.
struct Shared<T> {
    core: Arc<Core<T>>,
    cancel: CancellationToken,
    lifecycle: Mutex<Lifecycle<T>>,
}

/// What the informer's tasks share. None of them keeps the informer itself alive.
struct Core<T> {
    name: String,
    store: Store<T>,
    applier: Mutex<Applier<T>>,
    intake: Intake<T>,
    health: HealthBoard,
    progress: watch::Receiver<Progress>,
    next_handler: AtomicU64,
}

enum Lifecycle<T> {
    New { reflectors: Vec<ReflectorStart<T>>, handlers: Vec<(Arc<Listener<T>>, AnyHandler<T>)> },
    Running { tasks: JoinSet<()>, runtime: Handle },
    Stopped,
}

/// Starts a reflector whose source and whose type of source are no longer of interest.
type ReflectorStart<T> =
    Box<dyn FnOnce(Arc<Core<T>>, CancellationToken) -> futures_util::future::BoxFuture<'static, ()> + Send>;

/// Why an informer did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Informers are tasks, and tasks need a runtime.
    #[error("no tokio runtime is running here; call this from async code")]
    NoRuntime,
    /// A stopped informer does not start again; make a new one.
    #[error("informer {0} has been stopped; ask the factory for a new one")]
    Stopped(String),
}

/// Why something could not be added to an informer or waited for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoppedError {
    /// The informer has ended.
    #[error("informer {0} has been stopped")]
    Stopped(String),
}

/// Why a version was not reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The informer has ended.
    #[error("informer {0} has been stopped")]
    Stopped(String),
    /// The server was restored to an older state: versions from before mean nothing any more.
    #[error("the server was restored to an older state; versions from before it cannot be waited for")]
    VersionsRestarted,
}

/// Configures a [`SharedInformer`]; see [`SharedInformer::builder`].
pub struct InformerBuilder<T> {
    name: String,
    sources: Vec<(Scope, BoxedSource<T>)>,
    options: ReflectorOptions,
}

/// Makes the start of a reflector, given its options.
type BoxedSource<T> = Box<dyn FnOnce(ReflectorOptions) -> ReflectorStart<T> + Send>;

impl<T: Object> SharedInformer<T> {
    /// Configures an informer over any source, with no Kubernetes client needed.
    pub fn builder(source: impl ListWatch<T>) -> InformerBuilder<T> {
        InformerBuilder {
            name: short_type_name::<T>(),
            sources: vec![(None, boxed(source))],
            options: ReflectorOptions::default(),
        }
    }

    /// An informer over one source per scope: a set of namespaces, say.
    pub(crate) fn over_scopes<L: ListWatch<T>>(sources: impl IntoIterator<Item = (Scope, L)>) -> InformerBuilder<T> {
        let sources = sources.into_iter().map(|(scope, source)| (scope, boxed(source))).collect();
        InformerBuilder { name: short_type_name::<T>(), sources, options: ReflectorOptions::default() }
    }

    /// The name that logs and messages use.
    pub fn name(&self) -> &str {
        &self.shared.core.name
    }

    /// Starts the informer. A second start does nothing.
    ///
    /// # Errors
    ///
    /// [`StartError::NoRuntime`] outside of a tokio runtime, [`StartError::Stopped`] if it has been stopped.
    pub fn start(&self) -> Result<(), StartError> {
        let Shared { core, cancel, lifecycle } = &*self.shared;
        let mut lifecycle = lifecycle.lock();
        match &*lifecycle {
            Lifecycle::Running { .. } => return Ok(()),
            Lifecycle::Stopped => return Err(StartError::Stopped(core.name.clone())),
            Lifecycle::New { .. } => {}
        }
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let started = Lifecycle::Running { tasks: JoinSet::new(), runtime: runtime.clone() };
        let Lifecycle::New { reflectors, handlers } = std::mem::replace(&mut *lifecycle, started) else {
            return Ok(());
        };
        let Lifecycle::Running { tasks, .. } = &mut *lifecycle else { return Ok(()) };
        let span = info_span!("informer", name = %core.name);
        for reflector in reflectors {
            tasks.spawn_on(reflector(core.clone(), cancel.clone()).instrument(span.clone()), &runtime);
        }
        tasks.spawn_on(apply_all(core.clone(), cancel.clone()).instrument(span.clone()), &runtime);
        for (listener, handler) in handlers {
            tasks.spawn_on(listener.run(handler, core.health.clone()).instrument(span.clone()), &runtime);
        }
        info!(name = %core.name, "informer started");
        Ok(())
    }

    /// Ends the informer and waits until nothing of it runs any more. The cache stays readable.
    ///
    /// Callbacks under way are waited for; events that were not delivered yet are dropped.
    pub async fn stop(&self) {
        let Shared { core, cancel, lifecycle } = &*self.shared;
        cancel.cancel();
        core.applier.lock().processor.close();
        let before = std::mem::replace(&mut *lifecycle.lock(), Lifecycle::Stopped);
        match before {
            Lifecycle::Running { mut tasks, .. } => {
                while tasks.join_next().await.is_some() {}
                info!(name = %core.name, "informer stopped");
            }
            Lifecycle::New { .. } | Lifecycle::Stopped => {}
        }
        core.health.stopped();
    }

    /// True once it has been started, and also after it was stopped.
    pub fn has_started(&self) -> bool {
        !matches!(*self.shared.lifecycle.lock(), Lifecycle::New { .. })
    }

    /// True once it has been stopped.
    pub fn is_stopped(&self) -> bool {
        self.shared.cancel.is_cancelled()
    }

    /// The cache.
    pub fn store(&self) -> Store<T> {
        self.shared.core.store.clone()
    }

    /// The cache, by namespace and labels.
    pub fn lister(&self) -> Lister<T> {
        Lister::new(self.store())
    }

    /// True once the first list is applied. It stays true.
    pub fn is_synced(&self) -> bool {
        self.shared.core.progress.borrow().synced
    }

    /// Waits until the first list is applied.
    ///
    /// # Errors
    ///
    /// [`StoppedError`] if the informer ended before.
    ///
    /// # Cancel safety
    ///
    /// Waiting again is fine.
    pub async fn synced(&self) -> Result<(), StoppedError> {
        let stopped = || StoppedError::Stopped(self.name().to_owned());
        match self.reach(|progress| progress.synced.then_some(Ok::<(), StoppedError>(()))).await {
            Some(outcome) => outcome,
            None => Err(stopped()),
        }
    }

    /// The version up to which the cache reflects every change; `None` before the first list.
    pub fn last_sync_version(&self) -> Option<ResourceVersion> {
        self.shared.core.store.version()
    }

    /// Waits until the cache reflects every change up to a version, such as that of an object just written.
    ///
    /// # Errors
    ///
    /// [`WaitError::Stopped`] if the informer ended before, [`WaitError::VersionsRestarted`] if the server was restored
    /// to an older state meanwhile.
    pub async fn wait_for_version(&self, version: &ResourceVersion) -> Result<(), WaitError> {
        let epoch = self.shared.core.progress.borrow().epoch;
        let reached = self.reach(|progress| {
            if progress.epoch != epoch {
                return Some(Err(WaitError::VersionsRestarted));
            }
            progress.version.as_ref().is_some_and(|now| now.is_at_least(version)).then_some(Ok(()))
        });
        reached.await.unwrap_or_else(|| Err(WaitError::Stopped(self.name().to_owned())))
    }

    /// What the informer is doing, and how well.
    pub fn health(&self) -> Health {
        self.shared.core.health.health()
    }

    /// The same, as it changes.
    pub fn health_changes(&self) -> watch::Receiver<Health> {
        self.shared.core.health.subscribe()
    }

    /// How many changes came and wait to be applied.
    pub fn queued(&self) -> usize {
        self.shared.core.intake.len()
    }

    /// Calls a function with everything that goes wrong. The last one set is called.
    pub fn on_error(&self, hook: impl Fn(&InformerError) + Send + Sync + 'static) {
        self.shared.core.health.set_error_hook(Arc::new(hook));
    }

    /// Calls a closure with each event. It must be brief: it runs on the runtime.
    pub fn on_event<F>(&self, handler: F) -> HandlerHandle
    where
        F: FnMut(Event<T>) + Send + 'static,
    {
        self.register(short_type_name::<F>(), Delivery::default(), AnyHandler::Sync(Box::new(handler)))
    }

    /// Calls an async closure with each event, one at a time. Each call is made on a clone of the closure.
    pub fn on_event_async<F, R>(&self, handler: F) -> HandlerHandle
    where
        F: FnOnce(Event<T>) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let call = move |event| Box::pin(handler.clone()(event)) as futures_util::future::BoxFuture<'static, ()>;
        self.register(short_type_name::<F>(), Delivery::default(), AnyHandler::Async(Box::new(call)))
    }

    /// Adds a handler. It may be added at any time: a late one is told of everything there is, then of every change.
    pub fn add_handler<H: EventHandler<T>>(&self, handler: H) -> HandlerHandle {
        self.add_handler_with(handler, Delivery::default())
    }

    /// Adds a handler, and says how it is told when it is slow.
    pub fn add_handler_with<H: EventHandler<T>>(&self, mut handler: H, delivery: Delivery) -> HandlerHandle {
        let call = move |event| handler.on_event(event);
        self.register(short_type_name::<H>(), delivery, AnyHandler::Sync(Box::new(call)))
    }

    /// Adds a named index, filled from what is there, and kept in step from then on.
    ///
    /// The function depends on the object only, and returns none, one or many values. Added again with the same function
    /// it gives the same index.
    ///
    /// # Errors
    ///
    /// [`IndexError::Exists`] if the name is taken by another function.
    pub fn add_index<F, V>(&self, name: &str, function: F) -> Result<Index<T>, IndexError>
    where
        F: Fn(&T) -> V + Send + Sync + 'static,
        V: IndexValues,
    {
        let Core { health, applier, .. } = &*self.shared.core;
        let (health, index) = (health.clone(), name.to_owned());
        let report = move |key: crate::object::KeyRef<'_>, message| {
            health.report(&InformerError::Index { index: index.clone(), key: key.into(), message });
        };
        applier.lock().writer().add_index(name, TypeId::of::<F>(), index_function(function, report))
    }

    /// Waits until `look` finds what it looks for in the progress; `None` if the informer ends before.
    async fn reach<R>(&self, mut look: impl FnMut(&Progress) -> Option<R>) -> Option<R> {
        let mut progress = self.shared.core.progress.clone();
        let found = async {
            loop {
                let found = look(&progress.borrow_and_update());
                if found.is_some() || progress.changed().await.is_err() {
                    return found;
                }
            }
        };
        tokio::select! {
            biased;
            found = found => found,
            () = self.shared.cancel.cancelled() => None,
        }
    }

    fn register(&self, name: String, delivery: Delivery, handler: AnyHandler<T>) -> HandlerHandle {
        let Shared { core, lifecycle, .. } = &*self.shared;
        let id = core.next_handler.fetch_add(1, Ordering::Relaxed);
        let listener = Arc::new(Listener::new(id, name, delivery));
        let mut lifecycle = lifecycle.lock();
        match &mut *lifecycle {
            Lifecycle::New { handlers, .. } => {
                core.listen(listener.clone());
                handlers.push((listener.clone(), handler));
            }
            Lifecycle::Running { tasks, runtime } => {
                while tasks.try_join_next().is_some() {} // Handlers that were removed meanwhile.
                core.listen(listener.clone());
                let span = info_span!("informer", name = %core.name);
                tasks.spawn_on(listener.clone().run(handler, core.health.clone()).instrument(span), runtime);
            }
            Lifecycle::Stopped => listener.never_runs(),
        }
        let weak = Arc::downgrade(core);
        HandlerHandle::new(listener, move |id| {
            if let Some(core) = weak.upgrade() {
                core.applier.lock().processor.remove(id);
            }
        })
    }
}

impl<T: Object> Core<T> {
    /// From this moment on the listener is told of changes, behind a replay of what is known: both under one lock.
    fn listen(&self, listener: Arc<Listener<T>>) {
        let mut applier = self.applier.lock();
        let (known, synced) = (self.store.snapshot(), applier.is_synced());
        applier.processor.add(listener, known, synced);
    }
}

/// Applies whatever the reflectors push, until cancelled.
async fn apply_all<T: Object>(core: Arc<Core<T>>, cancel: CancellationToken) {
    let forever = async {
        loop {
            let batch = core.intake.pop_batch().await;
            core.applier.lock().apply(batch);
        }
    };
    cancel.run_until_cancelled(forever).await;
}

/// What a reflector of an informer writes to.
struct CoreSink<T> {
    core: Arc<Core<T>>,
    scope: Scope,
}

impl<T: Object> Sink<T> for CoreSink<T> {
    async fn push(&mut self, delta: Delta<T>) {
        self.core.intake.push(delta).await;
    }

    fn phase(&mut self, phase: Phase) {
        self.core.health.phase(&self.scope, phase);
    }

    fn contact(&mut self) {
        self.core.health.contact(&self.scope);
    }

    fn failed(&mut self, error: &ReflectorError) {
        let error = InformerError::Reflector { scope: self.scope.clone(), error: error.clone() };
        self.core.health.report(&error);
    }
}

fn boxed<T: Object, L: ListWatch<T>>(source: L) -> BoxedSource<T> {
    Box::new(move |options: ReflectorOptions| {
        Box::new(move |core, cancel| {
            let sink = CoreSink { core, scope: options.scope.clone() };
            Box::pin(Reflector::new(source, sink, options).run(cancel))
        })
    })
}

impl<T: Object> InformerBuilder<T> {
    /// The name that logs and messages use; the type's name unless given.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Whether to ask for the initial state by a watch where the source can. On unless said otherwise.
    #[must_use]
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.options.streaming = streaming;
        self
    }

    /// How many objects a list asks for at a time.
    #[must_use]
    pub fn page_size(mut self, page_size: usize) -> Self {
        self.options.page_size = Some(page_size);
        self
    }

    /// The shortest time a watch is asked to last; the longest is twice that.
    #[must_use]
    pub fn watch_timeout(mut self, timeout: Duration) -> Self {
        self.options.watch_timeout = timeout;
        self
    }

    /// How long a list or an initial stream may stand still before it is given up.
    #[must_use]
    pub fn progress_deadline(mut self, deadline: Duration) -> Self {
        self.options.progress_deadline = deadline;
        self
    }

    /// How long to wait between attempts.
    #[must_use]
    pub fn backoff(mut self, backoff: BackoffOptions) -> Self {
        self.options.backoff = backoff;
        self
    }

    /// Where all chance comes from, so that a run can be repeated.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// The informer, not started yet.
    pub fn build(self) -> SharedInformer<T> {
        let scopes: Vec<Scope> = self.sources.iter().map(|(scope, _)| scope.clone()).collect();
        let health = HealthBoard::new(scopes.clone());
        let (store, writer) = Store::new(self.options.seed);
        let applier = Applier::new(writer, scopes, health.clone());
        let progress = applier.progress();
        let core = Core {
            name: self.name,
            store,
            applier: Mutex::new(applier),
            intake: Intake::new(),
            health,
            progress,
            next_handler: AtomicU64::new(0),
        };
        let reflectors = self.sources.into_iter().zip(0..).map(|((scope, source), number)| {
            let seed = self.options.seed.wrapping_add(number);
            source(ReflectorOptions { scope, seed, ..self.options.clone() })
        });
        let lifecycle = Mutex::new(Lifecycle::New { reflectors: reflectors.collect(), handlers: Vec::new() });
        SharedInformer {
            shared: Arc::new(Shared { core: Arc::new(core), cancel: CancellationToken::new(), lifecycle }),
        }
    }
}

/// The last part of a type's name: enough to tell handlers apart.
fn short_type_name<K>() -> String {
    let name = std::any::type_name::<K>();
    let name = name.split('<').next().unwrap_or(name);
    name.rsplit("::").find(|part| !part.starts_with("{{")).unwrap_or(name).to_owned()
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl<T> Clone for SharedInformer<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
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

impl<T> fmt::Debug for InformerBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerBuilder")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
