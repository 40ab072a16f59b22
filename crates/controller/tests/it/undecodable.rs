//! An object that exists and cannot be decoded is not mistaken for one that does not exist.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube_controller::{Action, Controller, ControllerHandle, Request};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Notes, Run, quiet};
use crate::own_writes::creating;

/// Makes an object undecodable: its labels are not a map of strings.
fn break_object(cluster: &Cluster, resource: &str, name: &str) {
    let mut object = cluster.server.get(resource, Some("web"), name).unwrap();
    object["metadata"]["labels"] = json!(5);
    cluster.server.put_as_is(resource, Some("web"), object).unwrap();
}

fn repair_object(cluster: &Cluster, resource: &str, name: &str) {
    let mut object = cluster.server.get(resource, Some("web"), name).unwrap();
    object["metadata"]["labels"] = json!({"repaired": "yes"});
    cluster.server.put_as_is(resource, Some("web"), object).unwrap();
}

fn last_error(handle: &ControllerHandle<Deployment>) -> String {
    handle.status().last_error.map(|last| last.error).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn reconcile_is_not_called_for_an_undecodable_object() {
    for known_before in [true, false] {
        let cluster = Cluster::new();
        let a = cluster.owner("a");
        if !known_before {
            break_object(&cluster, "deployments.apps", "a");
        }
        let controller = Controller::new(&cluster.owners).owns(&cluster.children);
        let handle = controller.handle();
        let run = Run::noting(controller);
        assert_eq!(run.noted().await.is_empty(), !known_before);
        if known_before {
            break_object(&cluster, "deployments.apps", "a");
        }
        // A change of its child reconciles its key.
        cluster.child("child", &a, true);
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(run.notes.take(), Vec::<String>::new(), "known before: {known_before}");
        let error = last_error(&handle);
        assert!(error.starts_with("web/a exists but cannot be decoded, so reconcile was not called"), "{error}");
        repair_object(&cluster, "deployments.apps", "a");
        assert_eq!(run.noted().await, ["a"]);
        assert!(handle.status().last_error.is_none());
        run.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_undecodable_object_is_deleted_is_reconciled_without_an_object() {
    let cluster = Cluster::new();
    let a = cluster.owner("a");
    break_object(&cluster, "deployments.apps", "a");
    let controller = Controller::new(&cluster.owners).owns(&cluster.children);
    let handle = controller.handle();
    let run = Run::noting(controller);
    quiet().await;
    cluster.child("child", &a, true);
    // After this many failures the limiter alone would delay the key for 1,000 seconds.
    tokio::time::sleep(Duration::from_secs(3000)).await;
    assert!(handle.status().failures > 90, "{}", handle.status().failures);
    cluster.server.delete("deployments.apps", Some("web"), "a").unwrap();
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(run.notes.take(), ["a is gone"]);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_that_cannot_be_decoded_is_not_created_a_second_time() {
    for ignored in [false, true] {
        let cluster = Cluster::new();
        let controller = Controller::new(&cluster.owners);
        let controller = if ignored { controller.ignore_undecodable() } else { controller };
        let controller = controller.owns(&cluster.children);
        let handle = controller.handle();
        let run = Run::of(controller, creating(cluster.client(), cluster.children.clone()));
        cluster.owner("a");
        quiet().await;
        let child = cluster.names("configmaps")[0].clone();
        break_object(&cluster, "configmaps", &child);
        while cluster.children.health().undecodable.is_empty() {
            quiet().await;
        }
        cluster.label("deployments.apps", "a", "1");
        tokio::time::sleep(Duration::from_secs(60)).await;
        let error = last_error(&handle);
        if ignored {
            assert_eq!(error, "");
        } else {
            assert!(error.contains(&format!("cannot be decoded, so reconcile was not called: web/{child}")), "{error}");
            assert_eq!(cluster.names("configmaps"), [child.as_str()]);
        }
        repair_object(&cluster, "configmaps", &child);
        quiet().await;
        assert_eq!(last_error(&handle), "");
        run.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_child_stops_reconciles_of_its_owner_only() {
    let cluster = Cluster::new();
    let (a, _) = (cluster.owner("a"), cluster.owner("b"));
    cluster.child("child", &a, true);
    break_object(&cluster, "configmaps", "child");
    let run = Run::noting(Controller::new(&cluster.owners).owns(&cluster.children));
    assert_eq!(run.noted().await, ["b"]);
    // Its owner references cannot be decoded either, so it may belong to any owner in its namespace.
    let mut child = cluster.server.get("configmaps", Some("web"), "child").unwrap();
    child["metadata"]["ownerReferences"] = json!("none");
    cluster.server.put_as_is("configmaps", Some("web"), child).unwrap();
    quiet().await;
    cluster.label("deployments.apps", "b", "1");
    assert_eq!(run.noted().await, Vec::<String>::new());
    let elsewhere: Value = json!({"metadata": {"name": "c"}});
    cluster.server.create("deployments.apps", Some("elsewhere"), elsewhere).unwrap();
    assert_eq!(run.noted().await, ["c"]);
    run.end().await;
}

/// The reconcile deletes the children of an object that does not exist any more.
#[tokio::test(start_paused = true)]
async fn the_children_of_an_undecodable_object_are_not_deleted() {
    let cluster = Cluster::new();
    let a = cluster.owner("a");
    cluster.child("a", &a, true);
    let client = cluster.client();
    let reconcile = move |request: Request<Deployment>, _: Arc<Notes>| {
        let client = client.clone();
        async move {
            if request.object().is_none() {
                let api: kube_client::Api<k8s_openapi::api::core::v1::ConfigMap> =
                    kube_client::Api::namespaced(client, "web");
                api.delete(request.key().name(), &Default::default()).await?;
            }
            Ok::<_, kube_client::Error>(Action::await_change())
        }
    };
    break_object(&cluster, "deployments.apps", "a");
    let run = Run::of(Controller::new(&cluster.owners).owns(&cluster.children), reconcile);
    for number in 0..20 {
        cluster.label("configmaps", "a", &number.to_string());
        tokio::time::sleep(Duration::from_secs(5)).await;
        cluster.server.disconnect_watches();
    }
    assert_eq!(cluster.names("configmaps"), ["a"]);
    run.end().await;
}
