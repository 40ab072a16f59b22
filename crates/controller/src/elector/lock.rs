//! The Lease that all agree by, as one of them sees it.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube_client::api::PostParams;
use kube_client::{Api, Client, Error};
use kube_informer::ObjectKey;
use tokio::time::Instant;

use super::record::{self, Clock};
use super::settings::ElectionSettings;
use crate::time::after;

/// Who has the lease after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    Ours,
    Theirs,
}

/// The lease, and what was last seen of it. Every write names the version that it was made from, so that none of two at the
/// same time, and none that comes late, undoes another.
pub(super) struct Lock<'e> {
    api: Api<Lease>,
    key: &'e ObjectKey,
    identity: &'e str,
    duration: Duration,
    clock: Clock,
    seen: Option<Seen>,
}

struct Seen {
    lease: Lease,
    /// When it was seen to have changed, by our own clock.
    since: Instant,
}

impl<'e> Lock<'e> {
    pub(super) fn new(client: &Client, key: &'e ObjectKey, identity: &'e str, settings: &ElectionSettings) -> Self {
        let api = Api::namespaced(client.clone(), key.namespace().unwrap_or_default());
        Self { api, key, identity, duration: settings.lease_duration, clock: Clock::new(), seen: None }
    }

    /// Who has it, as last seen.
    pub(super) fn holder(&self) -> Option<&str> {
        record::holder(&self.seen.as_ref()?.lease)
    }

    /// Takes it if nobody has it, or if it has expired.
    pub(super) async fn try_acquire(&mut self) -> Result<Attempt, Error> {
        let there = self.api.get_opt(self.key.name()).await?;
        let gone = there.is_none();
        there.into_iter().for_each(|lease| self.see(lease));
        // Also of one that somebody has deleted: who had it may not know yet.
        if self.seen.as_ref().is_some_and(|seen| self.is_theirs(seen)) {
            return Ok(Attempt::Theirs);
        }
        if !gone {
            return self.write().await;
        }
        let first = record::first(self.key, self.identity, self.duration, &self.clock);
        let lease = self.api.create(&PostParams::default(), &first).await?;
        Ok(self.ours(lease))
    }

    /// Renews what we have: with what is known of it at first, and if that is not up to date, with what there is now.
    pub(super) async fn try_renew(&mut self) -> Result<Attempt, Error> {
        if self.holder() == Some(self.identity)
            && let Ok(attempt) = self.write().await
        {
            return Ok(attempt);
        }
        let Some(lease) = self.api.get_opt(self.key.name()).await? else {
            // Somebody has deleted it. Whoever creates it first has it.
            let first = record::first(self.key, self.identity, self.duration, &self.clock);
            let lease = self.api.create(&PostParams::default(), &first).await?;
            return Ok(self.ours(lease));
        };
        self.see(lease);
        match self.holder() {
            Some(holder) if holder == self.identity => self.write().await,
            // With another, or with nobody: it is not ours to renew.
            _ => Ok(Attempt::Theirs),
        }
    }

    /// Gives it back, if we have it.
    pub(super) async fn try_release(&mut self) -> Result<(), Error> {
        if let Some(seen) = self.seen.as_ref().filter(|seen| record::holder(&seen.lease) == Some(self.identity)) {
            let released = record::released(&seen.lease, &self.clock);
            match self.api.replace(self.key.name(), &PostParams::default(), &released).await {
                Ok(lease) => {
                    self.see(lease);
                    return Ok(());
                }
                Err(Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(error),
            }
        }
        // Somebody else wrote to it, or an answer was lost.
        let Some(lease) = self.api.get_opt(self.key.name()).await? else { return Ok(()) };
        self.see(lease);
        if self.holder() != Some(self.identity) {
            return Ok(());
        }
        let Some(seen) = &self.seen else { return Ok(()) };
        let released = record::released(&seen.lease, &self.clock);
        let lease = self.api.replace(self.key.name(), &PostParams::default(), &released).await?;
        self.see(lease);
        Ok(())
    }

    /// True if another has it, and it has not expired.
    fn is_theirs(&self, seen: &Seen) -> bool {
        let theirs = record::holder(&seen.lease).is_some_and(|holder| holder != self.identity);
        theirs && Instant::now() < after(seen.since, record::duration(&seen.lease))
    }

    async fn write(&mut self) -> Result<Attempt, Error> {
        let Some(seen) = &self.seen else { return Ok(Attempt::Theirs) };
        let ours = record::held(&seen.lease, self.identity, self.duration, &self.clock);
        let lease = self.api.replace(self.key.name(), &PostParams::default(), &ours).await?;
        Ok(self.ours(lease))
    }

    fn ours(&mut self, lease: Lease) -> Attempt {
        self.see(lease);
        Attempt::Ours
    }

    /// Notes what the lease says, and when it was first seen to say so.
    fn see(&mut self, lease: Lease) {
        if self.seen.as_ref().is_none_or(|seen| seen.lease.spec != lease.spec) {
            self.seen = Some(Seen { lease, since: Instant::now() });
        } else if let Some(seen) = &mut self.seen {
            // Others may have written something else to it.
            seen.lease = lease;
        }
    }
}
