//! The reconcile function of a `Foo`.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube_client::api::{DeleteParams, PostParams};
use kube_client::{Api, Client, Resource as _};
use kube_controller::finalizer::FinalizerError;
use kube_controller::{Action, EventRecorder, EventType, Finalizer, Request, WriteError};
use kube_informer::SharedInformer;

use crate::connect;
use crate::foo::{Foo, FooStatus};

/// The field manager of the controller's writes.
pub const MANAGER: &str = "sample-controller";
const FINALIZER: &str = "samplecontroller.k8s.io/deployment";

/// The clients and caches that a reconcile uses.
pub struct Context {
    pub client: Client,
    pub foos: SharedInformer<Foo>,
    pub deployments: SharedInformer<Deployment>,
    pub recorder: EventRecorder,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Finalizer(#[from] WriteError<FinalizerError>),
    #[error(transparent)]
    FinalizerName(#[from] FinalizerError),
    #[error("deployment {0} exists already, and has another owner")]
    Foreign(String),
}

/// Makes the deployment of a `Foo` match its spec.
pub async fn reconcile(request: Request<Foo>, context: Arc<Context>) -> Result<Action, Error> {
    let Some(foo) = request.object() else { return Ok(Action::await_change()) }; // The Foo is deleted, and was cleaned up before.
    let namespace = request.key().namespace().unwrap_or_default();
    let finalizer = Finalizer::new(Api::<Foo>::namespaced(context.client.clone(), namespace), FINALIZER)?;
    if foo.metadata.deletion_timestamp.is_none() && foo.spec.deployment_name.is_empty() {
        return Ok(Action::terminal_error("spec.deploymentName is empty")); // Only another spec can fix this.
    }
    let apply = async |foo: Arc<Foo>| {
        let deployment = ensure_deployment(&request, &context, &foo).await?;
        write_status(&request, &context, &foo, &deployment).await?;
        tell(&context, &foo, EventType::Normal, "Synced", "has the deployment it wants");
        Ok(Action::await_change())
    };
    let clean_up = async |foo: Arc<Foo>| clean_up(&request, &context, &foo).await;
    finalizer.run(&request, &context.foos, apply, clean_up).await
}

/// Creates the deployment, or corrects its replicas.
async fn ensure_deployment(request: &Request<Foo>, context: &Context, foo: &Foo) -> Result<Arc<Deployment>, Error> {
    let (name, namespace) = (&foo.spec.deployment_name, request.key().namespace().unwrap_or_default());
    let api: Api<Deployment> = Api::namespaced(context.client.clone(), namespace);
    let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    let Some(deployment) = context.deployments.store().get((namespace, &**name)) else {
        let created = request.write(&context.deployments, api.create(&parameters, &wanted(foo))).await?;
        say!("created deployment {namespace}/{name}");
        return Ok(Arc::new(created));
    };
    if !is_controlled_by(&deployment, foo) {
        tell(context, foo, EventType::Warning, "ErrResourceExists", "a deployment with that name has another owner");
        return Err(Error::Foreign(name.clone()));
    }
    if foo.spec.replicas.is_none() || foo.spec.replicas == deployment.spec.replicas {
        return Ok(deployment);
    }
    // With the version that was read: if another client has written meanwhile, the server refuses, and the key is
    // retried.
    let mut corrected = wanted(foo);
    corrected.metadata.resource_version = deployment.metadata.resource_version.clone();
    let corrected = request.write(&context.deployments, api.replace(name, &parameters, &corrected)).await?;
    say!("scaled deployment {namespace}/{name} to {} replicas", foo.spec.replicas.unwrap_or_default());
    Ok(Arc::new(corrected))
}

async fn write_status(
    request: &Request<Foo>,
    context: &Context,
    foo: &Foo,
    deployment: &Deployment,
) -> Result<(), Error> {
    let available = deployment.status.as_ref().and_then(|status| status.available_replicas).unwrap_or_default();
    let status = Some(FooStatus { available_replicas: available });
    if foo.status != status {
        let api: Api<Foo> = Api::namespaced(context.client.clone(), request.key().namespace().unwrap_or_default());
        let foo = Foo { status, ..foo.clone() };
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        request.write(&context.foos, api.replace_status(request.key().name(), &parameters, &foo)).await?;
    }
    Ok(())
}

/// Deletes the deployment.
async fn clean_up(request: &Request<Foo>, context: &Context, foo: &Foo) -> Result<Action, Error> {
    let namespace = request.key().namespace().unwrap_or_default();
    let deployment = context.deployments.store().get((namespace, &*foo.spec.deployment_name));
    if let Some(deployment) = deployment.filter(|deployment| is_controlled_by(deployment, foo)) {
        let api: Api<Deployment> = Api::namespaced(context.client.clone(), namespace);
        let parameters = DeleteParams::default();
        let deleted = api.delete(&foo.spec.deployment_name, &parameters);
        match request.delete(&context.deployments, &*deployment, deleted).await {
            Err(error) if error.code() == Some(404) => {}
            outcome => drop(outcome?),
        }
        say!("deleted deployment {namespace}/{}", foo.spec.deployment_name);
    }
    Ok(Action::await_change())
}

/// Records an event about a `Foo` for users. Does not wait for the server.
fn tell(context: &Context, foo: &Foo, kind: EventType, reason: &str, note: &str) {
    context.recorder.record(&foo.object_ref(&()), kind, reason, "Sync", note);
}

fn is_controlled_by(deployment: &Deployment, foo: &Foo) -> bool {
    let owners = deployment.metadata.owner_references.iter().flatten();
    owners.into_iter().any(|owner| owner.controller == Some(true) && Some(&owner.uid) == foo.metadata.uid.as_ref())
}

/// Returns the deployment that a `Foo` asks for.
fn wanted(foo: &Foo) -> Deployment {
    let own = foo.metadata.name.clone().unwrap_or_default();
    // A foreground delete of the Foo waits for this deployment, too.
    let owner = foo.controller_owner_ref(&()).map(|owner| OwnerReference { block_owner_deletion: Some(true), ..owner });
    let labels = BTreeMap::from([("app".to_owned(), "nginx".to_owned()), ("controller".to_owned(), own)]);
    let container =
        Container { name: "nginx".to_owned(), image: Some("nginx:latest".to_owned()), ..Container::default() };
    Deployment {
        metadata: ObjectMeta {
            name: Some(foo.spec.deployment_name.clone()),
            namespace: foo.metadata.namespace.clone(),
            owner_references: Some(owner.into_iter().collect()),
            ..ObjectMeta::default()
        },
        spec: DeploymentSpec {
            replicas: foo.spec.replicas,
            selector: LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        },
        status: None,
    }
}
