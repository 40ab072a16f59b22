//! A whole program: caches, an election, and controllers.

mod signals;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kube_informer::{
    AnyProbe, ElectionHealth, Health, Object, Problem, SharedInformerFactory, StartError, StillRunning,
};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::controller::{Action, BoxError, Controller, ControllerPhase, ControllerStatus, Request, RunError};
use crate::elector::LeaderElector;
use crate::term::Term;

/// Runs the informers of a factory, an election and controllers as one program.
///
/// When the program is asked to end, it does three steps. The controllers accept no more keys, and finish the keys that
/// wait. Then the elector releases the lease. Then the informers stop. Each step has a limit, and by default all steps
/// together take less than the 30 seconds that Kubernetes gives a program to end.
///
/// When leadership is lost, the controllers drop all work at once. The informers keep the caches up to date, and the
/// program stands by.
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
}

/// How long after the end of its term a leader may take to notice it.
const OVERDUE: Duration = Duration::from_secs(20);
/// How long handlers may take to return at the end.
const STOP: Duration = Duration::from_secs(5);

/// A controller with its reconcile function, without their types.
struct Managed {
    run: Box<dyn Fn(Term) -> BoxFuture<'static, Result<(), RunError>> + Send + Sync>,
    status: Arc<dyn Fn() -> ControllerStatus + Send + Sync>,
}

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
        Self { factory, elector: None, controllers: Vec::new() }
    }

    /// Makes the controllers run only while this program leads.
    #[must_use]
    pub fn elect(mut self, elector: LeaderElector) -> Self {
        self.elector = Some(Arc::new(elector));
        self
    }

    /// Adds a controller, its reconcile function, and the context of that function.
    #[must_use]
    pub fn control<T, C, F, R, E>(mut self, controller: Controller<T>, reconcile: F, context: Arc<C>) -> Self
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
        self.controllers.push(Managed { run: Box::new(run), status: Arc::new(move || watched.status()) });
        self
    }

    /// Returns the probe, which reports whether the program is live and ready. Take it before the program runs.
    pub fn probe(&self) -> Probe {
        Probe {
            factory: self.factory.clone(),
            elector: self.elector.clone(),
            controllers: self.controllers.iter().map(|controller| controller.status.clone()).collect(),
        }
    }

    /// Runs until `cancel` is cancelled, and ends in order.
    ///
    /// # Errors
    ///
    /// [`ManagerError`] if it could not start, or if a controller ended by itself. In the second case all other
    /// controllers are asked to end, too.
    pub async fn run(self, cancel: CancellationToken) -> Result<(), ManagerError> {
        let mut names = HashSet::new();
        if let Some(name) =
            self.controllers.iter().map(|known| (known.status)().name).find(|name| !names.insert(name.clone()))
        {
            return Err(ManagerError::SameName(name));
        }
        let outcome = match &self.elector {
            None => self.lead(Term::from(cancel)).await,
            Some(elector) => {
                // The informers start now, so that the caches are filled when the term begins.
                self.factory.start()?;
                let (failed, ended) = (Mutex::new(Ok(())), cancel.child_token());
                let lead = |term: Term| {
                    let (failed, ended, manager) = (&failed, &ended, &self);
                    async move {
                        if let Err(error) = manager.lead(term).await {
                            *failed.lock() = Err(error);
                            ended.cancel();
                        }
                    }
                };
                elector.run(ended.clone(), lead).await;
                failed.into_inner()
            }
        };
        let stopped = self.factory.stop_within(STOP).await;
        let outcome = outcome.and(stopped.map_err(Into::into));
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

    /// Runs all controllers for one term. If one fails, the others are asked to end, and they finish their work. So no
    /// controller acts when the lease is released.
    async fn lead(&self, term: Term) -> Result<(), ManagerError> {
        let (term, end) = term.child();
        let (mut running, mut failed) = (FuturesUnordered::new(), Ok(()));
        let note = |failed: &mut Result<(), ManagerError>, outcome: Result<(), RunError>| match outcome {
            // The program stands by again.
            Ok(()) | Err(RunError::LeadershipLost(_)) => {}
            Err(error) => {
                end.cancel();
                *failed = std::mem::replace(failed, Ok(())).and(Err(error.into()));
            }
        };
        for controller in &self.controllers {
            let mut run = (controller.run)(term.clone());
            // The first poll asks for the most recent state, before the factory starts the informers.
            match futures_util::poll!(&mut run) {
                std::task::Poll::Ready(outcome) => note(&mut failed, outcome),
                std::task::Poll::Pending => running.push(run),
            }
        }
        self.factory.start()?;
        while let Some(outcome) = running.next().await {
            note(&mut failed, outcome);
        }
        if self.controllers.is_empty() {
            term.ending().await;
        }
        failed
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Manager").field(&self.probe()).finish()
    }
}

/// Reports whether a program is live and ready, and why not. A clone is another handle.
///
/// `kube_informer_inspect::Inspection::probe` serves it as `/livez` and `/readyz`.
#[derive(Clone)]
pub struct Probe {
    factory: SharedInformerFactory,
    elector: Option<Arc<LeaderElector>>,
    controllers: Vec<Arc<dyn Fn() -> ControllerStatus + Send + Sync>>,
}

impl Probe {
    /// Returns true if [`ready`](AnyProbe::ready) finds no problem: all caches have synced, and, while the program
    /// leads, all controllers run. A standby is ready.
    pub fn is_ready(&self) -> bool {
        self.ready().is_empty()
    }

    /// Returns true if [`live`](AnyProbe::live) finds no problem: the informers run, and no work is left from a term
    /// that ended long ago.
    pub fn is_live(&self) -> bool {
        self.live().is_empty()
    }

    /// Returns true while the program leads. Without an election it always leads.
    pub fn is_leader(&self) -> bool {
        self.elector.as_ref().is_none_or(|elector| elector.is_leader())
    }

    /// Returns the status of each controller.
    pub fn controllers(&self) -> Vec<ControllerStatus> {
        self.controllers.iter().map(|status| status()).collect()
    }
}

impl AnyProbe for Probe {
    fn live(&self) -> Vec<Problem> {
        let mut problems = self.of_informers(Health::why_not_live);
        let overdue = self.elector.as_ref().and_then(|elector| elector.check(OVERDUE).err());
        problems.extend(overdue.map(|error| Problem::new("election", error.to_string())));
        problems
    }

    fn ready(&self) -> Vec<Problem> {
        let mut problems = self.of_informers(|health| health.why_not_ready(None));
        if self.is_leader() {
            let starting = self.controllers().into_iter().filter(|status| status.phase == ControllerPhase::Starting);
            let why = "it waits until its caches have caught up with the API server";
            problems.extend(starting.map(|status| Problem::new(format!("controller {}", status.name), why)));
        }
        problems
    }

    fn elections(&self) -> Vec<ElectionHealth> {
        self.elector.iter().map(|elector| elector.health()).collect()
    }
}

impl Probe {
    fn of_informers(&self, why: impl Fn(&Health) -> Option<String>) -> Vec<Problem> {
        let informers = self.factory.informers();
        let problems = informers.iter().map(|informer| (informer.name(), why(&informer.health())));
        problems.filter_map(|(name, why)| Some(Problem::new(name, why?))).collect()
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Probe");
        debug.field("ready", &self.is_ready()).field("leads", &self.is_leader());
        debug.field("controllers", &self.controllers()).finish_non_exhaustive()
    }
}
