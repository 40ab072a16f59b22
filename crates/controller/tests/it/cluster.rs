//! An API server in this process, its informers, and controllers that note the calls of their reconcile function.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Client;
use kube_controller::{Action, Controller, Request, RunError, Term};
use kube_embedded_apiserver::ApiServer;
use kube_informer::{CancellationToken, InformerOptions, InformerRequest, SharedInformer, SharedInformerFactory};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Deployments that own config maps, in the namespace `web`.
pub(crate) struct Cluster {
    pub(crate) server: ApiServer,
    pub(crate) factory: SharedInformerFactory,
    pub(crate) owners: SharedInformer<Deployment>,
    pub(crate) children: SharedInformer<ConfigMap>,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        let server = ApiServer::builder().seed(1).build();
        Self::with(server.client(), server)
    }

    pub(crate) fn with(client: Client, server: ApiServer) -> Self {
        let factory = SharedInformerFactory::builder(client).options(InformerOptions::new().seed(1)).build();
        let (owners, children) = (factory.informer().unwrap(), factory.informer_with(InformerRequest::new()).unwrap());
        Self { server, factory, owners, children }
    }

    pub(crate) fn client(&self) -> Client {
        self.server.client()
    }

    pub(crate) fn owner(&self, name: &str) -> Value {
        self.server.create("deployments.apps", Some("web"), json!({"metadata": {"name": name}})).unwrap()
    }

    /// Creates a config map with an owner, which is marked as its controller or not.
    pub(crate) fn child(&self, name: &str, owner: &Value, controller: bool) -> Value {
        let reference = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": controller,
        });
        let metadata = json!({"name": name, "ownerReferences": [reference]});
        self.server.create("configmaps", Some("web"), json!({"metadata": metadata})).unwrap()
    }

    pub(crate) fn label(&self, resource: &str, name: &str, value: &str) {
        let labels = json!({"metadata": {"labels": {"l": value}}});
        self.server.patch(resource, Some("web"), name, labels).unwrap();
    }

    /// Increases the version of the server by one.
    pub(crate) fn label_new(&self, number: u32) {
        let object = json!({"metadata": {"name": format!("m{number}")}});
        self.server.create("configmaps", Some("elsewhere"), object).unwrap();
    }

    pub(crate) fn names(&self, resource: &str) -> Vec<String> {
        let (_, objects) = self.server.list(resource).unwrap();
        objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// The notes of a reconcile function, in order.
#[derive(Default)]
pub(crate) struct Notes(Mutex<Vec<String>>);

impl Notes {
    pub(crate) fn note(&self, text: impl Into<String>) {
        self.0.lock().push(text.into());
    }

    /// Returns the notes since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Notes the name of the object, and whether it exists.
pub(crate) async fn note(request: Request<Deployment>, notes: Arc<Notes>) -> Result<Action, String> {
    let gone = if request.object().is_some() { "" } else { " is gone" };
    notes.note(format!("{}{gone}", request.key().name()));
    Ok(Action::await_change())
}

/// A controller that runs, and its notes.
pub(crate) struct Run {
    pub(crate) notes: Arc<Notes>,
    pub(crate) cancel: CancellationToken,
    pub(crate) task: JoinHandle<Result<(), RunError>>,
}

impl Run {
    /// Runs a controller that notes each call of its reconcile function.
    pub(crate) fn noting(controller: Controller<Deployment>) -> Self {
        Self::of(controller, note)
    }

    pub(crate) fn of<R, E>(
        controller: Controller<Deployment>,
        reconcile: impl Fn(Request<Deployment>, Arc<Notes>) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<kube_controller::controller::BoxError> + 'static,
    {
        let (notes, cancel) = (Arc::new(Notes::default()), CancellationToken::new());
        let (context, term) = (notes.clone(), Term::from(cancel.clone()));
        #[allow(clippy::disallowed_methods, reason = "each test ends its runs")]
        let task = tokio::spawn(async move { controller.run(term, reconcile, context).await });
        Self { notes, cancel, task }
    }

    /// Returns the notes since the last call, after all tasks have run until they wait.
    pub(crate) async fn noted(&self) -> Vec<String> {
        quiet().await;
        self.notes.take()
    }

    pub(crate) async fn end(self) {
        self.cancel.cancel();
        self.task.await.unwrap().unwrap();
    }
}

/// Lets all tasks run until they wait: a paused clock moves on only when no task can run.
pub(crate) async fn quiet() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}
