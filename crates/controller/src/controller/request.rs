//! The object that a reconcile is called for, and how it writes.

use std::fmt;
use std::sync::Arc;

use kube_informer::{Object, ObjectKey, SharedInformer, Undecodable};

use super::error::WriteError;
use super::writes::{PendingWrite, Writes};
use crate::term::Term;

/// One object to be reconciled: its key, and its state in the cache.
///
/// A controller reads from caches, which lag behind the API server. A reconcile might not find the object that it wrote
/// the last time, and would write it again. So it writes through the request: the key is not reconciled again before
/// the cache shows the write. No worker waits meanwhile.
///
/// ```
/// use kube_controller::{Action, Request};
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// use kube_client::{Api, Client, api::PostParams};
/// # use std::sync::Arc;
/// # use kube_informer::SharedInformer;
/// # struct Context { client: Client, maps: SharedInformer<ConfigMap> }
///
/// async fn reconcile(request: Request<Deployment>, context: Arc<Context>) -> Result<Action, kube_client::Error> {
///     let Some(deployment) = request.object() else { return Ok(Action::await_change()) }; // The deployment is deleted.
///     if context.maps.store().get(request.key()).is_none() {
///         let mut map = ConfigMap::default();
///         map.metadata.name = deployment.metadata.name.clone();
///         let namespace = request.key().namespace().unwrap_or_default();
///         let api = Api::namespaced(context.client.clone(), namespace);
///         request.write(&context.maps, api.create(&PostParams::default(), &map)).await?;
///     }
///     Ok(Action::await_change())
/// }
/// ```
pub struct Request<T: Object> {
    pub(super) key: ObjectKey,
    pub(super) object: Option<Arc<T>>,
    pub(super) invalid: Option<Undecodable>,
    pub(super) failures: u32,
    pub(super) id: u64,
    pub(super) term: Term,
    pub(super) writes: Arc<Writes>,
}

impl<T: Object> Request<T> {
    /// Returns the key of the object.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Returns the object as the cache held it when this reconcile began; `None` if it does not exist.
    ///
    /// An object that exists and cannot be decoded is never `None`: the attempt fails, and reconcile is not called. The
    /// exception is a controller with [`reconcile_invalid`](crate::Controller::reconcile_invalid).
    pub fn object(&self) -> Option<Arc<T>> {
        self.object.clone()
    }

    /// Returns the metadata of the object and the error, if the object exists and its latest state cannot be decoded.
    /// Only a controller with [`reconcile_invalid`](crate::Controller::reconcile_invalid) reconciles such objects.
    pub fn invalid(&self) -> Option<&Undecodable> {
        self.invalid.as_ref()
    }

    /// Returns how often this key failed since its last success, in this run of the controller.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns a number for this reconcile, unique in this process. The tracing span has it, too.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the term for which the controller may act. Check it before a write that does not go through this
    /// request.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// Returns true once the controller was asked to end. A long reconcile should then finish its step and return;
    /// `request.term().ending()` waits for it.
    pub fn is_ending(&self) -> bool {
        self.term.is_ending()
    }

    /// Sends a write, and makes the key wait until the cache of this informer shows it.
    ///
    /// If the response is lost, or the future is dropped before the response arrives, the key waits until the cache has
    /// caught up with the API server. The API server may carry out the request even later than that, and the key does
    /// not wait for that. So use a fixed name, or the version from which the write is made: then the API server refuses
    /// a repeated write.
    ///
    /// # Errors
    ///
    /// [`WriteError::Failed`] with the error of the request, and [`WriteError::LeadershipLost`] if the term is over:
    /// then nothing is sent. The other variants report an object that the cache of this informer never shows; then the
    /// reconcile fails for good.
    pub async fn write<C: Object, W: Object>(
        &self,
        informer: &SharedInformer<C>,
        write: impl Future<Output = Result<W, kube_client::Error>>,
    ) -> Result<W, WriteError> {
        let written = self.send(informer, write).await?;
        self.note_write(informer, &written)?;
        Ok(written)
    }

    /// Deletes an object, and makes the key wait until the cache of this informer shows that.
    ///
    /// # Errors
    ///
    /// The same errors as [`write`](Self::write). "Not found" is an error, too; then the key does not wait.
    pub async fn delete<C: Object, W: Object, R>(
        &self,
        informer: &SharedInformer<C>,
        object: &W,
        delete: impl Future<Output = Result<R, kube_client::Error>>,
    ) -> Result<R, WriteError> {
        self.check_kind(informer, object)?;
        let answer = self.send(informer, delete).await?;
        self.writes.add(PendingWrite::deleted(informer, object));
        Ok(answer)
    }

