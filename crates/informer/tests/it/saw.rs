//! A wait for a write ends when the cache reflects it: by this state, a later one, or a deletion.

use std::time::Duration;

use futures_util::FutureExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded_apiserver::ApiServer;
use kube_informer::{InformerRequest, Selection, SharedInformerFactory, WaitError};
use serde_json::json;

use crate::script::{
    Act::{Fail, StayOpen},
    SEED, Script, TestInformer, added, bookmark, deleted, interrupted, live, modified, options, pause, quiet, text,
    thing, within,
};

#[tokio::test(start_paused = true)]
async fn write_is_seen_once_the_cache_holds_it_or_a_later_state() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1#u"]).watch([events]));
    informer.synced().await;
    let mut wait = informer.informer.saw(&thing("web/a@12#u")).into_future();
    feed.send(modified("web/a@11#u")).unwrap();
    informer.delivered_through("11").await;
    assert!((&mut wait).now_or_never().is_none());
    feed.send(modified("web/a@13#u")).unwrap();
    let seen = within("the write", wait).await.unwrap();
    assert_eq!(seen.as_deref().map(text).as_deref(), Some("web/a@13"));
    let again = informer.informer.saw(&thing("web/a@12#u")).into_future().now_or_never().unwrap();
    assert_eq!(again.unwrap(), seen, "a write that the cache shows already");
    informer.stop().await;
}

// The script has no answer to further requests, so the deletion alone ends the wait.
#[tokio::test(start_paused = true)]
async fn deletion_of_the_written_object_counts_as_seen() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1#u"]).watch([events]));
    informer.synced().await;
    let wait = informer.informer.saw(&thing("web/a@12#u")).into_future();
    let mut successor = informer.informer.saw(&thing("web/a@12#v")).into_future();
    assert!((&mut successor).now_or_never().is_none());
    feed.send(deleted("web/a@11#u")).unwrap();
    assert_eq!(within("the deletion", wait).await, Ok(None));
    assert!((&mut successor).now_or_never().is_none(), "this deletion came before the other write");
    feed.send(added("web/a@12#v")).unwrap();
    assert!(within("the other write", successor).await.unwrap().is_some());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn object_that_came_and_went_unseen_counts_as_seen_once_the_cache_has_passed_its_version() {
    let (feed, events) = live();
    // The informer asks for the current version, and a short watch shows that nothing changed.
    let script = Script::new().list("10", ["web/a@1#u"]).watch([events]).list("14", []);
    let informer = TestInformer::start(script);
    informer.synced().await;
    let mut wait = informer.informer.saw(&thing("web/b@12#v")).into_future();
    quiet().await;
    assert!((&mut wait).now_or_never().is_none());
    feed.send(bookmark("14")).unwrap();
    assert_eq!(within("the version", wait).await, Ok(None));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn wait_for_a_write_fails_if_the_server_was_restored_to_a_state_before_it() {
    let script = Script::new()
        .list("30", ["web/a@5#u"])
        .watch([bookmark("31"), pause(5.0), Fail(interrupted())])
        .list("20", [])
        .list("20", ["web/a@5#u"])
        .list("20", ["web/a@5#u"])
        .watch([StayOpen]);
    let informer = TestInformer::start(script);
    informer.delivered_through("31").await;
    // Both the wait and the reflector ask for the version 20.
    let seen = within("the wait to fail", informer.informer.saw(&thing("web/a@32#u"))).await;
    assert_eq!(seen, Err(WaitError::VersionsRestarted));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn wait_for_a_write_has_a_limit_and_ends_when_the_informer_stops() {
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1#u"]).watch([StayOpen]));
    informer.synced().await;
    let saw = || informer.informer.saw(&thing("web/a@12#u"));
    let error = saw().within(Duration::from_secs(1)).await.unwrap_err().to_string();
    assert!(error.contains("web/a is there at version 1"), "{error}");
    let (seen, ()) = tokio::join!(saw().into_future(), informer.informer.stop());
    assert_eq!(seen, Err(WaitError::Stopped("things".to_owned())));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn write_of_an_object_that_is_not_selected_is_seen_once_the_cache_does_not_hold_it() {
    let server = ApiServer::builder().seed(SEED).build();
    let map = |app: &str| json!({"metadata": {"name": "a", "labels": {"app": app}}});
    server.create("configmaps", Some("web"), map("web")).unwrap();
    let factory = SharedInformerFactory::builder(server.client()).options(options()).build();
    let selection = Selection::new().labels("app=web").unwrap();
    let maps = factory.informer_with::<ConfigMap>(InformerRequest::new().select(selection)).unwrap();
    factory.start().unwrap();
    within("the list", maps.synced()).await.unwrap();
    let written = server.patch("configmaps", Some("web"), "a", map("db")).unwrap();
    let written: ConfigMap = serde_json::from_value(written).unwrap();
    assert!(maps.store().contains("web/a"), "the cache lags behind");
    assert_eq!(within("the change", maps.saw(&written)).await.unwrap(), None);
    assert!(!maps.store().contains("web/a"));
    factory.stop().await;
}
