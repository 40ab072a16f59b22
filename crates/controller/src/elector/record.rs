//! What a Lease says.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube_informer::ObjectKey;
use tokio::time::Instant;

/// The time of day, which goes on as the clock of the runtime does: nobody judges by it, but all who look want it to change.
pub(super) struct Clock {
    then: Timestamp,
    since: Instant,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self { then: Timestamp::now(), since: Instant::now() }
    }

    fn now(&self) -> MicroTime {
        MicroTime(self.then.saturating_add(self.since.elapsed()).unwrap_or(self.then))
    }
}

/// A lease that nobody has had yet, with this holder.
pub(super) fn first(key: &ObjectKey, holder: &str, duration: Duration, clock: &Clock) -> Lease {
    let (name, namespace) = (Some(key.name().to_owned()), key.namespace().map(str::to_owned));
    let nobodys = Lease { metadata: ObjectMeta { name, namespace, ..ObjectMeta::default() }, spec: None };
    let mut lease = held(&nobodys, holder, duration, clock);
    lease.spec.get_or_insert_default().lease_transitions = Some(0);
    lease
}

/// The same lease with this holder, now. What else it says stays.
pub(super) fn held(lease: &Lease, holder: &str, duration: Duration, clock: &Clock) -> Lease {
    let spec = lease.spec.clone().unwrap_or_default();
    let (now, same) = (clock.now(), spec.holder_identity.as_deref() == Some(holder));
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

/// The same lease, with nobody.
pub(super) fn released(lease: &Lease, clock: &Clock) -> Lease {
    let mut released = held(lease, "", Duration::from_secs(1), clock);
    // It changes hands when somebody takes it.
    released.spec.get_or_insert_default().lease_transitions =
        lease.spec.as_ref().and_then(|spec| spec.lease_transitions);
    released
}

/// Who has it, if anybody.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// How long it holds after it was last seen to change.
pub(super) fn duration(lease: &Lease) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or(0);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

fn seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)
}
