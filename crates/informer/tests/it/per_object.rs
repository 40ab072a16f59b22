//! An informer with the per-object queue keeps the same promises as one with the ordered queue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube_informer::parts::{Changes, Decoded, Delta, DeltaFifo, WatchEvent};
use kube_informer::{Delivery, Event, Object as _, QueueOrder, Store, WaitError};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::script::{
    Act::{self, Fail, StayOpen},
    SEED, Script, TestInformer, Thing, Told, added, bad, bookmark, deleted, describe_batch, gone, interrupted, live,
    modified, on_the_real_clock, pause, quiet, thing, within,
};

fn start(script: Script) -> TestInformer {
    TestInformer::start_with(script, |options| options.queue_order(QueueOrder::PerObject))
}

#[tokio::test(start_paused = true)]
async fn star_44_per_object_a_relist_announces_updates_adds_and_deletes() {
    let script = Script::new()
        .list("10", ["web/a@1", "web/b@2", "web/c@3"])
        .watch([Fail(gone())])
        .list("20", ["web/c@13", "web/b@2", "web/d@14"])
        .watch([StayOpen]);
    let informer = start(script);
    informer.synced().await;
    let kept = informer.informer.store().get("web/b").unwrap();
    informer.delivered_through("20").await;
    assert_eq!(informer.told("web/a"), ["initial add 1", "delete 1 (tombstone)"]);
    assert_eq!(informer.told("web/b"), ["initial add 2"], "an unchanged object is not announced");
    assert!(
        Arc::ptr_eq(&kept, &informer.informer.store().get("web/b").unwrap()),
        "the unchanged object is not replaced"
    );
    assert_eq!(informer.told("web/c"), ["initial add 3", "update 3 to 13"]);
    assert_eq!(informer.told("web/d"), ["add 14"], "not initial: the first list was over");
    let new_first = ["web/c update 3 to 13", "web/d add 14", "web/a delete 1 (tombstone)"];
    assert_eq!(informer.told.all()[3..], new_first, "in the order of this queue");
    assert_eq!(informer.contents(), ["web/b@2", "web/c@13", "web/d@14"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn per_object_synced_means_that_the_whole_first_list_is_applied() {
    let names: Vec<String> = (0..500).map(|number| format!("web/{number}@{}", number + 1)).collect();
    let script = Script::new().list_things("1000", names.iter().map(|name| thing(name))).watch([StayOpen]);
    let informer = start(script);
    within("the informer to sync", informer.informer.synced()).await.unwrap();
    assert_eq!(informer.informer.store().len(), 500);
    assert_eq!(informer.version().as_deref(), Some("1000"));
    informer.synced().await;
    assert_eq!(informer.told.len(), 500);
    assert!(informer.told.all().iter().all(|told| told.contains("initial add")));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn per_object_an_empty_collection_syncs() {
    let informer = start(Script::new().list("10", []).watch([StayOpen]));
    informer.synced().await;
    assert_eq!(informer.version().as_deref(), Some("10"));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn per_object_the_version_of_a_change_that_is_merged_with_a_listed_object_is_reached() {
    let script = Script::new().list("10", ["web/a@1", "web/b@2"]).watch([modified("web/a@11"), StayOpen]);
    let informer = start(script);
    informer.delivered_through("11").await;
    assert_eq!(informer.contents(), ["web/a@11", "web/b@2"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn star_46_per_object_the_version_follows_changes_and_bookmarks_and_never_goes_back() {
    let (feed, events) = live();
    let informer = start(Script::new().list("10", ["web/a@1"]).watch([events]));
    informer.delivered_through("10").await;
    for (act, version) in [
        (modified("web/a@12"), "12"),
        (added("web/b@14"), "14"),
        (deleted("web/a@15"), "15"),
        (bookmark("20"), "20"),
        (added("web/c@18"), "20"),
        (added("web/d@21"), "21"),
    ] {
        feed.send(act).unwrap();
        quiet().await;
        assert_eq!(informer.version().as_deref(), Some(version));
    }
    informer.stop().await;
}

// Decision 7.
#[tokio::test]
async fn per_object_a_version_is_reached_only_when_no_older_delta_is_queued() {
    let (store, _writer) = Store::<Thing>::new(0);
    let (sink, mut changes) = Changes::with_sink(DeltaFifo::new(), store);
    for text in ["web/a@11", "web/b@12", "web/a@13"] {
        sink.push(Delta::Updated(Arc::new(thing(text))), 0).await;
    }
    let batch = changes.next().await.take().unwrap();
    assert_eq!(describe_batch(&batch), ["updated web/a@11", "updated web/a@13"]);
    assert!(!batch.settled, "12 still waits, so 13 is not reached");
    let batch = changes.next().await.take().unwrap();
    assert_eq!(describe_batch(&batch), ["updated web/b@12"]);
    assert!(batch.settled);
}

// Decision 7: after `wait_for_version` returns, the cache has every change up to that version.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn per_object_after_a_wait_for_a_version_the_cache_has_every_change_up_to_it() {
    on_the_real_clock(async {
        let (feed, events) = live();
        let informer = start(Script::new().list("10", []).watch([events]));
        let mut random = StdRng::seed_from_u64(SEED);
        let history: Vec<(u64, String, bool)> = (11..3011)
            .map(|version| (version, format!("web/{}", random.random_range(0..8)), random.random_range(0..5) == 0))
            .collect();
        let mut last = BTreeMap::new();
        last.extend(history.iter().map(|(version, key, gone)| (key.clone(), (*version, *gone))));
        let mut waits = JoinSet::new();
        for (version, key, _) in history.iter().filter(|(version, ..)| version % 50 == 0).cloned() {
            let (informer, history) = (informer.informer.clone(), history.clone());
            waits.spawn(async move {
                informer.wait_for_version(&version.to_string().as_str().into()).await.unwrap();
                let found = informer.store().get(key.as_str()).map(|thing| thing.id().version.parse::<u64>().unwrap());
                let of_key = || history.iter().filter(|(_, other, _)| *other == key);
                // The cached state must be one that the object had at that version or later.
                let fits = match found {
                    Some(found) => {
                        of_key().any(|(at, _, gone)| *at == found && !gone) && found >= version
                            || of_key().any(|(at, _, gone)| *at == version && *gone) && found > version
                    }
                    None => of_key().any(|(at, _, gone)| *at >= version && *gone),
                };
                assert!(fits, "{key} is {found:?} at {version}");
            });
        }
        for (version, key, gone) in &history {
            let name = format!("{key}@{version}");
            feed.send(if *gone { deleted(&name) } else { modified(&name) }).unwrap();
            if version % 100 == 0 {
                tokio::task::yield_now().await;
            }
        }
        while let Some(ended) = waits.join_next().await {
            ended.unwrap();
        }
        informer.delivered_through("3010").await;
        let expected: Vec<String> =
            last.iter().filter(|(_, (_, gone))| !gone).map(|(key, (version, _))| format!("{key}@{version}")).collect();
        assert_eq!(informer.contents(), expected);
        informer.informer.stop().await;
        informer.script.check_over();
    })
    .await;
}

// Decision 10.
#[tokio::test(start_paused = true)]
async fn per_object_a_restored_server_fails_waits_and_replaces_the_cache() {
    let script = Script::new()
        .list("30", ["web/a@5", "web/b@25"])
        .watch([bookmark("31"), pause(5.0), Fail(interrupted())])
        .list("20", ["web/a@5"])
        .list("20", ["web/a@5"])
        .watch([StayOpen]);
    let informer = start(script);
    informer.delivered_through("31").await;
    let waited = within("the wait to fail", informer.informer.wait_for_version(&"32".into())).await;
    assert_eq!(waited, Err(WaitError::VersionsRestarted));
    informer.delivered_through("20").await;
    assert_eq!(informer.version().as_deref(), Some("20"));
    assert_eq!(informer.told("web/a"), ["initial add 5", "update 5 to 5"]);
    assert_eq!(informer.told("web/b"), ["initial add 25", "delete 25 (tombstone)"]);
    informer.stop().await;
}

// Decision 10: deltas that were queued when the server was restored belong to a history that no longer exists.
#[tokio::test(start_paused = true)]
async fn per_object_the_state_of_a_restored_server_replaces_queued_deltas() {
    let (feed, events) = live();
    let script = Script::new()
        .list("30", ["web/a@25", "web/b@26", "web/c@27"])
        .watch([events])
        .list("20", ["web/a@5", "web/c@6"]) // An older version: the server was restored.
        .list("20", ["web/a@5", "web/c@6"])
        .watch([StayOpen]);
    let informer = start(script);
    informer.synced().await;
    // All of these are queued before any of them is applied.
    for act in [modified("web/a@31"), modified("web/b@32"), deleted("web/c@33"), added("web/d@34"), Fail(gone())] {
        feed.send(act).unwrap();
    }
    informer.script.asks(5).await;
    quiet().await;
    assert_eq!(informer.contents(), ["web/a@5", "web/c@6"]);
    assert_eq!(informer.version().as_deref(), Some("20"));
    let last = |key: &str| informer.told(key).pop();
    assert!(last("web/a").is_some_and(|told| told.ends_with("to 5")), "{:?}", informer.told.all());
    assert!(last("web/b").is_some_and(|told| told.starts_with("delete")), "{:?}", informer.told.all());
    assert!(last("web/c").is_some_and(|told| told.ends_with(" 6")), "{:?}", informer.told.all());
    assert!(last("web/d").is_none_or(|told| told.starts_with("delete")), "{:?}", informer.told.all());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn per_object_a_resync_sends_each_object_once() {
    let script = Script::new().list("10", ["web/a@1", "web/b@2"]).watch([StayOpen]);
    let informer = TestInformer::start_with(script, |options| {
        options.queue_order(QueueOrder::PerObject).resync_period(Duration::from_secs(10))
    });
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(informer.told("web/a"), ["initial add 1", "resync 1", "resync 1"]);
    assert_eq!(informer.told("web/b"), ["initial add 2", "resync 2", "resync 2"]);
    informer.stop().await;
}

// An undecodable delete has only a key, so it must not delete an object that was created later.
#[tokio::test(start_paused = true)]
async fn per_object_an_undecodable_delete_does_not_delete_an_object_that_was_created_later() {
    let vanished = Act::Event(WatchEvent::Deleted(Decoded::Bad(bad("web/a"))));
    let events = [vanished, added("web/a@12"), bookmark("20"), StayOpen];
    let informer = start(Script::new().list("10", ["web/a@1"]).watch(events));
    informer.delivered_through("20").await;
    assert_eq!(informer.contents(), ["web/a@12"]);
    assert_eq!(informer.told("web/a"), ["initial add 1", "delete 1 (tombstone)", "initial add 12"]);
    informer.stop().await;
}

// The bound is one event for each object in the cache, even if one step resyncs only a few of them.
#[tokio::test(start_paused = true)]
async fn per_object_a_resync_folds_no_mailbox() {
    let script = Script::new().list("10", ["web/a@1", "web/b@2", "web/c@3", "web/d@4"]).watch([StayOpen]);
    let informer = TestInformer::new(script, |options| {
        options.queue_order(QueueOrder::PerObject).resync_period(Duration::from_secs(60))
    });
    let tight = informer.informer.register().delivery(Delivery::every(0)).resync_period(Duration::from_secs(60));
    let (told, release) = (Told::default(), Arc::new(Semaphore::new(0)));
    let (permits, mut tell) = (release.clone(), told.handler());
    let tight = tight.on_event_async(move |event: Event<Thing>| {
        tell(event);
        let permits = permits.clone();
        async move { permits.acquire().await.unwrap().forget() }
    });
    release.add_permits(4);
    informer.informer.start().unwrap();
    informer.synced().await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    quiet().await;
    assert_eq!(tight.folds(), 0);
    release.add_permits(100);
    told.reaches(8).await;
    informer.stop().await;
}
