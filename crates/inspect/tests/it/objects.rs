//! Objects can be found by key and by index.

use axum::http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{InformerRequest, Projection, View};
use kube_informer_inspect::model::{ChangeKind, History, Keys, Object, Values};
use serde_json::json;

use crate::world::{Events, LIMIT, World, answer, get, pod};

#[tokio::test]
async fn keys_are_returned_in_pages_and_by_prefix() {
    let world = World::new().await;
    world.server.create("pods", Some("batch"), pod("job", "worker-3")).unwrap();
    world.pods_have("batch/job", |_| true).await;
    let router = world.router();
    let first: Keys = answer(&router, "/api/informers/pods/keys?limit=2&prefix=web/").await;
    assert_eq!(
        (first.keys, first.total, first.next.as_deref()),
        (vec!["web/a".into(), "web/b".into()], 3, Some("web/b"))
    );
    let second: Keys = answer(&router, "/api/informers/pods/keys?limit=2&prefix=web%2F&after=web/b").await;
    assert_eq!((second.keys, second.next), (vec!["web/c".to_owned()], None));
    let all: Keys = answer(&router, "/api/informers/pods/keys").await;
    assert_eq!(all.keys, ["batch/job", "web/a", "web/b", "web/c"]);
    world.factory.stop().await;
}

#[tokio::test]
async fn objects_are_found_by_index() {
    let world = World::new().await;
    let router = world.router();
    let values: Values = answer(&router, "/api/informers/pods/values?index=node").await;
    assert_eq!((values.values, values.total), (vec!["worker-1".to_owned(), "worker-2".to_owned()], 2));
    let keys: Keys = answer(&router, "/api/informers/pods/keys?index=node&value=worker-1").await;
    assert_eq!(keys.keys, ["web/a", "web/c"]);
    let none: Keys = answer(&router, "/api/informers/pods/keys?index=node&value=worker-9").await;
    assert_eq!(none.total, 0);
    world.factory.stop().await;
}

#[tokio::test]
async fn an_object_is_returned_as_it_is_in_the_cache() {
    let world = World::new().await;
    let router = world.router();
    let a: Object = answer(&router, "/api/informers/pods/object?key=web/a").await;
    assert_eq!((a.key.as_str(), &a.object["spec"]["nodeName"]), ("web/a", &json!("worker-1")));
    let none = get(&router, "/api/informers/pods/object?key=web/none").await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
    assert!(none.text.contains("does not hold web/none"), "{}", none.text);
    world.factory.stop().await;
}

#[tokio::test]
async fn history_has_the_changed_fields_since_the_first_request() {
    let world = World::new().await;
    let router = world.router();
    // Changes before the first request are not recorded.
    world.server.patch("pods", Some("web"), "a", json!({"metadata": {"labels": {"app": "early"}}})).unwrap();
    world.pods_have("web/a", |pod| pod.metadata.labels.as_ref().is_some_and(|labels| labels["app"] == "early")).await;
    let nothing: History = answer(&router, "/api/informers/pods/history?key=web/a").await;
    assert!(nothing.states.is_empty());

    let mut events = Events::open(&router, "/api/stream").await;
    let note = json!({"metadata": {"labels": {"app": "cart"}, "annotations": {"example.com/note": "x"}}});
    world.server.patch("pods", Some("web"), "a", note).unwrap();
    events
        .find("changes", |changes| changes["changes"].as_array().unwrap().iter().any(|change| change["key"] == "web/a"))
        .await;
    let history: History = answer(&router, "/api/informers/pods/history?key=web/a").await;
    let kinds: Vec<ChangeKind> = history.states.iter().map(|state| state.kind).collect();
    assert_eq!(kinds, [ChangeKind::Known, ChangeKind::Updated]);
    let changes = &history.states[1].changes;
    let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["metadata.annotations", "metadata.labels.app"]);
    assert_eq!((changes[1].old.clone(), changes[1].new.clone()), (Some(json!("early")), Some(json!("cart"))));

    world.server.delete("pods", Some("web"), "a").unwrap();
    events
        .find("changes", |changes| {
            changes["changes"].as_array().unwrap().iter().any(|change| change["kind"] == "deleted")
        })
        .await;
    let history: History = answer(&router, "/api/informers/pods/history?key=web/a").await;
    assert_eq!(history.states.last().unwrap().kind, ChangeKind::Deleted);
    world.factory.stop().await;
}

#[tokio::test]
async fn the_history_of_an_object_is_bounded_and_dropped_states_are_counted() {
    let world = World::new().await;
    let router = world.router();
    let mut events = Events::open(&router, "/api/stream").await;
    for time in 0..30 {
        let note = json!({"metadata": {"labels": {"time": time.to_string()}}});
        world.server.patch("pods", Some("web"), "b", note).unwrap();
    }
    let last = world.server.get("pods", Some("web"), "b").unwrap()["metadata"]["resourceVersion"].clone();
    events
        .find("changes", |changes| {
            changes["changes"].as_array().unwrap().iter().any(|change| change["version"] == last)
        })
        .await;
    let history: History = answer(&router, "/api/informers/pods/history?key=web/b").await;
    assert_eq!((history.states.len(), history.forgotten), (10, 21));
    assert_eq!(history.states.last().unwrap().version, last);
    world.factory.stop().await;
}

#[tokio::test]
async fn the_recorder_has_a_handler_only_while_there_are_readers() {
    let world = World::new().await;
    let router = world.router();
    assert_eq!(world.pods.health().handlers.len(), 1);
    let events = Events::open(&router, "/api/stream").await;
    assert_eq!(world.pods.health().handlers.len(), 2);
    drop((events, router));
    let gone = async {
        while world.pods.health().handlers.len() > 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, gone).await.expect("recording ends with the router");
    let quiet = Events::open(&world.router(), "/api/stream?changes=false").await;
    assert_eq!(world.pods.health().handlers.len(), 1, "a stream without changes records nothing");
    drop(quiet);
    world.factory.stop().await;
}

/// A view of a config map without any field.
#[derive(serde::Deserialize)]
struct Nothing {}

impl Projection for Nothing {
    type Of = ConfigMap;
}

#[tokio::test]
async fn states_that_cannot_be_compared_are_marked() {
    let world = World::new().await;
    let views = world.factory.informer_with(InformerRequest::<View<Nothing>>::new().name("views")).unwrap();
    views.synced().within(LIMIT).await.unwrap();
    let router = world.router();
    let mut events = Events::open(&router, "/api/stream").await;
    for color in ["green", "blue"] {
        world.server.patch("configmaps", Some("web"), "m", json!({"data": {"color": color}})).unwrap();
    }
    let last = world.server.get("configmaps", Some("web"), "m").unwrap()["metadata"]["resourceVersion"].clone();
    for (informer, compared) in [("configmaps", true), ("views", false)] {
        let history = async {
            loop {
                let path = format!("/api/informers/{informer}/history?key=web/m");
                let history: History = answer(&router, &path).await;
                if let Some(state) = history.states.last().filter(|state| last == *state.version) {
                    return state.clone();
                }
                events.next().await;
            }
        };
        let state = tokio::time::timeout(LIMIT, history).await.expect("the change is recorded");
        assert_eq!((state.kind, state.compared), (ChangeKind::Updated, compared), "{informer}");
        assert_eq!(state.changes.is_empty(), !compared, "{informer}");
    }
    world.factory.stop().await;
}
