//! Faults of the whole server, and of the objects themselves.

use super::*;
use http_body_util::BodyExt;
use kube_embedded_apiserver::History;
use serde_json::json;

/// Returns the requests so far, as `verb resource`.
fn asked(server: &ApiServer) -> Vec<String> {
    server.requests().iter().map(|record| format!("{} {}", record.verb, record.resource)).collect()
}

pub(super) async fn the_counter_starts_again() {
    let server = two();
    let saved = server.save();
    let future = put_config_map(&server, "c");
    put_config_map(&server, "d");
    server.restore(&saved);
    assert_eq!(on_record(&server), ["restore"]);
    assert!(server.revision() < future);
    let mut watch = Watch::open(&server, &format!("{WATCH}&resourceVersion={future}")).await;
    assert_eq!(watch.code, 200);
    put_config_map(&server, "e");
    assert!(watch.is_silent_for(200 * SECOND).await);
}

pub(super) async fn a_restart_loses_history() {
    for (history, expected) in [(History::Kept, "ADDED b"), (History::Lost, "ERROR")] {
        let server = two();
        let (_, items) = server.list("configmaps").unwrap();
        let mut watch = Watch::open(&server, WATCH).await;
        assert_eq!([watch.told().await, watch.told().await], ["ADDED a", "ADDED b"]);
        server.restart(history);
        assert!(ends_initial_events(&watch.next().await));
        assert!(matches!(watch.next_within(SECOND).await, Seen::Broken(_)));
        let path = format!("{WATCH}&resourceVersion={}", version(&items[0]));
        assert_eq!(Watch::open(&server, &path).await.told().await, expected);
        assert_eq!(on_record(&server), ["restart"]);
    }
}

pub(super) async fn the_server_restarts_between_two_pages() {
    let server = two();
    let first = get(&server, &format!("{CONFIG_MAPS}?limit=1")).await.json();
    put_config_map(&server, "c");
    server.restart(History::Lost);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let refused = get(&server, &format!("{CONFIG_MAPS}?limit=1&continue={token}")).await;
    assert_eq!((refused.code, &refused.json()["reason"]), (410, &json!("Expired")));
    let onward = refused.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    assert_eq!(get(&server, &format!("{CONFIG_MAPS}?continue={onward}")).await.names(), ["b", "c"]);
    assert_eq!(on_record(&server), ["restart"]);
}

pub(super) async fn a_watch_is_flooded_and_closed() {
    let server = ApiServer::builder().seed(1).max_watch_lag(100).build();
    let start = server.revision();
    let path = format!("{WATCH}&resourceVersion={start}");
    let mut watch = Watch::open(&server, &path).await;
    for number in 0..101 {
        put_config_map(&server, &format!("n{number}"));
    }
    assert!(watch.until_end().await.is_empty());
    assert_eq!(on_record(&server), ["slow_watch"]);
    // A watch that resumes receives everything that it missed.
    let mut again = Watch::open(&server, &path).await;
    for number in 0..101 {
        assert_eq!(again.told().await, format!("ADDED n{number}"));
    }
    let server = ApiServer::builder().seed(1).history(50).build();
    let path = format!("{WATCH}&resourceVersion={}", server.revision());
    let mut watch = Watch::open(&server, &path).await;
    for number in 0..101 {
        put_config_map(&server, &format!("n{number}"));
    }
    assert!(watch.until_end().await.is_empty());
    assert_eq!(on_record(&server), ["slow_watch"]);
    assert_eq!(Watch::open(&server, &path).await.told().await, "ERROR");
}

pub(super) async fn an_object_is_huge() {
    for megabytes in [1, 17] {
        let server = two();
        let mut watch = Watch::open(&server, &format!("{WATCH}&resourceVersion={}", server.revision())).await;
        let data = json!({"x": "x".repeat(megabytes << 20)});
        server.create("configmaps", Some("default"), json!({"metadata": {"name": "huge"}, "data": data})).unwrap();
        assert_eq!(watch.next().await["object"]["data"]["x"].as_str().unwrap().len(), megabytes << 20);
        assert_eq!(asked(&server), ["watch configmaps"]);
    }
    // A client cannot write such an object, because bodies have a limit.
    let body = json!({"metadata": {"name": "huge"}, "data": {"x": "x".repeat(4 << 20)}});
    assert_eq!(post(&server(), CONFIG_MAPS, &body).await.code, 413);
}

pub(super) async fn a_list_is_huge_and_slow() {
    let server = two();
    let data = json!({"x": "x".repeat(3 << 20)});
    for number in 0..34 {
        let object = json!({"metadata": {"name": format!("n{number}")}, "data": data});
        server.create("configmaps", Some("default"), object).unwrap();
    }
    server.faults().add(Fault::new(Action::Drip { bytes: 1 << 20, pause: SECOND }));
    let started = tokio::time::Instant::now();
    let mut body = server.clone().oneshot(request("GET", CONFIG_MAPS, None)).await.unwrap().into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.unwrap().data_ref().unwrap().len();
    }
    assert!(bytes > 100 << 20 && started.elapsed() > 100 * SECOND, "{bytes} bytes in {:?}", started.elapsed());
    assert!(server.faults().count("drip") > 100);
}

