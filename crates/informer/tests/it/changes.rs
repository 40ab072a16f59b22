//! Changes reach the store and the handlers: all of them, in order, and with the right kind.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded_apiserver::ApiServer;
use kube_informer::parts::{Decoded, WatchEvent};
use kube_informer::{DecodeError, InformerError, SharedInformer};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use tokio::task::JoinSet;

use crate::script::{
    Act::{self, StayOpen},
    NoTaskLeft, SEED, Script, TestInformer, TestReflector, added, bad, bookmark, deleted, live, modified, options,
    quiet, thing, within,
};

// Differs: an undecodable object is passed on as such instead of being skipped (B-37), and the watch never
// resumes from a version that is older than one already seen.
#[tokio::test(start_paused = true)]
async fn star_06_events_keep_their_kind_and_the_version_does_not_go_back() {
    let script = Script::new()
        .list("30", [])
        .watch([
            Act::Event(WatchEvent::Added(Decoded::Bad(bad("web/strange@31")))),
            deleted("web/a@32"),
            modified("web/b@40"),
            added("web/c@35"),
            crate::script::pause(1.0),
        ])
        .watch([StayOpen]);
    let reflector = TestReflector::start(script);
    let expected =
        ["replaced 30: ", "undecodable web/strange", "deleted web/a@32", "updated web/b@40", "added web/c@35"];
    assert_eq!(reflector.pushes(5).await, expected);
    assert_eq!(reflector.asks(3).await.last().unwrap(), "watch 40");
    reflector.stop().await;
}

