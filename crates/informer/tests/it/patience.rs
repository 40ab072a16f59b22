//! How long a reflector waits for each kind of answer, and how it protects itself from servers that make it wait.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use kube_informer::internal::ByteMeter;
use kube_informer::parts::{
    Decoded, ListEnd, ListOptions, ListPart, ListStream, ListWatch, WatchEvent, WatchOptions, WatchStream,
};
use kube_informer::{
    BackoffOptions, IncompleteReason, InformerError, InformerOptions, ListReason, Phase, ReflectorError,
    SharedInformer, SourceError, Status,
};

use crate::script::{
    Act::{Fail, StayOpen},
    Script, TestInformer, TestReflector, Thing, added, bookmark, gone, initial_end, modified, options, pause, status,
    thing, within,
};

// Decision 19: events of an initial state do not prove that the watch is healthy, however long the initial state takes.
#[tokio::test(start_paused = true)]
async fn a_410_after_each_initial_stream_leads_to_growing_delays() {
    for initial in [0.0, 2.0] {
        let script = Script::streaming()
            .times(200, |script| script.watch([added("web/a@1"), pause(initial), initial_end("10"), Fail(gone())]))
            .may_end_early();
        let reflector = TestReflector::start(script.clone());
        tokio::time::sleep(Duration::from_secs(60)).await;
        let asked = script.asked().len();
        assert!((4..12).contains(&asked), "{asked} full relists in a minute, if each takes {initial} s");
        reflector.stop().await;
    }
}

// Decision 19: thousands of informers may receive the 410 of one compaction at the same time.
#[tokio::test(start_paused = true)]
async fn the_first_410_after_a_healthy_watch_relists_after_a_short_random_delay() {
    let mut moments = Vec::new();
    for seed in 0..8 {
        let script = Script::streaming()
            .watch([initial_end("10"), bookmark("11"), pause(5.0), Fail(gone())])
            .watch([initial_end("20"), StayOpen]);
        let reflector = TestReflector::start_with(script.clone(), InformerOptions::new().seed(seed));
        let gap = script.gaps(2).await[0] - Duration::from_secs(5);
        assert!(gap < Duration::from_millis(801), "{gap:?}");
        moments.push(gap);
        reflector.stop().await;
    }
    moments.dedup();
    assert_eq!(moments.len(), 8, "{moments:?}");
}

// Decision 6: bookmarks and changes show that the initial events are over.
#[tokio::test(start_paused = true)]
async fn an_initial_stream_without_an_end_mark_is_abandoned_although_changes_keep_coming() {
    let endless = |acts: Vec<_>| {
        let mut all = vec![added("web/a@1")];
        all.extend(acts);
        all
    };
    let changes: Vec<_> =
        (0..2000).flat_map(|number| [modified(&format!("web/a@{}", number + 2)), pause(0.1)]).collect();
    let script =
        Script::streaming().watch(endless(changes)).list("3000", ["web/a@2500"]).watch([StayOpen]).may_end_early();
    let reflector = TestReflector::start(script.clone());
    let gap = script.gaps(2).await[0];
    assert!((30..32).contains(&gap.as_secs()), "{gap:?}");
    let failures = reflector.failures(1).await;
    assert!(matches!(failures[0], ReflectorError::Incomplete(IncompleteReason::NoEnd(_))), "{failures:?}");
    reflector.stop().await;
}

/// A source that sends a given number of bytes a second. One object has a thousand bytes.
struct Dripping {
    bytes: usize,
}

impl Dripping {
    fn drip<I: Send + 'static>(&self, item: fn() -> I) -> (BoxStream<'static, I>, ByteMeter) {
        let (meter, bytes) = (ByteMeter::default(), self.bytes);
        let counted = meter.clone();
        let drops = stream::unfold(0, move |mut pending: usize| {
            let counted = counted.clone();
            async move {
                while pending < 1000 {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    counted.add(bytes);
                    counted.set_within(true);
                    pending += bytes;
                }
                Some(((), pending - 1000))
            }
        });
        (drops.map(move |()| item()).boxed(), meter)
    }
}

