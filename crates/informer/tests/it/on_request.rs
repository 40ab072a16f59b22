//! What a program can request of a running informer: a relist, a comparison with the server, a wait for an object.

use std::sync::Arc;
use std::time::Duration;

use kube_informer::{Difference, Object as _, QueueOrder, SourceError, VerifyError, WaitError};
use tokio::time::Instant;

use crate::script::Act::{Fail, Pause, StayOpen};
use crate::script::{Script, TestInformer, added, bookmark, busy, deleted, gone, live, modified, quiet, within};

// Decision 9.
#[tokio::test(start_paused = true)]
async fn a_requested_relist_announces_the_difference_and_returns_once_it_is_applied() {
    for order in [QueueOrder::Ordered, QueueOrder::PerObject] {
        let script = Script::new()
            .list("10", ["web/a@1", "web/b@2", "web/c@3"])
            .watch([StayOpen])
            .list("20", ["web/b@2", "web/c@13", "web/d@14"])
            .watch([StayOpen]);
        let informer = TestInformer::start_with(script, |options| options.queue_order(order));
        informer.synced().await;
        informer.script.asks(2).await;
        let kept = informer.informer.store().get("web/b").unwrap();
        informer.told.clear();
        assert_eq!(within("the relist", informer.informer.relist()).await, Ok(()));
        assert_eq!(informer.contents(), ["web/b@2", "web/c@13", "web/d@14"], "it is applied when the call returns");
        assert_eq!(informer.version().as_deref(), Some("20"));
        quiet().await;
        let mut told = informer.told.all();
        told.sort();
        assert_eq!(told, ["web/a delete 1 (tombstone)", "web/c update 3 to 13", "web/d add 14"]);
        assert!(Arc::ptr_eq(&kept, &informer.informer.store().get("web/b").unwrap()));
        assert_eq!(informer.script.asked()[2], "list - limit=500", "the list asks for the most recent version");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_relist_without_changes_sends_no_events() {
    let names: Vec<_> = (0..300).map(|number| format!("web/{number}@{}", number + 1)).collect();
    let things = || names.iter().map(|name| crate::script::thing(name));
    let script =
        Script::new().list_things("500", things()).watch([StayOpen]).list_things("600", things()).watch([StayOpen]);
    let informer = TestInformer::start(script);
    informer.synced().await;
    informer.script.asks(2).await;
    let before = informer.informer.store().snapshot();
    within("the relist", informer.informer.relist()).await.unwrap();
    quiet().await;
    assert_eq!(informer.told.len(), 300, "the initial ones");
    let after = informer.informer.store().snapshot();
    assert!(before.iter().all(|thing| std::ptr::eq(thing, after.get(thing.id().key).unwrap())));
    assert_eq!(informer.version().as_deref(), Some("600"), "but the version moves on");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_that_is_requested_before_the_start_is_the_first_list() {
    let informer = TestInformer::new(Script::new().list("10", ["web/a@1"]).watch([StayOpen]), |options| options);
    let relist = informer.informer.relist();
    informer.informer.start().unwrap();
    within("the first list", relist).await.unwrap();
    assert_eq!(informer.contents(), ["web/a@1"]);
    informer.script.asks(2).await;
    assert_eq!(informer.script.asked(), ["list - limit=500", "watch 10"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cache_has_caught_up_when_its_watch_reaches_the_version_of_the_server() {
    let (events, act) = live();
    let script = Script::new().list("10", ["web/a@1"]).watch([act]).list("12", []);
    let informer = TestInformer::start(script);
    informer.synced().await;
    informer.script.asks(2).await;
    let (caught_up, ()) = tokio::join!(informer.informer.wait_for_latest(), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(informer.contents(), ["web/a@1"]);
        events.send(modified("web/a@12")).unwrap();
    });
    caught_up.unwrap();
    assert_eq!(informer.contents(), ["web/a@12"]);
    assert_eq!(informer.script.asked().len(), 4, "a version request and a short watch, and no list");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_cache_catches_up_without_a_list() {
    let script = Script::new().list("10", ["web/a@1"]).watch([StayOpen]).list("12", []);
    // Bookmarks arrive in order. A bookmark with an older version than the server's proves nothing yet.
    let script = script.watch([bookmark("11"), Pause(Duration::from_millis(1500)), bookmark("12"), StayOpen]);
    let informer = TestInformer::start(script);
    informer.synced().await;
    informer.script.asks(2).await;
    within("the bookmark", informer.informer.wait_for_latest()).await.unwrap();
    assert_eq!(informer.script.asked()[2..], ["list - limit=1", "watch 10"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_short_watch_that_shows_a_change_leads_to_a_list() {
    for acts in [vec![added("web/b@11")], vec![bookmark("11")], vec![Fail(gone())]] {
        let script = Script::new().list("10", ["web/a@1"]).watch([StayOpen]).list("12", []).watch(acts);
        let script = script.list("12", ["web/b@11"]).watch([StayOpen]);
        let informer = TestInformer::start(script);
        informer.synced().await;
        informer.script.asks(2).await;
        within("the list", informer.informer.wait_for_latest()).await.unwrap();
        assert_eq!(informer.contents(), ["web/b@11"]);
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_does_not_reach_the_version_of_the_server_relists() {
    // The server has a newer version, an older one after a restore, or one that cannot be compared.
    for newest in ["12", "9", "abc"] {
        let script = Script::new().list("10", ["web/a@1"]).watch([StayOpen]).list(newest, []);
        // Only a watch from a version that the server has reached can show that nothing changed.
        let script = if newest == "12" { script.watch([StayOpen]) } else { script };
        let script = script.list("12", ["web/b@11"]).watch([StayOpen]);
        let informer = TestInformer::start(script);
        informer.synced().await;
        informer.script.asks(2).await;
        within("the list", informer.informer.wait_for_latest()).await.unwrap();
        assert_eq!(informer.contents(), ["web/b@11"], "{newest}");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_is_often_asked_to_catch_up_relists_at_most_every_half_minute() {
    let script = Script::new().list("10", ["web/a@1"]).watch([StayOpen]);
    // Each call sends a version request and a short watch. The first one also lists, and a later one lists only after
    // 30 s.
    let script = script.list("12", []).watch([StayOpen]).list("12", ["web/b@11"]).watch([StayOpen]);
    let script = script.list("13", []).watch([StayOpen]).list("13", ["web/b@13"]).watch([StayOpen]);
    let informer = TestInformer::start(script);
    informer.synced().await;
    informer.script.asks(2).await;
    let start = Instant::now();
    within("the first list", informer.informer.wait_for_latest()).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(5));
    informer.script.asks(6).await;
    informer.informer.wait_for_latest().await.unwrap();
    assert!((33..39).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    assert_eq!(informer.contents(), ["web/b@13"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_has_stopped_does_not_catch_up() {
    let informer = TestInformer::start(Script::new().list("10", []).watch([StayOpen]));
    informer.synced().await;
    let handle = informer.informer.clone();
    informer.stop().await;
    assert!(matches!(handle.wait_for_latest().await, Err(WaitError::Stopped(_))));
}

#[tokio::test(start_paused = true)]
async fn relist_waits_until_a_retry_succeeds() {
    let script = Script::new()
        .list("10", ["web/a@1"])
        .watch([StayOpen])
        .list_refused(busy())
        .list("20", ["web/b@12"])
        .watch([StayOpen]);
    let informer = TestInformer::start(script);
    informer.synced().await;
    informer.script.asks(2).await;
    within("the relist", informer.informer.relist()).await.unwrap();
    assert_eq!(informer.contents(), ["web/b@12"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn relist_fails_when_the_informer_stops() {
    let informer = TestInformer::start(Script::new().list("10", []).watch([StayOpen]).list_hangs());
    informer.synced().await;
    let other = informer.informer.clone();
    let (relisted, ()) = tokio::join!(within("the relist", other.relist()), async {
        informer.script.asks(3).await;
        informer.informer.stop().await;
    });
    assert_eq!(relisted, Err(WaitError::Stopped("things".into())));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_period_asks_the_server_again_and_announces_only_changes() {
    let minute = |script: Script| script.list("10", ["web/a@1"]).watch([StayOpen]);
    let script = minute(minute(Script::new())).list("30", ["web/a@21"]).watch([StayOpen]);
    let informer = TestInformer::start_with(script, |options| options.relist_period(Duration::from_secs(60)));
    informer.synced().await;
    let kept = informer.informer.store().get("web/a").unwrap();
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(informer.script.asked().iter().filter(|asked| asked.starts_with("list")).count(), 2);
    assert!(Arc::ptr_eq(&kept, &informer.informer.store().get("web/a").unwrap()));
    assert_eq!(informer.told("web/a"), ["initial add 1"]);
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(informer.told("web/a"), ["initial add 1", "update 1 to 21"]);
    assert!(informer.errors().is_empty(), "no errors: {:?}", informer.errors());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn verify_finds_missing_stale_and_extra_objects() {
    let truth = ["web/a@15", "web/b@2", "web/c@4"];
    let script = Script::new()
        .list("10", ["web/a@1", "web/b@2", "web/x@3"])
        .watch([StayOpen])
        .list("20", truth)
        .list("20", truth);
    let informer = TestInformer::start(script);
    informer.synced().await;
    informer.script.asks(2).await;
    let found = within("the comparison", informer.informer.verify()).await.unwrap();
    let expected = [
        Difference::Missing { key: "web/c".parse().unwrap(), version: "4".into() },
        Difference::Different { key: "web/a".parse().unwrap(), cached: "1".into(), version: "15".into() },
        Difference::Extra { key: "web/x".parse().unwrap(), cached: "3".into() },
    ];
    assert_eq!(found, expected);
    assert_eq!(informer.contents(), ["web/a@1", "web/b@2", "web/x@3"], "verify does not change the cache");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn verify_reports_no_difference_for_a_healthy_informer_or_a_late_event() {
    let (feed, events) = live();
    let script = Script::new()
        .list("10", ["web/a@1", "web/b@2"])
        .watch([events])
        .list("10", ["web/a@1", "web/b@2"])
        .list("12", ["web/a@11", "web/b@2"]) // The cache is behind the server.
        .list("12", ["web/a@11", "web/b@2"]);
    let informer = TestInformer::start(script);
    informer.synced().await;
    informer.script.asks(2).await;
    assert_eq!(within("the first", informer.informer.verify()).await.unwrap(), []);
    let other = informer.informer.clone();
    let (found, ()) = tokio::join!(within("the second", other.verify()), async {
        informer.script.asks(4).await;
        tokio::time::sleep(Duration::from_secs(6)).await; // Longer than verify lets the cache catch up.
        feed.send(modified("web/a@11")).unwrap();
    });
    assert_eq!(found.unwrap(), [], "a late event is no difference");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn verify_does_not_wait_for_versions_that_only_others_have_reached() {
    // Versions count the changes of all collections. A quiet collection advances with bookmarks only.
    let script = Script::new().list("10", ["web/a@1"]).watch([StayOpen]).list("999", ["web/a@1"]);
    let informer = TestInformer::start(script);
    informer.synced().await;
    informer.script.asks(2).await;
    let start = Instant::now();
    assert_eq!(within("the comparison", informer.informer.verify()).await.unwrap(), []);
    assert_eq!(start.elapsed(), Duration::ZERO);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn verify_reports_why_it_could_not_compare() {
    let script = Script::new().list("10", []).watch([StayOpen]).list_refused(busy()).list_cut_off([]);
    let script = script.page("10", [], "again").page("10", [], "again");
    let informer = TestInformer::start(script);
    informer.synced().await;
    informer.script.asks(2).await;
    let refused = within("a refused list", informer.informer.verify()).await;
    assert!(matches!(refused, Err(VerifyError::List(_))), "{refused:?}");
    let cut_off = within("half a list", informer.informer.verify()).await;
    assert!(matches!(cut_off, Err(VerifyError::List(SourceError::CutOff))), "{cut_off:?}");
    let endless = within("an endless list", informer.informer.verify()).await;
    assert!(matches!(endless, Err(VerifyError::Incomplete)), "{endless:?}");
    informer.informer.stop().await;
    let stopped = within("the verify of a stopped informer", informer.informer.verify()).await;
    assert!(matches!(stopped, Err(VerifyError::Stopped(_))), "{stopped:?}");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn wait_for_returns_once_an_object_fits_the_condition_or_is_deleted() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
    let shared = informer.informer.clone();
    let there =
        within("the object to be in the cache", shared.wait_for("web/a", |thing| thing.is_some())).await.unwrap();
    assert_eq!(there.unwrap().id().version, "1");
    let mut newer =
        shared.wait_for("web/a", |thing| thing.is_some_and(|thing| thing.id().version == "12")).into_future();
    let mut made = shared.wait_for("web/b", |thing| thing.is_some()).into_future();
    feed.send(modified("web/a@11")).unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut newer).await.is_err());
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut made).await.is_err());
    feed.send(modified("web/a@12")).unwrap();
    assert_eq!(within("the newer state", newer).await.unwrap().unwrap().id().version, "12");
    feed.send(added("web/b@13")).unwrap();
    assert!(within("another", made).await.unwrap().is_some());
    feed.send(deleted("web/a@14")).unwrap();
    assert_eq!(within("its delete", shared.wait_for("web/a", |thing| thing.is_none())).await, Ok(None));
    let never = shared.wait_for("web/c", |thing| thing.is_some()).into_future();
    let (waited, ()) = tokio::join!(never, informer.informer.stop());
    assert_eq!(waited, Err(WaitError::Stopped("things".into())));
    informer.stop().await;
}
