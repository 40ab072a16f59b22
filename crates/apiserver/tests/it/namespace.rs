use crate::support::*;
use kube_embedded_apiserver::ApiServer;
use serde_json::json;
use std::time::Duration;

const NAMESPACES: &str = "/api/v1/namespaces";

#[tokio::test(start_paused = true)]
async fn a_namespace_is_emptied_before_it_is_deleted() {
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
async fn a_large_namespace_is_emptied_in_batches() {
    let server = ApiServer::builder().seed(1).settle_delay(Duration::ZERO).build();
    for number in 0..1_000 {
        server.create("configmaps", Some("web"), config_map(&format!("c{number}"))).unwrap();
    }
    delete(&server, &format!("{NAMESPACES}/web")).await;
    // The server answers other requests in between, which see the progress.
    let mut sizes = Vec::new();
    while sizes.last() != Some(&0) {
        sizes.push(get(&server, "/api/v1/namespaces/web/configmaps").await.names().len());
        tokio::task::yield_now().await;
    }
    assert!(sizes.iter().any(|size| (1..1_000).contains(size)), "{sizes:?}");
    assert_eq!(get(&server, &format!("{NAMESPACES}/web")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn content_with_finalizers_keeps_its_namespace() {
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
async fn other_finalizers_keep_a_namespace_and_nothing_is_written_without_a_change() {
    let server = server();
    let held = json!({"metadata": {"name": "web", "finalizers": ["example.com/own"]}, "spec": {"finalizers": ["example.com/content"]}});
    assert_eq!(post(&server, NAMESPACES, &held).await.code, 201);
    let path = format!("{NAMESPACES}/web");
    delete(&server, &path).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let emptied = get(&server, &path).await.json();
    assert_eq!(emptied["spec"]["finalizers"], json!(["example.com/content"]));
    for _ in 0..2 {
        delete(&server, &path).await;
        merge(&server, &path, &json!({"metadata": {"labels": {"a": "b"}}})).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    assert_eq!(version(&get(&server, &path).await.json()), version(&emptied) + 1);
    merge(&server, &path, &json!({"metadata": {"finalizers": null}})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let mut last = get(&server, &path).await.json();
    last["spec"]["finalizers"] = json!([]);
    assert_eq!(put(&server, &format!("{path}/finalize"), &last).await.code, 200);
    assert_eq!(get(&server, &path).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn some_namespaces_cannot_be_deleted() {
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
fn without_a_runtime_a_namespace_is_deleted_at_once() {
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
    assert_eq!(version(&created), start + 2, "the namespace is created first");
    let made = spaces.next().await;
    assert_eq!((told(&made), version(&made["object"])), ("ADDED web".to_owned(), start + 1));
    let shown = get(&server, &format!("{NAMESPACES}/web")).await.json();
    assert_eq!((&shown["status"]["phase"], &shown["kind"]), (&json!("Active"), &json!("Namespace")));
    assert_eq!(shown["metadata"]["labels"]["kubernetes.io/metadata.name"], "web");
    assert!(shown["metadata"]["uid"].is_string());
    assert_eq!(post(&server, inside, &config_map("b")).await.code, 201);
    server.create("configmaps", Some("web"), config_map("c")).unwrap();
    assert_eq!(server.revision(), start + 4, "the namespace is created once");
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
async fn no_object_can_be_created_in_a_terminating_namespace() {
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

#[test]
fn other_requests_are_answered_while_a_large_namespace_is_emptied() {
    const MANY: usize = 10_000;
    let server = server();
    for index in 0..MANY {
        server.create("configmaps", Some("web"), config_map(&format!("m{index:05}"))).unwrap();
    }
    let emptied = server.clone();
    let emptying = std::thread::spawn(move || emptied.delete("namespaces", None, "web").unwrap());
    let last = format!("m{:05}", MANY - 1);
    let is_there = |name: &str| server.get("configmaps", Some("web"), name).is_ok();
    let mut halfway = 0;
    while is_there(&last) {
        halfway += usize::from(!is_there("m00000") && is_there(&last));
    }
    emptying.join().unwrap();
    assert!(halfway > 0, "no other request saw the progress");
    assert_eq!(server.get("namespaces", None, "web").unwrap_err().code, 404);
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_a_namespace_continues_after_a_restore() {
    let server = server();
    server.create("configmaps", Some("web"), config_map("a")).unwrap();
    delete(&server, &format!("{NAMESPACES}/web")).await;
    let saved = server.save();
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.restore(&saved);
    assert_eq!(get(&server, &format!("{NAMESPACES}/web")).await.json()["status"]["phase"], "Terminating");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(get(&server, &format!("{NAMESPACES}/web")).await.code, 404);
    // Without a runtime the server cannot delay the deletion.
    std::thread::spawn(move || {
        server.restore(&saved);
        assert_eq!(server.get("namespaces", None, "web").unwrap_err().code, 404);
    })
    .join()
    .unwrap();
}

#[test]
fn many_objects_that_are_held_do_not_keep_a_namespace_busy() {
    const MANY: usize = 20_000;
    let server = server();
    for index in 0..MANY {
        let mut held = config_map(&format!("m{index:05}"));
        held["metadata"]["finalizers"] = json!(["example.com/hold"]);
        server.create("configmaps", Some("web"), held).unwrap();
    }
    let started = std::time::SystemTime::now();
    server.delete("namespaces", None, "web").unwrap();
    let took = started.elapsed().unwrap();
    assert!(took < Duration::from_secs(20), "a walk for each piece took {took:?}");
    let (_, left) = server.list("configmaps").unwrap();
    assert!(left.len() == MANY && left.iter().all(|object| !object["metadata"]["deletionTimestamp"].is_null()));
}
