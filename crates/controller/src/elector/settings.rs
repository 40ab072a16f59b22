//! The settings of an election, and the check of these settings.

use std::time::Duration;

use kube_informer::internal::rounded;
use kube_informer::{KeyError, ObjectKey};

use crate::term::SuspendClock;

/// The settings of an election. All candidates should have the same; the default durations are those of client-go.
///
/// Fields may be added, so set those that you change, and take the others from the default:
///
/// ```
/// use std::time::Duration;
/// use kube_controller::ElectionSettings;
///
/// let settings = ElectionSettings { lease_duration: Duration::from_secs(30), ..Default::default() };
/// assert_eq!(settings.renew_deadline, Duration::from_secs(10));
/// ```
#[derive(Debug, Clone)]
pub struct ElectionSettings {
    /// How long a standby waits after it last saw the lease renewed: 15 seconds. A whole number of seconds.
    pub lease_duration: Duration,
    /// How long a leader may lead after the beginning of its last successful renewal: 10 seconds.
    ///
    /// A leader keeps its term on a server that answers within half of this time.
    pub renew_deadline: Duration,
    /// How often a leader renews the lease, and about how often a standby reads it: 2 seconds.
    pub retry_period: Duration,
    /// Appends a random suffix to the identity: true.
    ///
    /// Two processes can have the same name at the same time, such as a pod of a StatefulSet that was deleted by force
    /// and the pod that replaces it. With the same identity each of them would take the lease of the other for its own,
    /// and both would lead. Turn this off only if the identity is unique for each process, such as the uid of its pod.
    /// A process that is started again with the same identity then takes its old lease at once, and does not wait until
    /// it expires.
    pub unique_identity: bool,
    /// Makes all random choices repeatable, including the suffix of the identity: for tests.
    pub seed: Option<u64>,
    /// The clock that runs while the machine is suspended: for tests.
    #[doc(hidden)]
    pub clock: SuspendClock,
}

impl Default for ElectionSettings {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            unique_identity: true,
            seed: None,
            clock: SuspendClock::default(),
        }
    }
}

/// Reports settings that cannot be used, or a leader that is stuck.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionError {
    /// The name of the lease is not a key.
    #[error("the name of the lease is not valid")]
    Lease(#[source] KeyError),
    /// A lease has a namespace.
    #[error("lease {0} has no namespace: expected `namespace/name`")]
    NoNamespace(ObjectKey),
    /// Every candidate has an identity.
    #[error("the identity is empty: give each copy of the program one of its own, such as the name of its pod")]
    NoIdentity,
    /// The lease must be valid for longer than its leader may lead.
    #[error(
        "lease duration {lease:?} is not longer than renew deadline {renew:?}: two candidates could lead at the same time"
    )]
    LeaseTooShort {
        /// The lease duration.
        lease: Duration,
        /// The renew deadline.
        renew: Duration,
    },
    /// A lease is measured in whole seconds.
    #[error("lease duration {0:?} is not a whole number of seconds, or longer than 2147483647 seconds")]
    NotSeconds(Duration),
    /// There must be time for a second attempt within the renew deadline.
    #[error("renew deadline {renew:?} is not longer than 1.2 times the retry period {retry:?}")]
    RenewTooShort {
        /// The renew deadline.
        renew: Duration,
        /// The retry period.
        retry: Duration,
    },
    /// There must be a pause between two attempts.
    #[error("the retry period is zero")]
    NoRetryPeriod,
    /// A leader has not renewed its lease for longer than it may lead, and still does the work of its term.
    #[error("lease {lease} was last renewed {:?} ago", rounded(*.since))]
    Stuck {
        /// The lease.
        lease: ObjectKey,
        /// The time since the last renewal.
        since: Duration,
    },
}

impl ElectionSettings {
    pub(super) fn check(&self, lease: &ObjectKey, identity: &str) -> Result<(), ElectionError> {
        let Self { lease_duration, renew_deadline, retry_period, .. } = *self;
        if lease.namespace().is_none() {
            return Err(ElectionError::NoNamespace(lease.clone()));
        }
        if identity.is_empty() {
            return Err(ElectionError::NoIdentity);
        }
        if lease_duration.subsec_nanos() != 0 || i32::try_from(lease_duration.as_secs()).is_err() {
            return Err(ElectionError::NotSeconds(lease_duration));
        }
        if lease_duration <= renew_deadline {
            return Err(ElectionError::LeaseTooShort { lease: lease_duration, renew: renew_deadline });
        }
        if retry_period.is_zero() {
            return Err(ElectionError::NoRetryPeriod);
        }
        // The product cannot overflow: the retry period is not longer than the deadline, which is shorter than the
        // lease.
        if renew_deadline < retry_period || renew_deadline <= retry_period.mul_f64(1.2) {
            return Err(ElectionError::RenewTooShort { renew: renew_deadline, retry: retry_period });
        }
        Ok(())
    }

    /// Returns after how much time without a response another attempt begins beside the first.
    pub(super) fn attempt_period(&self) -> Duration {
        self.retry_period.max(self.renew_deadline / 4)
    }
}
