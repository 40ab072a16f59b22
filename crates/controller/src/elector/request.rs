//! Requests about the Lease. Each future owns all its data, so that several can run at the same time.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube_client::api::PostParams;
use kube_client::{Api, Client, Error};
use kube_informer::ObjectKey;

use super::connections::Connection;
use super::record::{self, LeaderElectionRecord};
use crate::term::Moment;

/// A write that takes or renews the lease.
pub(super) enum Write {
    Create(Lease),
    Replace(Lease),
}

impl Write {
    pub(super) fn lease(&self) -> &Lease {
        let (Self::Create(lease) | Self::Replace(lease)) = self;
        lease
    }

    pub(super) async fn send(self, client: Client, key: ObjectKey) -> Result<Lease, Error> {
        let api = api(client, &key);
        match self {
            Self::Create(lease) => api.create(&PostParams::default(), &lease).await,
            Self::Replace(lease) => api.replace(key.name(), &PostParams::default(), &lease).await,
        }
    }
}

/// A request that releases the lease.
pub(super) struct Release {
    /// The lease as last seen, if this candidate held it.
    pub(super) known: Option<Lease>,
    /// All records that this candidate may have written. A record of another copy with the same identity is not among
    /// them.
    pub(super) own: Vec<LeaderElectionRecord>,
    pub(super) now: MicroTime,
}

impl Release {
    /// Sends the request, and returns the lease after it: with no holder, or with another holder.
    pub(super) async fn send(self, client: Client, key: ObjectKey) -> Result<Option<Lease>, Error> {
        let api = api(client, &key);
        let released = |lease| record::released(lease, self.now.clone());
        if let Some(lease) = &self.known {
            match api.replace(key.name(), &PostParams::default(), &released(lease)).await {
                Ok(lease) => return Ok(Some(lease)),
                // The version is not current, or a response was lost.
                Err(Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(error),
            }
        }
        let Some(lease) = api.get_opt(key.name()).await? else { return Ok(None) };
        if !self.own.contains(&LeaderElectionRecord::of(&lease)) {
            return Ok(Some(lease));
        }
        api.replace(key.name(), &PostParams::default(), &released(&lease)).await.map(Some)
    }
}

/// Reads the lease.
pub(super) async fn read(client: Client, key: ObjectKey) -> Result<Option<Lease>, Error> {
    api(client, &key).get_opt(key.name()).await
}

/// The response to a request of a renewal.
pub(super) struct LeaseResponse {
    pub(super) connection: Connection,
    /// The request was sent at once after another one, without the pause between attempts.
    pub(super) at_once: bool,
    pub(super) outcome: LeaseOutcome,
}

impl LeaseResponse {
    pub(super) fn is_ok(&self) -> bool {
        match &self.outcome {
            LeaseOutcome::Write(_, outcome) => outcome.is_ok(),
            LeaseOutcome::Read(outcome) => outcome.is_ok(),
        }
    }
}

pub(super) enum LeaseOutcome {
    /// The write that began at this moment.
    Write(Moment, Result<Lease, Error>),
    Read(Result<Option<Lease>, Error>),
}

/// Requests of one renewal, in a form in which they can run at the same time.
pub(super) type PendingRequest = BoxFuture<'static, LeaseResponse>;

pub(super) fn pending_write(
    connection: Connection,
    key: ObjectKey,
    (write, began): (Write, Moment),
    at_once: bool,
) -> PendingRequest {
    async move {
        let outcome = LeaseOutcome::Write(began, write.send(connection.client.clone(), key).await);
        LeaseResponse { connection, at_once, outcome }
    }
    .boxed()
}

pub(super) fn pending_read(connection: Connection, key: ObjectKey, at_once: bool) -> PendingRequest {
    async move {
        let outcome = LeaseOutcome::Read(read(connection.client.clone(), key).await);
        LeaseResponse { connection, at_once, outcome }
    }
    .boxed()
}

fn api(client: Client, key: &ObjectKey) -> Api<Lease> {
    Api::namespaced(client, key.namespace().unwrap_or_default())
}
