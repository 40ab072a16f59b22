//! Server-side apply: creates an object, or changes the fields that the controller owns.

use std::fmt::Debug;

use kube_client::api::{Patch, PatchParams};
use kube_client::{Api, Error, Resource};
use kube_informer::{Object, SharedInformer};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::controller::Request;
use crate::refusal::{Refusal, message};

/// Why an object was not applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The object has no name: the API server does not generate one here.
    #[error("the object to apply has no name")]
    NoName,
    /// The object names a version or a uid that is not current.
    #[error("{name} has changed meanwhile")]
    Changed {
        /// The name of the object.
        name: String,
        /// The response of the API server.
        source: Box<Error>,
    },
    /// The API server refused the object: validation, an admission webhook, a missing permission, or a missing
    /// namespace.
    #[error("the server refused {name}")]
    Refused {
        /// The name of the object.
        name: String,
        /// The message of the API server.
        reason: String,
        /// The response of the API server.
        source: Box<Error>,
    },
    /// The API server was not reached, or could not carry out the write now.
    #[error("cannot apply {name}")]
    Server {
        /// The name of the object.
        name: String,
        /// The response of the API server.
        source: Box<Error>,
    },
}

impl<T: Object> Request<T> {
    /// Creates an object, or changes it so that it has these fields, by server-side apply. Returns the object as it is
    /// then.
    ///
    /// The object holds only the fields that the controller wants to own, and an owner reference if it belongs to the
    /// object of the request. Fields that the field manager applied before and that are missing now are removed. Fields
    /// of other managers stay, but a field that two of them set is taken over (`force`), as Kubernetes recommends for
    /// controllers.
    ///
    /// This always sends the request: a cache does not show which fields the manager owns, so it cannot show that
    /// nothing is to be done. An apply that changes nothing leaves the object and its version as they are, and causes
    /// no event. The write goes through [`write`](Self::write), with the informer in whose cache the object will be.
    ///
    /// ```
    /// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    /// use kube_client::{Api, Client, Resource as _};
    /// use kube_controller::controller::BoxError;
    /// use kube_controller::{Action, Request};
    /// # use std::sync::Arc;
    /// # use kube_informer::SharedInformer;
    /// # struct Context { client: Client, maps: SharedInformer<ConfigMap> }
    ///
    /// async fn reconcile(request: Request<Deployment>, context: Arc<Context>) -> Result<Action, BoxError> {
    ///     let Some(deployment) = request.object() else { return Ok(Action::await_change()) };
    ///     let mut map = ConfigMap::default();
    ///     map.metadata.name = deployment.metadata.name.clone();
    ///     map.metadata.owner_references = Some(deployment.controller_owner_ref(&()).into_iter().collect());
    ///     map.data = Some([("color".to_owned(), "red".to_owned())].into());
    ///     let api = Api::namespaced(context.client.clone(), request.key().namespace().unwrap_or_default());
    ///     request.apply(&context.maps, &api, "my-controller", &map).await?;
    ///     Ok(Action::await_change())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ApplyError`].
    pub async fn apply<C>(
        &self,
        informer: &SharedInformer<C>,
        api: &Api<C>,
        field_manager: &str,
        object: &C,
    ) -> Result<C, ApplyError>
    where
        C: Object + Resource + Clone + Debug + Serialize + DeserializeOwned,
    {
        let name = object.meta().name.as_deref().filter(|name| !name.is_empty()).ok_or(ApplyError::NoName)?;
        let (parameters, patch) = (PatchParams::apply(field_manager).force(), Patch::Apply(object));
        self.write(informer, api.patch(name, &parameters, &patch)).await.map_err(|error| {
            let error = Error::from(error);
            let (name, reason) = (name.to_owned(), message(&error));
            let conflict = matches!(&error, Error::Api(status) if status.code == 409);
            let (refusal, source) = (Refusal::of(&error), Box::new(error));
            match refusal {
                Refusal::Changed if conflict => ApplyError::Changed { name, source },
                Refusal::Changed | Refusal::Refused | Refusal::BeingDeleted => {
                    ApplyError::Refused { name, reason, source }
                }
                Refusal::Failed => ApplyError::Server { name, source },
            }
        })
    }
}
