use crate::support::*;
use kube_embedded_apiserver::ApiServer;
use serde_json::json;
use std::time::Duration;
use tower::ServiceExt;

const SECOND: Duration = Duration::from_secs(1);

fn path(query: &str) -> String {
    format!("{CONFIG_MAPS}?watch=true&{query}")
}

#[tokio::test(start_paused = true)]
async fn a_watch_sends_the_events_after_its_version() {
    let server = server();
    let start = put_config_map(&server, "before");
    let mut watch = Watch::open(&server, &path(&format!("resourceVersion={start}"))).await;
    put_config_map(&server, "a");
    let mut changed = config_map("a");
    changed["data"]["k"] = json!("w");
    server.update("configmaps", Some("default"), changed.clone()).unwrap();
    server.update("configmaps", Some("default"), changed).unwrap();
    server.delete("configmaps", Some("default"), "a").unwrap();
    let events = [watch.next().await, watch.next().await, watch.next().await];
    assert_eq!(events.each_ref().map(told), ["ADDED a", "MODIFIED a", "DELETED a"]);
    let versions = events.each_ref().map(|event| version(&event["object"]));
    assert_eq!(versions, [start + 1, start + 2, start + 3]);
    assert_eq!(events[2]["object"]["data"]["k"], "w");
    assert!(watch.is_silent_for(10 * SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_tables_shows_the_age_at_the_time_of_the_event() {
    let server = server();
    let mut asked = request("GET", &path("resourceVersion=0"), None);
    asked.headers_mut().insert("accept", "application/json;as=Table;g=meta.k8s.io;v=v1".parse().unwrap());
    let mut watch = Watch::of(server.clone().oneshot(asked).await.unwrap());
    tokio::time::sleep(60 * SECOND).await;
    put_config_map(&server, "a");
    tokio::time::sleep(5 * SECOND).await;
    let cells = watch.next().await["object"]["rows"][0]["cells"].clone();
    assert_eq!(cells, json!(["a", 1, "5s"]));
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_version_begins_with_every_object_and_marks_their_end() {
    let server = server();
    put_config_map(&server, "b");
    let last = put_config_map(&server, "a");
    for query in ["allowWatchBookmarks=true", "resourceVersion=0&allowWatchBookmarks=true"] {
        let mut watch = Watch::open(&server, &path(query)).await;
        assert_eq!([watch.told().await, watch.told().await], ["ADDED a", "ADDED b"]);
        let end = watch.next().await;
        assert!(ends_initial_events(&end));
        assert_eq!(version(&end["object"]), last);
    }
    let mut unmarked = Watch::open(&server, &path("sendInitialEvents=true&resourceVersionMatch=NotOlderThan")).await;
    assert_eq!([unmarked.told().await, unmarked.told().await], ["ADDED a", "ADDED b"]);
    assert!(unmarked.is_silent_for(100 * SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn history_is_limited_by_bytes_and_by_age() {
    let small = ApiServer::builder().history_bytes(1_000).build();
    let brief = ApiServer::builder().history_age(300 * SECOND).build();
    for server in [small, brief] {
        let start = server.revision();
        for name in ["a", "b"] {
            let data = json!({"text": "x".repeat(600)});
            server.create("configmaps", Some("default"), json!({"metadata": {"name": name}, "data": data})).unwrap();
        }
        tokio::time::sleep(301 * SECOND).await;
        let mut watch = Watch::open(&server, &path(&format!("resourceVersion={start}"))).await;
        assert_eq!(watch.next().await["object"]["code"], 410);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_written_during_the_initial_events_is_lost_or_shown_twice() {
    let server = server();
    for index in 0..2_000 {
        put_config_map(&server, &format!("n{index:04}"));
    }
    let mut watch = Watch::open(&server, &path("allowWatchBookmarks=true")).await;
    assert_eq!(watch.told().await, "ADDED n0000");
    put_config_map(&server, "late");
    server.delete("configmaps", Some("default"), "n1999").unwrap();
    let mut seen = 1;
    loop {
        let event = watch.next().await;
        if ends_initial_events(&event) {
            break;
        }
        seen += 1;
    }
    assert_eq!(seen, 2_000);
    assert_eq!([watch.told().await, watch.told().await], ["ADDED late", "DELETED n1999"]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_collection_still_marks_the_end() {
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1";
    let mut watch = Watch::open(&server(), &path(query)).await;
    let events = watch.until_end().await;
    assert_eq!(events.len(), 1);
    assert!(ends_initial_events(&events[0]));
}

#[tokio::test(start_paused = true)]
async fn a_compacted_version_is_an_error_event() {
    let server = server();
    let old = put_config_map(&server, "a");
    let horizon = put_config_map(&server, "b");
    server.compact();
    let mut watch = Watch::open(&server, &path(&format!("resourceVersion={old}"))).await;
    assert_eq!(watch.code, 200);
    let events = watch.until_end().await;
    let expected = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 410,
        "message": format!("too old resource version: {old} ({horizon})"), "reason": "Expired"});
    assert_eq!(events, [json!({"type": "ERROR", "object": expected})]);
    let mut watch = Watch::open(&server, &path(&format!("resourceVersion={horizon}"))).await;
    put_config_map(&server, "c");
    assert_eq!(watch.told().await, "ADDED c");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_up_to_date_survives_compaction() {
    let server = server();
    let start = server.revision();
    let mut watch = Watch::open(&server, &path(&format!("resourceVersion={start}"))).await;
    put_config_map(&server, "a");
    assert_eq!(watch.told().await, "ADDED a");
    server.create("secrets", Some("default"), json!({"metadata": {"name": "s"}})).unwrap();
    server.compact();
    assert!(watch.is_silent_for(SECOND).await);
    put_config_map(&server, "b");
    assert_eq!(watch.told().await, "ADDED b");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fell_behind_ends_and_its_version_has_expired() {
    let server = ApiServer::builder().seed(1).history(10).build();
    let start = server.revision();
    let mut watch = Watch::open(&server, &path(&format!("resourceVersion={start}"))).await;
    for index in 0..20 {
        put_config_map(&server, &format!("n{index}"));
    }
    assert!(watch.until_end().await.is_empty());
    let events = Watch::open(&server, &path(&format!("resourceVersion={start}"))).await.until_end().await;
    assert_eq!(events[0]["object"]["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn a_slow_watch_is_closed_when_a_lag_is_set() {
    let server = ApiServer::builder().seed(1).max_watch_lag(5).build();
    let start = server.revision();
    let mut watch = Watch::open(&server, &path(&format!("resourceVersion={start}"))).await;
    for index in 0..6 {
        put_config_map(&server, &format!("n{index}"));
    }
    assert!(watch.until_end().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_future_version_is_silent_until_the_server_reaches_it() {
    let server = server();
    let future = server.revision() + 2;
    let mut watch = Watch::open(&server, &path(&format!("resourceVersion={future}"))).await;
    put_config_map(&server, "a");
    put_config_map(&server, "b");
    assert!(watch.is_silent_for(10 * SECOND).await);
    put_config_map(&server, "c");
    assert_eq!(watch.told().await, "ADDED c");
}

#[tokio::test(start_paused = true)]
async fn initial_events_wait_for_a_future_version_and_then_end_with_an_error_event() {
    let server = server();
    let started = tokio::time::Instant::now();
    let query =
        format!("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion={}", server.revision() + 9);
    let events = Watch::open(&server, &path(&query)).await.until_end().await;
    assert_eq!(started.elapsed(), 3 * SECOND);
    assert_eq!(events[0]["object"]["code"], 504);
    assert_eq!(events[0]["object"]["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}

#[tokio::test(start_paused = true)]
async fn a_selector_makes_objects_enter_and_leave() {
    let server = server();
    let start = server.revision();
    let query = format!("resourceVersion={start}&labelSelector=t%3D1");
    let mut watch = Watch::open(&server, &path(&query)).await;
    let labelled = |value: &str| {
        let mut object = config_map("a");
        object["metadata"]["labels"] = json!({"t": value});
        object
    };
    server.create("configmaps", Some("default"), labelled("1")).unwrap();
    server.update("configmaps", Some("default"), labelled("2")).unwrap();
    server.update("configmaps", Some("default"), labelled("3")).unwrap();
    server.update("configmaps", Some("default"), labelled("1")).unwrap();
    let (added, left, back) = (watch.next().await, watch.next().await, watch.next().await);
    assert_eq!([&added, &left, &back].map(told), ["ADDED a", "DELETED a", "ADDED a"]);
    assert_eq!(left["object"]["metadata"]["labels"]["t"], "1");
    assert_eq!(version(&left["object"]), start + 2);
    assert_eq!(version(&back["object"]), start + 4);
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_one_name_or_namespace_receives_no_other_events() {
    let server = server();
    let start = server.revision();
    let by_name = format!("/api/v1/configmaps?watch=1&resourceVersion={start}&fieldSelector=metadata.name%3Da");
    let mut by_name = Watch::open(&server, &by_name).await;
    let mut by_namespace = Watch::open(&server, &path(&format!("resourceVersion={start}"))).await;
    server.create("configmaps", Some("other"), config_map("b")).unwrap();
    server.create("configmaps", Some("other"), config_map("a")).unwrap();
    put_config_map(&server, "c");
    assert_eq!(by_name.told().await, "ADDED a");
    assert_eq!(by_namespace.told().await, "ADDED c");
    assert!(by_name.is_silent_for(SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_arrive_in_time_and_only_for_new_versions() {
    let server = ApiServer::builder().seed(1).bookmark_interval(10 * SECOND).build();
    let start = server.revision();
    let query = format!("resourceVersion={start}&allowWatchBookmarks=true&timeoutSeconds=60");
    let started = tokio::time::Instant::now();
    let mut watch = Watch::open(&server, &path(&query)).await;
    assert!(watch.is_silent_for(15 * SECOND).await);
    server.create("secrets", Some("default"), json!({"metadata": {"name": "elsewhere"}})).unwrap();
    let bookmark = watch.next().await;
    assert_eq!((told(&bookmark), version(&bookmark["object"])), ("BOOKMARK".into(), start + 1));
    assert_eq!(started.elapsed(), 20 * SECOND);
    let rest = watch.until_end().await;
    // Bookmarks at 30, 40 and 50 seconds, and two seconds before the end.
    assert_eq!(rest.len(), 4);
    assert_eq!(started.elapsed(), 60 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_two_seconds_before_the_end_lets_the_client_resume() {
    let server = server();
    let start = server.revision();
    let query = format!("resourceVersion={start}&allowWatchBookmarks=true&timeoutSeconds=6");
    let started = tokio::time::Instant::now();
    let mut watch = Watch::open(&server, &path(&query)).await;
    server.create("secrets", Some("default"), json!({"metadata": {"name": "elsewhere"}})).unwrap();
    assert_eq!(watch.told().await, "BOOKMARK");
    assert_eq!(started.elapsed(), 4 * SECOND);
    assert!(watch.until_end().await.is_empty());
    assert_eq!(started.elapsed(), 6 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn without_a_timeout_a_watch_lasts_between_half_an_hour_and_one() {
    let started = tokio::time::Instant::now();
    let mut watch = Watch::open(&server(), &path("resourceVersion=0")).await;
    assert!(watch.until_end().await.is_empty());
    assert!((1800..3600).contains(&started.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn disconnected_watches_break_and_new_ones_work() {
    let server = server();
    let mut watch = Watch::open(&server, &path("allowWatchBookmarks=true")).await;
    assert!(ends_initial_events(&watch.next().await));
    assert_eq!(server.open_watches(), 1);
    server.disconnect_watches();
    assert!(matches!(watch.next_within(SECOND).await, Seen::Broken(_)));
    drop(watch);
    assert_eq!(server.open_watches(), 0);
    let mut watch = Watch::open(&server, &path("allowWatchBookmarks=true")).await;
    assert!(ends_initial_events(&watch.next().await));
}

#[tokio::test(start_paused = true)]
async fn an_older_state_can_be_restored_and_its_counter_goes_back() {
    let server = server();
    put_config_map(&server, "a");
    let saved = server.save();
    let before = server.revision();
    put_config_map(&server, "b");
    let mut watch = Watch::open(&server, &path("")).await;
    assert_eq!(watch.told().await, "ADDED a");
    server.restore(&saved);
    assert_eq!(server.revision(), before);
    assert_eq!(server.list("configmaps").unwrap().1.len(), 1);
    assert_eq!(watch.told().await, "ADDED b");
    assert!(matches!(watch.next_within(SECOND).await, Seen::Broken(_)));
    assert_eq!(put_config_map(&server, "c"), before + 1);
}

#[tokio::test(start_paused = true)]
async fn all_watches_share_one_encoding_of_an_event() {
    let server = server();
    let start = server.revision();
    let mut one = Watch::open(&server, &path(&format!("resourceVersion={start}"))).await;
    let mut two = Watch::open(&server, &path(&format!("resourceVersion={start}&labelSelector=!none"))).await;
    put_config_map(&server, "a");
    server.delete("configmaps", Some("default"), "a").unwrap();
    for _ in 0..2 {
        // The bytes are not only equal, but at the same address.
        assert_eq!(one.bytes().await.as_ptr(), two.bytes().await.as_ptr());
    }
}

#[tokio::test(start_paused = true)]
async fn two_watches_see_the_same_events_in_the_same_order() {
    let server = server();
    let start = server.revision();
    let mut one = Watch::open(&server, &path(&format!("resourceVersion={start}"))).await;
    let mut two = Watch::open(&server, &path(&format!("resourceVersion={start}"))).await;
    for index in 0..100 {
        put_config_map(&server, &format!("n{}", index));
    }
    for _ in 0..100 {
        assert_eq!(one.next().await, two.next().await);
    }
}

#[tokio::test(start_paused = true)]
async fn an_older_server_refuses_initial_events_and_sends_them_by_default() {
    let server = ApiServer::builder().seed(1).streaming_lists(false).build();
    put_config_map(&server, "a");
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    assert_eq!(get(&server, &path(query)).await.code, 422);
    let mut watch = Watch::open(&server, &path("resourceVersion=0&allowWatchBookmarks=true")).await;
    assert_eq!(watch.told().await, "ADDED a");
    assert!(watch.is_silent_for(SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn other_versions_of_kubernetes_can_be_emulated() {
    for (minor, streams, null_creation) in [(30, false, true), (32, true, true), (33, false, true), (34, true, false)] {
        let server = ApiServer::builder().seed(1).emulate(minor).bookmark_interval(SECOND).build();
        assert_eq!(get(&server, "/version").await.json()["minor"], minor.to_string());
        let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1";
        assert_eq!(get(&server, &path(query)).await.code, if streams { 200 } else { 422 }, "1.{minor}");
        let start = server.revision();
        let query = format!("resourceVersion={start}&allowWatchBookmarks=1&timeoutSeconds=9");
        let mut watch = Watch::open(&server, &path(&query)).await;
        server.create("secrets", Some("default"), json!({"metadata": {"name": "s"}})).unwrap();
        let bookmark = watch.next().await;
        assert_eq!(bookmark["object"]["metadata"].get("creationTimestamp").is_some(), null_creation, "1.{minor}");
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_watches_are_refused_in_one_line() {
    let server = server();
    for (query, code) in [("sendInitialEvents=true", 422), ("resourceVersion=abc", 500), ("labelSelector=a%20b", 400)] {
        let refused = get(&server, &path(query)).await;
        assert_eq!(refused.code, code, "{query}");
        assert_eq!(refused.text.lines().count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_watch_gets_bookmarks_while_the_server_renews_its_lease() {
    let server = ApiServer::builder().seed(1).lease_renewal(10 * SECOND).build();
    let mut last = server.revision();
    let query = format!("allowWatchBookmarks=true&resourceVersion={last}");
    let mut watch = Watch::open(&server, &path(&query)).await;
    for _ in 0..3 {
        let Seen::Event(bookmark) = watch.next_within(61 * SECOND).await else { panic!("no bookmark in a minute") };
        assert_eq!(told(&bookmark), "BOOKMARK");
        assert!(version(&bookmark["object"]) > last);
        last = version(&bookmark["object"]);
    }
    let leases = server.list("leases.coordination.k8s.io").unwrap().1;
    assert_eq!((leases.len(), version(&leases[0])), (1, server.revision()), "one lease, and the last write is to it");

    let idle = crate::support::server();
    let mut watch =
        Watch::open(&idle, &path(&format!("allowWatchBookmarks=true&resourceVersion={}", idle.revision()))).await;
    assert!(watch.is_silent_for(300 * SECOND).await, "without renewals the version stays, and there is no bookmark");
}
