use crate::support::server;
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_client::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube_client::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube_client::{Api, ResourceExt};
use serde_json::json;

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": "v"}})).unwrap()
}

#[tokio::test(start_paused = true)]
async fn objects_are_created_read_replaced_and_deleted() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().client());
    let created = api.create(&PostParams::default(), &config_map("a")).await.unwrap();
    let mut changed = created.clone();
    changed.data = Some([("k".to_owned(), "w".to_owned())].into());
    let replaced = api.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(created.resource_version(), replaced.resource_version());
    let stale = api.replace("a", &PostParams::default(), &created).await.unwrap_err();
    assert!(matches!(stale, kube_client::Error::Api(status) if status.code == 409));
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 1);
    assert!(api.delete("a", &DeleteParams::default()).await.unwrap().is_right());
    assert!(api.get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_watch_decodes_with_its_bookmarks() {
    let server = server();
    let api: Api<Pod> = Api::all(server.client());
    server.create("pods", Some("default"), json!({"metadata": {"name": "p"}, "spec": {"containers": []}})).unwrap();
    let parameters = WatchParams::default().initial_events();
    let mut events = api.watch(&parameters, "0").await.unwrap().boxed();
    assert!(matches!(events.try_next().await.unwrap(), Some(WatchEvent::Added(pod)) if pod.name_any() == "p"));
    assert!(matches!(events.try_next().await.unwrap(), Some(WatchEvent::Bookmark(_))));
    server.delete("pods", Some("default"), "p").unwrap();
    assert!(matches!(events.try_next().await.unwrap(), Some(WatchEvent::Deleted(_))));
}

#[tokio::test(start_paused = true)]
async fn custom_resources_work_as_dynamic_objects() {
    let widget = ApiResource::from_gvk(&GroupVersionKind::gvk("demo.example.com", "v1", "Widget"));
    let api: Api<DynamicObject> = Api::default_namespaced_with(server().client(), &widget);
    let object = DynamicObject::new("w", &widget).data(json!({"spec": {"size": 3}}));
    api.create(&PostParams::default(), &object).await.unwrap();
    let found = api.list(&ListParams::default().fields("spec.size=3")).await.unwrap();
    assert_eq!(found.items.len(), 1);
    assert_eq!(found.items[0].metadata.generation, Some(1));
}

#[tokio::test(start_paused = true)]
async fn dropping_client_and_server_leaves_no_task() {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    {
        let api: Api<ConfigMap> = Api::all(server().client());
        api.list(&ListParams::default()).await.unwrap();
        let watch = api.watch(&WatchParams::default(), "0").await.unwrap();
        drop(watch);
    }
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    assert_eq!(alive(), before);
}
