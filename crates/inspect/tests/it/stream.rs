//! The stream reports states of informers and changes of objects.

use axum::http::StatusCode;
use kube_embedded_apiserver::Fault;
use kube_informer_inspect::model::{ChangeKind, Changes, History, Overview};
use serde_json::json;

use crate::world::{Events, LIMIT, World, answer, get, pod};

#[tokio::test]
async fn the_stream_reports_every_change_of_phase() {
    let world = World::new().await;
    let router = world.router();
    let mut events = Events::open(&router, "/api/stream").await;
    let first: Overview = serde_json::from_value(events.find("health", |_| true).await).unwrap();
    assert_eq!(first.informers.len(), 3);
    let phase = |overview: &serde_json::Value, wanted: &str| {
        let mut informers = overview["informers"].as_array().unwrap().iter();
        informers.any(|informer| informer["id"] == "pods" && informer["parts"][0]["phase"]["state"] == wanted)
    };
    world.server.faults().add(Fault::status(503).resource("pods"));
    world.server.disconnect_watches();
    events.find("health", |overview| phase(overview, "backing_off")).await;
    world.server.faults().clear();
    events.find("health", |overview| phase(overview, "watching")).await;
    world.factory.stop().await;
}

#[tokio::test]
async fn changes_are_streamed_in_order_without_the_initial_objects() {
    let world = World::new().await;
    let router = world.router();
    let mut events = Events::open(&router, "/api/stream?informer=pods").await;
    world.server.create("configmaps", Some("web"), json!({"metadata": {"name": "other"}})).unwrap();
    world.server.create("pods", Some("web"), pod("d", "worker-1")).unwrap();
    world
        .server
        .patch("pods", Some("web"), "d", json!({"spec": {"containers": [{"name": "main", "image": "shop:2"}]}}))
        .unwrap();
    world.server.delete("pods", Some("web"), "d").unwrap();
    let mut all = Vec::new();
    while all.len() < 3 {
        let changes: Changes = serde_json::from_value(events.find("changes", |_| true).await).unwrap();
        assert_eq!(changes.dropped, 0);
        all.extend(changes.changes);
    }
    let received: Vec<_> =
        all.iter().map(|change| (change.informer.as_str(), change.key.as_str(), change.kind)).collect();
    let expected = [ChangeKind::Added, ChangeKind::Updated, ChangeKind::Deleted].map(|kind| ("pods", "web/d", kind));
    assert_eq!(received, expected);
    assert_eq!(all[1].fields, ["metadata.generation", "spec.containers[0].image"]);
    world.factory.stop().await;
}

#[tokio::test]
async fn changes_that_arrive_too_fast_are_dropped_and_counted() {
    let world = World::new().await;
    let router = world.router();
    let mut events = Events::open(&router, "/api/stream?informer=pods").await;
    events.find("health", |_| true).await;
    const ALL: u64 = 1500;
    for time in 0..ALL {
        world
            .server
            .patch("pods", Some("web"), "a", json!({"metadata": {"labels": {"time": time.to_string()}}}))
            .unwrap();
    }
    // The test does not read until all changes are recorded: far more than the channel holds.
    let recorded = async {
        let last = world.server.get("pods", Some("web"), "a").unwrap()["metadata"]["resourceVersion"].clone();
        loop {
            let history: History = answer(&router, "/api/informers/pods/history?key=web/a").await;
            if history.states.last().is_some_and(|state| last == *state.version) {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, recorded).await.expect("all are recorded");
    let mut seen = 0;
    let (mut shown, mut dropped) = (0, 0);
    while seen < ALL {
        let changes: Changes = serde_json::from_value(events.find("changes", |_| true).await).unwrap();
        shown += changes.changes.len();
        dropped += changes.dropped;
        assert!(changes.changes.len() <= 100);
        seen = dropped + u64::try_from(shown).unwrap();
    }
    assert_eq!(seen, ALL, "every missing change is counted");
    assert!(dropped > 0, "{shown} were shown");
    world.factory.stop().await;
}

#[tokio::test]
async fn an_informer_that_is_added_later_is_recorded_too() {
    let world = World::new().await;
    let router = world.router();
    let mut events = Events::open(&router, "/api/stream").await;
    let nodes = world.factory.informer::<k8s_openapi::api::core::v1::Node>().unwrap();
    nodes.synced().within(LIMIT).await.unwrap();
    let mut number = 0;
    // The recorder notices the informer within a second, and misses earlier changes.
    while nodes.health().handlers.is_empty() {
        tokio::task::yield_now().await;
    }
    number += 1;
    world.server.create("nodes", None, json!({"metadata": {"name": format!("n{number}")}})).unwrap();
    events.find("changes", |changes| changes["changes"][0]["informer"] == "nodes").await;
    world.factory.stop().await;
}

#[tokio::test]
async fn streams_beyond_the_limit_are_refused() {
    let world = World::new().await;
    let router = world.router();
    let mut open = Vec::new();
    for _ in 0..32 {
        open.push(Events::open(&router, "/api/stream?changes=false").await);
    }
    let refused = get(&router, "/api/stream").await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    open.pop();
    drop(Events::open(&router, "/api/stream").await);
    world.factory.stop().await;
}
