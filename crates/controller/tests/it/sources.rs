//! Tests which keys an event reconciles, and when.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Api;
use kube_controller::{Action, Controller, Finalizer, Request, WatchSource, predicate};
use kube_informer::{Event, ObjectKey};
use serde_json::json;
use tokio::time::sleep;

use crate::cluster::{Cluster, Notes, Run};

#[tokio::test(start_paused = true)]
async fn an_async_mapping_is_called_for_the_old_state_and_the_new_state() {
    let cluster = Cluster::new();
    let map = |map: Arc<ConfigMap>| async move {
        sleep(Duration::from_millis(10)).await;
        map.data.iter().flatten().filter_map(|(_, name)| format!("web/{name}").parse().ok()).collect::<Vec<ObjectKey>>()
    };
    let run = Run::noting(Controller::new(&cluster.owners).watches_async(&cluster.children, map).workers(1));
    run.noted().await;
    let object = |name: &str| json!({"metadata": {"name": "m"}, "data": {"of": name}});
    cluster.server.create("configmaps", Some("web"), object("x")).unwrap();
    assert_eq!(run.noted().await, ["x is gone"]);
    cluster.server.patch("configmaps", Some("web"), "m", object("y")).unwrap();
    assert_eq!(run.noted().await, ["x is gone", "y is gone"]);
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_predicate_of_the_controller_sees_the_events_of_all_its_informers() {
    let cluster = Cluster::new();
    let a = cluster.owner("a");
    let ours = predicate::has_label("team", "ours");
    let controller = Controller::new(&cluster.owners).owns(&cluster.children).when(ours);
    let run = Run::noting(controller);
    assert_eq!(run.noted().await, Vec::<String>::new());
    cluster.child("child", &a, true);
    assert_eq!(run.noted().await, Vec::<String>::new());
    for (resource, name) in [("configmaps", "child"), ("deployments.apps", "a")] {
        let label = json!({"metadata": {"labels": {"team": "ours"}}});
        cluster.server.patch(resource, Some("web"), name, label).unwrap();
        assert_eq!(run.noted().await, ["a"]);
    }
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn predicates_are_combined() {
    let cluster = Cluster::new();
    cluster
        .server
        .create("deployments.apps", Some("web"), json!({"metadata": {"name": "a"}, "spec": {"replicas": 1}}))
        .unwrap();
    let either = predicate::or(predicate::generation_changed, predicate::labels_changed(&["l"]));
    let not_theirs = predicate::not(predicate::has_label("team", "theirs"));
    let run = Run::noting(Controller::new(WatchSource::from(&cluster.owners).when(either).when(not_theirs)));
    assert_eq!(run.noted().await, ["a"]);
    let patch =
        |change: serde_json::Value| drop(cluster.server.patch("deployments.apps", Some("web"), "a", change).unwrap());
    patch(json!({"metadata": {"labels": {"l": "1"}}}));
    assert_eq!(run.noted().await, ["a"]);
    patch(json!({"spec": {"replicas": 2}}));
    assert_eq!(run.noted().await, ["a"]);
    patch(json!({"metadata": {"labels": {"other": "1"}}}));
    assert_eq!(run.noted().await, Vec::<String>::new());
    patch(json!({"metadata": {"labels": {"team": "theirs"}}, "spec": {"replicas": 3}}));
    assert_eq!(run.noted().await, Vec::<String>::new());
    run.end().await;
}

#[tokio::test(start_paused = true)]
async fn many_changes_within_the_debounce_are_one_reconcile() {
    let cluster = Cluster::new();
    let controller = Controller::new(&cluster.owners).debounce(Duration::from_secs(5));
    let handle = controller.handle();
    let run = Run::noting(controller);
    run.noted().await;
    cluster.owner("a");
    // One change each second. The wait begins with the first change, and the other changes do not make it longer.
    for number in 0..12 {
        sleep(Duration::from_secs(1)).await;
        cluster.label("deployments.apps", "a", &number.to_string());
    }
    sleep(Duration::from_secs(10)).await;
    assert_eq!(run.notes.take().len(), 3);
    assert!(handle.enqueue("web/a"));
    assert_eq!(run.noted().await, ["a"], "a key that a handle enqueues does not wait");
    run.end().await;
}

type Predicate = Arc<dyn Fn(&Event<Deployment>) -> bool + Send + Sync>;

/// Each predicate of the guides.
fn predicates() -> Vec<(&'static str, Predicate)> {
    vec![
        ("all events", Arc::new(|_: &Event<Deployment>| true)),
        ("generation", Arc::new(predicate::generation_changed::<Deployment>)),
        ("version", Arc::new(predicate::version_changed::<Deployment>)),
        ("labels", Arc::new(predicate::labels_changed::<Deployment>(&["l"]))),
        ("annotations", Arc::new(predicate::annotations_changed::<Deployment>(&["a"]))),
    ]
}

type Outcome = futures_util::future::BoxFuture<'static, Result<Action, kube_controller::controller::BoxError>>;

/// Adds a finalizer and returns. Creates a child at the next call. Deletes the child when the object is being deleted.
fn with_finalizer(cluster: &Cluster) -> impl Fn(Request<Deployment>, Arc<Notes>) -> Outcome + use<> {
    let (client, owners, children) = (cluster.client(), cluster.owners.clone(), cluster.children.clone());
    move |request, notes| {
        let (client, owners, children) = (client.clone(), owners.clone(), children.clone());
        Box::pin(async move {
            let Some(owner) = request.object() else { return Ok(Action::await_change()) };
            let finalizer = Finalizer::new(Api::<Deployment>::namespaced(client.clone(), "web"), "example.com/clean")?;
            let maps: Api<ConfigMap> = Api::namespaced(client, "web");
            if owner.metadata.deletion_timestamp.is_some() {
                if let Some(child) = children.store().get(request.key()) {
                    let parameters = Default::default();
                    let delete = maps.delete(request.key().name(), &parameters);
                    request.delete(&children, &*child, delete).await?;
                }
                notes.note("cleaned up");
                if let Some(written) = request.attempt(&owners, finalizer.remove(&owner)).await? {
                    request.wrote(&owners, &written);
                }
                return Ok(Action::await_change());
            }
            if let Some(written) = request.attempt(&owners, finalizer.add(&owner)).await? {
                request.wrote(&owners, &written);
                notes.note("finalizer");
                return Ok(Action::await_change());
            }
            if children.store().get(request.key()).is_none() {
                let mut child = ConfigMap::default();
                child.metadata.name = owner.metadata.name.clone();
                request.write(&children, maps.create(&Default::default(), &child)).await?;
                notes.note("child");
            }
            Ok(Action::await_change())
        })
    }
}

/// Combines every predicate with every way to write that the guides show.
#[tokio::test(start_paused = true)]
async fn every_predicate_works_with_the_recipe_of_the_finalizer() {
    for debounce in [Duration::ZERO, Duration::from_secs(1)] {
        for (name, predicate) in predicates() {
            let cluster = Cluster::new();
            let watched = WatchSource::from(&cluster.owners).when(move |event| predicate(event));
            let controller = Controller::new(watched).owns(&cluster.children).debounce(debounce);
            let handle = controller.handle();
            let run = Run::of(controller, with_finalizer(&cluster));
            // The API server must accept this object, because the finalizer is added by a patch.
            let template = json!({
                "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": "i"}]},
            });
            let spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template});
            let owner = json!({"metadata": {"name": "a"}, "spec": spec});
            cluster.server.create("deployments.apps", Some("web"), owner).unwrap();
            sleep(Duration::from_secs(60)).await;
            assert_eq!(run.notes.take(), ["finalizer", "child"], "{name}: {:?}", handle.status());
            cluster.server.delete("deployments.apps", Some("web"), "a").unwrap();
            sleep(Duration::from_secs(60)).await;
            assert_eq!(run.notes.take(), ["cleaned up"], "{name}");
            assert!(cluster.names("deployments.apps").is_empty() && cluster.names("configmaps").is_empty(), "{name}");
            run.end().await;
        }
    }
}

