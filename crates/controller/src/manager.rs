//! A whole program: caches, an election, controllers, and tasks beside them.

mod probe;
mod signals;
mod tasks;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kube_informer::{Object, SharedInformerFactory, StartError, StillRunning, WaitError};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

pub use self::probe::Probe;
use self::probe::{Placement, Watched};
use self::tasks::{RunningTasks, Task};
use crate::controller::{Action, BoxError, Controller, Request, RunError};
use crate::elector::LeaderElector;
use crate::term::Term;

/// Runs the informers of a factory, an election, controllers and [tasks](Self::task) as one program.
///
/// When the program is asked to end, it does four steps. The controllers accept no more keys, and finish the keys that
/// wait. Then the elector releases the lease. Then the tasks stop, the last one first. Then the informers stop. Each step
/// has a limit, and by default all steps together take less than the 30 seconds that Kubernetes gives a program to end.
///
/// When leadership is lost, the controllers that run only on the leader drop all work at once. The informers keep the
/// caches up to date, the other controllers and the tasks continue, and the program stands by.
///
/// ```
/// use std::sync::Arc;
/// use kube_controller::{Controller, ElectionSettings, LeaderElector, Manager, Action, Request};
/// use kube_informer::{CancellationToken, SharedInformerFactory};
/// use k8s_openapi::api::core::v1::Pod;
///
/// async fn reconcile(request: Request<Pod>, cancel: Arc<CancellationToken>) -> Result<Action, std::fmt::Error> {
///     println!("{}", request.key());
///     cancel.cancel(); // Enough for an example.
///     Ok(Action::await_change())
/// }
///
/// # doc_server::with(async |server| {
/// let factory = SharedInformerFactory::new(server.client());
/// let pods = factory.informer::<Pod>()?;
/// let elector = LeaderElector::new(server.client(), "web/pods", "pod-1", ElectionSettings::default())?;
/// let cancel = CancellationToken::new();
/// Manager::new(factory)
///     .elect(elector)
///     .control(Controller::new(&pods), reconcile, Arc::new(cancel.clone()))
///     .run(cancel) // Or `run_until_signal()`.
///     .await?;
/// # Ok(()) });
/// ```
pub struct Manager {
    factory: SharedInformerFactory,
    elector: Option<Arc<LeaderElector>>,
    controllers: Vec<Managed>,
    tasks: Vec<Task>,
    sync: Duration,
    stop_tasks: Duration,
}

/// How long the tasks wait for the caches by default.
const SYNC: Duration = Duration::from_secs(120);
/// How long all tasks together may take to stop by default.
const STOP_TASKS: Duration = Duration::from_secs(2);
/// How long handlers may take to return at the end.
const STOP: Duration = Duration::from_secs(5);

/// A controller with its reconcile function, without their types.
struct Managed {
    run: Box<dyn Fn(Term) -> ControllerRun + Send + Sync>,
    watched: Watched,
}

type ControllerRun = BoxFuture<'static, Result<(), RunError>>;

