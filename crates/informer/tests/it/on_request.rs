//! What a program can ask of a running informer: to list again, to compare, to wait for an object.

use std::sync::Arc;
use std::time::Duration;

use kube_informer::{Difference, Object as _, QueueOrder, SourceError, VerifyError, WaitError};
use tokio::time::Instant;

use crate::script::Act::{Fail, Pause, StayOpen};
use crate::script::{Script, TestInformer, added, bookmark, busy, deleted, gone, live, modified, quiet, within};

// Decision 9.
#[tokio::test(start_paused = true)]
async fn a_relist_on_request_announces_the_difference_and_waits_until_it_is_applied() {
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
        assert_eq!(informer.script.asked()[2], "list - limit=500", "the most recent state, and not one that is known");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_relist_of_what_did_not_change_is_told_to_nobody() {
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
async fn a_relist_asked_for_before_the_start_is_the_first_list() {
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
async fn a_cache_has_caught_up_when_the_watch_has_brought_it_to_where_the_server_is() {
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
    assert_eq!(informer.script.asked().len(), 4, "the question and a short watch, and no list");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cache_in_which_nothing_changed_has_caught_up_without_a_list() {
    let script = Script::new().list("10", ["web/a@1"]).watch([StayOpen]).list("12", []);
    // Bookmarks come in order: one that is older than the server says nothing yet.
    let script = script.watch([bookmark("11"), Pause(Duration::from_millis(1500)), bookmark("12"), StayOpen]);
    let informer = TestInformer::start(script);
    informer.synced().await;
    informer.script.asks(2).await;
    within("the bookmark", informer.informer.wait_for_latest()).await.unwrap();
    assert_eq!(informer.script.asked()[2..], ["list - limit=1", "watch 10"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_short_watch_that_shows_a_change_does_not_stand_for_a_list() {
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
async fn a_cache_that_does_not_get_to_where_the_server_is_asks_for_everything() {
    // The server is further, or was restored to an older state, or says nothing that can be compared.
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
async fn a_cache_that_is_asked_to_catch_up_again_and_again_asks_for_everything_seldom() {
    let script = Script::new().list("10", ["web/a@1"]).watch([StayOpen]);
    // The question and a short watch each time, and everything the first time; later only when half a minute has passed.
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
async fn a_relist_that_fails_at_first_is_waited_for() {
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
async fn a_relist_that_will_never_be_made_does_not_wait_for_ever() {
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
    assert!(informer.errors().is_empty(), "nothing is wrong: {:?}", informer.errors());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn verify_finds_what_is_missing_stale_and_too_much() {
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
    assert_eq!(informer.contents(), ["web/a@1", "web/b@2", "web/x@3"], "comparing changes nothing");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn verify_finds_nothing_on_a_healthy_informer_nor_what_only_came_late() {
    let (feed, events) = live();
    let script = Script::new()
        .list("10", ["web/a@1", "web/b@2"])
        .watch([events])
        .list("10", ["web/a@1", "web/b@2"])
        .list("12", ["web/a@11", "web/b@2"]) // The cache is behind.
        .list("12", ["web/a@11", "web/b@2"]);
    let informer = TestInformer::start(script);
    informer.synced().await;
    informer.script.asks(2).await;
    assert_eq!(within("the first", informer.informer.verify()).await.unwrap(), []);
    let other = informer.informer.clone();
    let (found, ()) = tokio::join!(within("the second", other.verify()), async {
        informer.script.asks(4).await;
        tokio::time::sleep(Duration::from_secs(6)).await; // Longer than the cache is given to catch up.
        feed.send(modified("web/a@11")).unwrap();
    });
    assert_eq!(found.unwrap(), [], "it was late, not wrong");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn verify_does_not_wait_for_versions_that_only_others_have_reached() {
    // Versions count the changes of all collections: on a quiet one the cache hears of them by bookmarks only.
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
async fn verify_says_why_it_could_not_compare() {
    let script = Script::new().list("10", []).watch([StayOpen]).list_refused(busy()).list_cut_off([]);
    let script = script.page("10", [], "again").page("10", [], "again");
    let informer = TestInformer::start(script);
    informer.synced().await;
    informer.script.asks(2).await;
    let refused = within("a refused list", informer.informer.verify()).await;
    assert!(matches!(refused, Err(VerifyError::List(_))), "{refused:?}");
    let cut_off = within("half a list", informer.informer.verify()).await;
    assert!(matches!(cut_off, Err(VerifyError::List(SourceError::CutOff))), "{cut_off:?}");
    let endless = within("a list without end", informer.informer.verify()).await;
    assert!(matches!(endless, Err(VerifyError::Incomplete)), "{endless:?}");
    informer.informer.stop().await;
    let stopped = within("nobody", informer.informer.verify()).await;
    assert!(matches!(stopped, Err(VerifyError::Stopped(_))), "{stopped:?}");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_can_be_waited_for_until_it_is_as_it_should_be_or_gone() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
    let shared = informer.informer.clone();
    let there = within("it is there", shared.wait_for("web/a", |thing| thing.is_some())).await.unwrap();
    assert_eq!(there.unwrap().id().version, "1");
    let mut newer =
        shared.wait_for("web/a", |thing| thing.is_some_and(|thing| thing.id().version == "12")).into_future();
    let mut made = shared.wait_for("web/b", |thing| thing.is_some()).into_future();
    feed.send(modified("web/a@11")).unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut newer).await.is_err());
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut made).await.is_err());
    feed.send(modified("web/a@12")).unwrap();
    assert_eq!(within("the newer one", newer).await.unwrap().unwrap().id().version, "12");
    feed.send(added("web/b@13")).unwrap();
    assert!(within("another", made).await.unwrap().is_some());
    feed.send(deleted("web/a@14")).unwrap();
    assert_eq!(within("its end", shared.wait_for("web/a", |thing| thing.is_none())).await, Ok(None));
    let never = shared.wait_for("web/c", |thing| thing.is_some()).into_future();
    let (waited, ()) = tokio::join!(never, informer.informer.stop());
    assert_eq!(waited, Err(WaitError::Stopped("things".into())));
    informer.stop().await;
}