pub(super) async fn the_clock_is_wrong() {
    let server = two();
    server.set_clock_skew(-3600);
    let created = post(&server, CONFIG_MAPS, &config_map("c")).await;
    assert_eq!(created.json()["metadata"]["creationTimestamp"], "2025-12-31T23:00:00Z");
    assert_eq!(created.headers["date"], "Wed, 31 Dec 2025 23:00:00 GMT");
    assert_eq!(on_record(&server), ["clock_skew"]);
}

pub(super) async fn a_crd_is_deleted_and_created_again() {
    const WIDGETS: &str = "/apis/demo.example.com/v1/namespaces/default/widgets";
    const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.demo.example.com";
    let server = server();
    let definition = server.get("customresourcedefinitions", None, "widgets.demo.example.com").unwrap();
    let first = server.create("widgets", Some("default"), json!({"metadata": {"name": "w"}})).unwrap();
    let path = format!("{WIDGETS}?watch=1&resourceVersion={}", version(&first));
    let mut watch = Watch::open(&server, &path).await;
    assert_eq!(delete(&server, DEFINITION).await.code, 200);
    assert_eq!(watch.until_end().await.iter().map(told).collect::<Vec<_>>(), ["DELETED w"]);
    assert_eq!(get(&server, WIDGETS).await.text, "404 page not found\n");
    let again = json!({"metadata": {"name": "widgets.demo.example.com"}, "spec": definition["spec"]});
    let definitions = DEFINITION.rsplit_once('/').unwrap().0;
    assert_eq!(post(&server, definitions, &again).await.code, 201);
    tokio::time::sleep(SECOND).await;
    let second = server.create("widgets", Some("default"), json!({"metadata": {"name": "w"}})).unwrap();
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    assert_eq!(Watch::open(&server, &path).await.told().await, "ERROR");
    let definitions = "customresourcedefinitions.apiextensions.k8s.io";
    let expected = [&format!("delete {definitions}"), "other ", &format!("create {definitions}")];
    assert_eq!(asked(&server)[1..4], expected);
}

pub(super) async fn a_namespace_is_deleted() {
    let server = two();
    server.create("namespaces", None, json!({"metadata": {"name": "web"}})).unwrap();
    server.create("configmaps", Some("web"), config_map("x")).unwrap();
    let inside = "/api/v1/namespaces/web/configmaps";
    let mut watch = Watch::open(&server, &format!("{inside}?watch=1&resourceVersion={}", server.revision())).await;
    assert_eq!(delete(&server, "/api/v1/namespaces/web").await.code, 200);
    assert_eq!(watch.told().await, "DELETED x");
    let list = get(&server, inside).await;
    assert_eq!((list.code, list.names().len()), (200, 0));
    assert_eq!(asked(&server), ["watch configmaps", "delete namespaces", "list configmaps"]);
}

pub(super) async fn an_object_leaves_a_selector_and_matches_again() {
    let server = two();
    let label = async |value: &str| {
        merge(&server, &format!("{CONFIG_MAPS}/a"), &json!({"metadata": {"labels": {"t": value}}})).await.json()
    };
    let first = label("1").await;
    let path = format!("{WATCH}&labelSelector=t%3D1&resourceVersion={}", version(&first));
    let mut watch = Watch::open(&server, &path).await;
    let (off, on) = (label("2").await, label("1").await);
    let (gone, back) = (watch.next().await, watch.next().await);
    assert_eq!([told(&gone), told(&back)], ["DELETED a", "ADDED a"]);
    assert_eq!([version(&gone["object"]), version(&back["object"])], [version(&off), version(&on)]);
    assert_eq!(gone["object"]["metadata"]["labels"]["t"], "1");
    assert_eq!(gone["object"]["metadata"]["uid"], back["object"]["metadata"]["uid"]);
    assert_eq!(asked(&server), ["patch configmaps", "watch configmaps", "patch configmaps", "patch configmaps"]);
}

pub(super) async fn a_name_is_taken_by_another_object() {
    let server = two();
    let path = format!("{CONFIG_MAPS}/a");
    let (start, before) = (server.revision(), get(&server, &path).await.json());
    assert_eq!(delete(&server, &path).await.code, 200);
    let after = post(&server, CONFIG_MAPS, &config_map("a")).await.json();
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
    server.compact();
    // A client whose version has expired must list, and finds another object with the same name.
    assert_eq!(Watch::open(&server, &format!("{WATCH}&resourceVersion={start}")).await.told().await, "ERROR");
    assert_eq!(get(&server, CONFIG_MAPS).await.json()["items"][0]["metadata"]["uid"], after["metadata"]["uid"]);
    assert_eq!(on_record(&server), ["compact"]);
    assert_eq!(asked(&server)[1..3], ["delete configmaps", "create configmaps"]);
}
