//! The task that acquires, renews and releases the lease.
//!
//! It runs no code of the program, so that nothing in the program can delay a renewal.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use kube_client::Error;
use rand::RngExt as _;
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::ElectorShared;
use super::connections::{Connection, Connections};
use super::lock::{Lock, Sight};
use super::request::{LeaseOutcome, LeaseResponse, PendingRequest, pending_read, pending_write, read};
use crate::term::{Moment, Term};
use kube_informer::internal::after;

/// How long the elector tries to release the lease. A program has 30 s to end, and its work needs most of that.
const RELEASE_WITHIN: Duration = Duration::from_secs(5);

/// A term that has begun, on its way to the task that runs `lead`.
pub(super) struct Begun {
    pub(super) term: Term,
    /// Makes the term lost.
    pub(super) lost: CancellationToken,
    /// Receives true if `lead` has finished by itself. Dropped if `lead` was dropped.
    pub(super) ended: oneshot::Sender<bool>,
}

pub(super) struct Campaign {
    shared: Arc<ElectorShared>,
    cancel: CancellationToken,
    lock: Lock,
    connections: Connections,
    terms: mpsc::Sender<Begun>,
    leaders: mpsc::Sender<String>,
    /// The write that should acquire the lease and had no response when the elector was cancelled.
    acquisition: Option<BoxFuture<'static, Result<Lease, Error>>>,
    /// Kept until the task is dropped: the next run begins after that.
    _turn: OwnedMutexGuard<()>,
}

/// The state of a renewal after a response.
enum CampaignProgress {
    /// The write that began at this moment was carried out.
    Renewed(Moment),
    /// The write failed. A read over the same connection will show the current lease.
    Unsure { connection: Connection, at_once: bool },
    /// The version that this candidate knows is outdated.
    Outdated { at_once: bool },
    /// The response does not change the state.
    Nothing,
    /// This candidate does not hold the lease any more.
    Lost,
}

/// A response that a release waits for.
enum Answered {
    /// The acquisition that was in flight.
    Acquisition(Result<Lease, Error>),
    /// The lease as it is after the release, or `None` if it was deleted.
    Release(Result<Option<Lease>, Error>),
}

impl Campaign {
    pub(super) fn new(
        shared: Arc<ElectorShared>,
        connections: Connections,
        cancel: CancellationToken,
        terms: mpsc::Sender<Begun>,
        leaders: mpsc::Sender<String>,
        turn: OwnedMutexGuard<()>,
    ) -> Self {
        let lock = Lock::new(shared.lease.clone(), shared.identity.clone(), shared.settings.lease_duration);
        Self { shared, cancel, lock, connections, terms, leaders, acquisition: None, _turn: turn }
    }

    /// Acquires the lease and holds it for one term after the other, until cancelled.
    pub(super) async fn run(mut self) {
        while let Some(renewed) = self.acquire().await {
            if !self.hold(renewed).await {
                continue;
            }
            // The work of this term is done: another candidate may lead.
            self.release().await;
            if self.cancel.is_cancelled() {
                return;
            }
            self.pause().await;
        }
    }

    /// Tries until this candidate holds the lease, and returns when the write that acquired it began. Returns `None`
    /// once cancelled.
    async fn acquire(&mut self) -> Option<Moment> {
        info!(lease = %self.shared.lease, identity = %self.shared.identity, "standing by");
        while !self.cancel.is_cancelled() {
            if let Some(renewed) = self.try_acquire().await {
                return Some(renewed);
            }
            self.pause().await;
        }
        // The response to a write may have been lost. `lead` does not run, so the lease must be released.
        if self.lock.may_be_ours() {
            self.release().await;
        }
        None
    }

    async fn try_acquire(&mut self) -> Option<Moment> {
        let (limit, key) = (self.shared.settings.renew_deadline, self.shared.lease.clone());
        let reading = timeout(limit, read(self.connections.current().client, key.clone()));
        match self.cancel.run_until_cancelled(reading).await? {
            Ok(Ok(Some(lease))) => drop(self.lock.see(lease)),
            Ok(Ok(None)) => self.lock.is_gone(),
            Ok(Err(error)) => return self.not_acquired(Some(&error)),
            Err(_) => return self.not_acquired(None),
        }
        self.announce_leader();
        if self.lock.is_theirs() {
            return None;
        }
        let began = self.shared.settings.clock.now();
        let mut writing = self.lock.write(began).send(self.connections.current().client, key).boxed();
        let written = timeout_at(after(began.instant, limit), &mut writing);
        let Some(written) = self.cancel.run_until_cancelled(written).await else {
            // The API server may still carry out the write. Its response shows whether there is a lease to release.
            self.acquisition = Some(writing);
            return None;
        };
        match written {
            Ok(Ok(lease)) => {
                self.lock.written(lease);
                self.announce_leader();
                (!self.cancel.is_cancelled()).then_some(began)
            }
            Ok(Err(error)) => self.not_acquired(Some(&error)),
            Err(_) => self.not_acquired(None),
        }
    }

