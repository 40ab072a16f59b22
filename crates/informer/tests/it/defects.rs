//! Known defects of client-go (`B-…`) and kube-rs that are absent here, where no other file shows it.

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

// R-36, B-02: in client-go only what fails on opening is reported.
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
        _ => "something else",
    };
    let errors: Vec<&str> = informer.errors().iter().map(what).collect();
    assert_eq!(errors, ["not streamed", "list", "incomplete", "expired", "very short"]);
    assert_eq!(informer.informer.health().parts[0].failures, 5);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn b_02_health_says_what_goes_on_and_since_when_nothing_was_heard() {
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

// B-05, B-03: nothing a server does makes a reflector ask without pause.
#[tokio::test(start_paused = true)]
async fn no_answer_makes_a_reflector_ask_in_a_hot_loop() {
    // What is answered once, and then again and again.
    let first_list: Answers = |script| script.list("10", []);
    let scripts: [(Answers, Answers); 10] = [
        (|script| script, |script| script.list("10", []).times(4, |script| script.watch([]))),
        (first_list, |script| script.watch([bookmark("11")])),
        (|script| script, |script| script.list("10", []).watch([Fail(gone())])),
        (|script| script, |script| script.list("11", []).watch([added("web/a@11"), Fail(gone())])),
        (|script| script, |script| script.list("10", []).watch_refused(gone())),
        (|script| script, |script| script.list("10", []).watch([Fail(status(500, "InternalError"))])),
        // It is asked how far it is before each watch.
        (first_list, |script| script.watch([bookmark("11"), Fail(interrupted())]).list("11", [])),
        (|script| script, |script| script.list_refused(gone()).list_refused(gone())),
        (|script| script, |script| script.list_cut_off(["web/a@1"])),
        // Each list is older than what was seen before: the server was restored again, and is asked once more.
        (
            |script| script.list("10", []).watch([added("web/a@11"), Fail(gone())]),
            |script| script.list("10", []).list("10", []).watch([added("web/a@11"), Fail(gone())]),
        ),
    ];
    for (number, (first, again)) in scripts.into_iter().enumerate() {
        let script = first(Script::new()).times(120, again).may_end_early();
        let reflector = TestReflector::start(script.clone());
        tokio::time::sleep(Duration::from_secs(60)).await;
        // Enough to show that it goes round. One that probes makes an attempt about every second, of at most two requests.
        let asked = script.asked().len();
        assert!((6..100).contains(&asked), "case {number}: {asked} requests in a minute: {:?}", script.asked());
        reflector.stop().await;
    }
}

// B-33: what client-go's shared informers cannot be told.
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

// B-37: in client-go a watch of nothing but objects of another kind looks as if nothing had come.
#[tokio::test(start_paused = true)]
async fn b_37_events_that_cannot_be_read_count_as_heard_and_move_the_version() {
    let unread = |text| Act::Event(WatchEvent::Modified(Decoded::Bad(bad(text))));
    let script =
        Script::new().list("10", []).watch([unread("web/a@11"), unread("web/b@12"), pause(1.0)]).watch([StayOpen]);
    let reflector = TestReflector::start(script);
    assert_eq!(reflector.asks(3).await, ["list 0 limit=500 not older", "watch 10", "watch 12"]);
    assert!(reflector.stop().await.failures.is_empty());
}

// B-48: in client-go a list whose keys cannot be computed counts as processed although nothing of it is stored.
#[tokio::test(start_paused = true)]
async fn b_48_synced_means_that_what_can_be_read_of_the_list_is_in_the_store() {
    let items = [Decoded::Object(thing("web/a@1")), Decoded::Bad(bad(""))];
    let informer = TestInformer::start(Script::new().list_items("10", items).watch([StayOpen]));
    informer.synced().await;
    assert_eq!(informer.keys(), ["web/a"]);
    assert_eq!(informer.errors().len(), 1, "and what cannot is reported");
    informer.stop().await;
}

// B-50: beyond a bound the reflector waits, and nothing is lost by it.
#[tokio::test(start_paused = true)]
async fn b_50_the_queue_is_bounded_however_fast_events_come() {
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
    // The closure holds the informer.
    handle.remove(RemoveMode::Drain).await.unwrap();
    informer.stop().await;
}

// kube-rs can freeze for ever when an object is deleted between being announced and being read.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_before_a_slow_handler_reads_of_it_freezes_nobody() {
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
    // Every event brings its object along, whatever became of it.
    let expected = [("Added(web/a@11)", false), ("Deleted(web/a@12, final)", false), ("Added(web/b@13)", true)];
    assert_eq!(*seen.lock(), expected.map(|(event, cached)| (event.to_owned(), cached)));
    informer.stop().await;
}