    /// Sends a write and waits for its response. If there is no response, or an error other than 400 to 499, it is not
    /// known whether the API server carried out the write. Then the key waits until the cache has caught up with the API
    /// server.
    async fn send<C: Object, R>(
        &self,
        informer: &SharedInformer<C>,
        write: impl Future<Output = Result<R, kube_client::Error>>,
    ) -> Result<R, WriteError> {
        self.term.check()?;
        let guard = UnknownOutcomeGuard { writes: &self.writes, informer };
        let outcome = write.await;
        // The API server has carried out the write, or has refused it and nothing was written.
        let outcome_known = match &outcome {
            Ok(_) => true,
            Err(kube_client::Error::Api(status)) => (400..500).contains(&status.code),
            Err(_) => false,
        };
        if outcome_known {
            std::mem::forget(guard);
        }
        outcome.map_err(WriteError::Failed)
    }

    /// Runs a future that sends a write itself, such as the methods of a [`Finalizer`](crate::Finalizer). If the future
    /// fails or is dropped, the key waits as after a write whose response was lost. If it succeeds, the caller must
    /// pass the written object to [`wrote`](Self::wrote).
    ///
    /// # Errors
    ///
    /// [`WriteError::LeadershipLost`] if the term is over: the future is not polled. [`WriteError::Failed`] with the
    /// error of the future.
    pub async fn attempt<C: Object, R, E>(
        &self,
        informer: &SharedInformer<C>,
        attempt: impl Future<Output = Result<R, E>>,
    ) -> Result<R, WriteError<E>> {
        self.term.check()?;
        let guard = UnknownOutcomeGuard { writes: &self.writes, informer };
        let outcome = attempt.await;
        if outcome.is_ok() {
            std::mem::forget(guard);
        }
        outcome.map_err(WriteError::Failed)
    }

    /// Makes the key wait until the cache shows this written state of an object, or a later one.
    ///
    /// If the cache will never show the object (see [`WriteError`]), the reconcile counts as failed for good.
    pub fn wrote<C: Object, W: Object>(&self, informer: &SharedInformer<C>, written: &W) {
        // The error is kept with the writes.
        let _ = self.note_write(informer, written);
    }

    /// Makes the key wait until the cache does not hold this object any more, or shows that it is being deleted.
    pub fn deleted<C: Object, W: Object>(&self, informer: &SharedInformer<C>, object: &W) {
        if self.check_kind(informer, object).is_ok() {
            self.writes.add(PendingWrite::deleted(informer, object));
        }
    }

    /// Makes the key wait until the cache is as new as the API server is now. Use it if a write may or may not have
    /// been carried out, such as after a timeout.
    pub fn outcome_unknown<C: Object>(&self, informer: &SharedInformer<C>) {
        self.writes.add(PendingWrite::outcome_unknown(informer));
    }

    fn note_write<C: Object, W: Object>(&self, informer: &SharedInformer<C>, written: &W) -> Result<(), WriteError> {
        self.check_kind(informer, written)?;
        let Some(why) = informer.excludes(written) else {
            self.writes.add(PendingWrite::written(informer, written));
            return Ok(());
        };
        if informer.store().get(written.id().key).is_some() {
            // The write takes the object out of the informer's selection.
            self.writes.add(PendingWrite::deselected(informer, written));
            return Ok(());
        }
        let (key, informer) = (ObjectKey::from(written.id().key), informer.name().to_owned());
        Err(self.refuse(WriteError::NotSelected { key, informer, why }))
    }

    fn check_kind<C: Object, W: Object>(&self, informer: &SharedInformer<C>, object: &W) -> Result<(), WriteError> {
        let any = informer.any();
        let Some(resource) = any.resource() else { return Ok(()) };
        if object.is_of_kind(resource) != Some(false) {
            return Ok(());
        }
        let (key, kind) = (ObjectKey::from(object.id().key), resource.kind.clone());
        Err(self.refuse(WriteError::WrongKind { key, kind, informer: informer.name().to_owned() }))
    }

    /// Makes this reconcile fail for good, whatever it returns.
    fn refuse(&self, error: WriteError) -> WriteError {
        self.writes.refuse(error.to_string());
        error
    }
}

/// A write without a response.
struct UnknownOutcomeGuard<'w, C: Object> {
    writes: &'w Writes,
    informer: &'w SharedInformer<C>,
}

impl<C: Object> Drop for UnknownOutcomeGuard<'_, C> {
    fn drop(&mut self) {
        self.writes.add(PendingWrite::outcome_unknown(self.informer));
    }
}

impl<T: Object> fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("key", &self.key).field("failures", &self.failures).finish_non_exhaustive()
    }
}
