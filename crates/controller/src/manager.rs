//! A whole program: caches, an election, and controllers.

mod signals;

use std::fmt;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kube_informer::informer::StartError;
use kube_informer::{Object, SharedInformerFactory};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::controller::{BoxError, Controller, ControllerPhase, ControllerStatus, Next, Request, RunError};
use crate::elector::LeaderElector;
use crate::term::Term;

/// Runs the informers of a factory, an election and controllers as one program.
///
/// At the end the controllers take in nothing more and finish what waits; then the lease is given back; then the informers
/// stop. When leadership is lost all work is dropped at once, the caches stay warm, and the program stands by.
///
/// ```
/// use std::sync::Arc;
/// use kube_controller::{Controller, ElectionSettings, LeaderElector, Manager, Next, Request};
/// use kube_informer::{CancellationToken, SharedInformerFactory};
/// use k8s_openapi::api::core::v1::Pod;
///
/// async fn reconcile(request: Request<Pod>, cancel: Arc<CancellationToken>) -> Result<Next, std::fmt::Error> {
///     println!("{}", request.key());
///     cancel.cancel(); // Enough for an example.
///     Ok(Next::Done)
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

/// A controller with what it does, whatever its types.
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
    /// A controller ended by itself.
    #[error("a controller has ended")]
    Controller(#[from] RunError),
    /// A second signal came before everything had finished.
    #[error("told to end at once: what was under way was cut off")]
    CutOff,
    /// Signals cannot be waited for.
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
}

impl Manager {
    /// A program over the informers of a factory.
    pub fn new(factory: SharedInformerFactory) -> Self {
        Self { factory, elector: None, controllers: Vec::new() }
    }

    /// Its controllers run while it leads, and only then.
    #[must_use]
    pub fn elect(mut self, elector: LeaderElector) -> Self {
        self.elector = Some(Arc::new(elector));
        self
    }

    /// Adds a controller, what it does, and what that needs.
    #[must_use]
    pub fn control<T, C, F, R, E>(mut self, controller: Controller<T>, reconcile: F, context: Arc<C>) -> Self
    where
        T: Object,
        C: Send + Sync + 'static,
        F: Fn(Request<T>, Arc<C>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Next, E>> + Send + 'static,
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

    /// How the program does, for its probes; to be taken before it runs.
    pub fn probe(&self) -> Probe {
        Probe {
            factory: self.factory.clone(),
            elector: self.elector.clone(),
            controllers: self.controllers.iter().map(|controller| controller.status.clone()).collect(),
        }
    }

    /// Runs until cancelled, and ends in order.
    ///
    /// # Errors
    ///
    /// [`ManagerError`] if it could not start, or a controller ended by itself: then all others are ended too.
    pub async fn run(self, cancel: CancellationToken) -> Result<(), ManagerError> {
        let outcome = match &self.elector {
            None => self.lead(Term::from(cancel)).await,
            Some(elector) => {
                // Caches are warm when the term begins.
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
        self.factory.stop().await;
        match &outcome {
            Ok(()) => info!("stopped"),
            Err(error) => error!(%error, "stopped"),
        }
        outcome
    }

    /// Runs until the program is told to end by a signal (interrupt or terminate), and ends in order. A second signal ends it
    /// at once.
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
                info!("told to end");
                told.cancel();
                signals.next().await;
            } => Err(ManagerError::CutOff),
            outcome = self.run(cancel) => outcome,
        }
    }

    /// Runs all controllers for one term. The first that fails ends the others, and they are waited for: nobody acts any more
    /// when the lease is given back.
    async fn lead(&self, term: Term) -> Result<(), ManagerError> {
        let (term, lose) = term.child();
        let (mut running, mut failed) = (FuturesUnordered::new(), Ok(()));
        let note = |failed: &mut Result<(), ManagerError>, outcome: Result<(), RunError>| match outcome {
            // It stands by again.
            Ok(()) | Err(RunError::LeadershipLost(_)) => {}
            Err(error) => {
                lose.cancel();
                *failed = std::mem::replace(failed, Ok(())).and(Err(error.into()));
            }
        };
        for controller in &self.controllers {
            let mut run = (controller.run)(term.clone());
            // It asks for the most recent state before the factory starts its informers.
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

/// How a program does. Cloning gives another one.
#[derive(Clone)]
pub struct Probe {
    factory: SharedInformerFactory,
    elector: Option<Arc<LeaderElector>>,
    controllers: Vec<Arc<dyn Fn() -> ControllerStatus + Send + Sync>>,
}

impl Probe {
    /// True once all caches hold everything, and, where it leads, all controllers work. Who stands by is ready.
    pub fn is_ready(&self) -> bool {
        let caches = self.factory.informers().iter().all(|informer| informer.health().is_ready());
        let leads = self.elector.as_ref().is_none_or(|elector| elector.is_leader());
        caches && (!leads || self.controllers().iter().all(|status| status.phase != ControllerPhase::Starting))
    }

    /// True as long as the informers run, and no leader has failed to notice that it leads no more.
    pub fn is_live(&self) -> bool {
        let informers = self.factory.informers().iter().all(|informer| !informer.health().stopped);
        let tolerance = std::time::Duration::from_secs(20);
        informers && self.elector.as_ref().is_none_or(|elector| elector.check(tolerance).is_ok())
    }

    /// True while it leads; also if there is no election.
    pub fn is_leader(&self) -> bool {
        self.elector.as_ref().is_none_or(|elector| elector.is_leader())
    }

    /// How its controllers do.
    pub fn controllers(&self) -> Vec<ControllerStatus> {
        self.controllers.iter().map(|status| status()).collect()
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Probe");
        debug.field("ready", &self.is_ready()).field("leads", &self.is_leader());
        debug.field("controllers", &self.controllers()).finish_non_exhaustive()
    }
}
