//! Waits, with or without a limit.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::WaitError;

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
