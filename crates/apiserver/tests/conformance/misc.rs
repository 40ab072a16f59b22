use super::cluster::{Case, case, ends_initial_events, told};
use serde_json::{Value, json};
use std::time::Duration;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(97, |cluster| async move {
            let group = format!("{}.example.com", cluster.namespace);
            let definition = json!({
                "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
                "metadata": {"name": format!("parts.{group}")},
                "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "parts", "kind": "Part", "singular": "part"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                        {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
            });
            assert_eq!(cluster.post(DEFINITIONS, &definition).await.code, 201);
            let path = format!("{DEFINITIONS}/parts.{group}");
            let established = |object: &Value| {
                let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
                conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
            };
            while !established(&cluster.get(&path).await.json()) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let parts = format!("/apis/{group}/v1/namespaces/{}/parts", cluster.namespace);
            let part = json!({"kind": "Part", "apiVersion": format!("{group}/v1"), "metadata": {"name": "p"}});
            let created = loop {
                // kube-apiserver needs a moment more until every path is there.
                let created = cluster.post(&parts, &part).await;
                if created.code == 201 {
                    break created;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            };
            let mut watch = cluster.watch(&format!("{parts}?watch=1&resourceVersion={}", created.version())).await;
            let mut changed = cluster.get(&path).await.json();
            changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("changed");
            assert_eq!(cluster.put(&path, &changed).await.code, 200);
            assert!(watch.rest().await.is_empty());
            let path_of_old = format!("{parts}?watch=1&resourceVersion={}", created.version());
            let mut old = cluster.watch(&path_of_old).await;
            while old.code == 429 {
                // kube-apiserver needs a moment here, too: its storage is being initialised.
                tokio::time::sleep(Duration::from_millis(50)).await;
                old = cluster.watch(&path_of_old).await;
            }
            let old = old.event().await;
            assert_eq!(old["object"]["code"], 410, "{old}");
            let mut watch = cluster.watch(&format!("{parts}?watch=1&allowWatchBookmarks=true")).await;
            assert_eq!(told(&watch.event().await), "ADDED p");
            assert!(ends_initial_events(&watch.event().await));
            assert_eq!(cluster.delete(&path).await.code, 200);
        }),
        case(99, |cluster| async move {
            cluster.make("a").await;
            let path = cluster.config_map("a");
            let pretty = cluster.send("GET", &path, &[("user-agent", "curl/8.0")], Vec::new()).await;
            assert!(pretty.text.starts_with("{\n  \""));
            assert!(!cluster.get(&path).await.text.trim_end().contains('\n'));
        }),
        case(100, |cluster| async move {
            cluster.get(&format!("{}?timeout=abc", cluster.config_maps())).await.is(400, "BadRequest");
        }),
    ]
}
