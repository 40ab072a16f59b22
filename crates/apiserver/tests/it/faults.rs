use crate::support::*;
use kube_embedded_apiserver::{Fault, Verb};
use serde_json::json;
use std::time::Duration;
use tower::ServiceExt;

const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=true&allowWatchBookmarks=true";

#[tokio::test(start_paused = true)]
async fn a_status_replaces_the_response() {
    let server = server();
    server.faults().add(Fault::status_retry_after(429, 7).verb(Verb::List).resource("configmaps").nth(2));
    assert_eq!(get(&server, CONFIG_MAPS).await.code, 200);
    let refused = get(&server, CONFIG_MAPS).await;
    assert_eq!((refused.code, &refused.json()["reason"]), (429, &json!("TooManyRequests")));
    assert_eq!(refused.headers["retry-after"], "7");
    assert_eq!(get(&server, CONFIG_MAPS).await.code, 200);
    let fired = server.faults().fired();
    assert_eq!((fired.len(), fired[0].kind, fired[0].request, fired[0].verb), (1, "status", 2, Verb::List));
}

#[tokio::test(start_paused = true)]
async fn cleared_faults_stay_in_the_record() {
    let server = server();
    let id = server.faults().add(Fault::status(500));
    assert_eq!(get(&server, CONFIG_MAPS).await.code, 500);
    server.faults().remove(id);
    assert_eq!(get(&server, CONFIG_MAPS).await.code, 200);
    server.faults().add(Fault::status(503));
    server.faults().clear();
    assert_eq!(get(&server, CONFIG_MAPS).await.code, 200);
    assert_eq!(server.faults().counts().into_iter().collect::<Vec<_>>(), [("status", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_cut_at_any_byte() {
    let server = server();
    put_config_map(&server, "a");
    server.faults().add(Fault::reset_after_bytes(40).verb(Verb::Watch));
    let mut watch = Watch::open(&server, WATCH).await;
    let Seen::Broken(rest) = watch.next_within(Duration::from_secs(1)).await else { panic!("not broken") };
    assert_eq!(rest.len(), 40);
    assert_eq!(server.faults().count("reset_after_bytes"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_is_cut_within_its_body() {
    let server = server();
    put_config_map(&server, "a");
    server.faults().add(Fault::reset_after_bytes(10).verb(Verb::List));
    let response = server.clone().oneshot(request("GET", CONFIG_MAPS, None)).await.unwrap();
    assert!(http_body_util::BodyExt::collect(response.into_body()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_connection_breaks_before_the_answer() {
    let server = server();
    server.faults().add(Fault::reset().times(1));
    let error = server.clone().oneshot(request("GET", CONFIG_MAPS, None)).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(get(&server, CONFIG_MAPS).await.code, 200);
    assert_eq!(server.faults().count("reset_before_answer"), 1);
    assert_eq!(server.requests()[0].status, None);
}

#[tokio::test(start_paused = true)]
async fn a_version_expires_with_a_status_code_or_an_event() {
    let server = server();
    put_config_map(&server, "a");
    server.faults().add(Fault::status(410).verb(Verb::Watch).nth(1));
    server.faults().add(Fault::error_event(410, 1).verb(Verb::Watch).nth(2));
    let refused = Watch::open(&server, WATCH).await;
    assert_eq!(refused.code, 410);
    let events = Watch::open(&server, WATCH).await.until_end().await;
    assert_eq!(events.iter().map(told).collect::<Vec<_>>(), ["ADDED a", "ERROR"]);
    assert_eq!(events[1]["object"]["reason"], "Expired");
    assert_eq!((server.faults().count("status"), server.faults().count("error_event")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_initial_events_is_withheld() {
    let server = server();
    put_config_map(&server, "a");
    server.faults().add(Fault::withhold_end_bookmark());
    let mut watch = Watch::open(&server, WATCH).await;
    assert_eq!(watch.told().await, "ADDED a");
    put_config_map(&server, "b");
    assert_eq!(watch.told().await, "ADDED b");
    assert_eq!(server.faults().count("withhold_end_bookmark"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_early() {
    let server = server();
    server.faults().add(Fault::end_after_events(0).nth(1));
    server.faults().add(Fault::end_after_events(1).nth(2));
    assert!(Watch::open(&server, WATCH).await.until_end().await.is_empty());
    assert_eq!(Watch::open(&server, WATCH).await.until_end().await.len(), 1);
    assert_eq!(server.faults().count("end_after_events"), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_delayed() {
    let server = server();
    server.faults().add(Fault::delay(Duration::from_secs(30)));
    let started = tokio::time::Instant::now();
    assert_eq!(get(&server, CONFIG_MAPS).await.code, 200);
    assert_eq!(started.elapsed().as_secs(), 30);
    assert_eq!(server.faults().count("delay"), 1);
}

#[tokio::test(start_paused = true)]
async fn requests_are_recorded() {
    let server = server();
    get(&server, &format!("{CONFIG_MAPS}?limit=5")).await;
    get(&server, "/api/v1/nodes/n1").await;
    let records = server.requests();
    let shown = |index: usize| {
        let record = &records[index];
        (record.verb, record.resource.as_str(), record.namespace.as_deref(), record.query.as_str(), record.status)
    };
    assert_eq!(shown(0), (Verb::List, "configmaps", Some("default"), "limit=5", Some(200)));
    assert_eq!(shown(1), (Verb::Get, "nodes", None, "", Some(404)));
    server.clear_requests();
    assert!(server.requests().is_empty());
}
