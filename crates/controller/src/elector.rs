//! Leader election: of several copies of a program one acts, and the others stand by.
//!
//! They agree by a Lease, as client-go's do, and can stand beside those. Whether a lease has expired is judged by the local
//! clock alone, from the moment its record was last seen to change; clocks of different machines need not agree, they only
//! have to run about equally fast.

mod lock;
mod record;
mod settings;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube_client::Client;
use kube_informer::ObjectKey;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use self::lock::{Attempt, Lock};
pub use self::settings::{ElectionError, ElectionSettings};
use crate::term::Term;
use crate::time::after;

/// Takes part in the election of a leader.
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
/// assert_eq!(elector.leader().borrow().as_deref(), None, "the lease was given back");
/// # Ok(()) });
/// ```
pub struct LeaderElector {
    client: Client,
    lease: ObjectKey,
    identity: String,
    settings: ElectionSettings,
    leader: watch::Sender<Option<String>>,
    state: Mutex<State>,
    /// There is one run at a time: two would have the same identity.
    turn: tokio::sync::Mutex<()>,
    on_new_leader: Mutex<Option<Arc<NewLeader>>>,
}

type NewLeader = dyn Fn(&str) + Send + Sync;

struct State {
    random: StdRng,
    /// When the last renewal began that worked, while it leads.
    renewed: Option<Instant>,
}

impl LeaderElector {
    /// Takes part with this identity, which no other may have, in the election over a Lease, as `namespace/name`.
    ///
    /// Nothing happens before it runs.
    ///
    /// # Errors
    ///
    /// [`ElectionError`] if the settings do not fit together, or a name is missing.
    pub fn new(
        client: Client,
        lease: &str,
        identity: impl Into<String>,
        settings: ElectionSettings,
    ) -> Result<Self, ElectionError> {
        let lease: ObjectKey = lease.parse().map_err(ElectionError::Lease)?;
        let identity = identity.into();
        settings.check(&lease, &identity)?;
        let state = State { random: StdRng::seed_from_u64(settings.seed.unwrap_or_else(rand::random)), renewed: None };
        Ok(Self {
            client,
            lease,
            identity,
            settings,
            leader: watch::Sender::new(None),
            state: Mutex::new(state),
            turn: tokio::sync::Mutex::new(()),
            on_new_leader: Mutex::new(None),
        })
    }

    /// Calls a function with the identity of each new leader that is seen, itself included.
    #[must_use]
    pub fn on_new_leader(self, hook: impl Fn(&str) + Send + Sync + 'static) -> Self {
        *self.on_new_leader.lock() = Some(Arc::new(hook));
        self
    }

    /// Who leads, as far as is known; changes can be waited for.
    pub fn leader(&self) -> watch::Receiver<Option<String>> {
        self.leader.subscribe()
    }

    /// The identity it takes part with.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// True while it leads, by the clock.
    pub fn is_leader(&self) -> bool {
        let renewed = self.state.lock().renewed;
        renewed.is_some_and(|renewed| Instant::now() < after(renewed, self.settings.renew_deadline))
    }

    /// For a liveness probe: fails only for a leader that should have noticed long ago that it leads no more.
    ///
    /// # Errors
    ///
    /// [`ElectionError::Stuck`] if the last renewal is older than the lease and this.
    pub fn check(&self, tolerance: Duration) -> Result<(), ElectionError> {
        let late = self.state.lock().renewed.map(|renewed| renewed.elapsed());
        match late.filter(|late| *late > self.settings.lease_duration.saturating_add(tolerance)) {
            Some(since) => Err(ElectionError::Stuck { lease: self.lease.clone(), since }),
            None => Ok(()),
        }
    }

    /// Stands by until it leads, then does what `lead` says for that term, and again, until it is told to end.
    ///
    /// A term is lost when the lease could not be renewed in time: then `lead` is dropped at once, and it stands by again. Told
    /// to end, it tells the term so, goes on renewing until `lead` has finished, and gives the lease back. A second run waits
    /// until the first has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops `lead`. The lease is not given back; it expires.
    pub async fn run<F, R>(&self, cancel: CancellationToken, mut lead: F)
    where
        F: FnMut(Term) -> R,
        R: Future<Output = ()>,
    {
        let Some(_turn) = cancel.run_until_cancelled(self.turn.lock()).await else { return };
        let mut lock = Lock::new(&self.client, &self.lease, &self.identity, &self.settings);
        while let Some(renewed) = self.acquire(&mut lock, &cancel).await {
            let finished = self.lead(&mut lock, renewed, &cancel, &mut lead).await;
            if !finished {
                continue;
            }
            // The work of this term is done, and nobody told it to end: others may have it.
            self.release(&mut lock).await;
            if !cancel.is_cancelled() {
                self.pause(&cancel).await;
            }
        }
    }

