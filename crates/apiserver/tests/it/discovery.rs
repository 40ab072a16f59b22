use crate::support::*;
use http::Request;
use http_body_util::Full;
use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

async fn get_as(server: &ApiServer, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(server, request.body(Full::default()).unwrap()).await
}

fn named<'a>(list: &'a Value, member: &str, name: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|entry| entry[member] == name).unwrap_or(&Value::Null)
}

#[tokio::test(start_paused = true)]
async fn legacy_discovery_names_groups_versions_and_resources() {
    let server = server();
    assert_eq!(get(&server, "/api").await.json()["versions"], json!(["v1"]));
    let groups = get(&server, "/apis").await.json();
    let apps = named(&groups["groups"], "name", "apps");
    assert_eq!(apps["preferredVersion"], json!({"groupVersion": "apps/v1", "version": "v1"}));
    let core = get(&server, "/api/v1").await.json();
    let config_maps = named(&core["resources"], "name", "configmaps");
    assert_eq!((&config_maps["kind"], &config_maps["shortNames"]), (&json!("ConfigMap"), &json!(["cm"])));
    let widgets = get(&server, "/apis/demo.example.com/v1").await.json();
    let names: Vec<_> = widgets["resources"].as_array().unwrap().iter().map(|entry| entry["name"].clone()).collect();
    assert_eq!(names, ["widgets", "widgets/scale", "widgets/status"]);
    assert_eq!(widgets["resources"][1]["group"], "autoscaling");
    assert_eq!(get(&server, "/apis/apps").await.json()["kind"], "APIGroup");
    assert_eq!(get(&server, "/apis/nope.example.com/v1").await.text, "404 page not found\n");
    assert_eq!(get(&server, "/apis/nope.example.com").await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn aggregated_discovery_is_one_document_that_can_be_cached() {
    let server = server();
    let answer = get_as(&server, "/apis", &[("accept", AGGREGATED)]).await;
    assert_eq!(answer.headers["content-type"], "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    let document = answer.json();
    let demo = document["items"].as_array().unwrap().iter().find(|item| item["metadata"]["name"] == "demo.example.com");
    let widgets = &demo.unwrap()["versions"][0]["resources"][0];
    assert_eq!((&widgets["resource"], &widgets["scope"]), (&json!("widgets"), &json!("Namespaced")));
    assert_eq!(widgets["subresources"][1]["subresource"], "status");
    let tag = answer.headers["etag"].to_str().unwrap();
    let unchanged = get_as(&server, "/apis", &[("accept", AGGREGATED), ("if-none-match", tag)]).await;
    assert_eq!((unchanged.code, unchanged.text.as_str()), (304, ""));
    let core = get_as(&server, "/api", &[("accept", AGGREGATED)]).await.json();
    assert_eq!(core["items"][0]["metadata"]["name"], "");
}

#[tokio::test(start_paused = true)]
async fn version_and_health_can_be_read() {
    let server = server();
    let version = get(&server, "/version").await.json();
    assert!(["major", "minor", "gitVersion", "platform"].iter().all(|member| version[member].is_string()));
    for path in ["/healthz", "/livez", "/readyz"] {
        let health = get(&server, path).await;
        assert_eq!((health.code, health.text.as_str()), (200, "ok"));
        assert_eq!(health.headers["x-content-type-options"], "nosniff");
    }
    assert!(get(&server, "/livez?verbose").await.text.ends_with("livez check passed\n"));
    assert_eq!(post(&server, "/healthz", &json!({})).await.code, 405);
}

#[tokio::test(start_paused = true)]
async fn metadata_can_be_read_listed_and_watched_alone() {
    let server = server();
    put_config_map(&server, "a");
    let one = get_as(&server, &format!("{CONFIG_MAPS}/a"), &[("accept", METADATA)]).await.json();
    assert_eq!((&one["kind"], one.get("data")), (&json!("PartialObjectMetadata"), None));
    let list = get_as(&server, CONFIG_MAPS, &[("accept", METADATA_LIST)]).await.json();
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("PartialObjectMetadataList"), &json!("meta.k8s.io/v1")));
    assert_eq!(list["items"][0]["metadata"]["name"], "a");
    assert_eq!(list["items"][0].get("data"), None);
    let path = format!("{CONFIG_MAPS}?watch=1&allowWatchBookmarks=1");
    let request =
        Request::builder().uri(path).header("accept", METADATA).body(Full::<bytes::Bytes>::default()).unwrap();
    let mut watch = Watch::of(server.clone().oneshot(request).await.unwrap());
    let added = watch.next().await;
    assert_eq!((told(&added), added["object"].get("data")), ("ADDED a".into(), None));
    let end = watch.next().await;
    assert_eq!((ends_initial_events(&end), &end["object"]["kind"]), (true, &json!("PartialObjectMetadata")));
    server.delete("configmaps", Some("default"), "a").unwrap();
    let deleted = watch.next().await;
    assert_eq!(
        (&deleted["object"]["kind"], version(&deleted["object"])),
        (&json!("PartialObjectMetadata"), server.revision())
    );
    assert_eq!(get_as(&server, CONFIG_MAPS, &[("accept", METADATA)]).await.code, 406);
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": []}});
    let created = version(&server.create("pods", Some("default"), pod).unwrap());
    let request = Request::delete("/api/v1/namespaces/default/pods/p").header("accept", METADATA);
    let deleted = send(&server, request.body(Full::default()).unwrap()).await.json();
    assert_eq!((&deleted["kind"], version(&deleted)), (&json!("PartialObjectMetadata"), created + 1));
}

#[tokio::test(start_paused = true)]
async fn formats_are_negotiated() {
    let server = server();
    put_config_map(&server, "a");
    let path = format!("{CONFIG_MAPS}/a");
    let refused = get_as(&server, &path, &[("accept", "text/html")]).await;
    assert_eq!((refused.code, &refused.json()["reason"]), (406, &json!("NotAcceptable")));
    let watch = format!("{CONFIG_MAPS}?watch=1");
    assert_eq!(get_as(&server, &watch, &[("accept", "application/yaml")]).await.code, 406);
    let yaml = get_as(&server, &path, &[("accept", "application/yaml")]).await;
    assert_eq!(yaml.headers["content-type"], "application/yaml");
    assert!(yaml.text.contains("kind: ConfigMap\n"));
    let pretty = get_as(&server, &path, &[("user-agent", "curl/8.0")]).await;
    assert!(pretty.text.starts_with("{\n  \""));
    assert!(!get(&server, &path).await.text.trim_end().contains('\n'));
    assert!(get(&server, &format!("{path}?pretty=true")).await.text.starts_with("{\n"));
    assert_eq!(get(&server, &format!("{CONFIG_MAPS}?timeout=abc")).await.code, 400);
    assert_eq!(get(&server, &format!("{CONFIG_MAPS}?timeout=1m30s")).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_a_named_path_is_a_read() {
    let server = server();
    put_config_map(&server, "a");
    let path = format!("{CONFIG_MAPS}/a?watch=true");
    let read = tokio::time::timeout(Duration::from_secs(1), get(&server, &path)).await;
    assert_eq!(read.unwrap().json()["metadata"]["name"], "a");
}
