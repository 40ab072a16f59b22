//! Waiting for a sync, a delivery or a version. Every wait ends: with the result, or with the end of the informer.

use std::sync::Arc;
use std::time::Duration;

use kube_informer::{Event, ResourceVersion, WaitError};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::script::{
    Act::{Fail, StayOpen},
    Script, TestInformer, Thing, added, bookmark, interrupted, live, pause, quiet, within,
};

// Differs: there is no blocking pop. Callers wait for an informer.
#[tokio::test(start_paused = true)]
async fn star_38_every_wait_ends_when_the_informer_stops() {
    let informer = TestInformer::start(Script::new().list_hangs());
    let (mut waits, version) = (JoinSet::new(), ResourceVersion::from("10"));
    for _ in 0..10 {
        let (informer, version) = (informer.informer.clone(), version.clone());
        waits.spawn(async move { (informer.synced().await, informer.wait_for_version(&version).await) });
    }
    let handle = informer.informer.on_event(|_| {});
    let handler_synced = async { handle.synced().await };
    quiet().await;
    let (synced, ()) = tokio::join!(handler_synced, informer.informer.stop());
    assert!(!synced);
    for _ in 0..10 {
        let (synced, reached) = within("a wait to end", waits.join_next()).await.unwrap().unwrap();
        assert_eq!(synced, Err(WaitError::Stopped("things".into())));
        assert_eq!(reached, Err(WaitError::Stopped("things".into())));
    }
    informer.stop().await;
}

// W-1, W-6.
#[tokio::test(start_paused = true)]
async fn star_58_a_handler_is_synced_once_its_last_initial_call_has_returned_and_not_before() {
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1", "web/b@2"]).watch([StayOpen]));
    let permits = Arc::new(Semaphore::new(0));
    let slow = {
        let permits = permits.clone();
        informer.informer.register().on_event_async(move |_: Event<Thing>| {
            let permits = permits.clone();
            async move { permits.acquire().await.unwrap().forget() }
        })
    };
    informer.synced().await;
    quiet().await;
    assert!(informer.informer.health().is_ready() && !slow.is_synced());
    permits.add_permits(1);
    quiet().await;
    assert!(!slow.is_synced(), "one of two calls has returned");
    permits.add_permits(1);
    assert!(within("the slow handler", slow.synced()).await);
    assert!(slow.is_synced());
    informer.stop().await;
}

// W-1: synced never goes back. W-4: a finished sync takes precedence over the end of the informer.
#[tokio::test(start_paused = true)]
async fn star_58_synced_stays_true_after_the_end() {
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([StayOpen]));
    let handle = informer.informer.on_event(|_| {});
    informer.synced().await;
    assert!(within("the handler", handle.synced()).await);
    informer.informer.stop().await;
    assert!(informer.informer.health().is_ready());
    assert_eq!(informer.informer.synced().await, Ok(()));
    assert_eq!(informer.informer.wait_for_version(&"10".into()).await, Ok(()));
    assert!(handle.is_synced());
    assert!(within("the handler after the end", handle.synced()).await);
    informer.stop().await;
}

// an empty first list syncs too.
#[tokio::test(start_paused = true)]
async fn star_58_an_empty_collection_syncs_the_informer_and_its_handlers() {
    let informer = TestInformer::start(Script::new().list("10", []).watch([StayOpen]));
    informer.synced().await;
    let late = informer.informer.on_event(|_| {});
    assert!(within("a late handler", late.synced()).await);
    informer.stop().await;
}

// W-2: the handler's initial events end with the first list.
#[tokio::test(start_paused = true)]
async fn star_58_events_after_the_initial_ones_do_not_delay_synced() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
    let permits = Arc::new(Semaphore::new(1));
    let slow = {
        let permits = permits.clone();
        informer.informer.register().on_event_async(move |_: Event<Thing>| {
            let permits = permits.clone();
            async move { permits.acquire().await.unwrap().forget() }
        })
    };
    feed.send(added("web/b@11")).unwrap();
    feed.send(added("web/c@12")).unwrap();
    informer.delivered_through("12").await;
    assert!(within("the slow handler", slow.synced()).await);
    assert_eq!(slow.backlog(), 2);
    permits.add_permits(2);
    informer.stop().await;
}

// kube-rs wakes only the last of several tasks that wait for one store.
#[tokio::test(start_paused = true)]
async fn all_tasks_that_wait_for_synced_are_woken() {
    let informer = TestInformer::new(Script::new().list("10", ["web/a@1"]).watch([StayOpen]), |options| options);
    let mut waits = JoinSet::new();
    for _ in 0..4 {
        let informer = informer.informer.clone();
        waits.spawn(async move { informer.synced().await });
    }
    quiet().await;
    informer.informer.start().unwrap();
    for _ in 0..4 {
        assert_eq!(within("all four", waits.join_next()).await.unwrap().unwrap(), Ok(()));
    }
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_version_can_be_waited_for_before_and_after_it_is_reached() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", []).watch([events]));
    let (waiting, version) = (informer.informer.clone(), ResourceVersion::from("12"));
    let mut wait = waiting.wait_for_version(&version).into_future();
    feed.send(added("web/a@11")).unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut wait).await.is_err());
    feed.send(bookmark("13")).unwrap();
    assert_eq!(within("the version", wait).await, Ok(()));
    assert_eq!(informer.informer.wait_for_version(&version).await, Ok(()));
    informer.stop().await;
}

// Decision 10.
#[tokio::test(start_paused = true)]
async fn a_restored_server_fails_waits_and_removes_the_version_of_the_store() {
    let script = Script::new()
        .list("30", ["web/a@5"])
        .watch([bookmark("31"), pause(5.0), Fail(interrupted())])
        .list("20", [])
        .list_hangs();
    let informer = TestInformer::start(script);
    informer.delivered_through("31").await;
    let waited = within("the wait to fail", informer.informer.wait_for_version(&"32".into())).await;
    assert_eq!(waited, Err(WaitError::VersionsRestarted));
    informer.script.asks(4).await;
    quiet().await;
    assert_eq!(informer.version(), None, "versions from before the restore are meaningless");
    assert_eq!(informer.contents(), ["web/a@5"], "the cache stays readable");
    informer.stop().await;
}
