//! Finalizers: the API server keeps a deleted object until the controller has cleaned up and removed its finalizer.

use std::fmt::Debug;
use std::sync::Arc;

use kube_client::api::{Patch, PatchParams};
use kube_client::{Api, Error, Resource, ResourceExt as _};
use kube_informer::{Object, SharedInformer};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::controller::{Action, Request, Requeue};
use crate::refusal::{Refusal, message};

/// Adds a finalizer to objects, and removes it again. Each write is a JSON patch that tests the list of finalizers, so
/// the API server refuses the write if the list has changed meanwhile.
///
/// In a reconcile use [`run`](Self::run), which does the steps in the right order. This example does them by hand:
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_client::Api;
/// use kube_controller::Finalizer;
///
/// # doc_server::with(async |server| {
/// let pods: Api<Pod> = Api::namespaced(server.client(), "web");
/// let finalizer = Finalizer::new(pods.clone(), "example.com/cleanup")?;
/// let pod = pods.get("a").await?;
///
/// // In a reconcile: add it before you create anything that has to be cleaned up.
/// let pod = finalizer.add(&pod).await?.unwrap();
/// assert!(finalizer.is_on(&pod) && finalizer.add(&pod).await?.is_none(), "once");
///
/// // Remove it when `pod.metadata.deletion_timestamp` is set and everything is cleaned up.
/// let pod = finalizer.remove(&pod).await?.unwrap();
/// assert!(!finalizer.is_on(&pod));
/// # Ok(()) });
/// ```
#[derive(Debug, Clone)]
pub struct Finalizer<K> {
    api: Api<K>,
    name: String,
}

/// Why a finalizer was not added or not removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FinalizerError {
    /// The API server accepts only names with a domain.
    #[error("{0:?} is not the name of a finalizer: expected something like `example.com/cleanup`")]
    Name(String),
    /// The object has no name or no uid. The write needs the name, and checks the uid.
    #[error("the object has no name or no uid: it does not come from a server")]
    NotFromServer,
    /// The object is being deleted: the API server accepts no new finalizers for it.
    #[error("{0} is being deleted: no finalizer can be added")]
    BeingDeleted(String),
    /// The finalizers of the object have changed, or the object was deleted, or another object has its name now. Read
    /// the object again.
    #[error("{name} has changed meanwhile")]
    Changed {
        /// The name of the object.
        name: String,
        /// The response of the API server.
        source: Box<Error>,
    },
    /// The API server refused the change: an admission webhook, an admission policy, validation, or a missing
    /// permission.
    ///
    /// Reading the object again does not help.
    #[error("the server refused to change the finalizers of {name}")]
    Refused {
        /// The name of the object.
        name: String,
        /// The message of the API server.
        reason: String,
        /// The response of the API server.
        source: Box<Error>,
    },
    /// The API server was not reached, or could not carry out the change now.
    #[error("cannot change the finalizers of {name}")]
    Server {
        /// The name of the object.
        name: String,
        /// The error of the request.
        source: Box<Error>,
    },
}

impl<K> Finalizer<K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    /// Makes a finalizer with this name. The [`Api`] must be for the namespace of the objects.
    ///
    /// # Errors
    ///
    /// [`FinalizerError::Name`] if the API server would not accept the name.
    pub fn new(api: Api<K>, name: impl Into<String>) -> Result<Self, FinalizerError> {
        let name = name.into();
        let valid = name.split_once('/').is_some_and(|(domain, rest)| is_domain(domain) && is_name(rest));
        if valid { Ok(Self { api, name }) } else { Err(FinalizerError::Name(name)) }
    }

    /// Returns true if the object has the finalizer.
    pub fn is_on(&self, object: &K) -> bool {
        object.finalizers().contains(&self.name)
    }

    /// Adds the finalizer to an object. Returns `None` if the object has it already; then no request is sent.
    ///
    /// # Errors
    ///
    /// [`FinalizerError`]; after [`Changed`](FinalizerError::Changed) try again with the new state.
    pub async fn add(&self, object: &K) -> Result<Option<K>, FinalizerError> {
        let Some(change) = self.addition(object)? else { return Ok(None) };
        self.send(&change).await.map(Some).map_err(|error| change.failed(error))
    }

    /// Removes the finalizer from an object. Returns `None` if the object does not have it; then no request is sent. If
    /// the object is being deleted and this was its last finalizer, the API server deletes the object.
    ///
    /// # Errors
    ///
    /// [`FinalizerError`]; after [`Changed`](FinalizerError::Changed) try again with the new state.
    pub async fn remove(&self, object: &K) -> Result<Option<K>, FinalizerError> {
        let Some(change) = self.removal(object)? else { return Ok(None) };
        self.send(&change).await.map(Some).map_err(|error| change.failed(error))
    }

    fn addition(&self, object: &K) -> Result<Option<FinalizerChange>, FinalizerError> {
        if self.is_on(object) {
            return Ok(None);
        }
        if object.meta().deletion_timestamp.is_some() {
            return Err(FinalizerError::BeingDeleted(object.name_any()));
        }
        let known = object.finalizers();
        let mut all = known.to_vec();
        all.push(self.name.clone());
        // The API server does not store an empty list, so the field is absent.
        let (test, change) = match known {
            [] => (Value::Null, json!({"op": "add", "path": "/metadata/finalizers", "value": all})),
            known => (json!(known), json!({"op": "add", "path": "/metadata/finalizers/-", "value": self.name})),
        };
        let test = json!({"op": "test", "path": "/metadata/finalizers", "value": test});
        FinalizerChange::new(object, test, change).map(Some)
    }

    fn removal(&self, object: &K) -> Result<Option<FinalizerChange>, FinalizerError> {
        let Some(at) = object.finalizers().iter().position(|name| *name == self.name) else { return Ok(None) };
        let path = format!("/metadata/finalizers/{at}");
        let test = json!({"op": "test", "path": path, "value": self.name});
        FinalizerChange::new(object, test, json!({"op": "remove", "path": path})).map(Some)
    }

    async fn send(&self, change: &FinalizerChange) -> Result<K, Error> {
        self.api.patch(&change.name, &PatchParams::default(), &change.patch).await
    }
}

