//! Every fault, one row each: that it is on record, and what the client saw.

use crate::support::*;
use kube_embedded_apiserver::{Action, ApiServer, Fault, History, ListFlaw, Verb};
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt;

const SECOND: Duration = Duration::from_secs(1);
const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=true&allowWatchBookmarks=true&timeoutSeconds=300";

/// A server with config maps `a` and `b`.
fn two() -> ApiServer {
    let server = ApiServer::builder().seed(1).bookmark_interval(60 * SECOND).build();
    put_config_map(&server, "a");
    put_config_map(&server, "b");
    server
}

/// Everything a client of a watch sees within 100 seconds, in words. A config map `c` is created after 10 seconds.
async fn watched(server: &ApiServer) -> Vec<String> {
    let mut watch = match server.clone().oneshot(request("GET", WATCH, None)).await {
        Err(_) => return vec!["refused".into()],
        Ok(response) if response.status() != 200 => return vec![response.status().as_u16().to_string()],
        Ok(response) => Watch::of(response),
    };
    let started = tokio::time::Instant::now();
    let mut words = Vec::new();
    let mut created = false;
    loop {
        let (until, last) = if created { (100, true) } else { (10, false) };
        match watch.next_within((until * SECOND).saturating_sub(started.elapsed())).await {
            Seen::Event(event) if ends_initial_events(&event) => words.push("end of initial events".into()),
            Seen::Event(event) if event["type"] == "BOOKMARK" => words.push("bookmark".into()),
            Seen::Event(event) => words.push(told(&event)),
            Seen::Garbage => words.push("garbage".into()),
            Seen::End(rest) if rest.is_empty() => words.push("end".into()),
            Seen::End(_) => words.push("end within an event".into()),
            Seen::Broken(rest) if rest.is_empty() => words.push("broken".into()),
            Seen::Broken(_) => words.push("broken within an event".into()),
            Seen::Silence if last => return words,
            Seen::Silence => {
                put_config_map(server, "c");
                created = true;
            }
        }
        if words.last().is_some_and(|word| {
            word.starts_with("end ") && word != "end of initial events" || word == "end" || word.starts_with("broken")
        }) {
            return words;
        }
    }
}

async fn check_watch(action: Action, expected: &[&str]) {
    let server = two();
    let kind = action.kind();
    server.faults().add(Fault::new(action.clone()).verb(Verb::Watch));
    assert_eq!(watched(&server).await, expected, "{action:?}");
    assert!(server.faults().count(kind) > 0, "{action:?} is not on record");
}

#[tokio::test(start_paused = true)]
async fn without_faults_a_watch_tells_everything() {
    let expected = ["ADDED a", "ADDED b", "end of initial events", "ADDED c", "bookmark"];
    assert_eq!(watched(&two()).await, expected);
}

#[tokio::test(start_paused = true)]
async fn faults_of_a_watch() {
    const END: &str = "end of initial events";
    // F2, F4, F3: before the answer, within an event, between events.
    check_watch(Action::ResetBeforeAnswer, &["refused"]).await;
    check_watch(Action::ResetAfterBytes(40), &["broken within an event"]).await;
    check_watch(Action::ResetAfterEvents(2), &["ADDED a", "ADDED b", "broken"]).await;
    check_watch(Action::EndAfterBytes(40), &["end within an event"]).await;
    // F5: garbage, and a type nobody knows.
    check_watch(Action::CorruptByte(5), &["garbage", "ADDED b", END, "ADDED c", "bookmark"]).await;
    let odd = Action::RetypeEvent { nth: 1, to: "FLIPPED" };
    check_watch(odd, &["FLIPPED a", "ADDED b", END, "ADDED c", "bookmark"]).await;
    // F6, F7, F8.
    check_watch(Action::EndAfterEvents(0), &["end"]).await;
    check_watch(Action::EndAfterEvents(2), &["ADDED a", "ADDED b", "end"]).await;
    check_watch(Action::WithholdEndBookmark, &["ADDED a", "ADDED b", "ADDED c", "bookmark"]).await;
    // F9, F11, F14 to F17, F20, F43, F44.
    for code in [401, 403, 404, 410, 422, 429, 500, 502, 503, 504] {
        check_watch(Action::Status { code, retry_after: None }, &[&code.to_string()]).await;
    }
    // F10, F19.
    check_watch(Action::ErrorEvent { code: 410, after_events: 1 }, &["ADDED a", "ERROR", "end"]).await;
    check_watch(Action::ErrorEvent { code: 500, after_events: 0 }, &["ERROR", "end"]).await;
    // F21 to F24.
    check_watch(Action::DuplicateEvent(1), &["ADDED a", "ADDED a", "ADDED b", END, "ADDED c", "bookmark"]).await;
    check_watch(Action::SwapEvents(1), &["ADDED b", "ADDED a", END, "ADDED c", "bookmark"]).await;
    check_watch(Action::DropEvent(2), &["ADDED a", END, "ADDED c", "bookmark"]).await;
    let unknown = Action::RetypeEvent { nth: 4, to: "DELETED" };
    check_watch(unknown, &["ADDED a", "ADDED b", END, "DELETED c", "bookmark"]).await;
    // F42: an object of another kind.
    let stranger =
        json!({"type": "ADDED", "object": {"kind": "Strange", "apiVersion": "v1", "metadata": {"name": "s"}}});
    let inserted = Action::InsertLine { after_events: 1, line: stranger.to_string() };
    check_watch(inserted, &["ADDED a", "ADDED s", "ADDED b", END, "ADDED c", "bookmark"]).await;
    // F30, F31, F50.
    check_watch(Action::StallAfterBytes(40), &[]).await;
    check_watch(Action::Drip { bytes: 10_000, pause: SECOND }, &["ADDED a", "ADDED b", END, "ADDED c", "bookmark"])
        .await;
    let late = Action::DelayEvent { nth: 1, delay: 30 * SECOND };
    check_watch(late, &["ADDED a", "ADDED b", END, "ADDED c", "bookmark"]).await;
    check_watch(Action::Delay(30 * SECOND), &["ADDED a", "ADDED b", END, "ADDED c", "bookmark"]).await;
}

