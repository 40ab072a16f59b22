//! Data of Secrets is never shown: not in objects, events, changes, indexes or errors.

use axum::http::StatusCode;
use serde_json::json;

use crate::world::{Events, HIDDEN, World, get};

const HUNTER: &str = "hunter2";

fn hides(text: &str) {
    assert!(!text.contains(HIDDEN) && !text.contains(HUNTER), "{text}");
    assert!(!text.contains("last-applied"), "{text}");
}

#[tokio::test]
async fn no_response_contains_data_of_a_secret() {
    let world = World::new().await;
    let router = world.router();
    let mut events = Events::open(&router, "/api/stream").await;
    let applied = "kubectl.kubernetes.io/last-applied-configuration";
    let data = json!({"data": {"p": HIDDEN, "more": HIDDEN}, "metadata": {"labels": {"seen": "yes"}, "annotations": {applied: HIDDEN}}});
    world.server.patch("secrets", Some("web"), "s", data).unwrap();
    let changes = events.find("changes", |changes| changes["changes"][0]["informer"] == "secrets").await;
    hides(&changes.to_string());
    assert!(changes.to_string().contains("metadata.labels"), "labels are shown: {changes}");
    for path in
        ["object?key=web/s", "history?key=web/s", "keys", "values?index=namespace", "keys?index=namespace&value=web"]
    {
        let reply = get(&router, &format!("/api/informers/secrets/{path}")).await;
        assert_eq!(reply.status, StatusCode::OK, "{path}: {}", reply.text);
        hides(&reply.text);
    }
    let history = get(&router, "/api/informers/secrets/history?key=web/s").await;
    assert!(history.text.contains("\"yes\""), "{}", history.text);
    world.server.delete("secrets", Some("web"), "s").unwrap();
    let gone = events.find("changes", |changes| changes["changes"][0]["kind"] == "deleted").await;
    hides(&gone.to_string());
    hides(&get(&router, "/api/informers/secrets/history?key=web/s").await.text);
    world.factory.stop().await;
}

#[tokio::test]
async fn indexes_of_secrets_other_than_the_namespace_are_refused() {
    let world = World::new().await;
    let router = world.router();
    for path in ["values?index=held".to_owned(), format!("keys?index=held&value={HUNTER}")] {
        let reply = get(&router, &format!("/api/informers/secrets/{path}")).await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN, "{path}: {}", reply.text);
        hides(&reply.text);
    }
    let overview = get(&router, "/api/informers").await;
    hides(&overview.text);
    assert!(!overview.text.contains("\"held\""), "{}", overview.text);
    world.factory.stop().await;
}

#[tokio::test]
async fn an_undecodable_secret_is_reported_without_its_data() {
    let world = World::new().await;
    let router = world.router();
    let mut events = Events::open(&router, "/api/stream").await;
    let broken = json!({"metadata": {"name": "broken"}, "data": HUNTER});
    world.server.put_as_is("secrets", Some("web"), broken).unwrap();
    let overview = events
        .find("health", |overview| {
            let mut informers = overview["informers"].as_array().unwrap().iter();
            informers.any(|informer| informer["undecodable"][0]["key"] == "web/broken")
        })
        .await;
    hides(&overview.to_string());
    hides(&get(&router, "/readyz?fresh=1h").await.text);
    world.factory.stop().await;
}