// kube-rs: a slow subscriber stalls the watch and everyone else.
#[tokio::test(start_paused = true)]
async fn a_handler_that_never_returns_holds_up_nobody_else() {
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
    assert!(within("a late one", handle.synced()).await);
    assert_eq!(late.all(), ["web/a initial add 5010"]);
    release.add_permits(1);
    informer.stop().await;
}

// kube-rs notices a dead peer after its timeout only, and asks nothing about the server it finds then.
#[tokio::test(start_paused = true)]
async fn a_connection_that_falls_silent_is_given_up_and_named() {
    let script = Script::new()
        .list("10", [])
        .watch([bookmark("11"), pause(40.0), bookmark("12"), pause(40.0), bookmark("13"), StayOpen])
        .list("13", [])
        .watch([StayOpen]);
    let reflector = TestReflector::start(script.clone());
    let asked = reflector.asks(4).await;
    assert_eq!(asked, ["list 0 limit=500 not older", "watch 10", "list - limit=1", "watch 13"]);
    // Bookmarks came every forty seconds: two and a half that are missing are enough.
    let gap = script.gaps(4).await[1];
    assert_eq!(gap.as_secs(), 80 + 100);
    let failures = reflector.stop().await.failures;
    let [ReflectorError::Silent { after }] = failures[..] else { panic!("{failures:?}") };
    assert_eq!(after.as_secs(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_bookmarks_that_outlives_what_was_agreed_is_given_up_and_says_after_how_long() {
    let script = Script::new().list("10", []).watch([StayOpen]).list("10", []).watch([StayOpen]);
    let reflector = TestReflector::start_with(script, options().page_size(10));
    reflector.asks(4).await;
    let failures = reflector.stop().await.failures;
    let [ReflectorError::Silent { after }] = failures[..] else { panic!("{failures:?}") };
    assert!((330..=630).contains(&after.as_secs()), "{after:?}");
}

// A server that repeats itself must not be listed without end.
#[tokio::test(start_paused = true)]
async fn a_continue_token_that_comes_twice_ends_the_list() {
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
async fn an_error_hook_that_panics_ends_nothing() {
    let items = [Decoded::Object(thing("web/a@1")), Decoded::Bad(bad("web/b@2"))];
    let script = Script::new().list_refused(busy()).list_items("10", items).watch([added("web/c@11"), StayOpen]);
    let informer = TestInformer::new(script, |options| options);
    informer.informer.on_error(|error| panic!("I cannot bear {error}"));
    informer.informer.start().unwrap();
    informer.delivered_through("11").await;
    assert_eq!(informer.keys(), ["web/a", "web/c"]);
    assert_eq!(informer.informer.health().parts[0].failures, 1);
    informer.stop().await;
}

/// Runs a test on a thread of its own, and fails if that thread stands still.
fn on_its_own_thread(test: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        done.send(()).expect("somebody waits");
    });
    match wait.recv_timeout(Duration::from_secs(20)) {
        Ok(()) => thread.join().expect("it is done"),
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the thread stands still"),
        Err(mpsc::RecvTimeoutError::Disconnected) => std::panic::resume_unwind(thread.join().expect_err("it panicked")),
    }
}

// The hook may take as long as it likes, and may call back.
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
                assert_ne!(thing.id().key.name(), "c", "not this one");
                None::<String>
            };
            informer.add_index("picky", index).unwrap();
            informer.start().unwrap();
            within("the last change", informer.wait_for_version(&"11".into())).await.unwrap();
            quiet().await;
            assert!(calls.lock().len() >= 2, "{:?}", calls.lock());
            informer.on_error(|_| {});
            within("the end", informer.stop()).await;
            script.check_over();
        });
    });
}
