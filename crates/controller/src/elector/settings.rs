//! How an election is held.

use std::time::Duration;

use kube_informer::ObjectKey;
use kube_informer::object::KeyError;

/// How an election is held. All who take part should agree; the defaults are those of client-go.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ElectionSettings {
    /// How long others wait after they last saw the lease renewed: 15 seconds. A whole number of seconds.
    pub lease_duration: Duration,
    /// How long a leader goes on without being able to renew: 10 seconds.
    pub renew_deadline: Duration,
    /// How often it is renewed, and about how often others look: 2 seconds.
    pub retry_period: Duration,
    /// Makes the moments at which others look the same each time: for tests.
    pub seed: Option<u64>,
}

impl Default for ElectionSettings {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            seed: None,
        }
    }
}

/// What is wrong with an election.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionError {
    /// A lease is named by its key.
    #[error("the lease cannot be named so")]
    Lease(#[source] KeyError),
    /// A lease has a namespace.
    #[error("lease {0} has no namespace: expected `namespace/name`")]
    NoNamespace(ObjectKey),
    /// Everybody who takes part has an identity.
    #[error("the identity is empty: give each copy of the program one of its own, such as the name of its pod")]
    NoIdentity,
    /// The lease must outlast the leader's patience.
    #[error("lease duration {lease:?} is not longer than renew deadline {renew:?}: two could lead at once")]
    LeaseTooShort {
        /// The lease duration.
        lease: Duration,
        /// The renew deadline.
        renew: Duration,
    },
    /// A lease is measured in whole seconds.
    #[error("lease duration {0:?} is not a whole number of seconds, of which there are at most 2147483647")]
    NotSeconds(Duration),
    /// There must be time for a second attempt.
    #[error("renew deadline {renew:?} is not longer than 1.2 times the retry period {retry:?}")]
    RenewTooShort {
        /// The renew deadline.
        renew: Duration,
        /// The retry period.
        retry: Duration,
    },
    /// Something has to pass between two attempts.
    #[error("the retry period is zero")]
    NoRetryPeriod,
    /// A leader has not renewed for longer than it may lead, and has not noticed.
    #[error("lease {lease} was last renewed {since:?} ago")]
    Stuck {
        /// Which one.
        lease: ObjectKey,
        /// How long ago.
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
        // Shorter than the lease, and so no product of it is too long for a duration.
        if renew_deadline < retry_period || renew_deadline <= retry_period.mul_f64(1.2) {
            return Err(ElectionError::RenewTooShort { renew: renew_deadline, retry: retry_period });
        }
        Ok(())
    }

    /// How long one attempt to renew may take: there is time for others after it.
    pub(super) fn attempt_timeout(&self) -> Duration {
        self.retry_period.max(self.renew_deadline / 4)
    }
}
