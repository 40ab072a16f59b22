use super::cluster::{Case, case};
use serde_json::Value;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(1, |cluster| async move {
            let versions = cluster.get_as("/api", "application/json").await;
            assert_eq!((versions.at("/kind"), versions.at("/versions/0")), ("APIVersions".into(), "v1".into()));
        }),
        case(2, |cluster| async move {
            let groups = cluster.get_as("/apis", AGGREGATED).await;
            let content_type = groups.headers["content-type"].to_str().unwrap();
            assert!(
                ["g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"]
                    .iter()
                    .all(|part| content_type.contains(part))
            );
            let items = groups.json()["items"].as_array().unwrap().clone();
            let demo = items.iter().find(|item| item["metadata"]["name"] == "demo.example.com").unwrap();
            let widgets = &demo["versions"][0]["resources"][0];
            assert_eq!((&widgets["resource"], &widgets["scope"]), (&"widgets".into(), &"Namespaced".into()));
            let parts: Vec<&Value> =
                widgets["subresources"].as_array().unwrap().iter().map(|part| &part["subresource"]).collect();
            assert!(parts.contains(&&"status".into()) && parts.contains(&&"scale".into()));
        }),
        case(3, |cluster| async move {
            // Other cases define resources at the same time. The answer counts once two in a row have the same ETag.
            let mut tag = cluster.get_as("/apis", AGGREGATED).await.headers["etag"].clone();
            let unchanged = loop {
                let accepted = [("accept", AGGREGATED), ("if-none-match", tag.to_str().unwrap())];
                let again = cluster.send("GET", "/apis", &accepted, Vec::new()).await;
                match again.headers.get("etag").cloned() {
                    Some(other) if other != tag => tag = other,
                    _ => break again,
                }
            };
            assert_eq!((unchanged.code, unchanged.text.as_str()), (304, ""));
        }),
        case(4, |cluster| async move {
            let list = cluster.get("/apis/demo.example.com/v1").await.json();
            let entry =
                |name: &str| list["resources"].as_array().unwrap().iter().find(|entry| entry["name"] == name).cloned();
            assert!(entry("widgets").is_some() && entry("widgets/status").is_some());
            let scale = entry("widgets/scale").unwrap();
            assert_eq!((&scale["kind"], &scale["group"]), (&"Scale".into(), &"autoscaling".into()));
        }),
        case(5, |cluster| async move {
            let version = cluster.get("/version").await.json();
            assert!(
                ["major", "minor", "gitVersion"]
                    .iter()
                    .all(|member| version[member].as_str().is_some_and(|text| !text.is_empty()))
            );
        }),
        case(6, |cluster| async move {
            let missing = cluster.get("/apis/nope.example.com/v1").await;
            assert_eq!((missing.code, missing.text.as_str()), (404, "404 page not found\n"));
            assert!(missing.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
        }),
        case(7, |cluster| async move {
            let missing = cluster.get("/api/v1/nopes").await;
            missing.is(404, "NotFound");
            assert_eq!(missing.at("/message"), "the server could not find the requested resource");
        }),
        case(9, |cluster| async move {
            let ready = cluster.get("/readyz").await;
            assert_eq!((ready.code, ready.text.as_str()), (200, "ok"));
        }),
        case(10, |cluster| async move {
            cluster.put(&cluster.config_maps(), &serde_json::json!({})).await.is(405, "MethodNotAllowed");
        }),
    ]
}
