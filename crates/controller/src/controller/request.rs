//! What a reconcile is asked to look at, and what it says of its writes.

use std::fmt;
use std::sync::Arc;

use kube_informer::{Object, ObjectKey, SharedInformer};

use super::writes::{PendingWrite, Writes};

/// One object to be reconciled: its key, and what the cache says of it.
///
/// A controller reads from caches, which are a moment behind. What it wrote itself it must not miss, or it would do it twice:
/// it says what it wrote, and the key is not handed out again before the cache has seen that. No worker waits meanwhile.
///
/// ```
/// use kube_controller::{Next, Request};
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// use kube_client::{Api, Client, api::PostParams};
/// # use std::sync::Arc;
/// # use kube_informer::SharedInformer;
/// # struct Context { client: Client, maps: SharedInformer<ConfigMap> }
///
/// async fn reconcile(request: Request<Deployment>, context: Arc<Context>) -> Result<Next, kube_client::Error> {
///     let Some(deployment) = request.object() else { return Ok(Next::Done) }; // Gone: the cache says so.
///     if context.maps.store().get(request.key()).is_none() {
///         let mut map = ConfigMap::default();
///         map.metadata.name = deployment.metadata.name.clone();
///         let namespace = request.key().namespace().unwrap_or_default();
///         let api = Api::namespaced(context.client.clone(), namespace);
///         request.write(&context.maps, api.create(&PostParams::default(), &map)).await?;
///     }
///     Ok(Next::Done)
/// }
/// ```
pub struct Request<T: Object> {
    pub(super) key: ObjectKey,
    pub(super) object: Option<Arc<T>>,
    pub(super) failures: u32,
    pub(super) writes: Arc<Writes>,
}

impl<T: Object> Request<T> {
    /// Which object.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The object as the cache had it when this reconcile began; `None` if it is gone.
    pub fn object(&self) -> Option<Arc<T>> {
        self.object.clone()
    }

    /// How often it failed since it last went well.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Makes a write, and notes what came of it: the best way to write. If the answer is lost, or this is dropped before it
    /// came, the key waits until the cache has seen whatever the server has now. (A request that is still on its way then, and
    /// is carried out later, nobody can wait for: a name, or a version that the write is made from, guards against that.)
    ///
    /// The informer is the one in whose cache the object will be: with a selector that it does not match it never is, and the key
    /// comes again and again, later each time.
    ///
    /// # Errors
    ///
    /// What the write itself says.
    pub async fn write<C: Object, W: Object>(
        &self,
        informer: &SharedInformer<C>,
        write: impl Future<Output = Result<W, kube_client::Error>>,
    ) -> Result<W, kube_client::Error> {
        let written = self.answered(informer, write).await?;
        self.wrote(informer, &written);
        Ok(written)
    }

    /// Deletes an object, and notes what came of it, as [`write`](Self::write) does.
    ///
    /// # Errors
    ///
    /// What the deletion itself says. That the object is gone already is an error too, and nothing is waited for.
    pub async fn delete<C: Object, W: Object, R>(
        &self,
        informer: &SharedInformer<C>,
        object: &W,
        delete: impl Future<Output = Result<R, kube_client::Error>>,
    ) -> Result<R, kube_client::Error> {
        let answer = self.answered(informer, delete).await?;
        self.deleted(informer, object);
        Ok(answer)
    }

    /// Waits for an answer. Without one, or with one that leaves it open, nobody knows what was written.
    async fn answered<C: Object, R>(
        &self,
        informer: &SharedInformer<C>,
        write: impl Future<Output = Result<R, kube_client::Error>>,
    ) -> Result<R, kube_client::Error> {
        let unanswered = Unanswered { writes: &self.writes, informer };
        let outcome = write.await;
        // The server has done it, or has said no, and so nothing was written.
        let certain = match &outcome {
            Ok(_) => true,
            Err(kube_client::Error::Api(status)) => (400..500).contains(&status.code),
            Err(_) => false,
        };
        if certain {
            std::mem::forget(unanswered);
        }
        outcome
    }

    /// Does something that writes and has its own way to say so, such as a [`Finalizer`](crate::Finalizer): unless it succeeds,
    /// the key waits as after a write whose answer was lost. What was written is for the caller to [say](Self::wrote).
    ///
    /// # Errors
    ///
    /// What it says itself.
    pub async fn attempt<C: Object, R, E>(
        &self,
        informer: &SharedInformer<C>,
        attempt: impl Future<Output = Result<R, E>>,
    ) -> Result<R, E> {
        let unanswered = Unanswered { writes: &self.writes, informer };
        let outcome = attempt.await;
        if outcome.is_ok() {
            std::mem::forget(unanswered);
        }
        outcome
    }

    /// This was written: the key waits until the cache has it, or has passed it.
    pub fn wrote<C: Object, W: Object>(&self, informer: &SharedInformer<C>, written: &W) {
        self.writes.add(PendingWrite::written(informer, written));
    }

    /// This was deleted: the key waits until the cache does not have it any more, or says that it is being deleted.
    pub fn deleted<C: Object, W: Object>(&self, informer: &SharedInformer<C>, object: &W) {
        self.writes.add(PendingWrite::deleted(informer, object));
    }

    /// Something may have been written, but nobody knows: the key waits until the cache has seen whatever the server has now.
    pub fn unsure<C: Object>(&self, informer: &SharedInformer<C>) {
        self.writes.add(PendingWrite::unsure(informer));
    }
}

/// A write that has not been answered.
struct Unanswered<'w, C: Object> {
    writes: &'w Writes,
    informer: &'w SharedInformer<C>,
}

impl<C: Object> Drop for Unanswered<'_, C> {
    fn drop(&mut self) {
        self.writes.add(PendingWrite::unsure(self.informer));
    }
}

impl<T: Object> fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("key", &self.key).field("failures", &self.failures).finish_non_exhaustive()
    }
}
