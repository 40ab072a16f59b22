//! Waiting for a version always ends with an answer.

use std::time::Duration;

use kube_informer::WaitError;

use crate::script::{
    Act::{Fail, StayOpen},
    Script, TestInformer, bookmark, interrupted, live, modified, pause, within,
};

// Hole 8: the restored server would reach this version only by chance.
#[tokio::test(start_paused = true)]
async fn waiting_for_a_version_from_before_a_restore_fails_also_after_the_restore() {
    let script = Script::new()
        .list("30", ["web/a@25"])
        .watch([bookmark("31"), pause(5.0), Fail(interrupted())])
        .list("20", [])
        .list("20", ["web/a@5"])
        .watch([StayOpen])
        .list("20", []);
    let informer = TestInformer::start(script);
    informer.delivered_through("31").await;
    informer.script.asks(5).await;
    informer.delivered_through("20").await;
    let waited = within("an answer", informer.informer.wait_for_version(&"25".into())).await;
    assert_eq!(waited, Err(WaitError::VersionsRestarted));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_version_from_after_a_restore_succeeds() {
    let (feed, events) = live();
    let script = Script::new()
        .list("30", ["web/a@25"])
        .watch([bookmark("31"), pause(5.0), Fail(interrupted())])
        .list("20", [])
        .list("20", ["web/a@5"])
        .watch([events])
        .list("25", []);
    let informer = TestInformer::start(script);
    informer.delivered_through("31").await;
    informer.script.asks(5).await;
    informer.delivered_through("20").await;
    let wanted = "25".into();
    let (waited, ()) = tokio::join!(within("an answer", informer.informer.wait_for_version(&wanted)), async {
        tokio::time::sleep(Duration::from_secs(15)).await; // Meanwhile the server reported this version.
        feed.send(modified("web/a@25")).unwrap();
    });
    assert_eq!(waited, Ok(()));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_version_that_cannot_be_compared_fails() {
    let informer = TestInformer::start(Script::new().list("v2", ["web/a@x"]).watch([StayOpen]));
    informer.synced().await;
    let waited = within("an answer", informer.informer.wait_for_version(&"v1".into())).await;
    assert_eq!(waited, Err(WaitError::NotComparable { version: "v1".into(), now: "v2".into() }));
    assert_eq!(within("an answer", informer.informer.wait_for_version(&"v2".into())).await, Ok(()));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_timed_out_wait_contains_the_last_state() {
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([StayOpen]));
    informer.synced().await;
    let limit = Duration::from_secs(3);
    let said = |error: WaitError| {
        assert!(matches!(error, WaitError::TimedOut { within, .. } if within == limit), "{error:?}");
        error.to_string()
    };
    let waits = informer.informer.wait_for_version(&"99".into()).within(limit).await;
    assert_eq!(said(waits.unwrap_err()), "waited 3s in vain: things is at version 10, watching");
    let waits = informer.informer.wait_for("web/a", |thing| thing.is_none()).within(limit).await;
    assert_eq!(said(waits.unwrap_err()), "waited 3s in vain: web/a is there at version 1, and things is watching");
    let waits = informer.informer.wait_for("web/b", |thing| thing.is_some()).within(limit).await;
    assert_eq!(said(waits.unwrap_err()), "waited 3s in vain: web/b is not there, and things is watching");
    informer.stop().await;
}
