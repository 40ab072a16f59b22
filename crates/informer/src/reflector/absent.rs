//! An optional resource that the API server does not serve: the collection counts as empty.

use std::time::Duration;

use tokio::time::Instant;
use tracing::info;

use super::page::answered;
use super::{ListReason, Phase, Reflector, ReflectorError, Sink};
use crate::object::Object;
use crate::queue::Replacement;
use crate::source::SourceError;

/// Before known objects count as deleted, the API server must confirm twice that it does not serve the resource, with
/// this time in between.
const CONFIRM: Duration = Duration::from_secs(1);
/// How often the reflector asks again, although the CRD of the resource has not changed.
const POLL: Duration = Duration::from_secs(30);

/// Describes an absent resource.
#[derive(Debug, Clone, Copy)]
pub(super) struct Absence {
    pub(super) since: Instant,
    /// The number of the last relist request that is answered with an empty list.
    request: u64,
}

impl<T: Object + ?Sized, S: Sink<T>> Reflector<T, S> {
    /// Waits after a round has failed, and handles an optional resource that is absent.
    pub(super) async fn after_failure(&mut self, error: ReflectorError) {
        if !self.may_be_absent(&error) {
            self.wait(&error).await;
            return;
        }
        match self.confirm_absence().await {
            Ok(true) => self.stay_absent(&error).await,
            Ok(false) => self.fail(error).await,
            Err(why) => self.fail(ReflectorError::List(why)).await,
        }
    }

    /// Returns true if an error may mean that an optional resource is absent. Such an error is not reported at once.
    pub(super) fn may_be_absent(&self, error: &ReflectorError) -> bool {
        self.optional && error.is_missing_resource()
    }

    async fn fail(&mut self, error: ReflectorError) {
        self.report_at_once(&error);
        self.wait(&error).await;
    }

    async fn confirm_absence(&mut self) -> Result<bool, SourceError> {
        let knows_objects = self.absent.is_none() && self.reason != ListReason::First;
        if knows_objects {
            if answered(self.progress_deadline, self.source.is_served()).await? {
                return Ok(false);
            }
            tokio::time::sleep(CONFIRM).await;
        }
        Ok(!answered(self.progress_deadline, self.source.is_served()).await?)
    }

    /// Pushes an empty list, and waits until the API server may serve the resource.
    async fn stay_absent(&mut self, error: &ReflectorError) {
        let before = self.absent;
        let since = before.map_or_else(Instant::now, |absence| absence.since);
        if before.is_none() {
            info!(scope = self.scope(), "the optional resource is not served; its collection counts as empty");
        }
        if before.is_none_or(|absence| absence.request < self.request) {
            let (objects, undecodable) = (Vec::new(), Vec::new());
            self.replace(Replacement { mark: self.mark(None), objects, undecodable }, 0).await;
            // The next list must not come from the memory of an API server that lags.
            self.place.give_up();
        }
        self.absent = Some(Absence { since, request: self.request });
        self.sink.contact(0);
        self.sink.phase(Phase::Absent { since });
        let (source, requested) = (self.source.clone(), self.relist_requested());
        let defined = tokio::select! {
            biased;
            () = requested => return,
            () = tokio::time::sleep(POLL) => return,
            defined = source.until_defined() => defined,
        };
        match defined {
            // Reflectors that follow the same CRD spread their requests.
            Ok(()) => {
                let delay = self.backoff.second();
                self.pause(delay).await;
            }
            // Without the permission to watch CRDs, the reflector asks as often as after a failure.
            Err(_) => {
                self.wait(error).await;
            }
        }
    }
}
