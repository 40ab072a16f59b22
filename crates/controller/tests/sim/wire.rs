//! The simulated network between a program and its server.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use kube_client::Client;
use kube_client::client::Body;
use kube_controller::Probe;
use kube_embedded_apiserver::ApiServer;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::truth;

/// A client notices after this time that its connection is silent.
const PING: Duration = Duration::from_secs(45);

/// Where a program crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Before the request is sent.
    Before,
    /// After the request is sent, and before its answer arrives.
    After,
}

#[derive(Clone)]
pub(crate) struct Wire {
    state: Arc<Mutex<State>>,
    /// Notified when the program crashes.
    pub(crate) crashed: Arc<Notify>,
}

struct State {
    server: ApiServer,
    /// A server that lags behind. It answers reads that need not be consistent.
    behind: Option<ApiServer>,
    random: StdRng,
    /// The probability that a write fails.
    trouble: f64,
    /// True if every answer takes 2 to 5 seconds.
    slow: bool,
    /// The connection of the clients is silent until this time.
    silent: Option<Instant>,
    /// Answers whether the program may write, if it takes part in an election.
    probe: Option<Probe>,
    /// The forbidden things that the program did.
    violations: Vec<String>,
    requests: u64,
    cut: Option<(u64, Cut)>,
}

/// How the network handles one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Fine,
    /// The request does not arrive.
    Refused,
    /// The request is carried out, and the answer is lost.
    Unheard,
    /// The request is carried out, but the answer is an error.
    Denied,
    /// The request is not carried out, and the answer is an error.
    Busy,
    /// The request is not carried out, because a webhook refuses it.
    RefusedByWebhook,
    /// The request gets no answer until the client notices that its connection is silent.
    Silent(Instant),
    /// The answer takes this long.
    Slow(Duration),
    /// The program crashes before the request is sent.
    CutBefore,
    /// The request is carried out, and the program crashes.
    CutAfter,
}

impl Wire {
    pub(crate) fn new(server: &ApiServer, seed: u64) -> Self {
        let state = State {
            server: server.clone(),
            behind: None,
            random: StdRng::seed_from_u64(seed),
            trouble: 0.0,
            slow: false,
            silent: None,
            probe: None,
            violations: Vec::new(),
            requests: 0,
            cut: None,
        };
        Self { state: Arc::new(Mutex::new(state)), crashed: Arc::new(Notify::new()) }
    }

    pub(crate) fn set_trouble(&self, trouble: f64) {
        self.state.lock().trouble = trouble;
    }

    /// Makes every answer take 2 to 5 seconds, or turns that off.
    pub(crate) fn set_slow(&self, slow: bool) {
        self.state.lock().slow = slow;
    }

    /// Makes the connection silent. The client opens another one when it has noticed that.
    pub(crate) fn silence(&self) {
        self.state.lock().silent = Some(Instant::now() + PING);
    }

    /// Allows writes only while this probe reports that the program leads.
    pub(crate) fn expect_leader(&self, probe: Option<Probe>) {
        self.state.lock().probe = probe;
    }

    /// Returns the forbidden things that the program did.
    pub(crate) fn violations(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().violations)
    }

    /// Makes the program crash at the request with this number. The first request of all has the number 0.
    pub(crate) fn cut_at(&self, request: u64, cut: Cut) {
        self.state.lock().cut = Some((request, cut));
    }

    pub(crate) fn requests(&self) -> u64 {
        self.state.lock().requests
    }

    /// Connects the programs to a server that lags behind, or back to the current one.
    pub(crate) fn move_to(&self, behind: Option<ApiServer>) {
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut state.behind, behind);
        before.as_ref().unwrap_or(&state.server).disconnect_watches();
    }

    pub(crate) fn client(&self) -> Client {
        let wire = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let wire = wire.clone();
            async move { wire.carry(request).await }
        });
        Client::new(service, "default")
    }

    async fn carry(&self, request: Request<Body>) -> Result<Response<Body>, std::io::Error> {
        let (client, fate) = self.state.lock().next(&request);
        match fate {
            Fate::CutBefore => {
                self.crashed.notify_one();
                return std::future::pending().await;
            }
            Fate::Refused => return Err(std::io::Error::other("refused")),
            Fate::Busy => return Ok(status(503, "ServiceUnavailable")),
            Fate::RefusedByWebhook => return Ok(status(403, "Forbidden")),
            Fate::Silent(until) => {
                tokio::time::sleep_until(until).await;
                return Err(std::io::Error::other("the connection was silent"));
            }
            Fate::Slow(delay) => tokio::time::sleep(delay).await,
            Fate::Fine | Fate::Unheard | Fate::Denied | Fate::CutAfter => {}
        }
        self.state.lock().check_deletion(&request);
        let answer = client.send(request).await.map_err(std::io::Error::other);
        match fate {
            Fate::Unheard => Err(std::io::Error::other("the answer was lost")),
            Fate::Denied => Ok(status(500, "InternalError")),
            Fate::CutAfter => {
                self.crashed.notify_one();
                std::future::pending().await
            }
            _ => answer,
        }
    }
}

impl State {
    fn next(&mut self, request: &Request<Body>) -> (Client, Fate) {
        let number = self.requests;
        self.requests += 1;
        let write = request.method() != Method::GET;
        if write
            && request.uri().path().contains("/configmaps")
            && self.probe.as_ref().is_some_and(|probe| !probe.is_leader())
        {
            self.violations.push(format!("{} {} was sent after the term", request.method(), request.uri()));
        }
        let server = match &self.behind {
            Some(behind) if !write && !is_consistent(request) => behind,
            _ => &self.server,
        };
        let fate = match self.cut {
            Some((at, Cut::Before)) if at == number => Fate::CutBefore,
            Some((at, Cut::After)) if at == number => Fate::CutAfter,
            _ if self.silent.is_some_and(|until| until > Instant::now()) => {
                self.silent.map_or(Fate::Fine, Fate::Silent)
            }
            _ if self.slow => Fate::Slow(Duration::from_millis(self.random.random_range(2000..5000))),
            _ if write && self.random.random_bool(self.trouble) => match self.random.random_range(0..6) {
                0 => Fate::Refused,
                1 => Fate::Unheard,
                2 => Fate::Denied,
                3 => Fate::Busy,
                4 => Fate::RefusedByWebhook,
                _ => Fate::Slow(Duration::from_millis(self.random.random_range(1..20_000))),
            },
            _ => Fate::Fine,
        };
        (server.client(), fate)
    }

    /// Checks that a deleted child has no existing owner.
    fn check_deletion(&mut self, request: &Request<Body>) {
        let path = request.uri().path();
        if request.method() == Method::DELETE
            && let Some((_, name)) = path.rsplit_once("/configmaps/")
            && truth::owner_exists(&self.server, name)
        {
            self.violations.push(format!("{path} was deleted, and its owner exists"));
        }
    }
}

/// Returns true for a read that a server answers from its storage, and not from its watch cache.
fn is_consistent(request: &Request<Body>) -> bool {
    !request
        .uri()
        .query()
        .unwrap_or_default()
        .split('&')
        .any(|pair| pair.strip_prefix("resourceVersion=").is_some_and(|version| !version.is_empty()))
}

fn status(code: u16, reason: &str) -> Response<Body> {
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason,
    });
    let response = Response::builder().status(code).header("content-type", "application/json");
    response.body(Body::from(body.to_string().into_bytes())).unwrap()
}