    /// Tries until it works; `None` once cancelled. Gives when the attempt that worked began.
    async fn acquire(&self, lock: &mut Lock<'_>, cancel: &CancellationToken) -> Option<Instant> {
        info!(lease = %self.lease, identity = %self.identity, "standing by");
        loop {
            if cancel.is_cancelled() {
                return None;
            }
            let began = Instant::now();
            let deadline = after(began, self.settings.renew_deadline);
            let attempt = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    // What is under way may have worked.
                    let limit = after(Instant::now(), self.settings.attempt_timeout());
                    let _ = timeout_at(limit, lock.try_release()).await;
                    return None;
                }
                attempt = timeout_at(deadline, lock.try_acquire()) => attempt,
            };
            self.tell_leader(lock);
            match attempt {
                Ok(Ok(Attempt::Ours)) => return Some(began),
                Ok(Ok(Attempt::Theirs)) => {}
                Ok(Err(error)) => warn!(lease = %self.lease, %error, "cannot get the lease; trying again"),
                Err(_) => warn!(lease = %self.lease, "the server did not answer for the lease in time; trying again"),
            }
            self.pause(cancel).await;
        }
    }

    /// One term. True if its work has finished, false if it was lost.
    async fn lead<R: Future<Output = ()>>(
        &self,
        lock: &mut Lock<'_>,
        renewed: Instant,
        cancel: &CancellationToken,
        lead: &mut impl FnMut(Term) -> R,
    ) -> bool {
        let deadline = |renewed| after(renewed, self.settings.renew_deadline);
        let (until, deadlines) = watch::channel(deadline(renewed));
        // Dropped with this future, it tells all who kept a clone of the term.
        let lost = CancellationToken::new();
        let _dropped = lost.clone().drop_guard();
        let term = Term::new(cancel.clone(), lost.clone(), deadlines);
        if !term.is_valid() {
            return false;
        }
        let leading = Leading::begin(self, renewed);
        info!(lease = %self.lease, identity = %self.identity, "leading");
        let renewing = async {
            loop {
                sleep(self.settings.retry_period).await;
                let before = *until.borrow();
                let Some(renewed) = self.renew(lock, before).await else { return };
                self.state.lock().renewed = Some(renewed);
                until.send_replace(deadline(renewed));
            }
        };
        let finished = tokio::select! {
            biased;
            () = term.lost() => false,
            () = renewing => false,
            () = lead(term.clone()) => term.is_valid(),
        };
        drop(leading);
        self.tell_leader(lock);
        match finished {
            true => info!(lease = %self.lease, identity = %self.identity, "done leading"),
            false => warn!(lease = %self.lease, identity = %self.identity, "leadership was lost"),
        }
        finished
    }

    /// Renews until it works; `None` if it does not in time, or the lease is with another. Gives when the attempt that worked
    /// began.
    async fn renew(&self, lock: &mut Lock<'_>, deadline: Instant) -> Option<Instant> {
        loop {
            let began = Instant::now();
            if began >= deadline {
                return None;
            }
            // A client may try again for minutes by itself: each attempt has its own limit.
            let limit = after(began, self.settings.attempt_timeout()).min(deadline);
            match timeout_at(limit, lock.try_renew()).await {
                Ok(Ok(Attempt::Ours)) => return Some(began),
                Ok(Ok(Attempt::Theirs)) => return None,
                Ok(Err(error)) => debug!(lease = %self.lease, %error, "cannot renew the lease; trying again"),
                Err(_) => debug!(lease = %self.lease, "the server did not answer in time; trying again"),
            }
            sleep_until(after(began, self.settings.retry_period).min(deadline)).await;
        }
    }

    /// Gives the lease back, so that others need not wait until it expires.
    async fn release(&self, lock: &mut Lock<'_>) {
        let deadline = after(Instant::now(), self.settings.renew_deadline);
        while Instant::now() < deadline {
            let limit = after(Instant::now(), self.settings.attempt_timeout()).min(deadline);
            match timeout_at(limit, lock.try_release()).await {
                Ok(Ok(())) => {
                    info!(lease = %self.lease, "gave the lease back");
                    return self.tell_leader(lock);
                }
                Ok(Err(error)) => debug!(lease = %self.lease, %error, "cannot give the lease back; trying again"),
                Err(_) => {}
            }
            sleep_until(after(Instant::now(), self.settings.retry_period).min(deadline)).await;
        }
        warn!(lease = %self.lease, "could not give the lease back; it expires by itself");
    }

    /// Waits for one retry period, and up to 1.2 times as long again, so that not all try at once.
    async fn pause(&self, cancel: &CancellationToken) {
        let jitter = self.state.lock().random.random_range(0.0..1.2);
        let period = self.settings.retry_period;
        let delay = period.saturating_add(period.mul_f64(jitter));
        cancel.run_until_cancelled(sleep(delay)).await;
    }

    fn tell_leader(&self, lock: &Lock<'_>) {
        let now = lock.holder().map(str::to_owned);
        let changed = self.leader.send_if_modified(|leader| {
            let changed = *leader != now;
            leader.clone_from(&now);
            changed
        });
        let hook = self.on_new_leader.lock().clone();
        if let (true, Some(leader), Some(hook)) = (changed, now, hook) {
            hook(&leader);
        }
    }
}

/// While this lives it leads, as others are told. However a term ends, this ends with it.
struct Leading<'e>(&'e LeaderElector);

impl<'e> Leading<'e> {
    fn begin(elector: &'e LeaderElector, renewed: Instant) -> Self {
        elector.state.lock().renewed = Some(renewed);
        crate::metrics::leads(elector.lease.as_str(), true);
        Self(elector)
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.0.state.lock().renewed = None;
        crate::metrics::leads(self.0.lease.as_str(), false);
    }
}

impl fmt::Debug for LeaderElector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderElector")
            .field("lease", &self.lease)
            .field("identity", &self.identity)
            .field("leads", &self.is_leader())
            .finish_non_exhaustive()
    }
}
