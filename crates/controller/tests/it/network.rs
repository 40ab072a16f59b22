//! A connection to a server that can break, be slow, and lose answers.

use std::sync::Arc;
use std::time::Duration;

use kube_client::Client;
use kube_client::client::Body;
use kube_embedded_apiserver::ApiServer;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::watch;
use tokio::time::sleep;

/// How the network handles a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    #[default]
    Open,
    /// The request never arrives, and the client gets no error.
    Silent,
    /// The request never arrives, and the client gets an error at once.
    Refused,
    /// The request is carried out, and the answer is lost.
    Deaf,
    /// As `Deaf` for every request but GET.
    DeafToWrites,
    /// As `DeafToWrites`, but the client gets an error: the connection broke before the answer arrived.
    BrokenAfterWrites,
    /// The request arrives when the mode changes.
    Late,
    /// The request arrives when the mode changes, and answers that are on their way arrive then, too.
    Stalled,
    /// Each answer takes this long, from the shortest time to the longest in milliseconds, by the seed. The request is
    /// carried out at some time in between.
    Slow(u64, u64),
}

#[derive(Clone)]
pub(crate) struct Network {
    mode: Arc<watch::Sender<Mode>>,
    /// The methods of the requests, in order.
    asked: Arc<Mutex<Vec<String>>>,
    random: Arc<Mutex<StdRng>>,
}

impl Default for Network {
    fn default() -> Self {
        Self::seeded(1)
    }
}

impl Network {
    pub(crate) fn seeded(seed: u64) -> Self {
        let random = Arc::new(Mutex::new(StdRng::seed_from_u64(seed)));
        Self { mode: Arc::default(), asked: Arc::default(), random }
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// Returns the methods of the requests since the last call.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }

    pub(crate) fn client(&self, server: &ApiServer) -> Client {
        let (network, inner) = (self.clone(), server.client());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (network, inner) = (network.clone(), inner.clone());
            async move { network.carry(&inner, request).await }
        });
        Client::new(service, "default")
    }

    async fn carry(
        &self,
        inner: &Client,
        request: http::Request<Body>,
    ) -> Result<http::Response<Body>, std::io::Error> {
        self.asked.lock().push(request.method().to_string());
        let mode = *self.mode.borrow();
        let (before, behind) = self.delays(mode);
        match mode {
            Mode::Silent => return std::future::pending().await,
            Mode::Refused => return Err(std::io::Error::other("refused")),
            Mode::Late => _ = self.mode.subscribe().wait_for(|mode| *mode != Mode::Late).await,
            _ => {}
        }
        self.runs().await;
        sleep(before).await;
        let write = request.method() != http::Method::GET;
        let answer = inner.send(request).await.map_err(std::io::Error::other);
        sleep(behind).await;
        self.runs().await;
        match mode {
            Mode::Deaf => std::future::pending().await,
            Mode::DeafToWrites if write => std::future::pending().await,
            Mode::BrokenAfterWrites if write => Err(std::io::Error::other("broken")),
            _ => answer,
        }
    }

    /// Waits until the network is not stalled.
    async fn runs(&self) {
        let _ = self.mode.subscribe().wait_for(|mode| *mode != Mode::Stalled).await;
    }

    /// Returns how long a request takes until it is carried out, and how long its answer takes from then on.
    fn delays(&self, mode: Mode) -> (Duration, Duration) {
        let Mode::Slow(shortest, longest) = mode else { return Default::default() };
        let mut random = self.random.lock();
        let whole = random.random_range(shortest..=longest);
        let before = random.random_range(0..=whole);
        (Duration::from_millis(before), Duration::from_millis(whole - before))
    }
}
