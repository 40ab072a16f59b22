//! The server, and what it is told to do.

use http::Request;
use kube::client::Body;
use kube::{Client, Config};
use serde::Deserialize;

use super::Error;

/// The clients of this process, and a word with the server beside.
pub(super) struct Connection {
    config: Config,
    control: Client,
}

/// Which versions events will have, and how many bytes they take as JSON.
#[derive(Debug, Deserialize)]
pub(super) struct Batch {
    pub(super) last: u64,
    pub(super) bytes: usize,
}

impl Connection {
    pub(super) fn new(server: &str) -> Result<Self, Error> {
        let config = Config::new(server.parse()?);
        Ok(Self { control: Client::try_from(config.clone())?, config })
    }

    /// A client as our library makes it.
    pub(super) fn ours(&self) -> Result<Client, Error> {
        Ok(kube_informer::client_from(self.config.clone())?)
    }

    /// A client as kube-rs makes it.
    pub(super) fn kube_rs(&self) -> Result<Client, Error> {
        Ok(Client::try_from(self.config.clone())?)
    }

    /// Has events sent, as fast as they are read if no rate is given.
    pub(super) async fn events(&self, count: usize, rate: usize) -> Result<Batch, Error> {
        let answer = self.post(&format!("/bench/events?count={count}&rate={rate}")).await?;
        Ok(serde_json::from_str(&answer)?)
    }

    /// Has all watches ended, so that everything is listed again.
    pub(super) async fn expire(&self) -> Result<(), Error> {
        self.post("/bench/expire").await?;
        Ok(())
    }

    async fn post(&self, path: &str) -> Result<String, Error> {
        let request = Request::post(path).body(Body::empty())?;
        // kube's own methods take bytes that are there already.
        let request = request.map(|_| Vec::new());
        Ok(self.control.request_text(request).await?)
    }
}
