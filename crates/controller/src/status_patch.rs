//! Writes to the status of an object.

use std::fmt::Debug;

use kube_client::api::{Patch, PatchParams};
use kube_client::{Api, Error, Resource};
use kube_informer::{Object, SharedInformer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::controller::Request;
use crate::refusal::{Refusal, message};

/// Why a status was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatusError {
    /// The object has no name or no version.
    #[error("the object has no name or no resource version: it does not come from a server")]
    NotFromServer,
    /// The status cannot be serialized as JSON.
    #[error("the status of {name} cannot be serialized")]
    Serialize {
        /// The name of the object.
        name: String,
        /// The reason.
        source: serde_json::Error,
    },
    /// The object has changed since it was read, or it was deleted: read it again.
    #[error("{name} has changed meanwhile")]
    Changed {
        /// The name of the object.
        name: String,
        /// The response of the API server.
        source: Box<Error>,
    },
    /// The API server refused the status: validation, an admission webhook, a missing permission, or the kind has no
    /// status subresource.
    #[error("the server refused the status of {name}")]
    Refused {
        /// The name of the object.
        name: String,
        /// The message of the API server.
        reason: String,
        /// The response of the API server.
        source: Box<Error>,
    },
    /// The API server was not reached, or could not carry out the write now.
    #[error("cannot write the status of {name}")]
    Server {
        /// The name of the object.
        name: String,
        /// The response of the API server.
        source: Box<Error>,
    },
}

impl<T> Request<T>
where
    T: Object + Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    /// Writes the status of an object if it differs from the one that the object has. Returns `None` if it does not
    /// differ.
    ///
    /// The object is that of the request, or one that a write has returned. The request is a merge patch of the status
    /// subresource with only the fields that differ, so fields that this program does not know stay. It names the
    /// version of the object, because a list such as the conditions is written as a whole: if another client has
    /// changed the object meanwhile, the response is [`StatusError::Changed`]. The write goes through
    /// [`write`](Self::write).
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use kube_client::{Api, Client};
    /// use kube_controller::controller::BoxError;
    /// use kube_controller::{Action, Request};
    /// # use std::sync::Arc;
    /// # use kube_informer::SharedInformer;
    /// # struct Context { client: Client, deployments: SharedInformer<Deployment> }
    ///
    /// async fn reconcile(request: Request<Deployment>, context: Arc<Context>) -> Result<Action, BoxError> {
    ///     let Some(deployment) = request.object() else { return Ok(Action::await_change()) };
    ///     let mut status = deployment.status.clone().unwrap_or_default();
    ///     status.observed_generation = deployment.metadata.generation;
    ///     let api = Api::namespaced(context.client.clone(), request.key().namespace().unwrap_or_default());
    ///     request.patch_status(&context.deployments, &api, &deployment, &status).await?;
    ///     Ok(Action::await_change())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StatusError`]; after [`Changed`](StatusError::Changed) try again with the new state, which an `Err` from the
    /// reconcile does.
    pub async fn patch_status(
        &self,
        informer: &SharedInformer<T>,
        api: &Api<T>,
        object: &T,
        status: &impl Serialize,
    ) -> Result<Option<T>, StatusError> {
        let meta = object.meta();
        let (Some(name), Some(version)) = (&meta.name, &meta.resource_version) else {
            return Err(StatusError::NotFromServer);
        };
        let json = |value: Result<Value, serde_json::Error>| {
            value.map_err(|source| StatusError::Serialize { name: name.clone(), source })
        };
        let mut known = json(serde_json::to_value(object))?;
        let known = known.get_mut("status").map(Value::take).unwrap_or_default();
        let Some(change) = merge_patch(&known, &json(serde_json::to_value(status))?) else { return Ok(None) };
        let patch = Patch::Merge(json!({"metadata": {"resourceVersion": version}, "status": change}));
        let written = self.write(informer, api.patch_status(name, &PatchParams::default(), &patch)).await;
        written.map(Some).map_err(|error| {
            let error = Error::from(error);
            let (name, reason) = (name.clone(), message(&error));
            let (refusal, source) = (Refusal::of(&error), Box::new(error));
            match refusal {
                Refusal::Changed => StatusError::Changed { name, source },
                Refusal::Refused | Refusal::BeingDeleted => StatusError::Refused { name, reason, source },
                Refusal::Failed => StatusError::Server { name, source },
            }
        })
    }
}

/// Returns the merge patch (RFC 7386) that makes `before` equal to `after`, or `None` if they are equal.
///
/// A member that is null counts as absent.
fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    let empty = Map::new();
    let (before, after) = match (before, after) {
        (Value::Object(before), Value::Object(after)) => (before, after),
        // An absent object equals an empty one.
        (Value::Null, Value::Object(after)) => (&empty, after),
        (before, after) => return (before != after).then(|| after.clone()),
    };
    let mut patch = Map::new();
    for (name, after) in after {
        if let Some(change) = merge_patch(before.get(name).unwrap_or(&Value::Null), after) {
            patch.insert(name.clone(), change);
        }
    }
    for (name, _) in before.iter().filter(|(name, before)| !before.is_null() && !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_has_only_the_members_that_differ() {
        let check = |before: Value, after: Value, patch: Option<Value>| {
            assert_eq!(merge_patch(&before, &after), patch, "{before} {after}");
        };
        check(json!(null), json!({}), None);
        check(json!(null), json!({"a": null}), None);
        check(json!(null), json!({"a": 1}), Some(json!({"a": 1})));
        check(json!({"a": 1, "b": [1, 2]}), json!({"a": 1, "b": [1, 2]}), None);
        check(json!({"a": 1, "b": [1, 2]}), json!({"a": 1, "b": [2]}), Some(json!({"b": [2]})));
        check(json!({"a": 1, "b": 2}), json!({"b": 2}), Some(json!({"a": null})));
        check(json!({"a": 1, "b": 2}), json!({"a": null, "b": 2}), Some(json!({"a": null})));
        check(json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1, "c": 3}}), Some(json!({"a": {"c": 3}})));
        check(json!({"a": {"b": 1}}), json!({"a": {}}), Some(json!({"a": {"b": null}})));
        check(json!({"a": {"b": 1}}), json!(null), Some(json!(null)));
        check(json!({"a": 1}), json!({"a": {"b": 1}}), Some(json!({"a": {"b": 1}})));
    }
}
