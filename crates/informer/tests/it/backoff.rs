//! How long a reflector waits after a failure, and which request it sends next.

use std::time::Duration;

use kube_informer::{SourceError, Status};

use crate::script::{
    Act::{Fail, StayOpen},
    Answers, Script, TestReflector, added, bookmark, busy, gone, initial_end, interrupted, pause, status, unreachable,
};

/// The shortest delays, in milliseconds. Jitter may double each of them.
const DELAYS: [u128; 8] = [800, 1600, 3200, 6400, 12800, 25600, 30000, 30000];

fn assert_delays<const N: usize>(gaps: impl IntoIterator<Item = Duration>, expected: [u128; N]) {
    let gaps: Vec<u128> = gaps.into_iter().map(|gap| gap.as_millis()).collect();
    assert_eq!(gaps.len(), N, "{gaps:?}");
    let fits = |(gap, base): (&u128, &u128)| (*base..base * 2 + 2).contains(gap);
    assert!(
        gaps.iter().zip(&expected).all(fits),
        "each of {gaps:?} must be one to two times the delay in {expected:?}"
    );
}

/// Checks that requests were about one second apart, and a little further apart from the fifth second on.
fn assert_probes(gaps: impl IntoIterator<Item = Duration>) {
    let gaps: Vec<f64> = gaps.into_iter().map(|gap| gap.as_secs_f64()).collect();
    let mut lasts = 0.0;
    for gap in &gaps {
        let shortest = if lasts < 5.0 { 1.0 } else { 1.3 };
        assert!((shortest..shortest * 1.5 + 0.002).contains(gap), "{gap} after {lasts} s: {gaps:?}");
        lasts += gap;
    }
}

// Differs from: the reflector probes an unreachable server, so that the informer recovers soon after it.
#[tokio::test(start_paused = true)]
async fn star_09_a_server_that_does_not_answer_is_probed_about_every_second() {
    let scripts = [
        Script::streaming().times(9, |script| script.watch_refused(unreachable())),
        Script::new().times(9, |script| script.list_refused(unreachable())),
    ];
    for script in scripts {
        let reflector = TestReflector::start(script.clone());
        assert_probes(script.gaps(9).await);
        assert_eq!(reflector.stop().await.failures.len(), 9);
    }
}

// a list that breaks off costs the server a whole list, so the delays grow.
#[tokio::test(start_paused = true)]
async fn star_09_lists_that_break_off_are_repeated_with_delays_that_double_up_to_a_plateau() {
    let script = Script::new().times(9, |script| script.list_cut_off(["web/a@1"]));
    let reflector = TestReflector::start(script.clone());
    assert_delays(script.gaps(9).await, DELAYS);
    assert_eq!(reflector.stop().await.failures.len(), 9);
}

#[tokio::test(start_paused = true)]
async fn star_09_an_unreachable_server_does_not_cause_a_relist() {
    let script = Script::new()
        .list("10", [])
        .watch_refused(unreachable())
        .list_refused(unreachable())
        .list("12", [])
        .watch([StayOpen]);
    let reflector = TestReflector::start(script);
    // A list of one object is enough: its version tells whether the server was restored.
    let expected = ["list 0 limit=500 not older", "watch 10", "list - limit=1", "list - limit=1", "watch 10"];
    assert_eq!(reflector.asks(5).await, expected);
    assert_eq!(reflector.stop().await.pushed, ["replaced 10: "]);
}

