//! Known defects of client-go (`B-…`) and kube-rs that this library does not have, where no other file tests it.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use kube_informer::parts::{Decoded, WatchEvent};
use kube_informer::{
    BackoffOptions, Event, InformerError, Object as _, Phase, ReflectorError, RemoveMode, SharedInformer,
};
use parking_lot::Mutex;

use crate::script::{
    Act::{self, Fail, StayOpen},
    Answers, Request, Script, TestInformer, TestReflector, Thing, Told, added, bad, bookmark, busy, deleted, gone,
    initial_end, interrupted, live, modified, options, pause, quiet, status, thing, within,
};

// R-36, B-02: client-go reports a failure only if it happens while a list or a watch is opened.
#[tokio::test(start_paused = true)]
async fn b_02_every_failure_reaches_the_error_hook_and_health() {
    let script = Script::streaming()
        .watch_refused(status(500, "InternalError"))
        .list_refused(status(503, "ServiceUnavailable"))
        .watch([added("web/a@1")])
        .watch([initial_end("10"), bookmark("11"), pause(2.0), Fail(gone())])
        .watch([initial_end("20")])
        .watch([initial_end("30"), StayOpen]);
    let informer = TestInformer::start(script);
    informer.delivered_through("30").await;
    let what = |error: &InformerError| match error {
        InformerError::Reflector { error: ReflectorError::List(_), .. } => "list",
        InformerError::Reflector { error: ReflectorError::NotStreamed(_), .. } => "not streamed",
        InformerError::Reflector { error: ReflectorError::Incomplete(_), .. } => "incomplete",
        InformerError::Reflector { error: ReflectorError::Expired(_), .. } => "expired",
        InformerError::Reflector { error: ReflectorError::VeryShortWatch { .. }, .. } => "very short",
        _ => "another error",
    };
    let errors: Vec<&str> = informer.errors().iter().map(what).collect();
    assert_eq!(errors, ["not streamed", "list", "incomplete", "expired", "very short"]);
    assert_eq!(informer.informer.health().parts[0].failures, 5);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn b_02_health_shows_the_phase_and_the_time_since_the_last_event() {
    let (feed, events) = live();
    let script = Script::new().list("10", ["web/a@1"]).watch([events]);
    let informer = TestInformer::new(script, |options| options);
    let phase = |informer: &TestInformer| informer.informer.health().parts[0].phase.clone();
    assert_eq!(phase(&informer), Phase::New);
    assert_eq!(informer.informer.health().age(), None, "unknown rather than fresh");
    informer.informer.start().unwrap();
    informer.synced().await;
    quiet().await;
    assert_eq!(phase(&informer), Phase::Watching);
    assert!(informer.informer.health().is_watching());
    tokio::time::advance(Duration::from_secs(100)).await;
    assert!(informer.informer.health().age().unwrap() >= Duration::from_secs(100));
    feed.send(Fail(busy())).unwrap();
    quiet().await;
    assert!(matches!(phase(&informer), Phase::BackingOff { .. }), "{:?}", phase(&informer));
    assert!(!informer.informer.health().is_watching());
    let kept = informer.informer.clone();
    informer.stop().await;
    assert_eq!(kept.health().parts[0].phase, Phase::Stopped);
    assert!(kept.health().stopped);
}

// B-05, B-03: no answer of a server makes a reflector send requests without a pause.
#[tokio::test(start_paused = true)]
async fn no_answer_makes_a_reflector_send_requests_in_a_hot_loop() {
    // Each case has answers that are given once, and answers that are repeated.
    let first_list: Answers = |script| script.list("10", []);
    let scripts: [(Answers, Answers); 10] = [
        (|script| script, |script| script.list("10", []).times(4, |script| script.watch([]))),
        (first_list, |script| script.watch([bookmark("11")])),
        (|script| script, |script| script.list("10", []).watch([Fail(gone())])),
        (|script| script, |script| script.list("11", []).watch([added("web/a@11"), Fail(gone())])),
        (|script| script, |script| script.list("10", []).watch_refused(gone())),
        (|script| script, |script| script.list("10", []).watch([Fail(status(500, "InternalError"))])),
        // After an interruption the reflector asks for the server's version before each watch.
        (first_list, |script| script.watch([bookmark("11"), Fail(interrupted())]).list("11", [])),
        (|script| script, |script| script.list_refused(gone()).list_refused(gone())),
        (|script| script, |script| script.list_cut_off(["web/a@1"])),
        // Each list is older than the one before. The server was restored again, and the reflector asks once more.
        (
            |script| script.list("10", []).watch([added("web/a@11"), Fail(gone())]),
            |script| script.list("10", []).list("10", []).watch([added("web/a@11"), Fail(gone())]),
        ),
    ];
    for (number, (first, again)) in scripts.into_iter().enumerate() {
        let script = first(Script::new()).times(120, again).may_end_early();
        let reflector = TestReflector::start(script.clone());
        tokio::time::sleep(Duration::from_secs(60)).await;
        // Six requests show that the case repeats. A probing reflector makes about one attempt a second, of two
        // requests at most.
        let asked = script.asked().len();
        assert!((6..100).contains(&asked), "case {number}: {asked} requests in a minute: {:?}", script.asked());
        reflector.stop().await;
    }
}

// B-33: client-go's shared informers do not let the caller set these.
#[tokio::test(start_paused = true)]
async fn b_33_page_size_watch_timeout_and_backoff_can_be_set_on_an_informer() {
    let backoff = BackoffOptions { initial: Duration::from_secs(7), ..BackoffOptions::default() };
    let script = Script::new()
        .page("10", ["web/a@1"], "next")
        .list("10", [])
        .watch_refused(busy())
        .list("10", [])
        .watch([StayOpen]);
    let informer = TestInformer::start_with(script, |options| {
        options.page_size(1).watch_timeout(Duration::from_secs(3600)).backoff(backoff)
    });
    let gaps = informer.script.gaps(5).await;
    assert!((7.0..14.0).contains(&gaps[2].as_secs_f64()), "{gaps:?}");
    let asked = informer.script.log().asked;
    let Request::Watch(watch) = &asked[2].1 else { panic!("{asked:?}") };
    assert!((3600..=7200).contains(&watch.timeout.as_secs()));
    assert_eq!(informer.script.asked()[0], "list 0 limit=1 not older");
    informer.stop().await;
}

// B-37: to client-go a watch with only objects of another kind looks like a watch without events.
#[tokio::test(start_paused = true)]
async fn b_37_undecodable_events_count_as_received_and_advance_the_version() {
    let unread = |text| Act::Event(WatchEvent::Modified(Decoded::Bad(bad(text))));
    let script =
        Script::new().list("10", []).watch([unread("web/a@11"), unread("web/b@12"), pause(1.0)]).watch([StayOpen]);
    let reflector = TestReflector::start(script);
    assert_eq!(reflector.asks(3).await, ["list 0 limit=500 not older", "watch 10", "watch 12"]);
    assert!(reflector.stop().await.failures.is_empty());
}

// B-48: in client-go a list whose keys cannot be computed counts as processed, although none of its objects is stored.
#[tokio::test(start_paused = true)]
async fn b_48_synced_means_that_the_decodable_objects_of_the_list_are_in_the_store() {
    let items = [Decoded::Object(thing("web/a@1")), Decoded::Bad(bad(""))];
    let informer = TestInformer::start(Script::new().list_items("10", items).watch([StayOpen]));
    informer.synced().await;
    assert_eq!(informer.keys(), ["web/a"]);
    assert_eq!(informer.errors().len(), 1, "the undecodable object is reported");
    informer.stop().await;
}

// B-50: when the queue is full the reflector waits, and no event is lost.
#[tokio::test(start_paused = true)]
async fn b_50_the_queue_is_bounded_however_fast_events_arrive() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", []).watch([events]));
    informer.synced().await;
    for version in 11..20_011 {
        feed.send(modified(&format!("web/{}@{version}", version % 7))).unwrap();
    }
    let queued = Arc::new(Mutex::new(0));
    let (most, watched) = (queued.clone(), informer.informer.clone());
    let handle = informer.informer.on_event(move |_: Event<Thing>| {
        let mut most = most.lock();
        *most = watched.health().queued.max(*most);
    });
    informer.delivered_through("20010").await;
    quiet().await;
    assert_eq!(informer.told.len(), 20_000);
    assert!(*queued.lock() <= 2000, "{}", queued.lock());
    // The handler's closure holds the informer.
    handle.remove(RemoveMode::Drain).await.unwrap();
    informer.stop().await;
}

