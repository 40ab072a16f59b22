//! One informer: a cache that keeps itself in step with the server, and tells everybody who asked.

mod any;
mod builder;
mod error;
mod registration;
mod tasks;
mod verify;
mod waiting;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, info, info_span};

pub use self::any::{AnyEvent, AnyInformer, EventKind};
pub use self::builder::InformerBuilder;
use self::builder::ReflectorStart;
pub use self::error::{StartError, StillRunning, VerifyError, WaitError};
pub use self::registration::Registration;
use self::tasks::{apply_all, keep_time, supervised};
pub use self::verify::Difference;
use self::verify::Questions;
pub use self::waiting::Waiting;
use crate::apply::{Applier, Changes, ChangesSink, Outdated, Progress, Writing};
use crate::health::{Health, HealthBoard, InformerError};
use crate::lister::Lister;
use crate::object::{KeyRef, Object, ResourceType, ResourceVersion};
use crate::processor::Listener;
use crate::source::ListWatch;
use crate::store::Store;

/// A cache of one collection that keeps itself in step with the server, and tells any number of handlers of every change.
///
/// Cloning gives another handle. The informer runs as long as one of them, a [`HandlerGuard`](crate::processor::HandlerGuard)
/// or the factory it came from does. What handlers may rely on is in [`processor`](crate::processor).
///
/// client-go's `SharedIndexInformer`. What differs: handlers and indexes can be added at any time, each handler has its own
/// bounded mailbox, and the informer says how it does.
///
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{SharedInformer, source::kube::KubeSource};
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
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    core: Arc<Core<T>>,
    cancel: CancellationToken,
    lifecycle: Mutex<Lifecycle<T>>,
    /// The tasks of an informer that is being stopped.
    ending: tokio::sync::Mutex<JoinSet<()>>,
}

/// What the tasks of an informer share. It does not keep them running.
struct Core<T> {
    name: String,
    /// How many informers this program had made before.
    number: u64,
    resource: Option<ResourceType>,
    store: Store<T>,
    sink: ChangesSink<T>,
    outdated: Outdated,
    writing: Arc<Mutex<Writing<T>>>,
    health: HealthBoard,
    progress: watch::Receiver<Progress>,
    /// How often a relist was asked for: one for each reflector, so that they are woken in their order.
    relists: Vec<watch::Sender<u64>>,
    /// When everything was last asked for because the cache did not catch up by itself.
    caught_up: Mutex<Option<Instant>>,
    /// What can be asked of the sources; nothing once stopped.
    questions: Mutex<Vec<Questions>>,
    resync_period: Option<Duration>,
    figures: Figures,
    /// Called once, when the informer has stopped.
    on_stop: Mutex<Option<OnStop>>,
}

/// What the representation has to say.
type Figures = Box<dyn Fn() -> Vec<(&'static str, f64)> + Send + Sync>;
type OnStop = Box<dyn FnOnce(Ended) + Send>;

/// How an informer came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Somebody stopped it.
    Asked,
    /// A part of it panicked, or its runtime went.
    ByItself,
}

enum Lifecycle<T> {
    New { reflectors: Vec<ReflectorStart<T>>, applier: Applier<T>, changes: Changes<T>, handlers: Vec<Waiter<T>> },
    Running { tasks: JoinSet<()>, runtime: Handle },
    Stopped,
}

