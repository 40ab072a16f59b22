//! What is to be shown, and to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use kube_informer::{AnyInformer, AnyProbe, AnyQueue};
use parking_lot::Mutex;
use tokio::net::ToSocketAddrs;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::recorder::Recorder;
use crate::router::{Guarded, router};
use crate::serve::{ServeError, Serving, serve};

/// Bookmarks come about every minute, and silence is noticed within two and a half: who was not heard of for longer is not fresh.
const FRESH: Duration = Duration::from_secs(180);

/// Gives the informers there are now.
pub(crate) type Informers = Arc<dyn Fn() -> Vec<AnyInformer> + Send + Sync>;
/// Gives the queues of work there are now.
pub(crate) type Queues = Arc<dyn Fn() -> Vec<Arc<dyn AnyQueue>> + Send + Sync>;

/// What is to be shown, and to whom. See the [crate's page](crate) for an example.
#[must_use = "it shows nothing until it is served or mounted"]
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

/// What the routes know.
pub(crate) struct Shown {
    pub(crate) inspection: Inspection,
    named: Arc<Named>,
    pub(crate) recorder: Recorder,
    /// Ends the streams.
    pub(crate) closing: CancellationToken,
    pub(crate) streams: Arc<Semaphore>,
}

impl Inspection {
    /// Shows the informers that a function gives, whenever somebody asks.
    ///
    /// `factory.weak_informers()` gives such a function. One that holds a clone of the factory, as `move || factory.informers()` does,
    /// keeps the factory's informers running as long as the router or the server lives.
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

    /// Shows a queue of work too. May be called for each there is.
    pub fn queue(self, queue: Arc<dyn AnyQueue>) -> Self {
        self.queues(move || vec![queue.clone()])
    }

    /// Shows the queues of work that a function gives, whenever somebody asks.
    pub fn queues(mut self, queues: impl Fn() -> Vec<Arc<dyn AnyQueue>> + Send + Sync + 'static) -> Self {
        self.queues.push(Arc::new(queues));
        self
    }

    /// Lets `/livez` and `/readyz` ask a probe too, such as the one of a `kube_controller::Manager`. May be called for each there is.
    pub fn probe(mut self, probe: impl AnyProbe) -> Self {
        self.probes.push(Arc::new(probe));
        self
    }

    /// What `/metrics` answers: the text that a recorder of metrics renders.
    pub fn metrics(mut self, render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.metrics = Some(Arc::new(render));
        self
    }

    /// Within how long a server has to be heard of to be called fresh; three minutes unless given.
    pub fn fresh_within(mut self, bound: Duration) -> Self {
        self.fresh_within = bound;
        self
    }

    /// What the program is called on the page.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Asks everybody for this token: as `Authorization: Bearer …`, or once as `?token=…` in a browser, which then keeps it as a
    /// cookie. Nobody has the empty token.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Lets everybody look who reaches the [router](Self::router), for a program that asks by itself who may. A token is asked for all the
    /// same.
    pub fn open(mut self) -> Self {
        self.open = true;
        self
    }

    /// The routes, to be mounted where the program likes: at the root, or nested below any path.
    ///
    /// Without a [token](Self::token) only `/livez` and `/readyz` are answered, unless it is said to be [open](Self::open).
    ///
    /// axum's `nest("/inspect", …)` has the page at `/inspect` alone, `nest_service` at `/inspect/` too.
    pub fn router(self) -> Router {
        let guarded = match (&self.token, self.open) {
            (Some(_), _) => Guarded::ByToken,
            (None, true) => Guarded::ByProgram,
            (None, false) => Guarded::ProbesOnly,
        };
        router(self.shown(CancellationToken::new()), guarded)
    }

    /// Serves the routes by themselves, at an address of this machine such as `127.0.0.1:0`; any other needs a token.
    ///
    /// # Errors
    ///
    /// [`ServeError`] if the address is open to others and there is no token, the token is empty, or the address cannot be had.
    pub async fn serve(self, address: impl ToSocketAddrs) -> Result<Serving, ServeError> {
        serve(self, address).await
    }

    /// What the routes know, with what ends their streams.
    pub(crate) fn shown(self, closing: CancellationToken) -> Arc<Shown> {
        let named = Arc::new(Named { informers: self.informers.clone(), given: Mutex::default() });
        let recorder = Recorder::new(named.clone());
        // More than anybody looks at, and few enough that nobody can keep a program busy by opening them.
        let streams = Arc::new(Semaphore::new(32));
        Arc::new(Shown { inspection: self, named, recorder, closing, streams })
    }
}

impl Shown {
    /// The informers there are now, with what each is asked for by.
    pub(crate) fn informers(&self) -> Vec<(String, AnyInformer)> {
        self.named.all()
    }

    pub(crate) fn informer(&self, id: &str) -> Option<AnyInformer> {
        self.informers().into_iter().find(|(known, _)| known == id).map(|(_, informer)| informer)
    }
}

/// The informers, and what each is asked for by.
pub(crate) struct Named {
    informers: Informers,
    /// The ids of those that were there when it was last looked, by the numbers of the informers.
    given: Mutex<BTreeMap<u64, String>>,
}

impl Named {
    /// The informers there are now, each with its id: its name, or its name with a number. As long as it is there it keeps it, also
    /// when others come and go.
    pub(crate) fn all(&self) -> Vec<(String, AnyInformer)> {
        let (mut informers, mut numbers) = ((self.informers)(), BTreeSet::new());
        informers.retain(|informer| numbers.insert(informer.number()));
        let mut given = self.given.lock();
        given.retain(|number, _| numbers.contains(number));
        let mut all = Vec::with_capacity(informers.len());
        for informer in informers {
            let id = match given.get(&informer.number()) {
                Some(id) => id.clone(),
                None => free(informer.name(), &given),
            };
            given.insert(informer.number(), id.clone());
            all.push((id, informer));
        }
        all
    }
}

/// The first id of a name that nobody has.
fn free(name: &str, given: &BTreeMap<u64, String>) -> String {
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
