//! The Lease as one candidate has seen it.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube_informer::ObjectKey;
use tokio::time::Instant;

use super::record::{self, LeaderElectionRecord, RecordClock};
use super::request::{Release, Write};
use crate::term::Moment;
use kube_informer::internal::after;

/// How many writes without a known outcome are remembered. A term makes fewer: one each time an attempt stays
/// unanswered.
const MOST_UNCONFIRMED: usize = 16;

/// The lease as last seen, and the writes of this candidate to it.
///
/// Every write names the version that it was made from. So of two writes from the same version the API server carries
/// out one, and a write that arrives late undoes no other.
pub(super) struct Lock {
    key: ObjectKey,
    identity: String,
    duration: Duration,
    clock: RecordClock,
    seen: Option<SeenLease>,
    /// The last read found no lease.
    gone: bool,
    /// The last record of this candidate that the API server has confirmed.
    confirmed: Option<LeaderElectionRecord>,
    /// The writes of this candidate since then, oldest first: each may have been carried out, or may be carried out
    /// later.
    unconfirmed: Vec<(LeaderElectionRecord, Moment)>,
}

struct SeenLease {
    lease: Lease,
    /// When the lease was seen to change, by the clock of this candidate.
    since: Instant,
}

/// The result of a read of the lease.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sight {
    /// A write of this candidate that was not confirmed until now. It began at this moment.
    Confirmed(Moment),
    /// The confirmed record of this candidate, in the known version.
    Unchanged,
    /// The confirmed record of this candidate, in a new version: another client has changed another field.
    NewVersion,
    /// A record that this candidate has not written.
    Foreign,
}

impl Lock {
    pub(super) fn new(key: ObjectKey, identity: String, duration: Duration) -> Self {
        let clock = RecordClock::new();
        Self { key, identity, duration, clock, seen: None, gone: false, confirmed: None, unconfirmed: Vec::new() }
    }

    /// Returns the holder, as last seen.
    pub(super) fn holder(&self) -> Option<&str> {
        record::holder(&self.seen.as_ref()?.lease)
    }

    /// Returns true if another candidate holds the lease, and it has not expired.
    ///
    /// This is also true for a lease that was deleted: its holder may not know yet.
    pub(super) fn is_theirs(&self) -> bool {
        let Some(seen) = &self.seen else { return false };
        let theirs = record::holder(&seen.lease).is_some_and(|holder| holder != self.identity);
        theirs && Instant::now() < after(seen.since, record::duration(&seen.lease))
    }

    /// Returns true if the API server may hold a record of this candidate.
    pub(super) fn may_be_ours(&self) -> bool {
        !self.unconfirmed.is_empty() || self.known_ours().is_some()
    }

    /// Makes a write that takes or renews the lease, and remembers it.
    pub(super) fn write(&mut self, began: Moment) -> Write {
        let now = self.clock.now();
        let (identity, duration) = (self.identity.as_str(), self.duration);
        let write = match self.seen.as_ref().filter(|_| !self.gone) {
            Some(seen) => Write::Replace(record::held(&seen.lease, identity, duration, now)),
            None => Write::Create(record::first(&self.key, identity, duration, now)),
        };
        if self.unconfirmed.len() >= MOST_UNCONFIRMED {
            self.unconfirmed.remove(0);
        }
        self.unconfirmed.push((LeaderElectionRecord::of(write.lease()), began));
        write
    }

    /// Records that a write of this candidate was carried out.
    pub(super) fn written(&mut self, lease: Lease) {
        self.confirmed = Some(LeaderElectionRecord::of(&lease));
        self.unconfirmed.clear();
        self.note(lease);
    }

    /// Records a lease that was read.
    pub(super) fn see(&mut self, lease: Lease) -> Sight {
        let record = LeaderElectionRecord::of(&lease);
        let version = |lease: &Lease| lease.metadata.resource_version.clone();
        let unchanged = self.seen.as_ref().is_some_and(|seen| version(&seen.lease) == version(&lease));
        self.note(lease);
        if let Some((_, began)) = self.unconfirmed.iter().find(|(write, _)| *write == record) {
            let began = *began;
            self.confirmed = Some(record);
            self.unconfirmed.clear();
            return Sight::Confirmed(began);
        }
        if !unchanged {
            // All of them were made from an older version: the API server refuses them from now on.
            self.unconfirmed.clear();
        }
        match (self.confirmed.as_ref() == Some(&record), unchanged) {
            (true, true) => Sight::Unchanged,
            (true, false) => Sight::NewVersion,
            (false, _) => Sight::Foreign,
        }
    }

    /// Records that a read found no lease.
    pub(super) fn is_gone(&mut self) {
        self.gone = true;
    }

    /// Makes a request that releases the lease, if this candidate may hold it.
    pub(super) fn release(&mut self) -> Release {
        let records = self.unconfirmed.iter().map(|(record, _)| record);
        Release {
            known: self.known_ours().cloned(),
            own: self.confirmed.iter().chain(records).cloned().collect(),
            now: self.clock.now(),
        }
    }

    /// Records that this candidate does not hold the lease any more.
    pub(super) fn released(&mut self, lease: Option<Lease>) {
        (self.confirmed, self.unconfirmed) = (None, Vec::new());
        match lease {
            Some(lease) => self.note(lease),
            None => self.gone = true,
        }
    }

    /// Returns the lease, if its last known record is one of this candidate.
    fn known_ours(&self) -> Option<&Lease> {
        let lease = &self.seen.as_ref().filter(|_| !self.gone)?.lease;
        (self.confirmed == Some(LeaderElectionRecord::of(lease))).then_some(lease)
    }

    fn note(&mut self, lease: Lease) {
        self.gone = false;
        match &mut self.seen {
            // Another client may have changed another field.
            Some(seen) if seen.lease.spec == lease.spec => seen.lease = lease,
            seen => *seen = Some(SeenLease { lease, since: Instant::now() }),
        }
    }
}