// Issue 22, item 1.
#[tokio::test(start_paused = true)]
async fn a_controller_may_own_a_kind_that_is_not_installed() {
    use kube_client::core::{ApiResource, DynamicObject, GroupVersionKind};
    use kube_informer::InformerRequest;
    use serde_json::json;

    let cluster = Cluster::new();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("gateway.example", "v1", "Route"));
    let request = InformerRequest::<DynamicObject>::new().optional();
    let routes = cluster.factory.dynamic_with(kind, request).unwrap();
    let owner = cluster.owner("a");
    let run = Run::noting(Controller::new(&cluster.owners).owns(&routes));
    assert_eq!(run.noted().await, ["a"], "it does not wait for the absent kind");
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let crd = json!({
        "metadata": {"name": "routes.gateway.example"},
        "spec": {
            "group": "gateway.example", "scope": "Namespaced", "names": {"plural": "routes", "kind": "Route"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    cluster.server.create("customresourcedefinitions.apiextensions.k8s.io", None, crd).unwrap();
    let reference = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "uid": owner["metadata"]["uid"], "controller": true,
    });
    let route = json!({"metadata": {"name": "r", "ownerReferences": [reference]}});
    cluster.server.create("routes.gateway.example", Some("web"), route).unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(run.notes.take(), ["a"], "a change of its child");
    run.end().await;
}
