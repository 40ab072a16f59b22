//! Streaming lists: the initial state from a watch, and the fallback to lists where the server cannot stream.

use std::time::Duration;

use kube_informer::ReflectorError;

use crate::script::{
    Act::{Fail, StayOpen},
    Script, TestInformer, TestReflector, added, bookmark, busy, deleted, gone, initial_end, interrupted, live,
    modified, pause, quiet, status, too_large, unreachable,
};

//
#[tokio::test(start_paused = true)]
async fn star_23_the_cache_is_empty_until_the_end_of_the_initial_state_and_then_complete() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::streaming().watch([events]));
    feed.send(added("web/a@8")).unwrap();
    feed.send(added("web/b@3")).unwrap();
    quiet().await;
    assert_eq!((informer.version(), informer.informer.health().is_ready(), informer.keys().len()), (None, false, 0));
    feed.send(initial_end("9")).unwrap();
    informer.synced().await;
    assert_eq!(informer.version().as_deref(), Some("9"));
    // B-41: client-go announces the objects in no order. This library keeps the order of the server.
    assert_eq!(informer.told.all(), ["web/a initial add 8", "web/b initial add 3"]);
    informer.stop().await;
}

//
#[tokio::test(start_paused = true)]
async fn star_24_a_refused_stream_is_replaced_by_a_list() {
    for error in [status(422, "Invalid"), status(500, "InternalError")] {
        let script = Script::streaming().watch_refused(error).list("10", ["web/a@1"]).watch([StayOpen]);
        let reflector = TestReflector::start(script.clone());
        assert_eq!(reflector.asks(3).await, ["stream -", "list 0 limit=500 not older", "watch 10"]);
        assert!(script.gaps(3).await.iter().all(Duration::is_zero));
        // B-02: client-go does not report this failure.
        assert!(matches!(reflector.stop().await.failures[..], [ReflectorError::NotStreamed(_)]));
    }
}

// Differs: client-go also lists, and receives the same error twice.
#[tokio::test(start_paused = true)]
async fn star_24_a_forbidden_or_missing_resource_is_reported_once() {
    for error in [status(401, "Unauthorized"), status(403, "Forbidden"), status(404, "NotFound")] {
        let script = Script::streaming().watch_refused(error).watch([initial_end("5"), StayOpen]);
        let reflector = TestReflector::start(script.clone());
        assert_eq!(reflector.asks(2).await, ["stream -"; 2]);
        let gaps = script.gaps(2).await;
        assert!(gaps[0].as_secs_f64() >= 1.0, "{gaps:?}");
        reflector.pushes(1).await;
        assert!(matches!(reflector.stop().await.failures[..], [ReflectorError::Watch(_)]));
    }
}

#[tokio::test(start_paused = true)]
async fn star_24_an_error_inside_the_initial_stream_leads_to_a_list() {
    let script = Script::streaming()
        .watch([added("web/z@1"), Fail(status(500, "InternalError"))])
        .list("10", ["web/a@1"])
        .watch([StayOpen]);
    let reflector = TestReflector::start(script);
    assert_eq!(reflector.asks(3).await, ["stream -", "list 0 limit=500 not older", "watch 10"]);
    assert_eq!(reflector.stop().await.pushed, ["replaced 10: web/a@1"], "no object of the broken stream is used");
}

