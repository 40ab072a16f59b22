//! Leader election: one of several copies of a program leads; the others wait.
//!
//! The candidates agree through a Lease, like candidates of client-go. Both can take part in the same election. A candidate
//! judges by its own clock whether a lease has expired: it counts from when it last saw the record change. So the
//! clocks of two machines may show different times. They only have to run at about the same speed.

mod campaign;
mod connections;
mod hook;
mod lock;
mod record;
mod request;
mod settings;

use std::fmt;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use kube_client::Client;
use kube_informer::{ElectionHealth, ObjectKey};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, error, info, warn};

use self::campaign::{Begun, Campaign};
use self::connections::{Connect, Connections};
use self::hook::NewLeader;
pub use self::settings::{ElectionError, ElectionSettings};
use crate::term::Term;

/// Takes part in a leader election.
///
/// ```
/// use std::time::Duration;
/// use kube_controller::{ElectionSettings, LeaderElector};
/// use kube_informer::CancellationToken;
///
/// # doc_server::with(async |server| {
/// let elector = LeaderElector::new(server.client(), "web/my-controller", "pod-1", ElectionSettings::default())?;
/// let cancel = CancellationToken::new();
/// elector
///     .run(cancel.clone(), async |term| {
///         assert!(term.is_valid());
///         // Here controllers run, with this term: `controller.run(term, reconcile, context).await`.
///         cancel.cancel();
///     })
///     .await;
/// assert_eq!(elector.leader(), None, "the lease was released");
/// # Ok(()) });
/// ```
pub struct LeaderElector {
    shared: Arc<ElectorShared>,
    client: Client,
    connect: Option<Arc<Connect>>,
    on_new_leader: Option<Arc<NewLeader>>,
    /// Allows one run at a time, because two runs would have the same identity.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// The part of an elector that it shares with its task.
struct ElectorShared {
    lease: ObjectKey,
    identity: String,
    settings: ElectionSettings,
    leader: watch::Sender<Option<String>>,
    random: Mutex<StdRng>,
    /// The term for which `lead` runs now.
    term: Mutex<Option<Term>>,
}

impl LeaderElector {
    /// Makes an elector with this identity. The Lease is given as `namespace/name`.
    ///
    /// The identity is a name for people, such as the name of the pod. By default the elector [appends a random
    /// suffix](ElectionSettings::unique_identity). It sends no request before it [runs](Self::run).
    ///
    /// # Errors
    ///
    /// [`ElectionError`] if the settings contradict each other, or a name is missing.
    pub fn new(
        client: Client,
        lease: &str,
        identity: impl Into<String>,
        settings: ElectionSettings,
    ) -> Result<Self, ElectionError> {
        let lease: ObjectKey = lease.parse().map_err(ElectionError::Lease)?;
        let mut identity = identity.into();
        settings.check(&lease, &identity)?;
        let mut random = StdRng::seed_from_u64(settings.seed.unwrap_or_else(rand::random));
        if settings.unique_identity {
            identity = format!("{identity}_{:016x}", random.random::<u64>());
        }
        let shared = ElectorShared {
            lease,
            identity,
            settings,
            leader: watch::Sender::new(None),
            random: Mutex::new(random),
            term: Mutex::new(None),
        };
        Ok(Self { shared: Arc::new(shared), client, connect: None, on_new_leader: None, turn: Arc::default() })
    }

    /// Sets the function that makes clients for the requests of the election. Each client has a connection of its own.
    ///
    /// A `Client` shares its connections among all requests. If such a connection goes silent, the watches and the
    /// renewals of the lease wait for the same dead connection, and leadership is lost although new connections would
    /// work. So the elector makes clients of its own: one when it runs, a second one for attempts beside a slow
    /// attempt, and further ones if these attempts are not answered either. If the function fails, the elector uses its
    /// existing client.
    ///
    /// ```no_run
    /// use kube_client::Config;
    /// use kube_controller::{ElectionSettings, LeaderElector};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = Config::infer().await?;
    /// let client = kube_informer::client_from(config.clone())?;
    /// let elector = LeaderElector::new(client, "web/my-controller", "pod-1", ElectionSettings::default())?
    ///     .connect_with(move || kube_informer::client_from(config.clone()));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn connect_with(
        mut self,
        connect: impl Fn() -> Result<Client, kube_client::Error> + Send + Sync + 'static,
    ) -> Self {
        self.connect = Some(Arc::new(connect));
        self
    }

    /// Calls a function with the identity of each new leader, including its own.
    ///
    /// The function runs in a task of its own. If it panics, the panic is logged. If it is slower than leaders change,
    /// it misses some of them.
    #[must_use]
    pub fn on_new_leader(mut self, hook: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_new_leader = Some(Arc::new(hook));
        self
    }

    /// Returns the identity of the leader as last seen. [`on_new_leader`](Self::on_new_leader) calls a function at each
    /// change.
    pub fn leader(&self) -> Option<String> {
        self.shared.leader.borrow().clone()
    }

    /// Returns the identity of this candidate, as the Lease shows it.
    pub fn identity(&self) -> &str {
        &self.shared.identity
    }

    /// Returns true while this candidate leads: its term has begun, and its deadline has not passed.
    pub fn is_leader(&self) -> bool {
        self.shared.term.lock().as_ref().is_some_and(Term::is_valid)
    }