#[tokio::test(start_paused = true)]
async fn star_10_each_busy_answer_costs_one_delay_whether_on_opening_or_in_the_stream() {
    // A server that refuses to open a watch may have been restored, so the reflector asks for its version before each
    // watch.
    let opening = |script: Script| script.watch_refused(busy()).list("10", []);
    let in_stream = |script: Script| script.watch([Fail(busy())]);
    let scripts: [(Answers, usize); 2] = [(opening, 2), (in_stream, 1)];
    for (answers, requests) in scripts {
        let script = Script::new().list("10", []).times(4, answers).watch([StayOpen]);
        let reflector = TestReflector::start(script.clone());
        let gaps = script.gaps(2 + 4 * requests).await;
        assert_probes(gaps.into_iter().skip(1).step_by(requests));
        assert_eq!(reflector.stop().await.failures.len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn star_10_the_server_may_ask_for_more_time_than_the_delay() {
    let status = Status { code: 429, retry_after: Some(Duration::from_secs(90)), ..Status::default() };
    let script =
        Script::new().list("10", []).watch_refused(SourceError::Status(status)).list("10", []).watch([StayOpen]);
    let reflector = TestReflector::start(script.clone());
    assert_eq!(script.gaps(4).await[1], Duration::from_secs(90));
    reflector.stop().await;
}

#[tokio::test(start_paused = true)]
async fn star_11_a_busy_server_is_not_listed_again() {
    let script =
        Script::new().list("10", []).times(2, |script| script.watch_refused(busy()).list("10", [])).watch([StayOpen]);
    let reflector = TestReflector::start(script);
    // A list of one object asks only for the server's version.
    let version_request = "list - limit=1";
    let expected = ["list 0 limit=500 not older", "watch 10", version_request, "watch 10", version_request, "watch 10"];
    assert_eq!(reflector.asks(6).await, expected);
    reflector.stop().await;
}

// Differs from R-35, B-07: there is no window in which internal errors are retried at once; each costs a delay.
#[tokio::test(start_paused = true)]
async fn star_12_internal_errors_are_never_retried_without_a_delay() {
    let fails =
        |script: Script| script.list("10", []).watch([bookmark("10"), pause(1.0), Fail(status(500, "InternalError"))]);
    let script = Script::new().times(4, fails).list("10", []).watch([StayOpen]);
    let reflector = TestReflector::start(script.clone());
    let asked = reflector.asks(10).await;
    assert_eq!(asked[..4], ["list 0 limit=500 not older", "watch 10", "list 10", "watch 10"]);
    let after_errors = script.gaps(9).await.into_iter().skip(1).step_by(2);
    assert_delays(after_errors.map(|gap| gap - Duration::from_secs(1)), [800, 1600, 3200, 6400]);
    reflector.stop().await;
}

#[tokio::test(start_paused = true)]
async fn b_01_the_end_of_an_outage_is_noticed_within_two_seconds_however_long_it_lasted() {
    let script = Script::new().times(400, |script| script.list_refused(unreachable()));
    let reflector = TestReflector::start(script.clone());
    assert_probes(script.gaps(400).await);
    reflector.stop().await;
}

#[tokio::test(start_paused = true)]
async fn b_01_a_watch_that_was_healthy_for_two_minutes_resets_the_backoff() {
    let healthy = |seconds: f64| {
        Script::new()
            .times(5, |script| script.list_cut_off([]))
            .list("10", [])
            .watch([bookmark("11"), pause(seconds), Fail(status(500, "InternalError"))])
            .list("12", [])
            .watch([StayOpen])
    };
    for (seconds, base) in [(119.0, 25600), (121.0, 800)] {
        let script = healthy(seconds);
        let reflector = TestReflector::start(script.clone());
        let gap = script.gaps(8).await[6] - Duration::from_secs_f64(seconds);
        assert_delays([gap], [base]);
        reflector.stop().await;
    }
}

// B-06: client-go reopens such watches as fast as it can.
#[tokio::test(start_paused = true)]
async fn b_06_a_server_that_ends_every_watch_after_one_event_is_asked_about_every_second() {
    let script = Script::new().list("10", []).times(5, |script| script.watch([bookmark("11")]));
    let reflector = TestReflector::start(script.clone());
    assert_probes(script.gaps(6).await.into_iter().skip(1));
    assert_eq!(reflector.stop().await.failures.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn b_06_a_server_that_breaks_every_connection_after_one_event_is_asked_about_every_second() {
    let script = Script::new()
        .list("10", [])
        .times(3, |script| script.watch([bookmark("11"), Fail(interrupted())]).list("11", []));
    let reflector = TestReflector::start(script.clone());
    let gaps = script.gaps(7).await;
    assert_probes([gaps[1], gaps[3], gaps[5]]);
    reflector.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_expiry_after_a_working_watch_waits_about_a_second_and_the_next_one_backs_off() {
    let script = Script::new()
        .list("10", [])
        .watch([added("web/a@11"), pause(1.0), Fail(gone())])
        .list("20", [])
        .watch([Fail(gone())])
        .list("30", [])
        .watch([added("web/a@31"), pause(1.0), Fail(gone())])
        .list("40", [])
        .watch([StayOpen]);
    let reflector = TestReflector::start(script.clone());
    let gaps = script.gaps(8).await;
    for gap in [gaps[1], gaps[5]] {
        // Less than the shortest backoff delay, but not zero: thousands of clients may have lost their version at the
        // same time.
        assert!((1.0..1.8).contains(&gap.as_secs_f64()), "{gaps:?}");
    }
    assert_delays([gaps[3]], [800]);
    assert_eq!(reflector.stop().await.failures.len(), 3, "every expiry is reported");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_each_watch_at_once_is_probed_about_every_second() {
    let script = Script::streaming().times(7, |script| script.watch([initial_end("5")]));
    let reflector = TestReflector::start(script.clone());
    assert_probes(script.gaps(7).await);
    reflector.stop().await;
}