// kube-rs can hang for ever if an object is deleted between its event and a read of the store.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_deleted_before_a_slow_handler_reads_it_blocks_nothing() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", []).watch([events]));
    let (store, seen) = (informer.informer.store(), Arc::new(Mutex::new(Vec::new())));
    let sees = seen.clone();
    let slow = informer.informer.register().on_event_async(move |event: Event<Thing>| {
        let (store, sees) = (store.clone(), sees.clone());
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let cached = store.get(&event.key()).is_some();
            sees.lock().push((format!("{event:?}"), cached));
        }
    });
    for act in [added("web/a@11"), deleted("web/a@12"), added("web/b@13")] {
        feed.send(act).unwrap();
    }
    informer.delivered_through("13").await;
    within("the slow one", slow.remove(RemoveMode::Drain)).await.unwrap();
    // Every event carries its object, even if the store no longer has it.
    let expected = [("Added(web/a@11)", false), ("Deleted(web/a@12, final)", false), ("Added(web/b@13)", true)];
    assert_eq!(*seen.lock(), expected.map(|(event, cached)| (event.to_owned(), cached)));
    informer.stop().await;
}

// In kube-rs a slow subscriber stalls the watch and all other subscribers.
#[tokio::test(start_paused = true)]
async fn a_handler_that_never_returns_delays_no_other_handler() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
    let release = Arc::new(tokio::sync::Semaphore::new(0));
    let wait = release.clone();
    informer.informer.register().on_event_async(move |_: Event<Thing>| {
        let wait = wait.clone();
        async move { drop(wait.acquire().await.unwrap()) }
    });
    for version in 11..5011 {
        feed.send(modified(&format!("web/a@{version}"))).unwrap();
    }
    informer.delivered_through("5010").await;
    assert_eq!(informer.told.len(), 5001);
    let late = Told::default();
    let handle = informer.informer.on_event(late.handler());
    assert!(within("the late handler to sync", handle.synced()).await);
    assert_eq!(late.all(), ["web/a initial add 5010"]);
    release.add_permits(1);
    informer.stop().await;
}

