//! After a relist the cache equals the server, and handlers receive the differences and nothing else.

use std::sync::Arc;

use kube_informer::Event;
use kube_informer::parts::Decoded;
use parking_lot::Mutex;

use crate::script::{
    Act::{Fail, StayOpen},
    Script, TestInformer, Thing, added, bad, bookmark, deleted, gone, interrupted, live, modified, pause, quiet,
    status, thing,
};

// the deletion of a corrupt object by force leads to such an error.
#[tokio::test(start_paused = true)]
async fn star_22_an_error_event_leads_to_a_relist_that_removes_deleted_objects() {
    let script = Script::new()
        .list("10", ["web/a@1", "web/b@2"])
        .watch([Fail(status(500, "InternalError"))])
        .list("20", ["web/b@2"])
        .watch([StayOpen]);
    let informer = TestInformer::start(script);
    informer.delivered_through("20").await;
    assert_eq!(informer.keys(), ["web/b"]);
    assert_eq!(informer.told("web/a"), ["initial add 1", "delete 1 (tombstone)"]);
    assert_eq!(informer.told("web/b"), ["initial add 2"]);
    informer.stop().await;
}

// D-3. Differs from D-9, B-35: an unchanged object is not announced, whatever the resync period.
#[tokio::test(start_paused = true)]
async fn star_44_a_relist_announces_deletes_first_and_then_changes_in_the_servers_order() {
    let script = Script::new()
        .list("10", ["web/a@1", "web/b@2", "web/c@3", "web/d@4"])
        .watch([Fail(gone())])
        .list("20", ["web/f@12", "web/d@14", "web/b@2", "web/e@11"])
        .watch([StayOpen]);
    let informer = TestInformer::start(script);
    informer.delivered_through("10").await;
    let kept = informer.informer.store().get("web/b").unwrap();
    informer.told.clear();
    informer.delivered_through("20").await;
    let mut told = informer.told.all();
    told[..2].sort();
    let expected = [
        "web/a delete 1 (tombstone)",
        "web/c delete 3 (tombstone)",
        "web/f add 12",
        "web/d update 4 to 14",
        "web/e add 11",
    ];
    assert_eq!(told, expected);
    assert!(
        Arc::ptr_eq(&kept, &informer.informer.store().get("web/b").unwrap()),
        "an unchanged object is not replaced"
    );
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn star_44_the_store_has_its_final_state_when_a_handler_receives_the_event() {
    let (feed, events) = live();
    let script = Script::new()
        .list("10", ["web/a@1", "web/b@2"])
        .watch([Fail(gone())])
        .list("20", ["web/b@12", "web/c@13"])
        .watch([events]);
    let informer = TestInformer::new(script, |options| options);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (store, looks) = (informer.informer.store(), seen.clone());
    informer.informer.on_event(move |event: Event<Thing>| {
        let cached = store.get(&event.key());
        let fits = match &event {
            Event::Deleted(_) => cached.is_none(),
            _ => cached.is_some_and(|cached| Arc::ptr_eq(&cached, event.object())),
        };
        looks.lock().push((format!("{event:?}"), fits, store.snapshot().len()));
    });
    informer.informer.start().unwrap();
    informer.delivered_through("20").await;
    feed.send(deleted("web/c@21")).unwrap();
    informer.delivered_through("21").await;
    quiet().await;
    let seen = seen.lock().clone();
    assert_eq!(seen.len(), 6);
    assert!(seen.iter().all(|(_, fits, _)| *fits), "{seen:?}");
    // The first event of a relist already sees the whole relist in the store.
    assert_eq!(seen.iter().map(|(_, _, len)| *len).collect::<Vec<_>>(), [2, 2, 2, 2, 2, 1], "{seen:?}");
    informer.stop().await;
}

// D-10.
#[tokio::test(start_paused = true)]
async fn star_45_adds_that_a_broken_watch_missed_are_not_initial() {
    let script = Script::new()
        .list("10", ["web/a@1"])
        .watch([bookmark("11"), pause(2.0), Fail(interrupted())])
        .list("14", []) // The version request: was the server restored?
        .watch_refused(gone())
        .list("20", ["web/a@12", "web/b@13"])
        .watch([StayOpen]);
    let informer = TestInformer::start(script);
    informer.delivered_through("20").await;
    assert_eq!(informer.told.all(), ["web/a initial add 1", "web/a update 1 to 12", "web/b add 13"]);
    informer.stop().await;
}

// I-10. Differs from B-25: the version of a store never goes back within an epoch.
#[tokio::test(start_paused = true)]
async fn star_46_the_stores_version_follows_updates_and_deletes_and_never_goes_back() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1", "web/b@2"]).watch([events]));
    informer.delivered_through("10").await;
    for (act, version) in [
        (modified("web/a@11"), "11"),
        (deleted("web/a@12"), "12"),
        (modified("web/b@9"), "12"),
        (bookmark("8"), "12"),
        (added("web/c"), "12"),
        (bookmark("15"), "15"),
    ] {
        feed.send(act).unwrap();
        quiet().await;
        assert_eq!(informer.version().as_deref(), Some(version));
    }
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_recreated_with_the_same_name_is_an_update_with_another_uid() {
    let script = Script::new()
        .list("10", ["web/a@5#first"])
        .watch([Fail(gone())])
        .list("20", ["web/a@5#second"])
        .watch([StayOpen]);
    let informer = TestInformer::start(script);
    informer.delivered_through("20").await;
    // Equal versions do not mean equal states if the uids differ.
    assert_eq!(informer.told("web/a"), ["initial add 5", "update 5 to 5"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_in_a_relist_is_not_deleted() {
    let script = Script::new()
        .list("10", ["web/a@1", "web/b@2"])
        .watch([Fail(gone())])
        .list_items("20", [Decoded::Bad(bad("web/a@15"))])
        .watch([modified("web/a@21"), StayOpen]);
    let informer = TestInformer::start(script);
    informer.delivered_through("20").await;
    assert_eq!(informer.told("web/b"), ["initial add 2", "delete 2 (tombstone)"]);
    informer.delivered_through("21").await;
    assert_eq!(informer.told("web/a"), ["initial add 1", "update 1 to 21"]);
    assert!(informer.informer.health().undecodable.is_empty(), "the object can be decoded again");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_with_an_object_of_unknown_name_announces_no_deletes() {
    let script = Script::new()
        .list("10", ["web/a@1", "web/b@2"])
        .watch([Fail(gone())])
        .list_items("20", [Decoded::Object(thing("web/b@12")), Decoded::Bad(bad(""))])
        .watch([StayOpen]);
    let informer = TestInformer::start(script);
    informer.delivered_through("20").await;
    assert_eq!(informer.contents(), ["web/a@1", "web/b@12"]);
    assert_eq!(informer.told("web/a"), ["initial add 1"]);
    informer.stop().await;
}

// A restored server may have given the same version to another state.
#[tokio::test(start_paused = true)]
async fn after_a_restore_equal_versions_do_not_mean_equal_states() {
    let script = Script::new()
        .list("30", ["web/a@5", "web/b@25"])
        .watch([bookmark("31"), pause(5.0), Fail(interrupted())])
        .list("20", ["web/a@5"]) // The version request: an older version.
        .list("20", ["web/a@5"])
        .watch([StayOpen]);
    let informer = TestInformer::start(script);
    informer.delivered_through("31").await;
    informer.script.asks(5).await;
    informer.delivered_through("20").await;
    let asked = ["list 0 limit=500 not older", "watch 30", "list - limit=1", "list - limit=500", "watch 20"];
    assert_eq!(informer.script.asked(), asked);
    assert_eq!(informer.version().as_deref(), Some("20"));
    assert_eq!(informer.told("web/a"), ["initial add 5", "update 5 to 5"]);
    assert_eq!(informer.told("web/b"), ["initial add 25", "delete 25 (tombstone)"]);
    informer.stop().await;
}
