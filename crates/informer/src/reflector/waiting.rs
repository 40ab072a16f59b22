//! Waits between attempts, and ends them when the API server answers again.

use std::time::Duration;

use tokio::time::Instant;
use tracing::debug;

use super::recovery::{Class, OutageChange, RequestKind};
use super::{Phase, Reflector, ReflectorError, Sink};
use crate::object::Object;
use crate::time::{after, rounded};

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    Enough,
    RelistRequested,
}

impl<T: Object + ?Sized, S: Sink<T>> Reflector<T, S> {
    /// Ends the outage for all reflectors of this client, if this is the request that had failed.
    pub(super) fn succeeded(&mut self, request: RequestKind) {
        if let Some(outage) = self.outage.take_if(|outage| outage.is_ended_by(request)) {
            outage.over();
        }
    }

    /// Waits before the next attempt: for a growing delay, or until another reflector of the same client has succeeded
    /// with a request that failed in the same way.
    pub(super) async fn wait(&mut self, error: &ReflectorError) -> Waited {
        let Some(class) = Class::of(error) else {
            let delay = self.backoff.next(error.retry_after());
            self.log_retry(delay, error);
            return self.wait_for(delay, error).await;
        };
        if self.outage.as_ref().is_none_or(|outage| outage.class() != class) {
            self.outage = Some(self.wiring.recovery.join(class));
        }
        let began = Instant::now();
        let mut longest = None;
        while let Some(mut outage) = self.outage.take() {
            if outage.probes() {
                let delay = self.backoff.probe(class, outage.lasts(), error.retry_after());
                self.outage = Some(outage);
                if longest.is_none() {
                    self.log_retry(delay, error);
                }
                return self.wait_for(delay.saturating_sub(began.elapsed()), error).await;
            }
            let longest = match longest {
                Some(longest) => longest,
                None => {
                    let delay = self.backoff.next(error.retry_after());
                    self.log_retry(delay, error);
                    *longest.insert(delay)
                }
            };
            let change = tokio::select! {
                biased;
                change = outage.changed() => change,
                waited = self.wait_for(longest.saturating_sub(began.elapsed()), error) => {
                    self.outage = Some(outage);
                    return waited;
                }
            };
            match change {
                OutageChange::Vacant => self.outage = Some(outage),
                OutageChange::Over => {
                    // All reflectors wake at the same time, so their requests are spread over a second.
                    let delay = self.backoff.second().max(error.retry_after().unwrap_or_default());
                    return self.wait_for(delay, error).await;
                }
            }
        }
        Waited::Enough
    }

    /// Logs that a retry follows. The delay may end earlier, when another reflector has succeeded.
    fn log_retry(&self, delay: Duration, error: &ReflectorError) {
        debug!(scope = self.scope(), delay = ?rounded(delay), %error, "waiting before the next attempt");
    }

    async fn wait_for(&mut self, delay: Duration, error: &ReflectorError) -> Waited {
        let (until, why) = (after(Instant::now(), delay), error.to_string());
        self.sink.phase(match self.absent.filter(|_| self.may_be_absent(error)) {
            Some(absence) => Phase::Absent { since: absence.since },
            None if self.parked => Phase::Parked { until, why },
            None => Phase::BackingOff { until, why },
        });
        self.pause(delay).await
    }

    /// Sleeps, but no longer than until the program requests a relist.
    pub(super) async fn pause(&self, delay: Duration) -> Waited {
        if delay.is_zero() {
            // A source that fails at once must not stop other tasks from running.
            tokio::task::yield_now().await;
            return Waited::Enough;
        }
        tokio::select! {
            biased;
            () = self.relist_requested() => Waited::RelistRequested,
            () = tokio::time::sleep(delay) => Waited::Enough,
        }
    }
}