/// A handler that waits for the start.
type Waiter<T> = (Arc<Listener<T>>, BoxFuture<'static, ()>);

impl<T: Object> SharedInformer<T> {
    /// Configures an informer over a source.
    pub fn builder(source: impl ListWatch<T>) -> InformerBuilder<T> {
        InformerBuilder::new([(None, source)])
    }

    /// The name that logs, messages and metrics use.
    pub fn name(&self) -> &str {
        &self.shared.core.name
    }

    /// Starts it on the runtime that this is called on. A second start does nothing.
    ///
    /// # Errors
    ///
    /// [`StartError::NoRuntime`] outside of a runtime, [`StartError::Stopped`] if it has been stopped.
    pub fn start(&self) -> Result<(), StartError> {
        let Shared { core, cancel, lifecycle, .. } = &*self.shared;
        let mut lifecycle = lifecycle.lock();
        match &*lifecycle {
            Lifecycle::Running { .. } if cancel.is_cancelled() => return Err(StartError::Stopped(core.name.clone())),
            Lifecycle::Running { .. } => return Ok(()),
            Lifecycle::Stopped => return Err(StartError::Stopped(core.name.clone())),
            Lifecycle::New { .. } => {}
        }
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let started = Lifecycle::Running { tasks: JoinSet::new(), runtime: runtime.clone() };
        let before = std::mem::replace(&mut *lifecycle, started);
        let Lifecycle::New { reflectors, applier, changes, handlers } = before else { return Ok(()) };
        let Lifecycle::Running { tasks, .. } = &mut *lifecycle else { return Ok(()) };
        core.health.take_metrics(core.resource.as_ref());
        let resync_check = core.writing.lock().processor.start();
        let mut spawn = |part, work: BoxFuture<'static, ()>| {
            tasks.spawn_on(supervised(part, work, core.clone(), cancel.clone()).instrument(core.span()), &runtime);
        };
        for reflector in reflectors {
            spawn("the reflector", reflector(core.clone(), cancel.clone()));
        }
        spawn("the applier", Box::pin(apply_all(core.clone(), applier, changes, cancel.clone())));
        spawn("the clock", Box::pin(keep_time(core.clone(), resync_check, cancel.clone())));
        for (_, delivery) in handlers.into_iter().filter(|(listener, _)| listener.starts()) {
            tasks.spawn_on(delivery.instrument(core.span()), &runtime);
        }
        info!(name = %core.name, "informer started");
        Ok(())
    }

    /// Ends it, and waits until nothing of it runs any more: for as long as the last call of a handler takes.
    ///
    /// From inside a handler it ends the informer and does not wait.
    pub async fn stop(&self) {
        let Shared { core, cancel, lifecycle, ending } = &*self.shared;
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

    /// The same, but waits no longer than this for handlers whose call does not return. They are then given up.
    ///
    /// # Errors
    ///
    /// [`StillRunning`] names those handlers. The informer has stopped all the same, and says so.
    pub async fn stop_within(&self, limit: Duration) -> Result<(), StillRunning> {
        if tokio::time::timeout(limit, self.stop()).await.is_ok() {
            return Ok(());
        }
        let handlers = self.shared.core.writing.lock().processor.running();
        if let Ok(mut ending) = self.shared.ending.try_lock() {
            // A callback that waits is dropped; one that blocks goes on until it returns.
            ending.abort_all();
        }
        Err(StillRunning { name: self.name().to_owned(), handlers })
    }

    /// True once it has been stopped, or its runtime has gone.
    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.cancel.is_cancelled()
    }

    /// The cache.
    pub fn store(&self) -> Store<T> {
        self.shared.core.store.clone()
    }

    /// The cache by namespace and labels.
    pub fn lister(&self) -> Lister<T> {
        Lister::new(self.store())
    }

    /// True once the first list is in the cache.
    #[cfg(feature = "kube")]
    pub(crate) fn is_synced(&self) -> bool {
        self.shared.core.progress.borrow().synced
    }

    /// Waits until the first list is in the cache: for ever, unless it is given a limit with [`Waiting::within`].
    ///
    /// A server that refuses to answer keeps it waiting; set a limit, or an [error hook](SharedInformer::on_error).
    pub fn synced(&self) -> Waiting<'static, ()> {
        let (informer, seen) = (self.clone(), self.clone());
        let wait = async move { informer.reach(|progress| progress.synced.then_some(())).await };
        Waiting::new(wait, move || format!("{} is {}", seen.name(), seen.health()))
    }

    /// Waits until the cache reflects every change up to a version, such as that of an object just written.
    ///
    /// On a quiet collection that can take until the server's next bookmark, about a minute. It fails with
    /// [`WaitError::VersionsRestarted`] if the server was restored to an older state and the version is from before that,
    /// and with [`WaitError::NotComparable`] if nobody can tell which of two versions is older.
    pub fn wait_for_version(&self, version: &ResourceVersion) -> Waiting<'static, ()> {
        let (informer, seen, version) = (self.clone(), self.clone(), version.clone());
        let wait = async move { informer.reach_version(&version).await };
        Waiting::new(wait, move || match seen.store().version() {
            Some(version) => format!("{} is at version {version}, {}", seen.name(), seen.health()),
            None => format!("{} is {}", seen.name(), seen.health()),
        })
    }

    /// Waits until an object is as it should be, or is gone: whatever the predicate says of its present state.
    pub fn wait_for<'w, 'k>(
        &self,
        key: impl Into<KeyRef<'k>>,
        mut predicate: impl FnMut(Option<&T>) -> bool + Send + 'w,
    ) -> Waiting<'w, Option<Arc<T>>> {
        let (informer, seen, key) = (self.clone(), self.clone(), crate::ObjectKey::from(key.into()));
        let wanted = key.clone();
        let wait = async move {
            let look = |_: &Progress| {
                let object = informer.shared.core.store.get(&wanted);
                predicate(object.as_deref()).then_some(object)
            };
            informer.reach(look).await
        };
        Waiting::new(wait, move || match seen.store().get(&key) {
            Some(object) => {
                format!("{key} is there at version {}, and {} is {}", object.id().version, seen.name(), seen.health())
            }
            None => format!("{key} is not there, and {} is {}", seen.name(), seen.health()),
        })
    }

    /// Asks the server for everything again, in its most recent state, and waits until the answer is applied. What is
    /// unchanged is not announced. Asked for before the start, the first list is the answer.
    pub fn relist(&self) -> Waiting<'static, ()> {
        let mut request = 0;
        for requests in self.shared.core.relists.iter() {
            requests.send_modify(|requests| {
                *requests += 1;
                request = request.max(*requests);
            });
        }
        let (informer, seen) = (self.clone(), self.clone());
        let wait = async move { informer.reach(|progress| (progress.relists >= request).then_some(())).await };
        Waiting::new(wait, move || format!("{} is {}", seen.name(), seen.health()))
    }

    /// Waits until the cache reflects everything that the server has at this moment, as a read from the server would: before
    /// a program acts for the first time, or after a write whose answer was lost.
    ///
    /// The server is asked how far it is. If the cache does not get there at once, as on a collection where nothing changes,
    /// everything is asked for again, though not for this reason more than twice a minute.
    pub fn caught_up(&self) -> Waiting<'static, ()> {
        let (informer, seen) = (self.clone(), self.clone());
        let wait = async move {
            informer.reach(|progress| progress.synced.then_some(())).await?;
            if verify::is_up_to_date(&informer).await { Ok(()) } else { informer.relist().await }
        };
        Waiting::new(wait, move || format!("{} is {}", seen.name(), seen.health()))
    }

    /// Compares the cache with the server, by keys, uids and versions, and gives what is not the same.
    ///
    /// A healthy informer has no differences: what changes meanwhile is told apart by asking twice.
    ///
    /// # Errors
    ///
    /// [`VerifyError`] if the server could not be asked.
    pub async fn verify(&self) -> Result<Vec<Difference>, VerifyError> {
        verify::verify(self).await
    }

    /// What the informer is doing, and how well.
    pub fn health(&self) -> Health {
        self.shared.core.health()
    }

    /// The same, as it changes; figures that change all the time are as of the last other change.
    pub fn health_changes(&self) -> watch::Receiver<Health> {
        self.shared.core.health.subscribe()
    }

    /// Calls a function with everything that goes wrong. The last one set is called; without one, problems are warned of.
    pub fn on_error(&self, hook: impl Fn(&InformerError) + Send + Sync + 'static) {
        self.shared.core.health.set_error_hook(Arc::new(hook));
    }

    /// The same informer without its type.
    pub fn any(&self) -> AnyInformer {
        AnyInformer::new(&self.shared)
    }

    /// Calls a function once it has stopped, however that happens.
    #[cfg(feature = "kube")]
    pub(crate) fn on_stop(&self, call: impl FnOnce(Ended) + Send + 'static) {
        *self.shared.core.on_stop.lock() = Some(Box::new(call));
    }

    async fn reach_version(&self, version: &ResourceVersion) -> Result<(), WaitError> {
        let core = &self.shared.core;
        let epoch = core.progress.borrow().epoch;
        loop {
            let reached = self.reach(|progress| {
                if progress.epoch != epoch {
                    return Some(Err(WaitError::VersionsRestarted));
                }
                let now = progress.version.as_ref()?;
                match now.compare(version) {
                    Some(order) => order.is_ge().then_some(Ok(())),
                    None => Some(Err(WaitError::NotComparable { version: version.clone(), now: now.clone() })),
                }
            });
            if epoch == 0 {
                return reached.await?;
            }
            if let Ok(outcome) = tokio::time::timeout(verify::DOUBT, reached).await {
                return outcome?;
            }
            // A version from before a restore is never reached, though the server may come to count as far again one day.
            if verify::newest_version(self).await.is_some_and(|newest| newest.is_older_than(version)) {
                return Err(WaitError::VersionsRestarted);
            }
        }
    }

    /// Waits until `look` finds what it looks for.
    async fn reach<R>(&self, mut look: impl FnMut(&Progress) -> Option<R>) -> Result<R, WaitError> {
        let mut progress = self.shared.core.progress.clone();
        let found = async {
            loop {
                let now = progress.borrow_and_update().clone();
                if let Some(found) = look(&now) {
                    return Some(found);
                }
                if progress.changed().await.is_err() {
                    return None;
                }
            }
        };
        let found = tokio::select! {
            biased;
            found = found => found,
            () = self.shared.cancel.cancelled() => None,
        };
        found.ok_or_else(|| WaitError::Stopped(self.name().to_owned()))
    }
}

impl<T: Object> Core<T> {
    fn span(&self) -> Span {
        info_span!("informer", name = %self.name)
    }

    fn health(&self) -> Health {
        Health {
            objects: self.store.len(),
            queued: self.sink.len(),
            handlers: self.writing.lock().processor.handlers(),
            figures: (self.figures)(),
            ..self.health.health()
        }
    }

    /// Nothing more is learnt, applied or told, and everybody who asks hears so. Again does nothing.
    fn end(&self, cancel: &CancellationToken, how: Ended) {
        cancel.cancel();
        self.writing.lock().processor.close();
        self.questions.lock().clear();
        self.health.stopped();
        let on_stop = self.on_stop.lock().take();
        if let Some(on_stop) = on_stop {
            on_stop(how);
        }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Equal if both are handles to the same informer.
impl<T> PartialEq for SharedInformer<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T> Eq for SharedInformer<T> {}

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
