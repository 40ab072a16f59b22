//! What is shown, and who may see it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use kube_informer::{AnyInformer, AnyProbe, AnyQueue};
use tokio::net::ToSocketAddrs;
use tokio_util::sync::CancellationToken;

use crate::router::{AccessCheck, router};
use crate::serve::{ServeError, Serving, serve};
use crate::state::{InspectionState, Settings};

/// Bookmarks arrive about every minute, and the reflector notices silence within 150 s. A longer silence is not fresh.
const FRESH: Duration = Duration::from_secs(180);

/// What is shown, and who may see it. See the [crate's page](crate) for an example.
#[must_use = "call `serve` or `router`"]
pub struct Inspection {
    settings: Settings,
    open: bool,
}

impl Inspection {
    /// Creates an inspection of the informers that a function returns. The function is called for each request.
    ///
    /// `factory.weak_informers()` returns such a function. A function that holds a clone of the factory, such as
    /// `move || factory.informers()`, keeps the factory's informers running as long as the router or the server lives.
    pub fn of(informers: impl Fn() -> Vec<AnyInformer> + Send + Sync + 'static) -> Self {
        let settings = Settings {
            informers: Arc::new(informers),
            queues: Vec::new(),
            probes: Vec::new(),
            metrics: None,
            fresh_within: FRESH,
            title: "kube-informer".to_owned(),
            token: None,
        };
        Self { settings, open: false }
    }

    /// Adds a work queue. Can be called several times.
    pub fn queue(self, queue: Arc<dyn AnyQueue>) -> Self {
        self.queues(move || vec![queue.clone()])
    }

    /// Adds the work queues that a function returns. The function is called for each request.
    pub fn queues(mut self, queues: impl Fn() -> Vec<Arc<dyn AnyQueue>> + Send + Sync + 'static) -> Self {
        self.settings.queues.push(Arc::new(queues));
        self
    }

    /// Adds a probe to `/livez` and `/readyz`, such as a `kube_controller::Manager`. Can be called several times.
    pub fn probe(mut self, probe: impl AnyProbe) -> Self {
        self.settings.probes.push(Arc::new(probe));
        self
    }

    /// Sets the function that renders the answer of `/metrics`.
    pub fn metrics(mut self, render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.settings.metrics = Some(Arc::new(render));
        self
    }

    /// Sets how long ago the last message of the server may be for an informer to count as fresh [default: three
    /// minutes].
    pub fn fresh_within(mut self, bound: Duration) -> Self {
        self.settings.fresh_within = bound;
        self
    }

    /// Sets the name of the program on the page.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.settings.title = title.into();
        self
    }

    /// Requires this token: as `Authorization: Bearer …`, or once as `?token=…` in a browser, which then keeps it as a
    /// cookie. An empty token never matches. `/livez` and `/readyz` need no token.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.settings.token = Some(token.into());
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
    /// Without a [token](Self::token), only `/livez` and `/readyz` are answered, unless [`open`](Self::open) was called.
    ///
    /// axum's `nest("/inspect", …)` serves the page at `/inspect` only, `nest_service` also at `/inspect/`.
    pub fn router(self) -> Router {
        let guarded = match (&self.settings.token, self.open) {
            (Some(_), _) => AccessCheck::ByToken,
            (None, true) => AccessCheck::ByProgram,
            (None, false) => AccessCheck::ProbesOnly,
        };
        router(InspectionState::new(self.settings, CancellationToken::new()), guarded)
    }

    /// Serves the routes on an address. A loopback address such as `127.0.0.1:0` needs no token, any other does.
    ///
    /// # Errors
    ///
    /// [`ServeError`] if the address is not a loopback address and there is no token, if the token is empty, or if the
    /// address cannot be bound.
    pub async fn serve(self, address: impl ToSocketAddrs) -> Result<Serving, ServeError> {
        serve(self.settings, address).await
    }
}

impl fmt::Debug for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspection").field("title", &self.settings.title).finish_non_exhaustive()
    }
}
