//! A connection to a server that can be cut, and that can lose answers.

use std::sync::Arc;

use kube_client::Client;
use kube_client::client::Body;
use kube_embedded_apiserver::ApiServer;
use parking_lot::Mutex;
use tokio::sync::watch;

/// What happens to what is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    #[default]
    Open,
    /// Nothing arrives, and nobody says so.
    Silent,
    /// Nothing arrives, and one is told so.
    Refused,
    /// All arrives, and no answer comes back.
    Deaf,
    /// All arrives, and no answer to what changes something comes back.
    DeafToWrites,
    /// All arrives, but only when the connection is open again.
    Late,
}

#[derive(Clone, Default)]
pub(crate) struct Network {
    mode: Arc<watch::Sender<Mode>>,
    /// What was asked, by method.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Network {
    pub(crate) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// What was asked since the last time.
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
        match mode {
            Mode::Silent => return std::future::pending().await,
            Mode::Refused => return Err(std::io::Error::other("refused")),
            Mode::Late => _ = self.mode.subscribe().wait_for(|mode| *mode != Mode::Late).await,
            Mode::Open | Mode::Deaf | Mode::DeafToWrites => {}
        }
        let write = request.method() != http::Method::GET;
        let answer = inner.send(request).await.map_err(std::io::Error::other);
        if mode == Mode::Deaf || mode == Mode::DeafToWrites && write { std::future::pending().await } else { answer }
    }
}
