//! Faults of watches.

use super::*;
use serde_json::json;

pub(super) async fn an_event_is_garbage_or_of_an_unknown_type() {
    check_watch(Action::CorruptByte(5), &["garbage", "ADDED b", END, "ADDED c", "bookmark"]).await;
    let odd = Action::RetypeEvent { nth: 1, to: "FLIPPED" };
    check_watch(odd, &["FLIPPED a", "ADDED b", END, "ADDED c", "bookmark"]).await;
    let garbage = Action::InsertLine { after_events: 1, line: "<html>".into() };
    check_watch(garbage, &["ADDED a", "garbage", "ADDED b", END, "ADDED c", "bookmark"]).await;
}

pub(super) async fn a_watch_ends_right_after_its_headers() {
    check_watch(Action::EndAfterEvents(0), &["end"]).await;
}

pub(super) async fn a_watch_ends_before_its_initial_events_do() {
    check_watch(Action::EndAfterEvents(2), &["ADDED a", "ADDED b", "end"]).await;
    check_watch(Action::EndAfterBytes(40), &["end within an event"]).await;
}

pub(super) async fn the_end_of_the_initial_events_is_withheld() {
    check_watch(Action::WithholdEndBookmark, &["ADDED a", "ADDED b", "ADDED c", "bookmark"]).await;
}

