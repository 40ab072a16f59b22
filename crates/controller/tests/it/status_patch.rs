//! A status is written only if it differs, and only if the object still has the version that was read.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use kube_client::{Api, Client};
use kube_controller::status_patch::StatusError;
use kube_controller::{Action, Controller, Request};
use kube_embedded_apiserver::{ApiServer, Status};
use kube_informer::SharedInformer;
use serde_json::json;

use crate::cluster::{Cluster, Notes, Run, quiet};
use crate::network::Network;

/// Writes a status with the observed generation and without `replicas`. The other fields stay.
async fn report(
    request: Request<Deployment>,
    client: Client,
    owners: SharedInformer<Deployment>,
    notes: Arc<Notes>,
) -> Result<Action, StatusError> {
    let Some(deployment) = request.object() else { return Ok(Action::await_change()) };
    let api = Api::namespaced(client, "web");
    let status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: None,
        ..deployment.status.clone().unwrap_or_default()
    };
    let written = request.patch_status(&owners, &api, &deployment, &status).await;
    notes.note(match &written {
        Ok(Some(_)) => "written".to_owned(),
        Ok(None) => "the same".to_owned(),
        Err(error) => error.to_string(),
    });
    written.map(|_| Action::await_change())
}

fn run(cluster: &Cluster, client: &Client) -> Run {
    let (client, owners) = (client.clone(), cluster.owners.clone());
    let controller = Controller::new(&cluster.owners).workers(1);
    Run::of(controller, move |request, notes| report(request, client.clone(), owners.clone(), notes))
}

#[tokio::test(start_paused = true)]
async fn a_status_that_does_not_differ_is_not_written() {
    let (cluster, network) = (Cluster::new(), Network::default());
    let run = run(&cluster, &network.client(&cluster.server));
    quiet().await;
    cluster.owner("a");
    assert_eq!(run.noted().await, ["written", "the same"]);
    cluster.label("deployments.apps", "a", "1");
    assert_eq!(run.noted().await, ["the same"]);
    assert_eq!(network.asked(), ["PATCH"]);
    let stored = cluster.server.get("deployments.apps", Some("web"), "a").unwrap();
    assert_eq!(stored["status"]["observedGeneration"], 1);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn fields_that_are_missing_are_removed_and_others_stay() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let status = json!({"status": {"replicas": 3, "readyReplicas": 2}});
    let api: Api<Deployment> = Api::namespaced(cluster.client(), "web");
    let patch = kube_client::api::Patch::Merge(status);
    api.patch_status("a", &Default::default(), &patch).await.unwrap();
    let run = run(&cluster, &cluster.client());
    assert_eq!(run.noted().await, ["written", "the same"]);
    let stored = cluster.server.get("deployments.apps", Some("web"), "a").unwrap();
    assert_eq!(stored["status"], json!({"observedGeneration": 1, "readyReplicas": 2}));
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_status_of_an_object_that_has_changed_is_not_written() {
    let cluster = Cluster::new();
    cluster.owner("a");
    let (client, owners, server) = (cluster.client(), cluster.owners.clone(), cluster.server.clone());
    let first = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let run = Run::of(Controller::new(&cluster.owners).workers(1), move |request, notes| {
        if first.swap(false, std::sync::atomic::Ordering::Relaxed) {
            let labels = json!({"metadata": {"labels": {"l": "1"}}});
            server.patch("deployments.apps", Some("web"), "a", labels).unwrap();
        }
        report(request, client.clone(), owners.clone(), notes)
    });
    assert_eq!(run.noted().await[..3], ["a has changed meanwhile", "written", "the same"]);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_status_is_an_error_with_the_message_of_the_server() {
    let message = r#"admission webhook "guard.example.com" denied the request: no"#;
    let refuse = move |write: &mut kube_embedded_apiserver::Admission<'_>| match write.part {
        Some("status") => Err(Status::failure(409, "Conflict", message)),
        _ => Ok(()),
    };
    let server = ApiServer::builder().seed(1).admission(refuse).build();
    let cluster = Cluster::with(server.client(), server);
    cluster.owner("a");
    let (client, owners) = (cluster.client(), cluster.owners.clone());
    let run = Run::of(Controller::new(&cluster.owners).workers(1), move |request, notes| {
        let written = report(request, client.clone(), owners.clone(), Arc::default());
        async move {
            let error = written.await.unwrap_err();
            let StatusError::Refused { name, reason, .. } = &error else { panic!("{error:?}") };
            notes.note(format!("{name}: {reason}"));
            Ok::<_, StatusError>(Action::await_change())
        }
    });
    assert_eq!(run.noted().await, [format!("a: {message}")]);
    run.end().await;
}