#[tokio::test(start_paused = true)]
async fn star_33_handlers_receive_every_event_in_the_order_of_the_stream() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", []).watch([events]));
    informer.synced().await;
    let mut random = StdRng::seed_from_u64(SEED);
    let (mut expected, mut versions) = (Vec::new(), [None::<u64>; 20]);
    for version in 11..5011 {
        let at = random.random_range(0..versions.len());
        let name = format!("web/{at}@{version}");
        let (act, told) = match versions[at] {
            None => (added(&name), format!("web/{at} add {version}")),
            Some(_) if random.random_range(0..4) == 0 => (deleted(&name), format!("web/{at} delete {version}")),
            Some(old) => (modified(&name), format!("web/{at} update {old} to {version}")),
        };
        versions[at] = if told.contains("delete") { None } else { Some(version) };
        feed.send(act).unwrap();
        expected.push(told);
    }
    informer.delivered_through("5010").await;
    assert_eq!(informer.told.all(), expected);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn star_41_the_cache_equals_the_server_after_three_concurrent_writers_and_no_task_is_left() {
    let no_task_left = NoTaskLeft::since_now();
    let server = ApiServer::builder().seed(SEED).build();
    let source = kube_informer::parts::KubeSource::<ConfigMap>::new(server.client());
    let informer = SharedInformer::builder(source).options(options()).build();
    informer.start().unwrap();
    let mut writers = JoinSet::new();
    for writer in 0..3 {
        let server = server.clone();
        writers.spawn(async move {
            let mut random = StdRng::seed_from_u64(writer);
            for step in 0..300 {
                let name = format!("map-{}", random.random_range(0..15));
                let object = json!({"metadata": {"name": name}, "data": {"step": step.to_string()}});
                // Two writers may use the same name. The server then refuses the second one, which does not matter
                // here.
                let _ = match random.random_range(0..3) {
                    0 => server.create("configmaps", Some("web"), object),
                    1 => server.update("configmaps", Some("web"), object),
                    _ => server.delete("configmaps", Some("web"), &name),
                };
                match random.random_range(0..40) {
                    0 => server.disconnect_watches(),
                    1 => server.compact(),
                    _ => tokio::time::sleep(Duration::from_millis(random.random_range(0..200))).await,
                }
            }
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }
    // One more write, so that there is a version to wait for.
    let last = server.create("configmaps", Some("web"), json!({"metadata": {"name": "last"}})).unwrap();
    let version = last["metadata"]["resourceVersion"].as_str().unwrap().into();
    within("the last write", informer.wait_for_version(&version)).await.unwrap();
    let (_, objects) = server.list("configmaps").unwrap();
    let metadata = |object: &serde_json::Value, field: &str| object["metadata"][field].as_str().unwrap().to_owned();
    let mut expected: Vec<_> =
        objects.iter().map(|object| (metadata(object, "name"), metadata(object, "resourceVersion"))).collect();
    let cached = informer.store().snapshot();
    let mut cached: Vec<_> = cached
        .iter()
        .map(|object| object.metadata.clone())
        .map(|metadata| (metadata.name.unwrap(), metadata.resource_version.unwrap()))
        .collect();
    expected.sort();
    cached.sort();
    assert_eq!(cached, expected);
    within("the informer to stop", informer.stop()).await;
    quiet().await; // The client's own task ends once its last owner is dropped.
    no_task_left.check();
}

// D-6, T-5. Differs: keys and stores cannot fail here, but objects may be undecodable. Each such object is reported,
// and only that object is missing. In client-go one undecodable object in a list keeps the informer from ever syncing
// (B-09).
#[tokio::test(start_paused = true)]
async fn star_43_undecodable_objects_in_a_list_do_not_hide_the_others() {
    let good = |text| Decoded::Object(thing(text));
    let script = Script::new()
        .list_items("10", [good("web/a@1"), Decoded::Bad(bad("web/b@2")), good("web/c@3")])
        .watch([StayOpen]);
    let informer = TestInformer::start(script);
    informer.synced().await;
    assert_eq!(informer.told.all(), ["web/a initial add 1", "web/c initial add 3"]);
    assert_eq!(informer.contents(), ["web/a@1", "web/c@3"]);
    let undecodable: Vec<String> = informer.informer.health().undecodable.keys().map(ToString::to_string).collect();
    assert_eq!(undecodable, ["web/b"]);
    let errors = informer.errors();
    let [InformerError::Undecodable { bad }] = &errors[..] else { panic!("{errors:?}") };
    assert!(matches!(bad.error, DecodeError::Shape(_)));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn star_43_an_undecodable_event_keeps_the_last_good_copy_and_advances_the_version() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
    let unread = |text, make: fn(Decoded<_>) -> WatchEvent<_>| Act::Event(make(Decoded::Bad(bad(text))));
    for act in [added("web/b@11"), unread("web/a@12", WatchEvent::Modified), added("web/c@13")] {
        feed.send(act).unwrap();
    }
    informer.delivered_through("13").await;
    assert_eq!(informer.contents(), ["web/a@1", "web/b@11", "web/c@13"]);
    assert_eq!(informer.told("web/a"), ["initial add 1"]);
    assert!(informer.informer.health().undecodable.contains_key(&"web/a".parse().unwrap()));
    // A delete applies even if its object is undecodable. Handlers receive the last good copy.
    feed.send(unread("web/a@14", WatchEvent::Deleted)).unwrap();
    informer.delivered_through("14").await;
    assert_eq!(informer.told("web/a"), ["initial add 1", "delete 1 (tombstone)"]);
    assert!(informer.informer.health().undecodable.is_empty());
    informer.stop().await;
}

// D-1.
#[tokio::test(start_paused = true)]
async fn the_store_decides_whether_a_change_is_an_add_or_an_update() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
    for act in [added("web/a@11"), modified("web/b@12"), modified("web/b@13"), added("web/b@14")] {
        feed.send(act).unwrap();
    }
    informer.delivered_through("14").await;
    assert_eq!(informer.told("web/a"), ["initial add 1", "update 1 to 11"]);
    assert_eq!(informer.told("web/b"), ["add 12", "update 12 to 13", "update 13 to 14"]);
    informer.stop().await;
}

// B-49, and decision 14: an event that changes nothing reaches no handler.
#[tokio::test(start_paused = true)]
async fn deletes_of_unknown_objects_and_stale_updates_reach_no_handler() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@5"]).watch([events]));
    informer.synced().await;
    informer.told.clear();
    for act in [deleted("web/never@11"), modified("web/a@5"), modified("web/a@3"), deleted("web/a@4"), bookmark("12")] {
        feed.send(act).unwrap();
    }
    informer.delivered_through("12").await;
    quiet().await;
    assert_eq!(informer.told.all(), [""; 0]);
    assert_eq!(informer.contents(), ["web/a@5"]);
    informer.stop().await;
}
