use crate::support::*;
use serde_json::json;
use std::time::Duration;

const NAMESPACES: &str = "/api/v1/namespaces";

#[tokio::test(start_paused = true)]
async fn a_namespace_is_emptied_before_it_goes() {
    let server = server();
    let created = post(&server, NAMESPACES, &json!({"metadata": {"name": "web"}})).await.json();
    assert_eq!(created["status"]["phase"], "Active");
    assert_eq!(created["metadata"]["labels"]["kubernetes.io/metadata.name"], "web");
    let inside = "/api/v1/namespaces/web/configmaps";
    assert_eq!(post(&server, inside, &config_map("a")).await.code, 201);
    let start = server.revision();
    let mut content = Watch::open(&server, &format!("{inside}?watch=1&resourceVersion={start}")).await;
    let mut spaces = Watch::open(&server, &format!("{NAMESPACES}?watch=1&resourceVersion={start}")).await;
    let deleted = delete(&server, &format!("{NAMESPACES}/web")).await;
    assert_eq!((deleted.code, &deleted.json()["status"]["phase"]), (200, &json!("Terminating")));
    let refused = post(&server, inside, &config_map("b")).await;
    assert_eq!(
        (refused.code, &refused.json()["details"]["causes"][0]["reason"]),
        (403, &json!("NamespaceTerminating"))
    );
    assert_eq!(content.told().await, "DELETED a");
    assert_eq!([spaces.told().await, spaces.told().await], ["MODIFIED web", "DELETED web"]);
    assert_eq!(get(&server, &format!("{NAMESPACES}/web")).await.code, 404);
    assert_eq!(get(&server, inside).await.names().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn held_content_holds_its_namespace() {
    let server = server();
    post(&server, NAMESPACES, &json!({"metadata": {"name": "web"}})).await;
    let mut held = config_map("a");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    post(&server, "/api/v1/namespaces/web/configmaps", &held).await;
    delete(&server, &format!("{NAMESPACES}/web")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(get(&server, &format!("{NAMESPACES}/web")).await.json()["status"]["phase"], "Terminating");
    let released =
        merge(&server, "/api/v1/namespaces/web/configmaps/a", &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(released.code, 200);
    assert_eq!(get(&server, &format!("{NAMESPACES}/web")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn some_namespaces_stay() {
    let server = server();
    for name in ["default", "kube-system", "kube-public"] {
        let refused = delete(&server, &format!("{NAMESPACES}/{name}")).await;
        assert_eq!((refused.code, &refused.json()["reason"]), (403, &json!("Forbidden")));
    }
    assert_eq!(delete(&server, NAMESPACES).await.json()["reason"], "MethodNotAllowed");
    assert_eq!(get(&server, NAMESPACES).await.names().len(), 4);
    let offered = get(&server, "/api/v1").await.json();
    let offers = |name: &str| {
        let found = offered["resources"].as_array().unwrap().iter().find(|resource| resource["name"] == name);
        found.unwrap()["verbs"].as_array().unwrap().contains(&json!("deletecollection"))
    };
    assert_eq!((offers("namespaces"), offers("pods")), (false, true));
}

#[test]
fn without_a_runtime_a_namespace_goes_at_once() {
    let server = server();
    server.create("namespaces", None, json!({"metadata": {"name": "web"}})).unwrap();
    server.create("configmaps", Some("web"), config_map("a")).unwrap();
    server.delete("namespaces", None, "web").unwrap();
    assert_eq!(server.get("namespaces", None, "web").unwrap_err().code, 404);
    assert!(server.list("configmaps").unwrap().1.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_direct_create_makes_the_namespace_it_needs() {
    let server = server();
    let inside = "/api/v1/namespaces/web/configmaps";
    assert_eq!(post(&server, inside, &config_map("a")).await.code, 404);
    let start = server.revision();
    let mut spaces = Watch::open(&server, &format!("{NAMESPACES}?watch=1&resourceVersion={start}")).await;
    let created = server.create("configmaps", Some("web"), config_map("a")).unwrap();
    assert_eq!(version(&created), start + 2, "the namespace comes first");
    let made = spaces.next().await;
    assert_eq!((told(&made), version(&made["object"])), ("ADDED web".to_owned(), start + 1));
    let shown = get(&server, &format!("{NAMESPACES}/web")).await.json();
    assert_eq!((&shown["status"]["phase"], &shown["kind"]), (&json!("Active"), &json!("Namespace")));
    assert_eq!(shown["metadata"]["labels"]["kubernetes.io/metadata.name"], "web");
    assert!(shown["metadata"]["uid"].is_string());
    assert_eq!(post(&server, inside, &config_map("b")).await.code, 201);
    server.create("configmaps", Some("web"), config_map("c")).unwrap();
    assert_eq!(server.revision(), start + 4, "it is made once");
}

#[tokio::test(start_paused = true)]
async fn a_direct_create_that_fails_makes_no_namespace() {
    let server = server();
    let start = server.revision();
    let nameless = json!({"metadata": {"name": "No_Name"}});
    assert_eq!(server.create("configmaps", Some("web"), nameless).unwrap_err().code, 422);
    for no_namespace in ["No_Name", ""] {
        let refused = server.create("configmaps", Some(no_namespace), config_map("a")).unwrap_err();
        assert_eq!((refused.code, refused.details.unwrap().kind.as_str()), (422, "Namespace"));
    }
    assert_eq!((server.revision(), get(&server, NAMESPACES).await.names().len()), (start, 4));
}

#[tokio::test(start_paused = true)]
async fn nobody_fills_a_namespace_that_goes() {
    let server = server();
    let mut held = config_map("a");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    server.create("configmaps", Some("web"), held).unwrap();
    server.delete("namespaces", None, "web").unwrap();
    let direct = server.create("configmaps", Some("web"), config_map("b")).unwrap_err();
    let sent = post(&server, "/api/v1/namespaces/web/configmaps", &config_map("b")).await;
    assert_eq!((direct.code, direct.message.as_str()), (sent.code, sent.json()["message"].as_str().unwrap()));
    assert_eq!(direct.code, 403);
}
