//! The controller: for each deployment it keeps a config map with the number of its ready pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_client::api::PostParams;
use kube_client::{Api, Client, Resource as _};
use kube_controller::{Action, Controller, Request, RunError};
use kube_informer::{AnyQueue, Index, KeyRef, ObjectKey, SharedInformer};
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

/// The label of every config map that the controller writes.
pub(super) const OURS: &str = "demo.example.com/written-by=ready-counts";

/// The controller and its context.
pub(super) struct ReadyCounts {
    controller: Controller<Deployment>,
    context: Arc<Context>,
}

struct Context {
    client: Client,
    maps: SharedInformer<ConfigMap>,
    by_app: Index<Pod>,
}

impl ReadyCounts {
    pub(super) fn new(
        client: Client,
        deployments: &SharedInformer<Deployment>,
        pods: &SharedInformer<Pod>,
        maps: SharedInformer<ConfigMap>,
    ) -> Result<Self, Failure> {
        let by_app = pods
            .add_index("app", |pod: &Pod| app(pod).map(|key| key.to_string()))
            .map_err(|error| Failure::new("cannot index pods by app", error))?;
        // A change of a deployment, of its pods or of its config map enqueues the deployment.
        let controller = Controller::new(deployments).name("ready-counts").owns(&maps).watches(pods, app).workers(2);
        Ok(Self { controller, context: Arc::new(Context { client, maps, by_app }) })
    }

    pub(super) fn queue(&self) -> Arc<dyn AnyQueue> {
        Arc::new(self.controller.handle())
    }

    pub(super) async fn run(&self, term: CancellationToken) -> Result<(), RunError> {
        self.controller.run(term, reconcile, self.context.clone()).await
    }
}

async fn reconcile(request: Request<Deployment>, context: Arc<Context>) -> Result<Action, kube_client::Error> {
    // The deployment is deleted; the garbage collector deletes its config map.
    let Some(deployment) = request.object() else { return Ok(Action::await_change()) };
    let ready = context.by_app.get(request.key().as_str()).iter().filter(|pod| is_ready(pod)).count();
    let wanted = deployment.spec.replicas.unwrap_or_default();
    let data = BTreeMap::from([("ready".to_owned(), ready.to_string()), ("wanted".to_owned(), wanted.to_string())]);

    let namespace = request.key().namespace().unwrap_or_default();
    let name = format!("{}-ready", request.key().name());
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), namespace);
    match context.maps.store().get(KeyRef::new(namespace, &name)) {
        Some(found) if found.data.as_ref() == Some(&data) => {}
        Some(found) => {
            // The update names the version that it was made from: after a conflict the server refuses it, and the
            // controller retries.
            let mut map = ConfigMap::clone(&found);
            map.data = Some(data);
            request.write(&context.maps, maps.replace(&name, &PostParams::default(), &map)).await?;
        }
        None => {
            let mut map = ConfigMap { data: Some(data), ..ConfigMap::default() };
            map.metadata.name = Some(name);
            map.metadata.labels = OURS.split_once('=').map(|(key, value)| [(key.into(), value.into())].into());
            map.metadata.owner_references = Some(deployment.controller_owner_ref(&()).into_iter().collect());
            // The key is not reconciled again before the cache has this object, so that it is never created twice.
            request.write(&context.maps, maps.create(&PostParams::default(), &map)).await?;
        }
    }
    Ok(Action::await_change())
}

/// Returns the key of the deployment that a pod belongs to.
fn app(pod: &Pod) -> Option<ObjectKey> {
    let app = pod.metadata.labels.as_ref()?.get("app")?;
    Some(KeyRef::new(pod.metadata.namespace.as_deref()?, app).into())
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"))
}
