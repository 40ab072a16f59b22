//! The requests of a reflector, and its next requests when one is refused.

use std::time::Duration;

use kube_informer::{InformerOptions, SourceError};

use crate::script::{
    Act::{self, Fail, StayOpen},
    Request, Script, TestInformer, TestReflector, added, bookmark, deleted, gone, initial_end, live, modified, options,
    pause, quiet, status, too_large,
};

/// An error that ends a watch and leaves its version usable.
fn broken() -> Act {
    Fail(status(500, "InternalError"))
}

/// Runs a reflector over the script, and compares its requests with the expected ones.
async fn check<const N: usize>(script: Script, options: InformerOptions, expected: [&str; N]) {
    let reflector = TestReflector::start_with(script, options);
    assert_eq!(reflector.asks(N).await, expected);
    reflector.stop().await;
}

//
#[tokio::test(start_paused = true)]
async fn star_07_one_streaming_request_sends_the_initial_state_and_continues_as_the_watch() {
    let script =
        Script::streaming().watch([added("web/a@3"), added("web/b@2"), initial_end("5"), added("web/c@6"), StayOpen]);
    let reflector = TestReflector::start(script.clone());
    assert_eq!(reflector.pushes(2).await, ["replaced 5: web/a@3 web/b@2", "added web/c@6"]);
    assert_eq!(reflector.asks(1).await, ["stream -"]);
    reflector.stop().await;
    assert_eq!(script.asked().len(), 1);
}

// Differs from R-11: with a limit, a version without "not older than" would mean exactly that version.
#[tokio::test(start_paused = true)]
async fn star_08_without_streaming_the_reflector_lists_pages_at_0_and_watches_at_their_version() {
    let script = Script::new().list("10", ["web/a@1"]).watch([StayOpen]);
    check(script, options(), ["list 0 limit=500 not older", "watch 10"]).await;
    // The same for a source that supports streaming if the options disable it.
    let script = Script::streaming().list("10", ["web/a@1"]).watch([StayOpen]);
    check(script, options().streaming(false), ["list 0 limit=500 not older", "watch 10"]).await;
}

//
#[tokio::test(start_paused = true)]
async fn star_13_an_explicit_page_size_is_used_even_with_a_version() {
    let script = Script::new()
        .page("10", ["web/a@1", "web/b@1", "web/c@1", "web/d@1"], "after d")
        .page("11", ["web/e@1", "web/f@1", "web/g@1", "web/h@1"], "after h")
        .list("12", ["web/i@1", "web/j@1"])
        .watch([broken()])
        .list("20", [])
        .watch([StayOpen]);
    let reflector = TestReflector::start_with(script, options().page_size(4));
    let first = [
        "list 0 limit=4 not older",
        "list - limit=4 from after d",
        "list - limit=4 from after h",
        "watch 10", // P-4: the version of the first page.
        "list 10 limit=4 not older",
        "watch 20",
    ];
    assert_eq!(reflector.asks(6).await, first);
    let all = "replaced 10: web/a@1 web/b@1 web/c@1 web/d@1 web/e@1 web/f@1 web/g@1 web/h@1 web/i@1 web/j@1";
    assert_eq!(reflector.stop().await.pushed[0], all);
}

#[tokio::test(start_paused = true)]
async fn star_14_a_relist_at_a_known_version_is_not_paged() {
    let script = Script::new().list("10", []).watch([broken()]).list("11", []).watch([StayOpen]);
    check(script, options(), ["list 0 limit=500 not older", "watch 10", "list 10", "watch 11"]).await;
}

#[tokio::test(start_paused = true)]
async fn star_15_after_a_paged_first_list_every_list_is_paged() {
    let script = Script::new()
        .page("10", ["web/a@1"], "next")
        .list("10", ["web/b@1"])
        .watch([broken()])
        .list("11", [])
        .watch([broken()])
        .list("12", [])
        .watch([StayOpen]);
    let expected = [
        "list 0 limit=500 not older",
        "list - limit=500 from next",
        "watch 10",
        "list 10 limit=500 not older",
        "watch 11",
        "list 11 limit=500 not older",
        "watch 12",
    ];
    check(script, options(), expected).await;
}

#[tokio::test(start_paused = true)]
async fn star_16_the_first_list_is_at_0_and_the_next_at_the_version_reached() {
    let script = Script::new().list("10", []).watch([bookmark("15"), broken()]).list("20", []).watch([StayOpen]);
    check(script, options(), ["list 0 limit=500 not older", "watch 10", "list 15", "watch 20"]).await;
}

// Differs in that the fallback is paged: B-38.
#[tokio::test(start_paused = true)]
async fn star_17_an_expired_version_is_replaced_at_once_by_the_most_recent_one() {
    let script = Script::new().list("10", []).watch([broken()]).list_refused(gone()).list("11", []).watch([StayOpen]);
    let reflector = TestReflector::start(script.clone());
    let expected = ["list 0 limit=500 not older", "watch 10", "list 10", "list - limit=500", "watch 11"];
    assert_eq!(reflector.asks(5).await, expected);
    assert_eq!(script.gaps(5).await[2], Duration::ZERO);
    reflector.stop().await;
}

// Differs: client-go lists once more at the version that the server just reported as expired.
#[tokio::test(start_paused = true)]
async fn star_17_a_version_that_expired_in_a_watch_is_not_used_for_a_list() {
    for expired in [gone, too_large] {
        let script = Script::new().list("10", []).watch([Fail(expired())]).list("11", []).watch([StayOpen]);
        check(script, options(), ["list 0 limit=500 not older", "watch 10", "list - limit=500", "watch 11"]).await;
    }
}

