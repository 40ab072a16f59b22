//! Cancellation ends the reflector at once in every phase, and leaves no request open.

use kube_informer::{Phase, ReflectorError};
use tokio_util::sync::CancellationToken;

use crate::script::{Act::StayOpen, Script, TestInformer, TestReflector, bookmark, busy, options, pause, quiet};

#[tokio::test(start_paused = true)]
async fn star_01_cancelling_ends_the_run_and_closes_the_stream() {
    let reflector = TestReflector::start(Script::new().list("10", []).watch([StayOpen]));
    reflector.asks(2).await;
    quiet().await;
    let script = reflector.script.clone();
    assert_eq!((script.log().opened, script.log().closed), (1, 0));
    let noted = reflector.stop().await;
    assert_eq!((script.log().opened, script.log().closed), (1, 1));
    //
    assert!(noted.failures.is_empty(), "a cancellation is not reported as a failure");
    assert_eq!(noted.phases.last(), Some(&Phase::Stopped));
}

#[tokio::test(start_paused = true)]
async fn star_02_a_reflector_that_is_cancelled_before_its_start_sends_no_request() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let reflector = TestReflector::start_cancelled_by(Script::new(), options(), cancel);
    let script = reflector.script.clone();
    reflector.stop().await;
    assert_eq!(script.asked(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn star_03_cancelling_during_a_watch_closes_it_and_opens_no_other() {
    let reflector = TestReflector::start(Script::new().list("10", []).watch([bookmark("11"), StayOpen]));
    reflector.pushes(2).await;
    let script = reflector.script.clone();
    reflector.stop().await;
    assert_eq!(script.asked(), ["list 0 limit=500 not older", "watch 10"]);
    assert_eq!((script.log().opened, script.log().closed), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn star_04_cancelling_while_a_watch_is_being_opened_cancels_the_request() {
    let reflector = TestReflector::start(Script::new().list("10", []).watch_hangs());
    reflector.script.until(|log| log.hanging == 1).await;
    let script = reflector.script.clone();
    reflector.stop().await;
    assert_eq!((script.log().hanging, script.log().opened), (0, 0));
}

// B-39: in client-go a list continues after its reflector has ended.
#[tokio::test(start_paused = true)]
async fn star_04_cancelling_during_a_list_cancels_the_request() {
    let reflector = TestReflector::start(Script::new().page("10", ["web/a@1"], "next").list_hangs());
    reflector.script.until(|log| log.hanging == 1).await;
    let script = reflector.script.clone();
    let noted = reflector.stop().await;
    assert_eq!(script.log().hanging, 0);
    assert_eq!(noted.pushed, [""; 0], "an incomplete list is not pushed");
}

#[tokio::test(start_paused = true)]
async fn star_05_a_watch_that_ends_within_a_second_without_events_is_an_error() {
    for seconds in [0.0, 0.99] {
        let script = Script::new().list("10", []).times(4, |script| script.watch([pause(seconds)])).list_hangs();
        let reflector = TestReflector::start(script.clone());
        let failures = reflector.failures(1).await;
        assert!(matches!(failures[..], [ReflectorError::VeryShortWatch { .. }]), "{seconds} s: {failures:?}");
        assert_eq!(script.log().closed, 1);
        // such an error leads to a relist. Differs: only the fourth in a row does, because a list costs far more.
        let expected = ["list 0 limit=500 not older", "watch 10", "watch 10", "watch 10", "watch 10", "list 10"];
        assert_eq!(reflector.asks(6).await, expected);
        assert!(script.gaps(3).await[1].as_secs_f64() >= seconds + 0.8);
        reflector.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn star_05_a_watch_that_lasted_or_had_events_is_reopened_without_delay() {
    let script = Script::new().list("10", []).watch([pause(1.0), bookmark("12")]).watch([StayOpen]);
    let reflector = TestReflector::start(script.clone());
    assert_eq!(reflector.asks(3).await, ["list 0 limit=500 not older", "watch 10", "watch 12"]);
    assert_eq!(script.gaps(3).await[1].as_secs_f64(), 1.0, "no delay");
    assert!(reflector.stop().await.failures.is_empty());
}

//
#[tokio::test(start_paused = true)]
async fn an_informer_can_be_stopped_in_every_phase() {
    let scripts: [fn() -> Script; 6] = [
        || Script::new().list_hangs(),
        || Script::new().list("10", ["web/a@1"]).watch_hangs(),
        || Script::new().list("10", ["web/a@1"]).watch([StayOpen]),
        || Script::new().list_refused(crate::script::unreachable()),
        || Script::streaming().watch([crate::script::added("web/a@1"), StayOpen]),
        || Script::streaming().watch_refused(crate::script::busy()),
    ];
    for script in scripts {
        let informer = TestInformer::start(script());
        informer.script.asks(1).await;
        quiet().await;
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn health_keeps_the_last_twenty_failures() {
    let script = Script::new().times(25, |script| script.list_refused(busy())).list("10", []).watch([StayOpen]);
    let informer = TestInformer::start(script);
    informer.delivered_through("10").await;
    let health = informer.informer.health();
    assert_eq!((health.counts.failures, health.recent_failures.len()), (25, 20));
    assert!(health.recent_failures.is_sorted_by_key(|failure| failure.at), "{:?}", health.recent_failures);
    assert!(health.recent_failures.iter().all(|failure| failure.error.contains("429")), "{:?}", health.recent_failures);
    informer.stop().await;
}