/// Why a program ended by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// The informers could not be started.
    #[error("cannot start the informers")]
    Start(#[from] StartError),
    /// Two controllers have this name. Logs, metrics and errors could not tell them apart.
    #[error("two controllers are named {0:?}: give one of them another name with `Controller::name`")]
    SameName(String),
    /// A controller ended by itself.
    #[error("a controller has ended")]
    Controller(#[from] RunError),
    /// A task ended with an error.
    #[error("task {name:?} has failed")]
    Task {
        /// Which task.
        name: String,
        /// Its error.
        source: BoxError,
    },
    /// A task panicked.
    #[error("task {name:?} panicked")]
    TaskPanicked {
        /// Which task.
        name: String,
        /// The message of the panic.
        source: tokio::task::JoinError,
    },
    /// Tasks did not stop in time, and were aborted.
    #[error("tasks did not stop within {within:?} (see `Manager::stop_tasks_within`) and were aborted: {}", names.join(", "))]
    TasksAborted {
        /// The limit.
        within: Duration,
        /// The tasks that had not ended.
        names: Vec<String>,
    },
    /// The caches did not sync in time, or an informer stopped, so the tasks were not started.
    #[error("the tasks cannot start without the caches (see `Manager::sync_within`)")]
    NotSynced(#[source] WaitError),
    /// The informers have stopped, but a handler has not returned.
    #[error("a handler has not returned")]
    StillRunning(#[from] StillRunning),
    /// The program received a second signal before everything had finished.
    #[error("a second signal ended the program at once: work that had begun was dropped")]
    CutOff,
    /// The program cannot listen for signals.
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
}

impl Manager {
    /// Makes a manager that runs the informers of a factory.
    pub fn new(factory: SharedInformerFactory) -> Self {
        Self { factory, elector: None, controllers: Vec::new(), tasks: Vec::new(), sync: SYNC, stop_tasks: STOP_TASKS }
    }

    /// Makes the controllers run only while this program leads, except for those [on every
    /// replica](Self::control_on_every_replica).
    #[must_use]
    pub fn elect(mut self, elector: LeaderElector) -> Self {
        self.elector = Some(Arc::new(elector));
        self
    }

    /// Adds a controller, its reconcile function, and the context of that function. With an [election](Self::elect), the
    /// controller runs only while this program leads.
    #[must_use]
    pub fn control<T, C, F, R, E>(self, controller: Controller<T>, reconcile: F, context: Arc<C>) -> Self
    where
        T: Object,
        C: Send + Sync + 'static,
        F: Fn(Request<T>, Arc<C>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.add(Placement::OnlyLeader, controller, reconcile, context)
    }

    /// Adds a controller that runs on every replica of the program, whether this replica leads or not. It is for work
    /// that each replica needs, such as an index for its own webhook server.
    ///
    /// Its requests have a term that is never lost. So a write of such a controller competes with the same write of the
    /// other replicas.
    #[must_use]
    pub fn control_on_every_replica<T, C, F, R, E>(
        self,
        controller: Controller<T>,
        reconcile: F,
        context: Arc<C>,
    ) -> Self
    where
        T: Object,
        C: Send + Sync + 'static,
        F: Fn(Request<T>, Arc<C>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.add(Placement::EveryReplica, controller, reconcile, context)
    }

    fn add<T, C, F, R, E>(
        mut self,
        placement: Placement,
        controller: Controller<T>,
        reconcile: F,
        context: Arc<C>,
    ) -> Self
    where
        T: Object,
        C: Send + Sync + 'static,
        F: Fn(Request<T>, Arc<C>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let controller = Arc::new(controller);
        let (reconcile, watched) = (Arc::new(reconcile), controller.handle());
        let run = move |term: Term| {
            let (controller, reconcile, context) = (controller.clone(), reconcile.clone(), context.clone());
            async move { controller.run(term, move |request, context| reconcile(request, context), context).await }
                .boxed()
        };
        let watched = Watched { status: Arc::new(move || watched.status()), placement };
        self.controllers.push(Managed { run: Box::new(run), watched });
        self
    }

    /// Adds a task of the program, such as a webhook server or a gRPC server. It runs on every replica, whether this
    /// replica leads or not.
    ///
    /// The task starts when the caches are synced. It is asked to stop, by its token, when the controllers have ended and
    /// the lease is released: until then a webhook server answers requests that the controllers cause. The tasks stop
    /// one after another, the last one that was added first. A task that has not ended [in time](Self::stop_tasks_within)
    /// is aborted.
    ///
    /// A conversion webhook that the caches themselves need has to start before the manager: a task waits for the caches.
    ///
    /// A task that returns `Ok` before it is asked to stop has done its work: the program continues. A task that returns
    /// an error or panics ends the program with [`ManagerError::Task`] or [`ManagerError::TaskPanicked`].
    ///
    /// ```
    /// use kube_controller::Manager;
    /// use kube_informer::{CancellationToken, SharedInformerFactory};
    /// use tokio::net::TcpListener;
    ///
    /// # doc_server::with(async |server| {
    /// let cancel = CancellationToken::new();
    /// # let end = cancel.clone();
    /// Manager::new(SharedInformerFactory::new(server.client()))
    ///     .task("greeter", async move |stop: CancellationToken| {
    ///         let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///         # end.cancel();
    ///         while let Some(connection) = stop.run_until_cancelled(listener.accept()).await {
    ///             connection?.0.try_write(b"hello")?;
    ///         }
    ///         Ok::<_, std::io::Error>(())
    ///     })
    ///     .run(cancel)
    ///     .await?;
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn task<F, R, E>(mut self, name: impl Into<String>, task: F) -> Self
    where
        F: FnOnce(CancellationToken) -> R + Send + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let run = |stop| async move { task(stop).await.map_err(Into::into) }.boxed();
        self.tasks.push(Task { name: name.into(), run: Box::new(run) });
        self
    }

    /// Sets how long the [tasks](Self::task) wait until all informers of the factory are synced; 2 minutes by default.
    /// After that the program ends with [`ManagerError::NotSynced`], which names the informers.
    /// [`Controller::sync_within`] is the limit for a controller.
    #[must_use]
    pub fn sync_within(mut self, limit: Duration) -> Self {
        self.sync = limit;
        self
    }

    /// Sets how long all [tasks](Self::task) together may take to stop; 2 s by default. Those that take longer are
    /// aborted, and the program ends with [`ManagerError::TasksAborted`], which names them.
    #[must_use]
    pub fn stop_tasks_within(mut self, limit: Duration) -> Self {
        self.stop_tasks = limit;
        self
    }

    /// Returns the probe, which reports whether the program is live and ready. Take it before the program runs.
    pub fn probe(&self) -> Probe {
        Probe {
            factory: self.factory.clone(),
            elector: self.elector.clone(),
            controllers: self.controllers.iter().map(|controller| controller.watched.clone()).collect(),
        }
    }

    /// Runs until `cancel` is cancelled, and ends in order.
    ///
    /// # Errors
    ///
    /// [`ManagerError`] if it could not start, or if a controller or a task failed. In the second case the rest of the
    /// program is asked to end, too.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the controllers and aborts the tasks. The lease is not released; it expires.
    pub async fn run(self, cancel: CancellationToken) -> Result<(), ManagerError> {
        let mut names = HashSet::new();
        if let Some(name) =
            self.controllers.iter().map(|known| (known.watched.status)().name).find(|name| !names.insert(name.clone()))
        {
            return Err(ManagerError::SameName(name));
        }
        let Self { factory, elector, controllers, tasks, sync, stop_tasks } = self;
        let failure = FirstFailure { ended: cancel.child_token(), first: Mutex::new(Ok(())) };
        let waits = |known: &Managed| elector.is_some() && known.watched.placement == Placement::OnlyLeader;
        let (leading, everywhere): (Vec<_>, Vec<_>) = controllers.into_iter().partition(waits);
        let everywhere = Acting::begin(&everywhere, Term::from(failure.ended.clone()), &failure).await;
        // From now on the caches are filled, also those of controllers that wait for their term.
        factory.start()?;
        let acted = CancellationToken::new();
        let act = async {
            let lead = async {
                let Some(elector) = &elector else { return };
                let (leading, failure) = (&leading, &failure);
                elector
                    .run(failure.ended.clone(), |term| async move {
                        Acting::begin(leading, term, failure).await.finish().await;
                    })
                    .await;
            };
            tokio::join!(everywhere.finish(), lead);
            acted.cancel();
        };
        let run_tasks = async {
            if tasks.is_empty() {
                return;
            }
            let synced = failure.ended.run_until_cancelled(factory.synced().within(sync)).await;
            let Some(synced) = synced else { return };
            if let Err(error) = synced {
                return failure.note(ManagerError::NotSynced(error));
            }
            let mut tasks = RunningTasks::start(tasks);
            while let Some(error) = acted.run_until_cancelled(tasks.failure()).await {
                failure.note(error);
            }
            if let Err(error) = tasks.stop(stop_tasks).await {
                failure.note(error);
            }
        };
        tokio::join!(act, run_tasks);
        let stopped = factory.stop_within(STOP).await;
        let outcome = failure.first.into_inner().and(stopped.map_err(Into::into));
        match &outcome {
            Ok(()) => info!("stopped"),
            Err(error) => error!(%error, "stopped"),
        }
        outcome
    }

    /// Runs until the program receives a signal (interrupt or terminate), and ends in order. A second signal ends it at
    /// once.
    ///
    /// # Errors
    ///
    /// As [`Manager::run`], and [`ManagerError::CutOff`] after a second signal.
    pub async fn run_until_signal(self) -> Result<(), ManagerError> {
        let cancel = CancellationToken::new();
        let mut signals = signals::Signals::new().map_err(ManagerError::Signals)?;
        let told = cancel.clone();
        tokio::select! {
            biased;
            () = async {
                signals.next().await;
                info!("received a signal to end");
                told.cancel();
                signals.next().await;
            } => Err(ManagerError::CutOff),
            outcome = self.run(cancel) => outcome,
        }
    }
}

/// The first failure in a program. It ends the rest of the program.
struct FirstFailure {
    /// Cancelled when the program has to end.
    ended: CancellationToken,
    first: Mutex<Result<(), ManagerError>>,
}

impl FirstFailure {
    fn note(&self, error: ManagerError) {
        self.ended.cancel();
        let mut first = self.first.lock();
        if first.is_ok() {
            *first = Err(error);
            return;
        }
        drop(first);
        warn!(%error, "another failure while the program ends");
    }
}

/// Controllers that run for one term.
struct Acting<'m> {
    term: Term,
    /// True if there is no controller to run.
    idle: bool,
    running: FuturesUnordered<ControllerRun>,
    failure: &'m FirstFailure,
}

impl<'m> Acting<'m> {
    /// Polls each controller once: the first poll asks for the most recent state, so it comes before the factory starts
    /// the informers.
    async fn begin(controllers: &[Managed], term: Term, failure: &'m FirstFailure) -> Self {
        let acting = Self { term, idle: controllers.is_empty(), running: FuturesUnordered::new(), failure };
        for controller in controllers {
            let mut run = (controller.run)(acting.term.clone());
            match futures_util::poll!(&mut run) {
                Poll::Ready(outcome) => acting.note(outcome),
                Poll::Pending => acting.running.push(run),
            }
        }
        acting
    }

    /// Runs the controllers until they have ended. If one fails, the others are asked to end, and they finish their work.
    /// So no controller acts when the lease is released.
    async fn finish(mut self) {
        while let Some(outcome) = self.running.next().await {
            self.note(outcome);
        }
        if self.idle {
            self.term.ending().await;
        }
    }

    fn note(&self, outcome: Result<(), RunError>) {
        match outcome {
            // The program stands by again.
            Ok(()) | Err(RunError::LeadershipLost(_)) => {}
            Err(error) => self.failure.note(error.into()),
        }
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Manager").field(&self.probe()).finish()
    }
}