impl ListWatch<Thing> for Dripping {
    async fn list(&self, _: ListOptions) -> Result<ListStream<Thing>, SourceError> {
        let (drops, meter) = self.drip(|| Ok(ListPart::Item(Decoded::Object(thing("web/a@1")))));
        Ok(ListStream::metered(drops, meter))
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<Thing>, SourceError> {
        if options.initial_events {
            let (drops, meter) = self.drip(|| Ok(WatchEvent::Added(Decoded::Object(thing("web/a@1")))));
            return Ok(WatchStream::metered(drops, meter));
        }
        Ok(WatchStream::new(stream::pending()))
    }
}

// Hole 3: progress is measured in bytes and objects. A single byte is no progress.
#[tokio::test(start_paused = true)]
async fn a_stream_and_a_list_with_nine_bytes_a_second_are_abandoned() {
    let informer = SharedInformer::builder(Dripping { bytes: 9 }).options(options()).build();
    let errors = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let hook = errors.clone();
    informer.on_error(move |error| hook.lock().push(error.clone()));
    informer.start().unwrap();
    tokio::time::sleep(Duration::from_secs(65)).await;
    let errors = errors.lock().clone();
    let stalled = |error: &InformerError| match error {
        InformerError::Reflector { error: ReflectorError::Incomplete(IncompleteReason::Stalled(_)), .. } => "stream",
        InformerError::Reflector { error: ReflectorError::List(SourceError::Stalled { .. }), .. } => "list",
        _ => "another error",
    };
    assert_eq!(errors.iter().map(stalled).collect::<Vec<_>>(), ["stream", "list"], "{errors:?}");
    within("the informer to stop", informer.stop_within(Duration::from_secs(1))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_reflector_waits_for_a_slow_list_that_makes_progress() {
    let informer = SharedInformer::builder(Dripping { bytes: 700 }).options(options()).build();
    informer.start().unwrap();
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(informer.health().counts.failures, 0);
    assert!(matches!(informer.health().parts[0].phase, Phase::Streaming { .. }));
    assert!(informer.health().counts.events >= 150);
    within("the informer to stop", informer.stop_within(Duration::from_secs(1))).await.unwrap();
}

// Decision 19.
#[tokio::test(start_paused = true)]
async fn a_retry_after_of_a_day_is_limited_to_five_minutes() {
    for asked_for in [Duration::from_secs(86_400), Duration::MAX] {
        let busy = Status { code: 429, retry_after: Some(asked_for), ..Status::default() };
        let script = Script::new().list_refused(SourceError::Status(busy)).list("10", []).watch([StayOpen]);
        let reflector = TestReflector::start(script.clone());
        assert_eq!(script.gaps(2).await[0], Duration::from_secs(300));
        script.asks(3).await;
        reflector.stop().await;
    }
}

// Decision 19: every `Duration` is a legal setting, `MAX` included.
#[tokio::test(start_paused = true)]
async fn the_longest_duration_is_legal_for_every_setting() {
    let backoff =
        BackoffOptions { initial: Duration::MAX, max: Duration::MAX, factor: 1e9, reset_after: Duration::MAX };
    let script = Script::new().list("10", ["web/a@1"]).watch([modified("web/a@11"), StayOpen]);
    let informer = TestInformer::start_with(script, |options| {
        options
            .backoff(backoff)
            .watch_timeout(Duration::MAX)
            .progress_deadline(Duration::MAX)
            .resync_period(Duration::MAX)
            .relist_period(Duration::MAX)
    });
    informer.delivered_through("11").await;
    let handle = informer.informer.register().resync_period(Duration::MAX).on_event(|_| {});
    assert!(within("the late handler to sync", handle.synced()).await);
    informer.informer.synced().within(Duration::MAX).await.unwrap();
    assert!(!informer.informer.health().stopped);
    informer.stop().await;
}

// Decision 19: a reflector does not send full lists to an unavailable server.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_temporarily_is_retried_at_the_same_version() {
    for code in [429, 502, 503, 504] {
        let script =
            Script::new().list("10", []).watch_refused(status(code, "Unavailable")).list("10", []).watch([StayOpen]);
        let reflector = TestReflector::start(script);
        let expected = ["list 0 limit=500 not older", "watch 10", "list - limit=1", "watch 10"];
        assert_eq!(reflector.asks(4).await, expected, "{code}");
        reflector.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_with_500_is_retried_three_times_before_a_relist() {
    let refused = || status(500, "InternalError");
    let script = Script::new()
        .list("10", [])
        .watch_refused(refused())
        .times(3, |script| script.list("10", []).watch_refused(refused()))
        .list("12", [])
        .watch([StayOpen]);
    let reflector = TestReflector::start(script);
    let asked = reflector.asks(10).await;
    assert_eq!(asked[1], "watch 10");
    assert_eq!(asked.iter().filter(|asked| *asked == "watch 10").count(), 4);
    assert_eq!(asked[8..], ["list 10", "watch 12"]);
    reflector.stop().await;
}

// Decision 19: every wait ends early for `relist()`.
#[tokio::test(start_paused = true)]
async fn a_requested_relist_ends_every_wait_early() {
    let patient = BackoffOptions { initial: Duration::from_secs(3600), ..BackoffOptions::default() };
    let script = Script::new().list_refused(status(500, "InternalError")).list("10", ["web/a@1"]).watch([StayOpen]);
    let informer = TestInformer::start_with(script.clone(), |options| options.backoff(patient));
    script.asks(1).await;
    informer.informer.relist().within(Duration::from_secs(1)).await.unwrap();
    assert_eq!(informer.keys(), ["web/a"]);
    informer.stop().await;
}

// Decision 18: a reflector keeps the known interval of bookmarks from one watch to the next.
#[tokio::test(start_paused = true)]
async fn a_half_open_connection_is_noticed_within_two_and_a_half_bookmark_intervals_of_the_watch_before() {
    let script = Script::streaming()
        .watch([initial_end("10"), pause(60.0), bookmark("11"), pause(60.0), bookmark("12"), pause(1.0)])
        .watch([StayOpen])
        .list("12", [])
        .watch([bookmark("13"), StayOpen]);
    let reflector = TestReflector::start(script.clone());
    let gaps = script.gaps(4).await;
    // Two and a half intervals, and the delay before the reflector replaces a connection without events.
    assert!((150..152).contains(&gaps[1].as_secs()), "{gaps:?}");
    reflector.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_marked_the_end_of_an_initial_state_is_expected_to_send_bookmarks() {
    let script = Script::streaming().watch([initial_end("10"), StayOpen]).list("10", []).watch([StayOpen]);
    let reflector = TestReflector::start(script.clone());
    let gaps = script.gaps(3).await;
    assert!((150..152).contains(&gaps[0].as_secs()), "{gaps:?}");
    let failures = reflector.stop().await.failures;
    assert!(matches!(failures[..], [ReflectorError::Silent { after }] if after.as_secs() == 150), "{failures:?}");
}

// Decision 10, after a restore: a server that was not restarted may answer version 0 from its old cache.
#[tokio::test(start_paused = true)]
async fn after_a_restore_the_reflector_lists_the_most_recent_state() {
    let script = Script::new()
        .list("30", ["web/a@25"])
        .watch([bookmark("31"), pause(5.0), Fail(crate::script::interrupted())])
        .list("20", ["web/a@5"])
        .list("20", ["web/a@5"])
        .watch([StayOpen]);
    let informer = TestInformer::start(script);
    let asked = informer.script.asks(5).await;
    assert_eq!(asked[2..], ["list - limit=1", "list - limit=500", "watch 20"]);
    informer.delivered_through("20").await;
    assert_eq!(informer.contents(), ["web/a@5"]);
    assert_eq!(informer.informer.health().counts.lists.get(&ListReason::Restored), Some(&1));
    informer.stop().await;
}

// Decision 17.
#[tokio::test(start_paused = true)]
async fn a_missing_resource_parks_the_informer_which_then_asks_seldom_and_reports_it_once() {
    let missing = || status(404, "NotFound");
    let script = Script::streaming()
        .watch([added("web/a@1"), initial_end("10"), bookmark("11"), pause(2.0), Fail(gone())])
        .times(100, |script| script.watch_refused(missing()))
        .may_end_early();
    let informer = TestInformer::start(script.clone());
    informer.synced().await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(matches!(informer.informer.health().parts[0].phase, Phase::Parked { .. }));
    let asked = script.asked().len();
    assert!((35..60).contains(&asked), "{asked} requests in five minutes");
    let last = script.log().asked.windows(2).last().map(|pair| pair[1].0 - pair[0].0);
    assert!(last >= Some(Duration::from_secs(30)), "{last:?}");
    let told = informer.errors().iter().filter(|error| error.status().is_some_and(|status| status.code == 404)).count();
    assert_eq!(told, 1);
    assert_eq!(informer.keys(), ["web/a"], "the cache stays");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_stream_is_one_request_and_one_error_and_does_not_disable_streaming() {
    let script = Script::streaming().watch_refused(status(403, "Forbidden")).watch([initial_end("10"), StayOpen]);
    let informer = TestInformer::start(script);
    informer.synced().await;
    let errors: Vec<String> = informer.errors().iter().map(ToString::to_string).collect();
    assert_eq!(errors, ["watch failed: server answered 403 Forbidden: scripted"]);
    informer.stop().await;
}

// Hole 11.
#[tokio::test(start_paused = true)]
async fn pages_are_followed_also_after_a_fallback_list() {
    let script = Script::new()
        .page("10", ["web/a@1"], "two")
        .list_refused(gone())
        .page("12", ["web/a@1"], "other")
        .list("12", ["web/b@2"])
        .watch([StayOpen]);
    let reflector = TestReflector::start(script);
    assert_eq!(reflector.pushes(1).await, ["replaced 12: web/a@1 web/b@2"]);
    reflector.stop().await;
}

/// A source whose lists never end.
struct Endless {
    empty: bool,
}

impl ListWatch<Thing> for Endless {
    async fn list(&self, options: ListOptions) -> Result<ListStream<Thing>, SourceError> {
        let page: u64 = options.continue_token.map_or(0, |token| token.parse().unwrap());
        let things = if self.empty { vec![] } else { vec![thing(&format!("web/{page}@1"))] };
        let continue_token = Some((page + 1).to_string());
        Ok(ListStream::complete(things, ListEnd { version: Some("10".into()), continue_token, remaining: None }))
    }

    async fn watch(&self, _: WatchOptions) -> Result<WatchStream<Thing>, SourceError> {
        Ok(WatchStream::new(stream::pending()))
    }

    fn supports_streaming_lists(&self) -> bool {
        false
    }
}

#[tokio::test(start_paused = true)]
async fn an_endless_list_is_a_typed_error() {
    for (empty, most) in [(true, 20), (false, 100_000)] {
        let informer = SharedInformer::builder(Endless { empty }).options(options()).build();
        let (sender, mut errors) = tokio::sync::mpsc::unbounded_channel();
        informer.on_error(move |error| drop(sender.send(error.clone())));
        informer.start().unwrap();
        let error = within("the error", errors.recv()).await.unwrap();
        let InformerError::Reflector { error: ReflectorError::EndlessList { pages, .. }, .. } = error else {
            panic!("{error}")
        };
        assert!(pages <= most, "{pages} pages");
        informer.stop().await;
    }
}