// kube-rs notices a dead peer only after its timeout, and does not ask whether the server that answers next was
// restored.
#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_closed_and_reported() {
    let script = Script::new()
        .list("10", [])
        .watch([bookmark("11"), pause(40.0), bookmark("12"), pause(40.0), bookmark("13"), StayOpen])
        .list("13", [])
        .watch([StayOpen]);
    let reflector = TestReflector::start(script.clone());
    let asked = reflector.asks(4).await;
    assert_eq!(asked, ["list 0 limit=500 not older", "watch 10", "list - limit=1", "watch 13"]);
    // Bookmarks arrived every forty seconds. The reflector gives up after two and a half missing ones.
    let gap = script.gaps(4).await[1];
    assert_eq!(gap.as_secs(), 80 + 100);
    let failures = reflector.stop().await.failures;
    let [ReflectorError::Silent { after }] = failures[..] else { panic!("{failures:?}") };
    assert_eq!(after.as_secs(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_bookmarks_that_outlives_its_timeout_is_closed_and_the_error_names_the_time() {
    let script = Script::new().list("10", []).watch([StayOpen]).list("10", []).watch([StayOpen]);
    let reflector = TestReflector::start_with(script, options().page_size(10));
    reflector.asks(4).await;
    let failures = reflector.stop().await.failures;
    let [ReflectorError::Silent { after }] = failures[..] else { panic!("{failures:?}") };
    assert!((330..=630).contains(&after.as_secs()), "{after:?}");
}

// A server that repeats a continue token must not make the list endless.
#[tokio::test(start_paused = true)]
async fn a_repeated_continue_token_ends_the_list() {
    let script = Script::new()
        .page("10", ["web/a@1"], "same")
        .page("10", ["web/a@1"], "same")
        .list("11", ["web/a@1"])
        .watch([StayOpen]);
    let reflector = TestReflector::start(script);
    assert_eq!(reflector.pushes(1).await, ["replaced 11: web/a@1"]);
    assert!(matches!(reflector.stop().await.failures[..], [ReflectorError::RepeatedContinue]));
}

#[tokio::test(start_paused = true)]
async fn an_error_hook_that_panics_does_not_stop_the_informer() {
    let items = [Decoded::Object(thing("web/a@1")), Decoded::Bad(bad("web/b@2"))];
    let script = Script::new().list_refused(busy()).list_items("10", items).watch([added("web/c@11"), StayOpen]);
    let informer = TestInformer::new(script, |options| options);
    informer.informer.on_error(|error| panic!("the error hook panics on {error}"));
    informer.informer.start().unwrap();
    informer.delivered_through("11").await;
    assert_eq!(informer.keys(), ["web/a", "web/c"]);
    assert_eq!(informer.informer.health().parts[0].failures, 1);
    informer.stop().await;
}

/// Runs a test on its own thread, and fails if that thread hangs.
fn on_its_own_thread(test: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        done.send(()).expect("the test waits for the result");
    });
    match wait.recv_timeout(Duration::from_secs(20)) {
        Ok(()) => thread.join().expect("it is done"),
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the thread hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => std::panic::resume_unwind(thread.join().expect_err("it panicked")),
    }
}

// The hook may take long, and may call the informer.
#[test]
fn the_error_hook_may_read_the_cache_and_add_handlers() {
    on_its_own_thread(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let items = [Decoded::Object(thing("web/a@1")), Decoded::Bad(bad("web/b@2"))];
            let script = Script::new().list_items("10", items).watch([added("web/c@11"), StayOpen]);
            let informer = SharedInformer::builder(script.clone()).build();
            let (weak, calls) = (informer.clone(), Arc::new(Mutex::new(Vec::new())));
            let hears = calls.clone();
            informer.on_error(move |error| {
                weak.on_event(|_| {});
                hears.lock().push((error.to_string(), weak.store().len(), weak.store().version()));
            });
            let index = |thing: &Thing| {
                assert_ne!(thing.id().key.name(), "c", "the handler panics on this object");
                None::<String>
            };
            informer.add_index("picky", index).unwrap();
            informer.start().unwrap();
            within("the last change", informer.wait_for_version(&"11".into())).await.unwrap();
            quiet().await;
            assert!(calls.lock().len() >= 2, "{:?}", calls.lock());
            informer.on_error(|_| {});
            within("the informer to stop", informer.stop()).await;
            script.check_over();
        });
    });
}
