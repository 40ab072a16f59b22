//! Informers without their type (`AnyInformer`), and views that keep only a part of each object.

use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube_embedded_apiserver::ApiServer;
use kube_informer::{EventKind, InformerRequest, Object as _, Projection, Selection, SharedInformerFactory, View};
use serde_json::json;

use crate::script::on_the_real_clock;

fn server() -> ApiServer {
    let server = ApiServer::new();
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "7", "controller": true});
    let metadata =
        json!({"name": "a", "labels": {"app": "shop"}, "annotations": {"note": "x"}, "ownerReferences": [owner]});
    let pod = json!({"metadata": metadata, "spec": {"nodeName": "n1", "containers": []}});
    server.create("pods", Some("web"), pod).unwrap();
    server.create("configmaps", Some("web"), json!({"metadata": {"name": "m"}, "data": {"k": "v"}})).unwrap();
    server.create("nodes", None, json!({"metadata": {"name": "n1"}})).unwrap();
    server
}

#[derive(Debug, serde::Deserialize)]
struct PodView {
    spec: Spec,
}

#[derive(Debug, serde::Deserialize)]
struct Spec {
    #[serde(rename = "nodeName")]
    node: Option<Box<str>>,
}

impl Projection for PodView {
    type Of = Pod;
}

// Decision 2.
#[tokio::test]
async fn a_view_keeps_metadata_and_the_chosen_fields_and_follows_changes() {
    on_the_real_clock(async {
        let server = server();
        let factory = SharedInformerFactory::new(server.client());
        let pods = factory.informer::<View<PodView>>().unwrap();
        let by_node = pods.add_index("node", |pod: &View<PodView>| pod.spec.node.clone()).unwrap();
        factory.start().unwrap();
        factory.synced().await.unwrap();
        let pod = pods.store().get("web/a").unwrap();
        assert_eq!(pod.spec.node.as_deref(), Some("n1"));
        assert_eq!((pod.label("app"), pod.annotation("note"), pod.label("none")), (Some("shop"), Some("x"), None));
        let mut owners = Vec::new();
        pod.each_owner(&mut |owner| owners.push((owner.kind.to_owned(), owner.name.to_owned(), owner.controller)));
        assert_eq!(owners, [("ReplicaSet".to_owned(), "rs".to_owned(), true)]);
        assert!(!pod.is_being_deleted() && pod.to_json().is_none());
        assert_eq!(by_node.count("n1"), 1);
        server.patch("pods", Some("web"), "a", json!({"metadata": {"labels": {"app": "cart"}}})).unwrap();
        let changed = |pod: Option<&View<PodView>>| pod.is_some_and(|pod| pod.label("app") == Some("cart"));
        pods.wait_for("web/a", changed).within(Duration::from_secs(10)).await.unwrap();
        factory.stop().await;
    })
    .await;
}

#[tokio::test]
async fn typed_objects_return_their_owners_and_their_json() {
    on_the_real_clock(async {
        let server = server();
        let factory = SharedInformerFactory::new(server.client());
        let pods = factory.informer::<Pod>().unwrap();
        factory.start().unwrap();
        factory.synced().await.unwrap();
        let pod = pods.store().get("web/a").unwrap();
        let mut owners = 0;
        pod.each_owner(&mut |_| owners += 1);
        assert_eq!((owners, pod.annotation("note")), (1, Some("x")));
        assert_eq!(pod.to_json().unwrap()["spec"]["nodeName"], "n1");
        factory.stop().await;
    })
    .await;
}

// A factory that selects one namespace can still watch cluster-scoped objects.
#[tokio::test]
async fn cluster_scoped_resources_are_requested_without_the_selected_namespace() {
    on_the_real_clock(async {
        let server = server();
        let web = Selection::new().namespace("web").unwrap();
        let factory = SharedInformerFactory::builder(server.client()).select(web).build();
        let nodes = factory.informer::<Node>().unwrap();
        factory.start().unwrap();
        factory.synced().within(Duration::from_secs(10)).await.unwrap();
        assert!(nodes.store().contains("n1"));
        factory.stop().await;
    })
    .await;
}

// Hole 14.
#[tokio::test]
async fn the_empty_namespace_selects_all_namespaces() {
    on_the_real_clock(async {
        let server = server();
        let factory = SharedInformerFactory::new(server.client());
        let all = InformerRequest::<ConfigMap>::new().select(Selection::new().namespace("").unwrap());
        let maps = factory.informer_with(all).unwrap();
        factory.start().unwrap();
        factory.synced().within(Duration::from_secs(10)).await.unwrap();
        assert!(maps.store().contains("web/m"));
        assert!(
            server.requests().iter().all(|request| !request.path.contains("/namespaces/")),
            "{:?}",
            server.requests()
        );
        factory.stop().await;
    })
    .await;
}

// Decision 26.
#[tokio::test]
async fn an_informer_can_be_inspected_and_stopped_without_its_type() {
    on_the_real_clock(async {
        let server = server();
        let factory = SharedInformerFactory::new(server.client());
        let pods = factory.informer::<Pod>().unwrap();
        let maps = factory.informer::<ConfigMap>().unwrap();
        pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone()).unwrap();
        pods.register().name("audit").on_event(|_| {});
        factory.start().unwrap();
        factory.synced().await.unwrap();
        let all = factory.informers();
        assert_eq!(all.iter().map(|any| any.name()).collect::<Vec<_>>(), ["configmaps", "pods"]);
        let any = &all[1];
        assert_eq!(any.resource().unwrap().plural, "pods");
        assert_eq!(any.keys(), [kube_informer::KeyRef::from("web/a")]);
        assert_eq!(any.index_names().iter().map(|name| name.to_string()).collect::<Vec<_>>(), ["namespace", "node"]);
        assert_eq!(any.index_values("node"), ["n1"]);
        assert_eq!(any.keys_by_index("node", "n1"), [kube_informer::KeyRef::from("web/a")]);
        assert_eq!(any.object("web/a").unwrap()["kind"], "Pod");
        assert!(any.object("web/b").is_none() && any.keys_by_index("color", "red").is_empty());
        let health = any.health();
        assert_eq!((health.objects, health.handlers[0].name.as_str()), (1, "audit"));
        assert!(health.counts.wire_bytes > 0 && health.counts.watches == 1);
        let mut tail = any.events();
        assert_eq!(tail.next().await.unwrap().kind, EventKind::Added);
        server.patch("pods", Some("web"), "a", json!({"metadata": {"labels": {"app": "cart"}}})).unwrap();
        let event = tail.next().await.unwrap();
        assert_eq!(event.kind, EventKind::Updated);
        assert_ne!(event.object, event.old);
        assert!(any.is_running());
        any.stop().await;
        assert!(tail.next().await.is_none() && pods.health().stopped && !maps.health().stopped);
        // A handle without a type does not keep its informer running.
        let any = maps.any();
        drop((maps, all));
        factory.stop().await;
        assert!(!any.is_running() && any.health().stopped);
    })
    .await;
}
