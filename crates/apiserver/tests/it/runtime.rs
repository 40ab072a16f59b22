//! kube's own runtime works against the server.

use crate::support::{config_map, put_config_map, server};
use futures_util::{StreamExt, TryStreamExt, pin_mut};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::discovery::{Discovery, Scope};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::{WatchStreamExt, watcher};
use kube_embedded_apiserver::{ApiServer, Fault, Verb};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

fn config_maps(server: &ApiServer) -> Api<ConfigMap> {
    Api::default_namespaced(server.client())
}

/// Returns the next event of a watcher, as its kind and the name.
async fn told(
    stream: &mut (impl futures_util::Stream<Item = watcher::Result<watcher::Event<ConfigMap>>> + Unpin),
) -> String {
    let name = |object: ConfigMap| object.metadata.name.unwrap();
    match stream.try_next().await.unwrap().unwrap() {
        watcher::Event::Apply(object) => format!("apply {}", name(object)),
        watcher::Event::Delete(object) => format!("delete {}", name(object)),
        watcher::Event::Init => "init".into(),
        watcher::Event::InitApply(object) => format!("init {}", name(object)),
        watcher::Event::InitDone => "init done".into(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_follows_by_list_and_by_streaming_list() {
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let server = server();
        put_config_map(&server, "a");
        let stream = watcher(config_maps(&server), config);
        pin_mut!(stream);
        assert_eq!(told(&mut stream).await, "init");
        assert_eq!(told(&mut stream).await, "init a");
        assert_eq!(told(&mut stream).await, "init done");
        put_config_map(&server, "b");
        assert_eq!(told(&mut stream).await, "apply b");
        server.disconnect_watches();
        server.delete("configmaps", Some("default"), "a").unwrap();
        loop {
            // The watcher first reports the broken connection, and then resumes the watch.
            match stream.next().await.unwrap() {
                Ok(watcher::Event::Delete(object)) => break assert_eq!(object.metadata.name.as_deref(), Some("a")),
                Ok(other) => panic!("{other:?}"),
                Err(_) => {}
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_lists_again_when_its_version_has_expired() {
    let server = server();
    put_config_map(&server, "a");
    let stream = watcher(config_maps(&server), watcher::Config::default()).default_backoff();
    pin_mut!(stream);
    while told(&mut stream).await != "init done" {}
    server.faults().add(Fault::status(500).verb(Verb::Watch).times(1));
    server.disconnect_watches();
    put_config_map(&server, "b");
    server.compact();
    let mut names = Vec::new();
    loop {
        match stream.next().await.unwrap() {
            Ok(watcher::Event::InitApply(object)) => names.push(object.metadata.name.unwrap()),
            Ok(watcher::Event::InitDone) if !names.is_empty() => break,
            _ => {}
        }
    }
    assert_eq!(names, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_reflector_keeps_a_store() {
    let server = server();
    for name in ["a", "b", "c"] {
        put_config_map(&server, name);
    }
    let (store, writer) = reflector::store();
    let stream = reflector::reflector(writer, watcher(config_maps(&server), watcher::Config::default().page_size(2)));
    let applied = stream.applied_objects();
    pin_mut!(applied);
    for _ in 0..3 {
        applied.try_next().await.unwrap().unwrap();
    }
    put_config_map(&server, "d");
    applied.try_next().await.unwrap().unwrap();
    assert_eq!(store.state().len(), 4);
    assert!(store.get(&ObjectRef::new("d").within("default")).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_watcher_of_metadata_sees_metadata() {
    let server = server();
    put_config_map(&server, "a");
    let api: Api<PartialObjectMeta<ConfigMap>> = Api::all(server.client());
    let stream = watcher(api, watcher::Config::default()).applied_objects();
    pin_mut!(stream);
    let object = stream.try_next().await.unwrap().unwrap();
    assert_eq!(object.metadata.name.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_controller_reconciles() {
    let server = server();
    put_config_map(&server, "a");
    let (sender, mut reconciled) = mpsc::unbounded_channel();
    let controller = Controller::new(config_maps(&server), watcher::Config::default()).run(
        |object: Arc<ConfigMap>, sender: Arc<mpsc::UnboundedSender<String>>| async move {
            let _ = sender.send(object.metadata.name.clone().unwrap());
            Ok::<_, std::convert::Infallible>(Action::await_change())
        },
        |_, _, _| Action::requeue(Duration::from_secs(1)),
        Arc::new(sender),
    );
    let running = controller.for_each(|_| async {});
    let checked = async {
        assert_eq!(reconciled.recv().await.unwrap(), "a");
        put_config_map(&server, "b");
        assert_eq!(reconciled.recv().await.unwrap(), "b");
    };
    tokio::select! {
        () = running => panic!("the controller ended"),
        () = checked => {}
    }
}

#[tokio::test(start_paused = true)]
async fn discovery_finds_built_in_and_custom_kinds() {
    let server = server();
    for discovery in [
        Discovery::new(server.client()).run().await.unwrap(),
        Discovery::new(server.client()).run_aggregated().await.unwrap(),
    ] {
        let (resource, capabilities) =
            discovery.resolve_gvk(&GroupVersionKind::gvk("demo.example.com", "v1", "Widget")).unwrap();
        assert_eq!((resource.plural.as_str(), capabilities.scope), ("widgets", Scope::Namespaced));
        let (nodes, capabilities) = discovery.resolve_gvk(&GroupVersionKind::gvk("", "v1", "Node")).unwrap();
        assert_eq!((nodes.plural.as_str(), capabilities.scope), ("nodes", Scope::Cluster));
        assert!(discovery.groups().count() >= 12);
    }
    let version = server.client().apiserver_version().await.unwrap();
    assert_eq!(version.major, "1");
}

#[tokio::test(start_paused = true)]
async fn objects_are_patched_scaled_and_their_status_replaced() {
    let server = server();
    let api = config_maps(&server);
    let body = serde_json::from_value(config_map("a")).unwrap();
    api.create(&PostParams::default(), &body).await.unwrap();
    let merged = api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"x": "y"}}))).await.unwrap();
    assert_eq!(merged.data.unwrap()["x"], "y");
    let nodes: Api<Node> = Api::all(server.client());
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
    let created = nodes.create(&PostParams::default(), &node).await.unwrap();
    let mut ready = created;
    ready.status = serde_json::from_value(json!({"conditions": [{"type": "Ready", "status": "True"}]})).unwrap();
    let replaced = nodes.replace_status("n", &PostParams::default(), &ready).await.unwrap();
    assert_eq!(replaced.status.unwrap().conditions.unwrap()[0].type_, "Ready");
    let widgets = ApiResource::from_gvk(&GroupVersionKind::gvk("demo.example.com", "v1", "Widget"));
    let widgets: Api<DynamicObject> = Api::default_namespaced_with(server.client(), &widgets);
    let widget = serde_json::from_value(json!({"apiVersion": "demo.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"replicas": 1}})).unwrap();
    widgets.create(&PostParams::default(), &widget).await.unwrap();
    assert_eq!(widgets.get_scale("w").await.unwrap().spec.unwrap().replicas, Some(1));
    let scaled = widgets
        .patch_scale("w", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 3}})))
        .await
        .unwrap();
    assert_eq!(scaled.spec.unwrap().replicas, Some(3));
    let deleted = api.delete_collection(&Default::default(), &ListParams::default()).await.unwrap();
    assert_eq!(deleted.left().unwrap().items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_crd_is_installed_and_used() {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kube::runtime::wait::{await_condition, conditions};
    let server = server();
    let definitions: Api<CustomResourceDefinition> = Api::all(server.client());
    let definition = serde_json::from_value(json!({
        "metadata": {"name": "gadgets.shop.example.com"},
        "spec": {"group": "shop.example.com", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    }))
    .unwrap();
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    await_condition(definitions, "gadgets.shop.example.com", conditions::is_crd_established()).await.unwrap();
    let gadgets = ApiResource::from_gvk(&GroupVersionKind::gvk("shop.example.com", "v1", "Gadget"));
    let api: Api<DynamicObject> = Api::default_namespaced_with(server.client(), &gadgets);
    api.create(&PostParams::default(), &DynamicObject::new("g", &gadgets)).await.unwrap();
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 1);
}
