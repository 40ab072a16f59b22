//! The record of a holder in a Lease.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube_informer::ObjectKey;
use tokio::time::Instant;

/// The part of a lease that identifies one write of one holder: no two writes have the same times.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LeaderElectionRecord {
    holder: Option<String>,
    acquired: Option<MicroTime>,
    renewed: Option<MicroTime>,
}

impl LeaderElectionRecord {
    pub(super) fn of(lease: &Lease) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        Self { holder: spec.holder_identity, acquired: spec.acquire_time, renewed: spec.renew_time }
    }
}

/// The time of day for records. It follows the clock of the runtime, and never returns the same time twice. No
/// candidate judges by it whether a lease has expired.
pub(super) struct RecordClock {
    then: Timestamp,
    since: Instant,
    /// The last time that was given, in microseconds since `then`.
    last: Option<u64>,
}

impl RecordClock {
    pub(super) fn new() -> Self {
        let now = Timestamp::now();
        // Servers keep microseconds.
        let then = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
        Self { then, since: Instant::now(), last: None }
    }

    pub(super) fn now(&mut self) -> MicroTime {
        let passed = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        let passed = passed.max(self.last.map_or(0, |last| last.saturating_add(1)));
        self.last = Some(passed);
        MicroTime(self.then.saturating_add(Duration::from_micros(passed)).unwrap_or(self.then))
    }
}

/// Returns a new lease with this holder.
pub(super) fn first(key: &ObjectKey, holder: &str, duration: Duration, now: MicroTime) -> Lease {
    let (name, namespace) = (Some(key.name().to_owned()), key.namespace().map(str::to_owned));
    let empty = Lease { metadata: ObjectMeta { name, namespace, ..ObjectMeta::default() }, spec: None };
    let mut lease = held(&empty, holder, duration, now);
    lease.spec.get_or_insert_default().lease_transitions = Some(0);
    lease
}

/// Returns the same lease with this holder, renewed now. All other fields stay.
pub(super) fn held(lease: &Lease, holder: &str, duration: Duration, now: MicroTime) -> Lease {
    let spec = lease.spec.clone().unwrap_or_default();
    let same = spec.holder_identity.as_deref() == Some(holder);
    let spec = LeaseSpec {
        holder_identity: Some(holder.to_owned()),
        lease_duration_seconds: Some(seconds(duration)),
        acquire_time: if same { spec.acquire_time } else { Some(now.clone()) },
        renew_time: Some(now),
        lease_transitions: Some(spec.lease_transitions.unwrap_or(0).saturating_add(i32::from(!same))),
        ..spec
    };
    Lease { metadata: lease.metadata.clone(), spec: Some(spec) }
}

/// Returns the same lease without a holder.
pub(super) fn released(lease: &Lease, now: MicroTime) -> Lease {
    let mut released = held(lease, "", Duration::from_secs(1), now);
    // The next holder counts the transition.
    released.spec.get_or_insert_default().lease_transitions =
        lease.spec.as_ref().and_then(|spec| spec.lease_transitions);
    released
}

/// Returns the identity of the holder, or `None` if the lease has none.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// Returns how long the lease is valid after it was last seen to change.
pub(super) fn duration(lease: &Lease) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or(0);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

fn seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)
}