#[tokio::test(start_paused = true)]
async fn bookmarks_show_odd_versions() {
    for odd in ["1", ""] {
        let server = two();
        server.faults().add(Fault::new(Action::BookmarkVersion(odd.into())));
        let mut watch = Watch::open(&server, WATCH).await;
        watch.next().await;
        watch.next().await;
        assert_eq!(watch.next().await["object"]["metadata"]["resourceVersion"], odd);
        assert_eq!(server.faults().count("bookmark_version"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dripping_body_takes_its_time() {
    let server = two();
    server.faults().add(Fault::new(Action::Drip { bytes: 1, pause: SECOND }));
    let started = tokio::time::Instant::now();
    let list = get(&server, CONFIG_MAPS).await;
    assert_eq!(started.elapsed().as_secs(), list.text.len() as u64);
    assert_eq!(server.faults().count("drip"), list.text.len());
}

#[tokio::test(start_paused = true)]
async fn a_request_is_never_answered() {
    let server = two();
    server.faults().add(Fault::new(Action::NoAnswer));
    assert!(tokio::time::timeout(3600 * SECOND, get(&server, CONFIG_MAPS)).await.is_err());
    assert_eq!(server.faults().count("no_answer"), 1);
}

/// Lists once with a fault and shows the answer to `expect`.
async fn check_list(fault: Fault, kind: &str, expect: impl FnOnce(&Answer) -> bool) {
    let server = two();
    server.faults().add(fault);
    let answer = get(&server, CONFIG_MAPS).await;
    assert!(expect(&answer), "{kind}: {answer:?}");
    assert_eq!(server.faults().count(kind), 1, "{kind}");
}

#[tokio::test(start_paused = true)]
async fn faults_of_a_list() {
    let content_type =
        |answer: &Answer| answer.headers.get("content-type").map(|value| value.to_str().unwrap().to_owned());
    // F14, F15, F37, F38.
    check_list(Fault::too_many_requests(Some(2)), "page", |answer| {
        answer.code == 429 && answer.headers["retry-after"] == "2" && answer.text.starts_with("Too many requests")
    })
    .await;
    check_list(Fault::too_many_requests(None), "page", |answer| !answer.headers.contains_key("retry-after")).await;
    for code in [200, 502, 503, 504] {
        check_list(Fault::html_page(code), "page", |answer| answer.code == code && answer.text.contains("<html>"))
            .await;
    }
    check_list(Fault::redirect("https://login.example.com/"), "page", |answer| {
        answer.code == 302 && answer.headers["location"] == "https://login.example.com/"
    })
    .await;
    // F12, F16, F18, F43.
    check_list(Fault::status(410), "status", |answer| answer.json()["reason"] == "Expired").await;
    check_list(Fault::status(500), "status", |answer| answer.json()["reason"] == "InternalError").await;
    check_list(Fault::status(401), "status", |answer| answer.json()["reason"] == "Unauthorized").await;
    check_list(Fault::new(Action::VersionTooLarge), "version_too_large", |answer| {
        answer.code == 504 && answer.json()["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    })
    .await;
    // F35, F36, F46, F57.
    check_list(Fault::new(Action::ContentType(Some("text/html"))), "content_type", |answer| {
        content_type(answer).as_deref() == Some("text/html") && answer.names().len() == 2
    })
    .await;
    check_list(Fault::new(Action::ContentType(None)), "content_type", |answer| content_type(answer).is_none()).await;
    check_list(Fault::new(Action::ConnectionClose), "connection_close", |answer| {
        answer.headers["connection"] == "close"
    })
    .await;
    check_list(Fault::new(Action::Warnings(100)), "warnings", |answer| {
        answer.headers.get_all("warning").iter().count() == 100
    })
    .await;
    // F39, F5.
    check_list(Fault::new(Action::EndAfterBytes(20)), "end_after_bytes", |answer| answer.text.len() == 20).await;
    check_list(Fault::new(Action::CorruptByte(20)), "corrupt_byte", |answer| {
        serde_json::from_str::<Value>(&answer.text).is_err()
    })
    .await;
    // F40, F41, F42, F56.
    let flawed = async |flaw: ListFlaw, kind: &str, expect: fn(&Value) -> bool| {
        check_list(Fault::list(flaw), kind, |answer| expect(&answer.json())).await;
    };
    flawed(ListFlaw::NullItems, "null_items", |list| list["items"].is_null()).await;
    flawed(ListFlaw::NoVersion, "no_version", |list| list["metadata"].get("resourceVersion").is_none()).await;
    flawed(ListFlaw::DuplicateItem, "duplicate_item", |list| list["items"].as_array().unwrap().len() == 3).await;
    flawed(ListFlaw::MissingItems(1), "missing_items", |list| list["items"].as_array().unwrap().len() == 1).await;
    flawed(ListFlaw::Table, "table", |list| list["kind"] == "Table" && list["rows"][0]["cells"][0] == "a").await;
    flawed(ListFlaw::MetadataOnly, "metadata_only", |list| list["items"][0].get("data").is_none()).await;
    flawed(ListFlaw::OtherKind, "other_kind", |list| list["kind"] == "UnexpectedList").await;
    flawed(ListFlaw::RemainingCount(-5), "remaining_count", |list| list["metadata"]["remainingItemCount"] == -5).await;
}

#[tokio::test(start_paused = true)]
async fn a_continue_token_leads_nowhere() {
    for (flaw, items) in [(ListFlaw::SameContinue, 1), (ListFlaw::EmptyPage, 0)] {
        let server = two();
        server.faults().add(Fault::list(flaw));
        let first = get(&server, &format!("{CONFIG_MAPS}?limit=1")).await;
        assert_eq!(first.names(), ["a"]);
        let token = first.json()["metadata"]["continue"].as_str().unwrap().to_owned();
        for _ in 0..3 {
            let page = get(&server, &format!("{CONFIG_MAPS}?limit=1&continue={token}")).await;
            assert_eq!((page.names().len(), &page.json()["metadata"]["continue"]), (items, &json!(token)));
        }
        assert_eq!(server.faults().fired().len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn history_is_lost_between_two_pages() {
    let server = two();
    server.faults().add(Fault::new(Action::Compact).query_contains("continue="));
    let first = get(&server, &format!("{CONFIG_MAPS}?limit=1")).await.json();
    put_config_map(&server, "c");
    let token = first["metadata"]["continue"].as_str().unwrap();
    assert_eq!(get(&server, &format!("{CONFIG_MAPS}?limit=1&continue={token}")).await.code, 410);
    assert_eq!(server.faults().count("compact"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_compressed_though_nobody_asked() {
    let server = two();
    server.faults().add(Fault::new(Action::UnaskedGzip));
    let response = server.clone().oneshot(request("GET", CONFIG_MAPS, None)).await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    let bytes = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    assert_eq!(bytes[..2], [0x1f, 0x8b]);
    assert_eq!(server.faults().count("unasked_gzip"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_restart_cuts_watches_and_may_lose_history() {
    for (history, expected) in [(History::Kept, "ADDED b"), (History::Lost, "ERROR")] {
        let server = two();
        let (_, items) = server.list("configmaps").unwrap();
        let mut watch = Watch::open(&server, WATCH).await;
        watch.next().await;
        server.restart(history);
        watch.next().await;
        watch.next().await;
        assert!(matches!(watch.next_within(SECOND).await, Seen::Broken(_)));
        let path = format!("{WATCH}&resourceVersion={}", version(&items[0]));
        assert_eq!(Watch::open(&server, &path).await.told().await, expected);
        assert_eq!(server.faults().count("restart"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_restored_server_is_silent_to_watches_from_its_future() {
    let server = ApiServer::new();
    let saved = server.save();
    put_config_map(&server, "a");
    let future = put_config_map(&server, "b");
    server.restore(&saved);
    assert_eq!(server.faults().count("restore"), 1);
    let mut watch = Watch::open(&server, &format!("{WATCH}&resourceVersion={future}")).await;
    assert_eq!(watch.code, 200);
    put_config_map(&server, "c");
    assert!(watch.is_silent_for(200 * SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_the_server_is_wrong() {
    let server = two();
    server.set_clock_skew(-3600);
    put_config_map(&server, "c");
    let created = server.get("configmaps", Some("default"), "c").unwrap()["metadata"]["creationTimestamp"].clone();
    assert_eq!(created, "2025-12-31T23:00:00Z");
    assert_eq!(server.faults().count("clock_skew"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_taken_by_another_object_while_nobody_looks() {
    let server = two();
    let start = server.revision();
    let uid = |server: &ApiServer| server.get("configmaps", Some("default"), "a").unwrap()["metadata"]["uid"].clone();
    let before = uid(&server);
    server.delete("configmaps", Some("default"), "a").unwrap();
    put_config_map(&server, "a");
    assert_ne!(before, uid(&server));
    server.compact();
    let path = format!("{WATCH}&resourceVersion={start}");
    assert_eq!(Watch::open(&server, &path).await.told().await, "ERROR");
}