// Differs: client-go tries to stream in every round, even after a permanent refusal.
#[tokio::test(start_paused = true)]
async fn star_24_a_server_without_streaming_is_not_asked_to_stream_again_and_one_that_failed_is() {
    let then = |script: Script| script.list("10", []).watch([bookmark("11"), pause(5.0), Fail(gone())]);
    let script = then(Script::streaming().watch_refused(status(422, "Invalid"))).list("12", []).watch([StayOpen]);
    let reflector = TestReflector::start(script);
    let expected = ["stream -", "list 0 limit=500 not older", "watch 10", "list - limit=500", "watch 12"];
    assert_eq!(reflector.asks(5).await, expected);
    reflector.stop().await;

    let script = then(Script::streaming().watch_refused(status(500, "InternalError"))).watch([StayOpen]);
    let reflector = TestReflector::start(script);
    assert_eq!(reflector.asks(4).await, ["stream -", "list 0 limit=500 not older", "watch 10", "stream -"]);
    reflector.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_is_asked_to_stream_again_after_ten_minutes() {
    let script = Script::streaming()
        .watch_refused(status(422, "Invalid"))
        .list("10", [])
        .watch([bookmark("11"), pause(250.0)])
        .watch([bookmark("12"), pause(250.0)])
        .watch([bookmark("13"), pause(101.0), Fail(gone())])
        .watch([initial_end("20"), StayOpen]);
    let reflector = TestReflector::start(script);
    let expected = ["stream -", "list 0 limit=500 not older", "watch 10", "watch 11", "watch 12", "stream -"];
    assert_eq!(reflector.asks(6).await, expected);
    reflector.stop().await;
}

//
#[tokio::test(start_paused = true)]
async fn star_25_changes_before_the_end_of_the_initial_state_belong_to_it() {
    let script = Script::streaming().watch([
        added("web/a@1"),
        added("web/b@2"),
        added("web/c@3"),
        modified("web/a@5"),
        deleted("web/b@6"),
        added("web/d@7"),
        added("web/b@8"),
        deleted("web/c@9"),
        initial_end("9"),
        StayOpen,
    ]);
    let informer = TestInformer::start(script);
    informer.synced().await;
    assert_eq!(informer.contents(), ["web/a@5", "web/b@8", "web/d@7"]);
    assert_eq!(informer.told.len(), 3, "handlers receive each object once, in its last state");
    informer.stop().await;
}

//
#[tokio::test(start_paused = true)]
async fn star_26_a_request_to_a_busy_server_is_repeated_after_a_delay() {
    let script =
        Script::streaming().times(2, |script| script.watch_refused(busy())).watch([initial_end("5"), StayOpen]);
    let reflector = TestReflector::start(script.clone());
    assert_eq!(reflector.asks(3).await, ["stream -"; 3]);
    let gaps: Vec<f64> = script.gaps(3).await.iter().map(Duration::as_secs_f64).collect();
    assert!(gaps.iter().all(|gap| (1.0..1.5).contains(gap)), "{gaps:?}");
    reflector.pushes(1).await;
    reflector.stop().await;
}

// B-04: in client-go this wait cannot be cancelled.
#[tokio::test(start_paused = true)]
async fn star_26_the_delay_after_a_busy_answer_can_be_cancelled() {
    let reflector = TestReflector::start(Script::streaming().watch_refused(busy()));
    reflector.failures(1).await;
    let before = tokio::time::Instant::now();
    reflector.stop().await;
    assert_eq!(before.elapsed(), Duration::ZERO);
}

// Differs: client-go starts over at once and for ever (B-03). This reflector waits, and lists after the third attempt.
#[tokio::test(start_paused = true)]
async fn star_27_a_stream_that_ends_early_is_repeated_and_replaced_by_a_list_after_the_third_time() {
    let script = Script::streaming()
        .watch([added("web/old@1")])
        .watch([added("web/old@1"), Fail(interrupted())])
        .watch([added("web/old@1")])
        .list("10", ["web/a@1"])
        .watch([StayOpen]);
    let reflector = TestReflector::start(script.clone());
    let expected = ["stream -", "stream -", "stream -", "list 0 limit=500 not older", "watch 10"];
    assert_eq!(reflector.asks(5).await, expected);
    let gaps = script.gaps(5).await;
    assert!(gaps[0].as_secs_f64() >= 0.8 && gaps[1].as_secs_f64() >= 1.6 && gaps[2].is_zero(), "{gaps:?}");
    let noted = reflector.stop().await;
    assert_eq!(noted.pushed, ["replaced 10: web/a@1"]);
    assert_eq!(noted.failures.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn star_27_the_next_stream_replaces_one_that_ended_early() {
    let script = Script::streaming().watch([added("web/old@1")]).watch([added("web/a@2"), initial_end("5"), StayOpen]);
    let reflector = TestReflector::start(script);
    assert_eq!(reflector.pushes(1).await, ["replaced 5: web/a@2"]);
    reflector.stop().await;
}

#[tokio::test(start_paused = true)]
async fn star_28_a_stream_that_ends_after_the_initial_state_is_followed_by_a_plain_watch() {
    let script =
        Script::streaming().watch([initial_end("5"), added("web/a@7"), pause(1.0)]).watch([bookmark("8"), StayOpen]);
    let reflector = TestReflector::start(script.clone());
    assert_eq!(reflector.asks(2).await, ["stream -", "watch 7"]);
    assert_eq!(reflector.pushes(3).await.last().unwrap(), "bookmark 8");
    assert!(reflector.stop().await.failures.is_empty());
}

// Differs: after a watch that worked, the first expiry leads to a relist after a short delay.
#[tokio::test(start_paused = true)]
async fn star_29_an_expired_watch_is_reported_and_leads_to_a_new_stream() {
    let script = Script::streaming()
        .watch([initial_end("5"), bookmark("7"), pause(1.0)])
        .watch_refused(gone())
        .watch([initial_end("9"), StayOpen]);
    let reflector = TestReflector::start(script.clone());
    assert_eq!(reflector.asks(3).await, ["stream -", "watch 7", "stream -"]);
    assert!(script.gaps(3).await[1].as_secs_f64() < 0.8);
    assert_eq!(reflector.pushes(3).await, ["replaced 5: ", "bookmark 7", "replaced 9: "]);
    assert!(matches!(reflector.stop().await.failures[..], [ReflectorError::Expired(_)]));
}

// R-21; the annotation itself is tested in `over_http`.
#[tokio::test(start_paused = true)]
async fn star_30_an_ordinary_bookmark_does_not_end_the_initial_state() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::streaming().watch([events]));
    for act in [added("web/a@1"), bookmark("2"), added("web/b@2")] {
        feed.send(act).unwrap();
    }
    quiet().await;
    assert!(!informer.informer.health().is_ready());
    assert_eq!(informer.version(), None);
    feed.send(initial_end("3")).unwrap();
    informer.synced().await;
    assert_eq!(informer.keys(), ["web/a", "web/b"]);
    informer.stop().await;
}

// R-25, B-05: client-go repeats this for ever without a delay.
#[tokio::test(start_paused = true)]
async fn a_version_that_the_server_does_not_know_is_dropped_once_and_then_lists_are_used() {
    for error in [gone, too_large] {
        let script = Script::streaming()
            .watch([initial_end("5"), bookmark("6"), pause(2.0), Fail(status(500, "InternalError"))])
            .watch_refused(error())
            .watch_refused(error())
            .list("20", [])
            .watch([StayOpen]);
        let reflector = TestReflector::start(script);
        assert_eq!(reflector.asks(5).await, ["stream -", "stream 6", "stream -", "list - limit=500", "watch 20"]);
        reflector.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_stream_is_replaced_by_a_list() {
    let script = Script::streaming().watch([added("web/z@1"), StayOpen]).list("10", []).watch([StayOpen]);
    let reflector = TestReflector::start(script.clone());
    assert_eq!(reflector.asks(3).await, ["stream -", "list 0 limit=500 not older", "watch 10"]);
    assert_eq!(script.gaps(3).await[0], Duration::from_secs(30));
    assert_eq!(script.log().opened - script.log().closed, 1, "the stalled stream is closed");
    reflector.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_is_not_listed_instead_of_streamed() {
    let script = Script::streaming().watch_refused(unreachable()).watch([initial_end("5"), StayOpen]);
    let reflector = TestReflector::start(script);
    assert_eq!(reflector.asks(2).await, ["stream -"; 2]);
    reflector.stop().await;
}