    fn not_acquired(&mut self, error: Option<&Error>) -> Option<Moment> {
        let lease = &self.shared.lease;
        match error {
            Some(error) => warn!(%lease, %error, "cannot get the lease; trying again"),
            None => {
                warn!(%lease, "the server did not answer a request for the lease in time; trying again");
                self.connections.replace();
            }
        }
        None
    }

    /// Holds the lease for one term. Returns true if `lead` has finished by itself, false if the term was lost.
    async fn hold(&mut self, renewed: Moment) -> bool {
        let settings = self.shared.settings.clone();
        let (until, deadlines) = watch::channel(renewed.after(settings.renew_deadline));
        let lost = CancellationToken::new();
        let term = Term::new(self.cancel.clone(), lost.clone(), deadlines, settings.clock.clone());
        if !term.is_valid() {
            return false;
        }
        let (ended, mut has_ended) = oneshot::channel();
        let begun = Begun { term: term.clone(), lost: lost.clone(), ended };
        if self.terms.send(begun).await.is_err() {
            return false;
        }
        let finished = tokio::select! {
            biased;
            finished = &mut has_ended => Some(finished.unwrap_or(false)),
            () = self.renew(&term, &until, renewed) => None,
        };
        let finished = match finished {
            Some(finished) => finished,
            None => {
                lost.cancel();
                // The work of this term has to be dropped before another term can begin.
                let _ = has_ended.await;
                false
            }
        };
        self.announce_leader();
        finished
    }

    /// Renews the lease until the term is lost.
    ///
    /// A slow renewal is not cancelled. Reads begin beside it, and later another write. The first response that
    /// confirms a write of this candidate counts, from when that write began.
    async fn renew(&mut self, term: &Term, until: &watch::Sender<Moment>, renewed: Moment) {
        let settings = self.shared.settings.clone();
        // Bounded by time: attempts begin `attempt_period` apart, and all of them end at the deadline of the term.
        let mut pending: FuturesUnordered<PendingRequest> = FuturesUnordered::new();
        let mut next = after(renewed.instant, settings.retry_period);
        // When the last attempt began, when the oldest write in flight began, and how many attempts have no response.
        let (mut last, mut oldest, mut unanswered) = (renewed.instant, renewed.instant, 0);
        loop {
            let deadline = until.borrow().instant;
            let answer = tokio::select! {
                biased;
                () = sleep_until(deadline) => return,
                Some(answer) = pending.next() => Some(answer),
                () = sleep_until(next) => None,
            };
            // Also by the clock that runs during suspend, and also if the run was dropped. A term that is over stays
            // over.
            if !term.is_valid() {
                return;
            }
            let Some(answer) = answer else {
                let connection = self.connections.for_attempt(unanswered);
                (last, unanswered) = (Instant::now(), unanswered + 1);
                next = after(last, settings.attempt_period());
                let alone = pending.is_empty();
                if !alone {
                    // The write may have been carried out, and only its response is late.
                    pending.push(pending_read(connection.clone(), self.shared.lease.clone(), false));
                }
                // Of two writes from one version the API server refuses the second, and that may be the one in flight.
                // So there is no second one before the response to the first would come too late.
                if alone || last >= after(oldest, settings.renew_deadline / 2) {
                    oldest = if alone { last } else { oldest };
                    pending.push(self.renewal(connection, false));
                }
                continue;
            };
            unanswered = if answer.is_ok() { 0 } else { unanswered };
            match self.learn(answer) {
                CampaignProgress::Renewed(began) => {
                    pending.clear();
                    until.send_replace(began.after(settings.renew_deadline));
                    next = after(began.instant, settings.retry_period);
                }
                CampaignProgress::Unsure { connection, at_once } => {
                    pending.push(pending_read(connection, self.shared.lease.clone(), at_once));
                }
                CampaignProgress::Outdated { at_once: false } => {
                    oldest = Instant::now();
                    let connection = self.connections.current();
                    pending.push(self.renewal(connection, true));
                }
                CampaignProgress::Outdated { at_once: true } | CampaignProgress::Nothing if pending.is_empty() => {
                    next = after(last, settings.retry_period);
                }
                CampaignProgress::Outdated { at_once: true } | CampaignProgress::Nothing => {}
                CampaignProgress::Lost => return,
            }
        }
    }

