//! Server-side apply in a reconcile: it creates an object, changes the fields that it owns, and waits for its own
//! writes.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Api, Resource as _};
use kube_controller::apply::ApplyError;
use kube_controller::{Action, Controller, Request};
use kube_embedded_apiserver::{ApiServer, Status};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Notes, Run, quiet};
use crate::network::Network;

/// Applies a config map with the name and the replicas of the owner, and notes the result.
fn run(cluster: &Cluster, network: &Network, change: impl Fn(&mut ConfigMap) + Clone + Send + Sync + 'static) -> Run {
    let (client, children) = (network.client(&cluster.server), cluster.children.clone());
    let controller = Controller::new(&cluster.owners).owns(&cluster.children).workers(1);
    Run::of(controller, move |request: Request<Deployment>, notes: Arc<Notes>| {
        let (client, children, change) = (client.clone(), children.clone(), change.clone());
        async move {
            let Some(owner) = request.object() else { return Ok(Action::await_change()) };
            let mut map = ConfigMap::default();
            map.metadata.name = owner.metadata.name.clone();
            map.metadata.owner_references = Some(owner.controller_owner_ref(&()).into_iter().collect());
            let replicas = owner.spec.replicas.unwrap_or_default();
            map.data = Some([("replicas".to_owned(), replicas.to_string())].into());
            change(&mut map);
            let api = Api::namespaced(client, "web");
            let applied = request.apply(&children, &api, "test", &map).await;
            notes.note(match &applied {
                Ok(map) => map.metadata.resource_version.clone().unwrap_or_default(),
                Err(ApplyError::Refused { name, reason, .. }) => format!("{name}: {reason}"),
                Err(error) => error.to_string(),
            });
            applied.map(|_| Action::await_change())
        }
    })
}

fn child(cluster: &Cluster) -> Value {
    cluster.server.get("configmaps", Some("web"), "a").unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_object_is_created_once_and_changed_only_if_something_differs() {
    let (cluster, network) = (Cluster::new(), Network::default());
    let run = run(&cluster, &network, |_| {});
    quiet().await;
    cluster.owner("a");
    let noted = run.noted().await;
    let created = child(&cluster);
    // The event of its own write reconciles the key again, and that apply changes nothing.
    assert_eq!(noted, vec![created["metadata"]["resourceVersion"].as_str().unwrap(); noted.len()]);
    assert!(network.asked().iter().all(|method| method == "PATCH"));
    // Fields of other managers stay, and a changed field of its own is set back.
    let others = json!({"data": {"replicas": "7", "other": "x"}});
    cluster.server.patch("configmaps", Some("web"), "a", others).unwrap();
    run.noted().await;
    assert_eq!(child(&cluster)["data"], json!({"replicas": created["data"]["replicas"], "other": "x"}));
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_owner_is_refused() {
    let (cluster, network) = (Cluster::new(), Network::default());
    let other = cluster.owner("b");
    cluster.child("a", &other, true);
    cluster.owner("a");
    let run = run(&cluster, &network, |_| {});
    let noted = run.noted().await;
    assert!(noted.iter().any(|note| note.starts_with("a: ") && note.contains("Only one reference")), "{noted:?}");
    let owners = child(&cluster)["metadata"]["ownerReferences"].clone();
    assert_eq!((owners.as_array().unwrap().len(), &owners[0]["name"]), (1, &json!("b")));
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn each_cause_of_a_failed_apply_has_its_own_error() {
    let check = async |server: ApiServer, change: fn(&mut ConfigMap), expected: &str| {
        let (cluster, network) = (Cluster::with(server.client(), server), Network::default());
        cluster.owner("a");
        let _ = cluster.server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}));
        let run = run(&cluster, &network, change);
        assert_eq!(run.noted().await[0], expected);
        run.end().await;
    };
    let server = || ApiServer::builder().seed(1);
    check(server().build(), |map| map.metadata.name = None, "the object to apply has no name").await;
    let stale = |map: &mut ConfigMap| map.metadata.resource_version = Some("1".to_owned());
    check(server().build(), stale, "a has changed meanwhile").await;
    let refuse = |write: &mut kube_embedded_apiserver::Admission<'_>| match write.resource.id() {
        "configmaps" => Err(Status::failure(403, "Forbidden", "not here")),
        _ => Ok(()),
    };
    check(server().admission(refuse).build(), |_| {}, "a: not here").await;
}
