//! Waiting, with a limit or without.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::WaitError;

/// Something that is waited for. `.await` waits as long as it takes; [`Waiting::within`] sets a limit.
///
/// Dropping it ends the wait and nothing else; waiting again is fine.
///
/// ```
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::SharedInformer;
/// # use kube_informer::parts::KubeSource;
/// # doc_server::with(async |server| {
/// let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
/// let error = maps.synced().within(Duration::from_millis(10)).await.unwrap_err();
/// assert!(error.to_string().contains("not started"), "it says what it saw last");
/// # Ok(()) });
/// ```
#[must_use = "it waits only if it is awaited"]
pub struct Waiting<'w, R> {
    wait: BoxFuture<'w, Result<R, WaitError>>,
    saw: Box<dyn FnOnce() -> String + Send + 'w>,
}

impl<'w, R> Waiting<'w, R> {
    /// Waits for a future; `saw` says how far it has come.
    pub(crate) fn new(
        wait: impl Future<Output = Result<R, WaitError>> + Send + 'w,
        saw: impl FnOnce() -> String + Send + 'w,
    ) -> Self {
        Self { wait: Box::pin(wait), saw: Box::new(saw) }
    }

    /// Waits no longer than this.
    ///
    /// # Errors
    ///
    /// [`WaitError::TimedOut`] with what it saw last; and whatever the wait itself may fail with.
    pub async fn within(self, limit: Duration) -> Result<R, WaitError> {
        match tokio::time::timeout(limit, self.wait).await {
            Ok(outcome) => outcome,
            Err(_) => Err(WaitError::TimedOut { within: limit, saw: (self.saw)() }),
        }
    }
}

impl<'w, R> IntoFuture for Waiting<'w, R> {
    type Output = Result<R, WaitError>;
    type IntoFuture = BoxFuture<'w, Result<R, WaitError>>;

    fn into_future(self) -> Self::IntoFuture {
        self.wait
    }
}

impl<R> fmt::Debug for Waiting<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiting")
    }
}
