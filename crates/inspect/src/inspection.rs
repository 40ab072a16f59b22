//! What is shown, and who may see it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use kube_informer::AnyInformer;
use kube_informer::health::{AnyProbe, AnyQueue};
use parking_lot::Mutex;
use tokio::net::ToSocketAddrs;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::recorder::Recorder;
use crate::router::{AccessCheck, router};
use crate::serve::{ServeError, Serving, serve};

/// Bookmarks arrive about every minute, and the reflector notices silence within 150 s. A longer silence is not fresh.
const FRESH: Duration = Duration::from_secs(180);

/// Returns the current informers.
pub(crate) type Informers = Arc<dyn Fn() -> Vec<AnyInformer> + Send + Sync>;
/// Returns the current work queues.
pub(crate) type Queues = Arc<dyn Fn() -> Vec<Arc<dyn AnyQueue>> + Send + Sync>;

/// What is shown, and who may see it. See the [crate's page](crate) for an example.
#[must_use = "call `serve` or `router`"]
pub struct Inspection {
    pub(crate) informers: Informers,
    pub(crate) queues: Vec<Queues>,
    pub(crate) probes: Vec<Arc<dyn AnyProbe>>,
    pub(crate) metrics: Option<Arc<dyn Fn() -> String + Send + Sync>>,
    pub(crate) fresh_within: Duration,
    pub(crate) title: String,
    pub(crate) token: Option<String>,
    open: bool,
}

/// The state that all routes share.
pub(crate) struct InspectionState {
    pub(crate) inspection: Inspection,
    named: Arc<InformerIds>,
    pub(crate) recorder: Recorder,
    /// Ends the streams when it is cancelled.
    pub(crate) closing: CancellationToken,
    pub(crate) streams: Arc<Semaphore>,
}

impl Inspection {
    /// Creates an inspection of the informers that a function returns. The function is called for each request.
    ///
    /// `factory.roster()` returns such a function. A function that holds a clone of the factory, such as
    /// `move || factory.informers()`, keeps the factory's informers running as long as the router or the server lives.
    pub fn of(informers: impl Fn() -> Vec<AnyInformer> + Send + Sync + 'static) -> Self {
        Self {
            informers: Arc::new(informers),
            queues: Vec::new(),
            probes: Vec::new(),
            metrics: None,
            fresh_within: FRESH,
            title: "kube-informer".to_owned(),
            token: None,
            open: false,
        }
    }

    /// Adds a work queue. Can be called several times.
    pub fn queue(self, queue: Arc<dyn AnyQueue>) -> Self {
        self.queues(move || vec![queue.clone()])
    }

    /// Adds the work queues that a function returns. The function is called for each request.
    pub fn queues(mut self, queues: impl Fn() -> Vec<Arc<dyn AnyQueue>> + Send + Sync + 'static) -> Self {
        self.queues.push(Arc::new(queues));
        self
    }

    /// Adds a probe to `/livez` and `/readyz`, such as a `kube_controller::Manager`. Can be called several times.
    pub fn probe(mut self, probe: impl AnyProbe) -> Self {
        self.probes.push(Arc::new(probe));
        self
    }

    /// Sets the function that renders the answer of `/metrics`.
    pub fn metrics(mut self, render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.metrics = Some(Arc::new(render));
        self
    }

    /// Sets how long ago the last message of the server may be for an informer to count as fresh [default: three
    /// minutes].
    pub fn fresh_within(mut self, bound: Duration) -> Self {
        self.fresh_within = bound;
        self
    }

    /// Sets the name of the program on the page.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Requires this token: as `Authorization: Bearer …`, or once as `?token=…` in a browser, which then keeps it as a
    /// cookie. An empty token never matches.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Allows access without a token, for a program that checks access before the [router](Self::router). If a token is
    /// set, it is required all the same.
    pub fn open(mut self) -> Self {
        self.open = true;
        self
    }

    /// Returns the routes, to be mounted at the root or nested below any path.
    ///
    /// Without a [token](Self::token), only `/livez` and `/readyz` are answered, unless [`open`](Self::open) was
    /// called.
    ///
    /// axum's `nest("/inspect", …)` serves the page at `/inspect` only, `nest_service` also at `/inspect/`.
    pub fn router(self) -> Router {
        let guarded = match (&self.token, self.open) {
            (Some(_), _) => AccessCheck::ByToken,
            (None, true) => AccessCheck::ByProgram,
            (None, false) => AccessCheck::ProbesOnly,
        };
        router(self.shown(CancellationToken::new()), guarded)
    }

    /// Serves the routes on an address. A loopback address such as `127.0.0.1:0` needs no token, any other does.
    ///
    /// # Errors
    ///
    /// [`ServeError`] if the address is not a loopback address and there is no token, if the token is empty, or if the
    /// address cannot be bound.
    pub async fn serve(self, address: impl ToSocketAddrs) -> Result<Serving, ServeError> {
        serve(self, address).await
    }

    /// Returns the state of the routes; `closing` ends their streams.
    pub(crate) fn shown(self, closing: CancellationToken) -> Arc<InspectionState> {
        let named = Arc::new(InformerIds { informers: self.informers.clone(), given: Mutex::default() });
        let recorder = Recorder::new(named.clone());
        // More than users need, and few enough that open streams cannot keep the program busy.
        let streams = Arc::new(Semaphore::new(32));
        Arc::new(InspectionState { inspection: self, named, recorder, closing, streams })
    }
}

impl InspectionState {
    /// Returns the current informers with their ids.
    pub(crate) fn informers(&self) -> Vec<(String, AnyInformer)> {
        self.named.all()
    }

    pub(crate) fn informer(&self, id: &str) -> Option<AnyInformer> {
        self.informers().into_iter().find(|(known, _)| known == id).map(|(_, informer)| informer)
    }
}

/// The informers with their ids.
pub(crate) struct InformerIds {
    informers: Informers,
    /// The ids from the last call, by informer number.
    given: Mutex<BTreeMap<u64, String>>,
}

impl InformerIds {
    /// Returns the current informers, each with its id: its name, or its name with a number. An informer keeps its id
    /// while others are added and removed.
    pub(crate) fn all(&self) -> Vec<(String, AnyInformer)> {
        let (mut informers, mut numbers) = ((self.informers)(), BTreeSet::new());
        informers.retain(|informer| numbers.insert(informer.number()));
        let mut given = self.given.lock();
        given.retain(|number, _| numbers.contains(number));
        let mut all = Vec::with_capacity(informers.len());
        for informer in informers {
            let id = match given.get(&informer.number()) {
                Some(id) => id.clone(),
                None => unused_id(informer.name(), &given),
            };
            given.insert(informer.number(), id.clone());
            all.push((id, informer));
        }
        all
    }
}

/// Returns the first unused id for a name.
fn unused_id(name: &str, given: &BTreeMap<u64, String>) -> String {
    let (mut id, mut next) = (name.to_owned(), 2);
    while given.values().any(|known| *known == id) {
        id = format!("{name}~{next}");
        next += 1;
    }
    id
}

impl fmt::Debug for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspection").field("title", &self.title).finish_non_exhaustive()
    }
}