    fn renewal(&mut self, connection: Connection, at_once: bool) -> PendingRequest {
        let began = self.shared.settings.clock.now();
        pending_write(connection, self.shared.lease.clone(), (self.lock.write(began), began), at_once)
    }

    fn learn(&mut self, answer: LeaseResponse) -> CampaignProgress {
        let LeaseResponse { connection, at_once, outcome } = answer;
        let lease = &self.shared.lease;
        match outcome {
            LeaseOutcome::Write(began, Ok(written)) => {
                self.connections.answered(&connection);
                self.lock.written(written);
                CampaignProgress::Renewed(began)
            }
            LeaseOutcome::Write(_, Err(error)) => {
                debug!(%lease, %error, "cannot renew the lease; reading it");
                CampaignProgress::Unsure { connection, at_once }
            }
            LeaseOutcome::Read(Ok(Some(read))) => {
                self.connections.answered(&connection);
                match self.lock.see(read) {
                    Sight::Confirmed(began) => CampaignProgress::Renewed(began),
                    Sight::Unchanged => CampaignProgress::Nothing,
                    Sight::NewVersion => CampaignProgress::Outdated { at_once },
                    Sight::Foreign => CampaignProgress::Lost,
                }
            }
            // The candidate that creates the lease first holds it.
            LeaseOutcome::Read(Ok(None)) => {
                self.lock.is_gone();
                CampaignProgress::Outdated { at_once }
            }
            LeaseOutcome::Read(Err(error)) => {
                debug!(%lease, %error, "cannot read the lease; trying again");
                CampaignProgress::Nothing
            }
        }
    }

    /// Releases the lease, so that other candidates need not wait until it expires.
    ///
    /// It first waits for an acquisition in flight, because the response shows the current lease.
    async fn release(&mut self) {
        let (settings, key) = (self.shared.settings.clone(), self.shared.lease.clone());
        let began = Instant::now();
        let deadline = after(began, RELEASE_WITHIN);
        let (mut pending, mut attempts, mut next) = (FuturesUnordered::new(), 0, began);
        if let Some(acquisition) = self.acquisition.take() {
            next = after(began, settings.attempt_period().min(RELEASE_WITHIN / 2));
            pending.push(acquisition.map(Answered::Acquisition).boxed());
        }
        loop {
            tokio::select! {
                biased;
                () = sleep_until(deadline) => break,
                Some(answered) = pending.next() => match answered {
                    Answered::Acquisition(acquired) => {
                        if let Ok(lease) = acquired {
                            self.lock.written(lease);
                        }
                        next = Instant::now();
                    }
                    Answered::Release(Ok(lease)) => {
                        self.lock.released(lease);
                        info!(lease = %key, holder = self.lock.holder(), "the lease is not ours any more");
                        return self.announce_leader();
                    }
                    Answered::Release(Err(error)) => {
                        debug!(lease = %key, %error, "cannot release the lease; trying again");
                        if pending.is_empty() {
                            next = after(Instant::now(), settings.retry_period);
                        }
                    }
                },
                () = sleep_until(next) => {
                    let client = self.connections.for_attempt(attempts).client;
                    pending.push(self.lock.release().send(client, key.clone()).map(Answered::Release).boxed());
                    (attempts, next) = (attempts + 1, after(Instant::now(), settings.attempt_period()));
                }
            }
        }
        warn!(lease = %key, "could not release the lease; it expires by itself");
    }

    /// Waits for one retry period and a random time of up to 1.2 periods, so that candidates do not all try at once.
    async fn pause(&mut self) {
        let jitter = self.shared.random.lock().random_range(0.0..1.2);
        let period: Duration = self.shared.settings.retry_period;
        let delay = period.saturating_add(period.mul_f64(jitter));
        self.cancel.run_until_cancelled(sleep(delay)).await;
    }

    fn announce_leader(&self) {
        let now = self.lock.holder().map(str::to_owned);
        let changed = self.shared.leader.send_if_modified(|leader| {
            let changed = *leader != now;
            leader.clone_from(&now);
            changed
        });
        if let (true, Some(leader)) = (changed, now)
            && self.leaders.try_send(leader).is_err()
        {
            debug!(lease = %self.shared.lease, "the function for new leaders is too slow; a leader was not announced");
        }
    }
}