pub(super) async fn initial_events_are_refused() {
    let asking = format!("{WATCH}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    let server = two();
    server.faults().add(Fault::status(422).query_contains("sendInitialEvents=true"));
    assert_eq!(Watch::open(&server, &asking).await.code, 422);
    assert_eq!(on_record(&server), ["status"]);
    assert_eq!(Watch::open(&server, WATCH).await.code, 200);
    // A server without this feature answers with its own error.
    let older = ApiServer::builder().streaming_lists(false).build();
    assert_eq!(get(&older, &asking).await.json()["details"]["causes"][0]["field"], "sendInitialEvents");
    assert_eq!(older.requests()[0].status, Some(422));
}

pub(super) async fn a_version_expires_within_the_stream() {
    check_watch(Action::ErrorEvent { code: 410, after_events: 1 }, &["ADDED a", "ERROR", "end"]).await;
    let server = two();
    let old = server.revision() - 1;
    server.compact();
    let events = Watch::open(&server, &format!("{WATCH}&resourceVersion={old}")).await.until_end().await;
    assert_eq!((events.len(), &events[0]["object"]["reason"]), (1, &json!("Expired")));
    assert_eq!(on_record(&server), ["compact"]);
}

pub(super) async fn a_version_expires_with_a_status_code() {
    check_watch(Action::Status { code: 410, retry_after: None }, &["410"]).await;
}

pub(super) async fn a_watch_fails_to_start() {
    for code in [500, 502, 503, 504] {
        check_watch(Action::Status { code, retry_after: None }, &[&code.to_string()]).await;
    }
}

pub(super) async fn the_server_fails_within_the_stream() {
    check_watch(Action::ErrorEvent { code: 500, after_events: 0 }, &["ERROR", "end"]).await;
}

pub(super) async fn lists_work_and_watches_are_refused() {
    for code in [403, 404, 500] {
        let server = two();
        server.faults().add(Fault::status(code).verb(Verb::Watch));
        for _ in 0..3 {
            assert_eq!(get(&server, CONFIG_MAPS).await.names(), ["a", "b"]);
            assert_eq!(watched(&server).await, [code.to_string()]);
        }
        assert_eq!(on_record(&server), ["status"; 3]);
    }
}

pub(super) async fn an_event_is_sent_twice() {
    check_watch(Action::DuplicateEvent(1), &["ADDED a", "ADDED a", "ADDED b", END, "ADDED c", "bookmark"]).await;
}

pub(super) async fn an_older_state_is_sent_after_a_newer_one() {
    let server = two();
    server.faults().add(Fault::new(Action::SwapEvents(1)));
    let mut watch = Watch::open(&server, &format!("{WATCH}&resourceVersion={}", server.revision())).await;
    for text in ["x", "y"] {
        server.patch("configmaps", Some("default"), "a", json!({"data": {"k": text}})).unwrap();
    }
    let (newer, older) = (watch.next().await, watch.next().await);
    assert_eq!((&newer["object"]["data"]["k"], &older["object"]["data"]["k"]), (&json!("y"), &json!("x")));
    assert!(version(&newer["object"]) > version(&older["object"]));
    assert_eq!(on_record(&server), ["swap_events"]);
}

pub(super) async fn events_have_a_wrong_type() {
    let unknown = |to| Action::RetypeEvent { nth: 4, to };
    check_watch(unknown("DELETED"), &["ADDED a", "ADDED b", END, "DELETED c", "bookmark"]).await;
    check_watch(unknown("MODIFIED"), &["ADDED a", "ADDED b", END, "MODIFIED c", "bookmark"]).await;
    let server = two();
    server.faults().add(Fault::new(Action::RetypeEvent { nth: 1, to: "ADDED" }));
    let mut watch = Watch::open(&server, &format!("{WATCH}&resourceVersion={}", server.revision())).await;
    server.patch("configmaps", Some("default"), "a", json!({"data": {"k": "x"}})).unwrap();
    assert_eq!(watch.told().await, "ADDED a");
    assert_eq!(on_record(&server), ["retype_event"]);
}

pub(super) async fn an_event_is_missing() {
    check_watch(Action::DropEvent(2), &["ADDED a", END, "ADDED c", "bookmark"]).await;
}

pub(super) async fn a_watch_receives_only_bookmarks() {
    let server = two();
    let mut watch = Watch::open(&server, &format!("{WATCH}&resourceVersion={}", server.revision())).await;
    server.create("namespaces", None, json!({"metadata": {"name": "elsewhere"}})).unwrap();
    let first = watch.next().await;
    assert_eq!((&first["type"], version(&first["object"])), (&json!("BOOKMARK"), server.revision()));
    assert_eq!(watch.told().await, "BOOKMARK");
    // No fault causes this. The watch is recorded, and no object that it selects was written.
    assert_eq!((server.requests()[0].verb, on_record(&server).len()), (Verb::Watch, 0));
}

pub(super) async fn bookmarks_show_odd_versions() {
    for odd in ["1", ""] {
        let server = two();
        server.faults().add(Fault::new(Action::BookmarkVersion(odd.into())));
        let mut watch = Watch::open(&server, WATCH).await;
        assert_eq!([watch.told().await, watch.told().await], ["ADDED a", "ADDED b"]);
        assert_eq!(watch.next().await["object"]["metadata"]["resourceVersion"], odd);
        assert_eq!(on_record(&server), ["bookmark_version"]);
    }
}

pub(super) async fn a_connection_is_open_and_silent() {
    check_watch(Action::StallAfterBytes(40), &[]).await;
    let server = two();
    server.faults().add(Fault::new(Action::NoAnswer));
    assert!(tokio::time::timeout(3600 * SECOND, get(&server, CONFIG_MAPS)).await.is_err());
    assert_eq!(on_record(&server), ["no_answer"]);
}

pub(super) async fn bytes_arrive_one_by_one() {
    let server = two();
    server.faults().add(Fault::new(Action::Drip { bytes: 1, pause: SECOND }));
    let started = tokio::time::Instant::now();
    let list = get(&server, CONFIG_MAPS).await;
    assert_eq!((started.elapsed().as_secs(), list.names().len()), (list.text.len() as u64, 2));
    assert_eq!(server.faults().count("drip"), list.text.len());
    let slow = Action::Drip { bytes: 10_000, pause: SECOND };
    check_watch(slow, &["ADDED a", "ADDED b", END, "ADDED c", "bookmark"]).await;
}

pub(super) async fn an_object_is_of_another_kind_or_lacks_metadata() {
    let stranger = json!({"kind": "Strange", "apiVersion": "v1", "metadata": {"name": "s"}});
    for (object, seen) in [(stranger, "ADDED s"), (json!({"kind": "ConfigMap", "apiVersion": "v1"}), "ADDED")] {
        let line = json!({"type": "ADDED", "object": object}).to_string();
        let expected = ["ADDED a", seen, "ADDED b", END, "ADDED c", "bookmark"];
        check_watch(Action::InsertLine { after_events: 1, line }, &expected).await;
    }
}

pub(super) async fn headers_and_events_arrive_late() {
    for action in [Action::Delay(30 * SECOND), Action::DelayEvent { nth: 1, delay: 30 * SECOND }] {
        let server = two();
        server.faults().add(Fault::new(action.clone()));
        let started = tokio::time::Instant::now();
        let mut watch = Watch::open(&server, WATCH).await;
        let headers = started.elapsed().as_secs();
        assert_eq!(watch.told().await, "ADDED a");
        let expected = if matches!(action, Action::Delay(_)) { (30, 30) } else { (0, 30) };
        assert_eq!((headers, started.elapsed().as_secs()), expected, "{action:?}");
        assert_eq!(on_record(&server), [action.kind()]);
    }
}