    /// Returns the state of the election, as this candidate knows it.
    pub fn health(&self) -> ElectionHealth {
        let mut health = ElectionHealth::default();
        (health.lease, health.identity) = (self.shared.lease.to_string(), self.shared.identity.clone());
        health.leader = self.leader();
        let term = self.shared.term.lock();
        let valid = term.as_ref().filter(|term| term.is_valid());
        (health.leads, health.term_left) = (valid.is_some(), valid.and_then(Term::left));
        health
    }

    /// Checks for a liveness probe that no work is left from a term that ended long ago.
    ///
    /// # Errors
    ///
    /// [`ElectionError::Stuck`] if `lead` still runs, and the last renewal is older than the lease duration and the
    /// tolerance.
    pub fn check(&self, tolerance: Duration) -> Result<(), ElectionError> {
        let settings = &self.shared.settings;
        let overdue = self.shared.term.lock().as_ref().map(Term::overdue).unwrap_or_default();
        let since = overdue.saturating_add(settings.renew_deadline);
        if since > settings.lease_duration.saturating_add(tolerance) && !overdue.is_zero() {
            return Err(ElectionError::Stuck { lease: self.shared.lease.clone(), since });
        }
        Ok(())
    }

    /// Stands by until it leads, then runs `lead` for that term. Repeats this until `cancel` is cancelled.
    ///
    /// A separate task renews the lease, so `lead` cannot delay a renewal, even if it blocks its thread. (On a runtime
    /// with one thread it can.) The elector does not cancel a slow renewal: another attempt begins beside it.
    ///
    /// If the lease could not be renewed in time, the term is lost: `lead` is dropped at once, and the elector stands
    /// by again. When `cancel` is cancelled, the term is [ending](Term::ending): the elector continues to renew the
    /// lease until `lead` has finished, and then releases it. It also releases a lease that it may have acquired
    /// without getting a response. It tries to release the lease for at most 5 s. A second run waits until the first
    /// has ended.
    ///
    /// # Panics
    ///
    /// If `lead` panics, the elector releases the lease, and then resumes the panic in this future.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `lead` and stops the task. The lease is not released; it expires.
    pub async fn run<F, R>(&self, cancel: CancellationToken, mut lead: F)
    where
        F: FnMut(Term) -> R,
        R: Future<Output = ()>,
    {
        let turn = self.turn.clone().lock_owned();
        let Some(turn) = cancel.run_until_cancelled(turn).await else { return };
        let (leaders, announced) = mpsc::channel(hook::MOST_WAITING);
        let (terms, mut begun) = mpsc::channel(1);
        let connections = Connections::new(self.client.clone(), self.connect.clone());
        // A child token: cancelled when the caller cancels, and also if `lead` panics.
        let cancel = cancel.child_token();
        let campaign = Campaign::new(self.shared.clone(), connections, cancel.clone(), terms, leaders, turn);
        // Both are aborted if this future is dropped.
        let (mut hooks, mut campaigns) = (JoinSet::new(), JoinSet::new());
        hooks.spawn(hook::announce(self.on_new_leader.clone(), announced).in_current_span());
        campaigns.spawn(campaign.run().in_current_span());
        let mut panicked = None;
        while let Some(Begun { term, lost, ended }) = begun.recv().await {
            let work = async {
                tokio::select! {
                    biased;
                    () = term.lost() => false,
                    () = lead(term.clone()) => term.is_valid(),
                }
            };
            let finished = {
                let _leading = Leading::begin(&self.shared, &term, lost);
                AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| {
                    error!(lease = %self.shared.lease, "the work of the leader panicked; releasing the lease");
                    cancel.cancel();
                    panicked = Some(panic);
                    term.is_valid()
                })
            };
            let (lease, identity) = (&self.shared.lease, &self.shared.identity);
            match finished {
                true => info!(%lease, %identity, "the work of the leader has ended"),
                false => warn!(%lease, %identity, "leadership was lost"),
            }
            // The campaign waits for this message before it continues.
            let _ = ended.send(finished);
        }
        if let Some(Err(error)) = campaigns.join_next().await
            && let Ok(panic) = error.try_into_panic()
        {
            resume_unwind(panic);
        }
        // The function for new leaders may hang.
        if timeout(self.shared.settings.attempt_period(), hooks.join_next()).await.is_err() {
            warn!(lease = %self.shared.lease, "the function for new leaders has not returned");
        }
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
    }
}

/// Marks the elector as leading, until it is dropped at the end of the term.
struct Leading<'e> {
    shared: &'e ElectorShared,
    lost: CancellationToken,
}

impl<'e> Leading<'e> {
    fn begin(shared: &'e ElectorShared, term: &Term, lost: CancellationToken) -> Self {
        info!(lease = %shared.lease, identity = %shared.identity, "leading");
        *shared.term.lock() = Some(term.clone());
        crate::metrics::leads(shared.lease.as_str(), true);
        Self { shared, lost }
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        // The program may have kept clones of the term.
        self.lost.cancel();
        *self.shared.term.lock() = None;
        crate::metrics::leads(self.shared.lease.as_str(), false);
    }
}

impl fmt::Debug for LeaderElector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderElector")
            .field("lease", &self.shared.lease)
            .field("identity", &self.shared.identity)
            .field("leads", &self.is_leader())
            .finish_non_exhaustive()
    }
}
