//! Waits, with or without a limit.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::{InformerShared, WaitError, verify};
use crate::apply::StoreProgress;
use crate::object::{ObjectKey, ResourceVersion};

/// A wait that has not begun. `.await` waits without a limit, and [`Wait::within`] waits with one.
///
/// Dropping it only ends the wait. The same wait can be made again.
///
/// ```
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::SharedInformer;
/// # use kube_informer::parts::KubeSource;
/// # doc_server::with(async |server| {
/// let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
/// let error = maps.synced().within(Duration::from_millis(10)).await.unwrap_err();
/// assert!(error.to_string().contains("not started"), "the error says how far the informer got");
/// # Ok(()) });
/// ```
#[must_use = "nothing waits until this is awaited"]
pub struct Wait<'w, R> {
    wait: BoxFuture<'w, Result<R, WaitError>>,
    saw: Box<dyn FnOnce() -> String + Send + 'w>,
}

impl<'w, R> Wait<'w, R> {
    /// Makes a wait for a future. `saw` returns how far the informer got.
    pub(crate) fn new(
        wait: impl Future<Output = Result<R, WaitError>> + Send + 'w,
        saw: impl FnOnce() -> String + Send + 'w,
    ) -> Self {
        Self { wait: Box::pin(wait), saw: Box::new(saw) }
    }

    /// Waits at most for this duration.
    ///
    /// # Errors
    ///
    /// [`WaitError::TimedOut`] says how far the informer got. The other errors are those of the wait without a limit.
    pub async fn within(self, limit: Duration) -> Result<R, WaitError> {
        match tokio::time::timeout(limit, self.wait).await {
            Ok(outcome) => outcome,
            Err(_) => Err(WaitError::TimedOut { within: limit, saw: (self.saw)() }),
        }
    }
}

impl<'w, R> IntoFuture for Wait<'w, R> {
    type Output = Result<R, WaitError>;
    type IntoFuture = BoxFuture<'w, Result<R, WaitError>>;

    fn into_future(self) -> Self::IntoFuture {
        self.wait
    }
}

impl<R> fmt::Debug for Wait<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wait")
    }
}

impl InformerShared {
    pub(crate) fn synced(self: &Arc<Self>) -> Wait<'static, ()> {
        let (shared, seen) = (self.clone(), self.clone());
        let wait = async move { shared.reach(|progress| progress.synced.then_some(())).await };
        Wait::new(wait, move || seen.sight())
    }

    pub(super) fn wait_for_version(self: &Arc<Self>, version: ResourceVersion) -> Wait<'static, ()> {
        let (shared, seen) = (self.clone(), self.clone());
        let wait = async move { shared.reach_version(&version).await };
        Wait::new(wait, move || match seen.core.store.version() {
            Some(version) => format!("{} is at version {version}, {}", seen.core.name, seen.core.health()),
            None => seen.sight(),
        })
    }

    pub(super) fn relist(self: &Arc<Self>) -> Wait<'static, ()> {
        let request = self.core.scopes.relist();
        let (shared, seen) = (self.clone(), self.clone());
        let wait = async move { shared.reach(|progress| (progress.relists >= request).then_some(())).await };
        Wait::new(wait, move || seen.sight())
    }

    pub(super) fn wait_for_latest(self: &Arc<Self>) -> Wait<'static, ()> {
        let (shared, seen) = (self.clone(), self.clone());
        let wait = async move {
            shared.reach(|progress| progress.synced.then_some(())).await?;
            if verify::is_up_to_date(&shared).await { Ok(()) } else { shared.relist().await }
        };
        Wait::new(wait, move || seen.sight())
    }

    /// Describes how far the informer got, for the error of a wait.
    pub(super) fn sight(&self) -> String {
        format!("{} is {}", self.core.name, self.core.health())
    }

    /// Describes one object, for the error of a wait.
    pub(super) fn sight_of(&self, key: &ObjectKey) -> String {
        match self.core.store.get(key) {
            Some(object) => format!("{key} is there at version {}, and {}", object.id().version, self.sight()),
            None => format!("{key} is not there, and {}", self.sight()),
        }
    }

    pub(super) async fn reach_version(&self, version: &ResourceVersion) -> Result<(), WaitError> {
        let epoch = self.core.progress.borrow().epoch;
        let reached = |progress: &StoreProgress| {
            if progress.epoch != epoch {
                return Some(Err(WaitError::VersionsRestarted));
            }
            let now = progress.version.as_ref()?;
            match now.compare(version) {
                Some(order) => order.is_ge().then_some(Ok(())),
                None => Some(Err(WaitError::NotComparable { version: version.clone(), now: now.clone() })),
            }
        };
        let Some(waiter) = self.core.waiters.for_version(version) else { return self.reach(reached).await? };
        loop {
            let outcome = reached(&self.core.progress.borrow());
            if let Some(outcome) = outcome {
                return outcome;
            }
            if epoch == 0 {
                self.unless_stopped(waiter.woken()).await?;
            } else if let Ok(woken) = tokio::time::timeout(verify::DOUBT, self.unless_stopped(waiter.woken())).await {
                woken?;
            } else if verify::newest_version(self).await.is_some_and(|newest| newest.is_older_than(version)) {
                // A version from before the restore is never reached, though the new versions may become as high one
                // day.
                return Err(WaitError::VersionsRestarted);
            }
        }
    }

    /// Waits for a future. Fails if the informer stops before.
    pub(super) async fn unless_stopped(&self, wait: impl Future<Output = ()>) -> Result<(), WaitError> {
        tokio::select! {
            biased;
            () = wait => Ok(()),
            () = self.cancel.cancelled() => Err(WaitError::Stopped(self.core.name.clone())),
        }
    }

    /// Waits until `look` returns a value for the progress of the store. Fails if the informer stops before.
    pub(super) async fn reach<R>(&self, mut look: impl FnMut(&StoreProgress) -> Option<R>) -> Result<R, WaitError> {
        let mut progress = self.core.progress.clone();
        let found = async {
            loop {
                let now = progress.borrow_and_update().clone();
                if let Some(found) = look(&now) {
                    return Some(found);
                }
                if progress.changed().await.is_err() {
                    return None;
                }
            }
        };
        let found = tokio::select! {
            biased;
            found = found => found,
            () = self.cancel.cancelled() => None,
        };
        found.ok_or_else(|| WaitError::Stopped(self.core.name.clone()))
    }
}
