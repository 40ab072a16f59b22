//! The connection to the server, and its control.

use http::Request;
use kube::client::Body;
use kube::{Client, Config};
use serde::Deserialize;

use super::Error;

/// Clients for the measured process, and a client that controls the server.
pub(super) struct Connection {
    config: Config,
    control: Client,
}

/// The last version of the events to come, and their size as JSON.
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

    /// Returns a client that kube-informer configures.
    pub(super) fn ours(&self) -> Result<Client, Error> {
        Ok(kube_informer::client_from(self.config.clone())?)
    }

    /// Returns a client that kube-rs configures.
    pub(super) fn kube_rs(&self) -> Result<Client, Error> {
        Ok(Client::try_from(self.config.clone())?)
    }

    /// Lets the server send events, at this rate or, if it is zero, as fast as they are read.
    pub(super) async fn events(&self, count: usize, rate: usize) -> Result<Batch, Error> {
        let answer = self.post(&format!("/bench/events?count={count}&rate={rate}")).await?;
        Ok(serde_json::from_str(&answer)?)
    }

    /// Lets the server end all watches with 410, so that clients relist.
    pub(super) async fn expire(&self) -> Result<(), Error> {
        self.post("/bench/expire").await?;
        Ok(())
    }

    async fn post(&self, path: &str) -> Result<String, Error> {
        let request = Request::post(path).body(Body::empty())?;
        // kube's methods need a body of bytes.
        let request = request.map(|_| Vec::new());
        Ok(self.control.request_text(request).await?)
    }
}