// a failed list of the most recent version is repeated, and only a success makes known versions usable again.
#[tokio::test(start_paused = true)]
async fn star_17_after_a_failed_list_of_the_most_recent_version_the_next_round_repeats_it() {
    let script = Script::new()
        .list("10", [])
        .watch([broken()])
        .list_refused(gone())
        .list_refused(status(500, "InternalError"))
        .list("11", [])
        .watch([broken()])
        .list("12", [])
        .watch([StayOpen]);
    let expected = [
        "list 0 limit=500 not older",
        "watch 10",
        "list 10",
        "list - limit=500",
        "list - limit=500",
        "watch 11",
        "list 11",
        "watch 12",
    ];
    check(script, options(), expected).await;
}

// P-5.
#[tokio::test(start_paused = true)]
async fn star_18_an_expired_page_leads_to_an_unpaged_list_at_the_same_version() {
    let script = Script::new()
        .list("10", [])
        .watch([broken()])
        .page("11", ["web/a@1", "web/b@2"], "next")
        .list_refused(gone())
        .list("12", ["web/a@1", "web/c@3"])
        .watch([StayOpen]);
    let reflector = TestReflector::start_with(script, options().page_size(2));
    let expected = [
        "list 0 limit=2 not older",
        "watch 10",
        "list 10 limit=2 not older",
        "list - limit=2 from next",
        "list 10",
        "watch 12",
    ];
    assert_eq!(reflector.asks(6).await, expected);
    assert_eq!(reflector.stop().await.pushed.last().unwrap(), "replaced 12: web/a@1 web/c@3");
}

// `over_http` tests the three forms of this error in HTTP responses.
#[tokio::test(start_paused = true)]
async fn star_19_a_version_that_the_server_has_not_reached_is_replaced_by_the_most_recent_one() {
    let script = Script::new()
        .list("10", [])
        .watch([broken()])
        .list_refused(too_large())
        .list("9", [])
        .list("9", [])
        .watch([StayOpen]);
    let reflector = TestReflector::start(script);
    let newest = "list - limit=500";
    let expected = ["list 0 limit=500 not older", "watch 10", "list 10", newest, newest, "watch 9"];
    assert_eq!(reflector.asks(6).await, expected);
    // A lower version than before: the server was restored, which starts a new epoch. The reflector discards the list
    // that revealed the restore, and lists again.
    assert_eq!(reflector.stop().await.pushed, ["replaced 10: ", "restarted", "replaced 9: "]);
}

//
#[tokio::test(start_paused = true)]
async fn star_20_the_timeout_of_a_watch_is_one_to_two_times_the_minimum() {
    const MINUTE: u64 = 60;
    for (least, expected) in [(None, 5 * MINUTE), (Some(1), 5 * MINUTE), (Some(30 * MINUTE), 30 * MINUTE)] {
        let script = Script::new().list("10", []).times(50, |script| script.watch([pause(1.0), bookmark("10")]));
        let options = least.map_or(options(), |least| options().watch_timeout(Duration::from_secs(least)));
        let reflector = TestReflector::start_with(script.may_end_early(), options);
        reflector.asks(51).await;
        let asked = reflector.script.log().asked;
        let timeouts: Vec<u64> = asked
            .iter()
            .filter_map(|(_, request)| match request {
                Request::Watch(options) => Some(options.timeout.as_secs()),
                Request::List(_) => None,
            })
            .collect();
        assert!(timeouts.iter().all(|seconds| (expected..=expected * 2).contains(seconds)), "{least:?}: {timeouts:?}");
        assert!(timeouts.iter().any(|seconds| *seconds != timeouts[0]), "the timeouts are random");
        reflector.stop().await;
    }
}

// Differs: client-go calls a hook. This store has a version that can be read and waited for.
#[tokio::test(start_paused = true)]
async fn star_21_the_version_follows_every_event_and_bookmark() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", []).watch([events]));
    informer.delivered_through("10").await;
    for (act, version) in
        [(added("web/a@20"), "20"), (bookmark("30"), "30"), (modified("web/a@40"), "40"), (deleted("web/a@50"), "50")]
    {
        feed.send(act).unwrap();
        quiet().await;
        assert_eq!(informer.version().as_deref(), Some(version));
    }
    informer.stop().await;
}

// the first events of a watch without a version are the current state, in no order.
#[tokio::test(start_paused = true)]
async fn a_watch_without_a_version_is_not_complete_before_its_first_change() {
    let script = Script::new()
        .list("", [])
        .watch([added("web/b@9"), pause(2.0)])
        .list("", [])
        .watch([added("web/b@9"), added("web/a@3"), modified("web/a@11"), pause(2.0)])
        .watch([StayOpen]);
    // Without a version the reflector cannot know which events it missed between two watches, so it lists again.
    let list = "list 0 limit=500 not older";
    check(script, options(), [list, "watch -", list, "watch -", "watch 11"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_cut_off_is_not_pushed() {
    let script = Script::new().list_cut_off(["web/a@1"]).list("10", ["web/a@1", "web/b@1"]).watch([StayOpen]);
    let reflector = TestReflector::start(script);
    assert_eq!(reflector.pushes(1).await, ["replaced 10: web/a@1 web/b@1"]);
    let failures = reflector.stop().await.failures;
    assert!(matches!(failures[0].source_error(), Some(SourceError::CutOff)), "{failures:?}");
}