impl<K> Finalizer<K>
where
    K: Object + Resource + Clone + DeserializeOwned + Debug,
{
    /// Calls `apply` for an object with the finalizer, and `cleanup` for an object that is being deleted.
    ///
    /// If the object does not have the finalizer yet, this adds it, and calls `apply` after the API server has
    /// confirmed the write. `apply` receives the object from the response of the API server.
    ///
    /// If the object is being deleted, this calls `cleanup`, and removes the finalizer if `cleanup` returns
    /// [`Action::await_change()`]. With any other result the finalizer stays, and `run` returns that result. For
    /// example, `Action::requeue` waits for a system outside of the cluster. `cleanup` may run more than once, so it
    /// must not fail if a resource that it deletes does not exist any more.
    ///
    /// Both writes go through [`Request::write`]: the key waits until the cache of the informer shows them. The
    /// informer must be the primary informer of the controller. Neither function is called if the object does not
    /// exist, or if it is being deleted and does not have the finalizer.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_client::{Api, Client};
    /// use kube_controller::controller::BoxError;
    /// use kube_controller::{Finalizer, Action, Request};
    /// # use std::sync::Arc;
    /// # use kube_informer::SharedInformer;
    /// # struct Context { client: Client, maps: SharedInformer<ConfigMap> }
    ///
    /// async fn reconcile(request: Request<ConfigMap>, context: Arc<Context>) -> Result<Action, BoxError> {
    ///     let api = Api::namespaced(context.client.clone(), request.key().namespace().unwrap_or_default());
    ///     let finalizer = Finalizer::new(api, "example.com/cleanup")?;
    ///     finalizer.run(&request, &context.maps, apply, clean_up).await
    /// }
    ///
    /// async fn apply(map: Arc<ConfigMap>) -> Result<Action, BoxError> {
    ///     // Here the program creates the things that belong to the object.
    /// #   drop(map);
    ///     Ok(Action::await_change())
    /// }
    ///
    /// async fn clean_up(map: Arc<ConfigMap>) -> Result<Action, BoxError> {
    ///     // Here the program deletes them.
    /// #   drop(map);
    ///     Ok(Action::await_change())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of `apply` and `cleanup`, and [`FinalizerError`].
    pub async fn run<A, C, E>(
        &self,
        request: &Request<K>,
        informer: &SharedInformer<K>,
        apply: impl FnOnce(Arc<K>) -> A,
        cleanup: impl FnOnce(Arc<K>) -> C,
    ) -> Result<Action, E>
    where
        A: Future<Output = Result<Action, E>>,
        C: Future<Output = Result<Action, E>>,
        E: From<FinalizerError>,
    {
        let Some(object) = request.object() else { return Ok(Action::await_change()) };
        if !object.is_being_deleted() {
            let object = match self.addition(&object)? {
                Some(change) => Arc::new(self.write(request, informer, &change).await?),
                None => object,
            };
            return apply(object).await;
        }
        let Some(change) = self.removal(&object)? else { return Ok(Action::await_change()) };
        let action = cleanup(object).await?;
        if matches!(action, Action(Requeue::OnChange)) {
            match self.write(request, informer, &change).await {
                // The finalizer is gone with its object.
                Err(FinalizerError::Changed { source, .. }) if is_gone(&source) => {}
                written => drop(written?),
            }
        }
        Ok(action)
    }

    async fn write(
        &self,
        request: &Request<K>,
        informer: &SharedInformer<K>,
        change: &FinalizerChange,
    ) -> Result<K, FinalizerError> {
        request.write(informer, self.send(change)).await.map_err(|error| change.failed(error.into()))
    }
}

/// A change of the finalizers of one object.
struct FinalizerChange {
    name: String,
    patch: Patch<()>,
}

impl FinalizerChange {
    fn new<K: Resource>(object: &K, test: Value, change: Value) -> Result<Self, FinalizerError> {
        let meta = object.meta();
        let (Some(name), Some(uid)) = (&meta.name, &meta.uid) else { return Err(FinalizerError::NotFromServer) };
        let itself = json!({"op": "test", "path": "/metadata/uid", "value": uid});
        let patch = serde_json::from_value(json!([itself, test, change])).map_err(|error| FinalizerError::Server {
            name: name.clone(),
            source: Box::new(Error::SerdeError(error)),
        })?;
        Ok(Self { name: name.clone(), patch: Patch::Json(patch) })
    }

    fn failed(&self, error: Error) -> FinalizerError {
        let (name, reason) = (self.name.clone(), message(&error));
        let (refusal, source) = (Refusal::of(&error), Box::new(error));
        match refusal {
            Refusal::Changed => FinalizerError::Changed { name, source },
            Refusal::BeingDeleted => FinalizerError::BeingDeleted(name),
            Refusal::Refused => FinalizerError::Refused { name, reason, source },
            Refusal::Failed => FinalizerError::Server { name, source },
        }
    }
}

fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}

fn is_domain(text: &str) -> bool {
    text.len() <= 253
        && text
            .split('.')
            .all(|part| is_name(part) && part.bytes().all(|byte| !byte.is_ascii_uppercase() && byte != b'_'))
}

fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let ends = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && text.ends_with(|last: char| last.is_ascii_alphanumeric())
    };
    text.len() <= 63 && ends(text) && text.bytes().all(inner)
}
