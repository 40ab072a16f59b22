//! Handlers are added and removed at any time. Each receives every event in order, at its own pace, and none after its
//! removal.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kube_informer::{
    Delivery, Event, EventHandler, InformerError, Object as _, RemoveError, RemoveMode, SharedInformer, StartError,
};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

use crate::script::{
    Act::StayOpen, NoTaskLeft, Script, TestInformer, Thing, Told, added, deleted, live, modified, on_the_real_clock,
    options, quiet, within,
};

fn small() -> Script {
    Script::new().list("10", ["web/a@1", "web/b@2"]).watch([StayOpen])
}

/// Returns a handler that takes one event for each permit, and records the begin and the end of each call.
fn slow(permits: &Arc<Semaphore>, calls: &Arc<Mutex<Vec<String>>>) -> impl AsyncHandler {
    let (permits, calls) = (permits.clone(), calls.clone());
    move |event: Event<Thing>| {
        let (permits, calls) = (permits.clone(), calls.clone());
        Box::pin(async move {
            calls.lock().push(format!("begin {}", event.key()));
            permits.acquire().await.expect("it is never closed").forget();
            calls.lock().push(format!("end {}", event.key()));
        }) as std::pin::Pin<Box<dyn Future<Output = ()> + Send>>
    }
}

trait AsyncHandler: FnMut(Event<Thing>) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + Send + 'static {}

impl<F> AsyncHandler for F where
    F: FnMut(Event<Thing>) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + Send + 'static
{
}

// SI-5, SI-6. A handler cannot be removed twice, or from another informer: `remove` consumes the handle.
#[tokio::test(start_paused = true)]
async fn star_51_each_registration_is_its_own_and_removing_one_leaves_the_others() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
    let twice = Told::default();
    let first = informer.informer.on_event(twice.handler());
    let second = informer.informer.on_event(twice.handler());
    assert!(within("both", first.synced()).await && second.synced().await);
    assert_eq!(twice.of("web/a"), ["initial add 1"; 2], "a handler that is registered twice receives each event twice");
    assert_eq!(within("the first", first.remove(RemoveMode::Drain)).await, Ok(()));
    feed.send(modified("web/a@11")).unwrap();
    informer.delivered_through("11").await;
    quiet().await;
    assert_eq!(twice.of("web/a"), ["initial add 1", "initial add 1", "update 1 to 11"]);
    assert_eq!(within("the second", second.remove(RemoveMode::Discard)).await, Ok(()));
    feed.send(modified("web/a@12")).unwrap();
    informer.delivered_through("12").await;
    quiet().await;
    assert_eq!(twice.len(), 3, "a removed handler receives nothing");
    assert_eq!(informer.told("web/a"), ["initial add 1", "update 1 to 11", "update 11 to 12"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn star_51_dropping_a_handle_leaves_the_handler_in_place() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", []).watch([events]));
    let told = Told::default();
    drop(informer.informer.on_event(told.handler()));
    feed.send(added("web/a@11")).unwrap();
    within("the handler", told.reaches(1)).await;
    informer.stop().await;
}

// B-14. Lag is a time: a backlog alone does not distinguish a burst from a handler that hangs.
#[tokio::test(start_paused = true)]
async fn the_lag_of_a_handler_is_how_long_its_oldest_event_has_waited() {
    for delivery in [Delivery::default(), Delivery::Latest] {
        let (feed, events) = live();
        let informer = TestInformer::start(Script::new().list("10", []).watch([events]));
        let (permits, calls) = (Arc::new(Semaphore::new(0)), Arc::default());
        let handle = informer.informer.register().delivery(delivery).on_event_async(slow(&permits, &calls));
        assert!(within("a handler without events to sync", handle.synced()).await);
        assert_eq!((handle.backlog(), handle.lag()), (0, Duration::ZERO));
        feed.send(added("web/a@11")).unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        feed.send(added("web/b@12")).unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(
            (handle.backlog(), handle.lag().as_secs()),
            (2, 8),
            "the event that the handler is processing counts"
        );
        permits.add_permits(1);
        quiet().await;
        assert_eq!((handle.backlog(), handle.lag().as_secs()), (1, 3), "{delivery:?}");
        permits.add_permits(1);
        quiet().await;
        assert_eq!((handle.backlog(), handle.lag()), (0, Duration::ZERO));
        informer.stop().await;
    }
}

/// Checks that each object is added first, then updated from the state of the previous event, and then deleted.
#[derive(Default)]
struct Consistent(BTreeMap<String, String>);

impl Consistent {
    fn see(&mut self, event: &Event<Thing>) {
        let (key, new) = (event.key().to_string(), event.object().id().version.to_owned());
        match event {
            Event::Added { .. } => assert_eq!(self.0.insert(key, new), None, "{event:?} of a known object"),
            Event::Updated { old, .. } => {
                assert_eq!(self.0.insert(key, new).as_deref(), Some(old.id().version), "{event:?}");
            }
            Event::Resynced(_) => assert_eq!(self.0.get(&key), Some(&new)),
            Event::Deleted(_) => assert!(self.0.remove(&key).is_some(), "{event:?} of an unknown object"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn star_52_handlers_can_be_added_and_removed_by_a_hundred_tasks_during_ten_thousand_events_and_the_end() {
    on_the_real_clock(abuse()).await;
}

async fn abuse() {
    let (feed, events) = live();
    let script = Script::new().list("10", ["web/0@1"]).watch([events]);
    let informer = TestInformer::start(script);
    let (mut tasks, inconsistent) = (JoinSet::new(), Arc::new(Mutex::new(Vec::new())));
    for number in 0..100 {
        let (informer, inconsistent) = (informer.informer.clone(), inconsistent.clone());
        tasks.spawn(async move {
            let mut random = StdRng::seed_from_u64(number);
            let mut rounds = 0;
            while !informer.health().stopped || rounds < 3 {
                rounds += 1;
                let (mut seen, inconsistent) = (Consistent::default(), inconsistent.clone());
                let handle = informer.on_event(move |event: Event<Thing>| {
                    let check = std::panic::AssertUnwindSafe(|| seen.see(&event));
                    if std::panic::catch_unwind(check).is_err() {
                        inconsistent.lock().push(format!("{event:?}"));
                    }
                });
                match random.random_range(0..3) {
                    0 => drop(handle.synced().await),
                    1 => tokio::task::yield_now().await,
                    _ => {}
                }
                let removal = if random.random() { RemoveMode::Drain } else { RemoveMode::Discard };
                handle.remove(removal).await.expect("it is not its own callback");
            }
        });
    }
    for version in 11..10_011 {
        let (number, turn) = (version % 50, version / 50);
        let name = format!("web/{number}@{version}");
        feed.send(if turn % 5 == 4 { deleted(&name) } else { modified(&name) }).expect("the watch is open");
        if version % 500 == 0 {
            tokio::task::yield_now().await;
        }
    }
    informer.delivered_through("10010").await;
    informer.informer.stop().await;
    while let Some(ended) = within("the tasks", tasks.join_next()).await {
        ended.expect("it did not panic");
    }
    assert_eq!(*inconsistent.lock(), [""; 0]);
    assert_eq!(informer.told.len(), 10_001);
    informer.script.check_over();
}

// SI-3. Differs: registering is no error. The handle never syncs.
#[tokio::test(start_paused = true)]
async fn star_53_a_handler_added_after_the_end_is_never_called_and_can_be_removed() {
    let informer = TestInformer::start(small());
    informer.synced().await;
    let before = informer.informer.on_event(|_| {});
    informer.informer.stop().await;
    let told = Told::default();
    let after = informer.informer.on_event(told.handler());
    assert!(!within("a handler that was added after the end", after.synced()).await);
    assert_eq!(told.len(), 0);
    for handle in [before, after] {
        assert_eq!(within("its removal", handle.remove(RemoveMode::Drain)).await, Ok(()));
    }
    assert_eq!(informer.informer.start(), Err(StartError::Stopped("things".into())));
    assert_eq!(informer.keys(), ["web/a", "web/b"], "the cache stays readable");
    informer.stop().await;
}

// SI-7.
#[tokio::test(start_paused = true)]
async fn star_54_a_late_handler_receives_the_cached_objects_and_then_every_change() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1", "web/b@2"]).watch([events]));
    feed.send(modified("web/a@11")).unwrap();
    informer.delivered_through("11").await;
    let (permits, calls) = (Arc::new(Semaphore::new(0)), Arc::default());
    let late = informer.informer.register().on_event_async(slow(&permits, &calls));
    assert!(!late.is_synced());
    feed.send(deleted("web/a@12")).unwrap();
    feed.send(added("web/c@13")).unwrap();
    informer.delivered_through("13").await;
    assert_eq!(
        informer.told("web/a"),
        ["initial add 1", "update 1 to 11", "delete 12"],
        "the fast handler does not wait for the slow one"
    );
    assert!(!late.is_synced());
    assert_eq!(late.backlog(), 4);
    permits.add_permits(2);
    assert!(within("its replay", late.synced()).await, "synced does not wait for events after the replay");
    permits.add_permits(2);
    quiet().await;
    let mut calls: Vec<String> = calls.lock().iter().filter(|call| call.starts_with("end")).cloned().collect();
    calls[..2].sort();
    assert_eq!(calls, ["end web/a", "end web/b", "end web/a", "end web/c"]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn star_54_a_late_handler_receives_the_current_state_as_initial_adds() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
    feed.send(modified("web/a@11")).unwrap();
    informer.delivered_through("11").await;
    let told = Told::default();
    let late = informer.informer.on_event(told.handler());
    within("its replay", late.synced()).await;
    feed.send(deleted("web/a@12")).unwrap();
    within("the tail", told.reaches(2)).await;
    assert_eq!(told.of("web/a"), ["initial add 11", "delete 12"]);
    informer.stop().await;
}

// N-7, B-12. Differs: a panic counts as handled, there is no pause, and it is reported.
#[tokio::test(start_paused = true)]
async fn star_55_a_handler_that_panics_affects_no_other_handler_and_receives_the_other_events() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1", "web/b@2"]).watch([events]));
    let (sync_calls, async_calls) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = sync_calls.clone();
    let panics = informer.informer.on_event(move |event: Event<Thing>| {
        counted.fetch_add(1, Ordering::Relaxed);
        panic!("not {}", event.key());
    });
    let counted = async_calls.clone();
    let panics_later = informer.informer.register().on_event_async(move |event: Event<Thing>| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move {
            tokio::task::yield_now().await;
            panic!("not {}", event.key());
        }
    });
    assert!(within("one", panics.synced()).await && within("the other", panics_later.synced()).await);
    let before = tokio::time::Instant::now();
    feed.send(added("web/c@11")).unwrap();
    informer.delivered_through("11").await;
    quiet().await;
    assert_eq!((sync_calls.load(Ordering::Relaxed), async_calls.load(Ordering::Relaxed)), (3, 3));
    assert!(before.elapsed() < Duration::from_millis(10));
    assert_eq!(informer.told.len(), 3);
    let panicked = |error: &InformerError| match error {
        InformerError::HandlerPanicked { message, .. } => message.clone(),
        other => panic!("{other:?}"),
    };
    let mut messages: Vec<String> = informer.errors().iter().map(panicked).collect();
    messages.sort();
    assert_eq!(messages, ["not web/a", "not web/a", "not web/b", "not web/b", "not web/c", "not web/c"]);
    informer.stop().await;
}

// N-9. Differs: there is one way to remove, and it waits.
#[tokio::test(start_paused = true)]
async fn star_56_removing_waits_for_the_call_under_way_and_no_other_begins() {
    for (removal, expected) in [(RemoveMode::Discard, 2), (RemoveMode::Drain, 4)] {
        let informer = TestInformer::start(small());
        let (permits, calls) = (Arc::new(Semaphore::new(0)), Arc::<Mutex<Vec<String>>>::default());
        let handle = informer.informer.register().on_event_async(slow(&permits, &calls));
        informer.synced().await;
        quiet().await;
        assert_eq!(calls.lock().len(), 1, "one call is under way");
        let mut removed = std::pin::pin!(handle.remove(removal));
        assert!(tokio::time::timeout(Duration::from_secs(60), &mut removed).await.is_err(), "{removal:?} waits");
        permits.add_permits(10);
        assert_eq!(within("the removal", removed).await, Ok(()));
        assert_eq!(calls.lock().len(), expected, "{removal:?}");
        quiet().await;
        assert_eq!(calls.lock().len(), expected, "{removal:?}");
        informer.stop().await;
    }
}

// N-9: in every state of the informer.
#[tokio::test(start_paused = true)]
async fn star_56_a_handler_can_be_removed_before_the_start_and_after_the_end() {
    let informer = TestInformer::new(small(), |options| options);
    let told = Told::default();
    let early = informer.informer.on_event(told.handler());
    assert_eq!(within("a removal before the start", early.remove(RemoveMode::Drain)).await, Ok(()));
    let other = informer.informer.on_event(told.handler());
    assert_eq!(within("a removal before the start", other.remove(RemoveMode::Discard)).await, Ok(()));
    informer.informer.start().unwrap();
    informer.synced().await;
    assert_eq!(told.len(), 0);
    let late = informer.informer.on_event(|_| {});
    informer.informer.stop().await;
    assert_eq!(within("a removal after the end", late.remove(RemoveMode::Drain)).await, Ok(()));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn star_56_a_handler_that_removes_itself_gets_an_error() {
    let informer = TestInformer::start(small());
    let handle = Arc::new(Mutex::new(None::<kube_informer::HandlerHandle>));
    let (mine, (report, mut outcome)) = (handle.clone(), tokio::sync::mpsc::unbounded_channel());
    *handle.lock() = Some(informer.informer.register().on_event_async(move |_: Event<Thing>| {
        let (mine, report) = (mine.lock().take(), report.clone());
        async move {
            let Some(handle) = mine else { return };
            report.send(handle.remove(RemoveMode::Drain).await).unwrap();
        }
    }));
    let outcome = within("the outcome", outcome.recv()).await.unwrap();
    assert!(matches!(outcome, Err(RemoveError::FromItself(_))), "{outcome:?}");
    informer.stop().await;
}

// SI-9: an informer that is stopped before it is started never syncs, and no wait for its handlers hangs.
#[tokio::test(start_paused = true)]
async fn a_handler_of_an_informer_that_never_starts_does_not_wait_for_ever() {
    let informer = TestInformer::new(small().may_end_early(), |options| options);
    let handle = informer.informer.on_event(|_| {});
    informer.informer.stop().await;
    assert!(!within("the handler", handle.synced()).await);
    informer.stop().await;

    let informer = SharedInformer::builder(small()).build();
    let handle = informer.on_event(|_| {});
    drop(informer);
    assert!(!within("the handler", handle.synced()).await);
}

// also if several callers stop it at the same time.
#[tokio::test(start_paused = true)]
async fn no_callback_runs_after_stop_returns_to_any_caller() {
    let informer = TestInformer::start(small());
    let (permits, calls) = (Arc::new(Semaphore::new(0)), Arc::<Mutex<Vec<String>>>::default());
    informer.informer.register().on_event_async(slow(&permits, &calls));
    informer.synced().await;
    quiet().await;
    let mut stops = JoinSet::new();
    for _ in 0..3 {
        let informer = informer.informer.clone();
        stops.spawn(async move { informer.stop().await });
    }
    let early = tokio::time::timeout(Duration::from_secs(60), stops.join_next()).await;
    assert!(early.is_err(), "stop must wait for the running callback");
    permits.add_permits(10);
    while let Some(stopped) = within("all stops to return", stops.join_next()).await {
        stopped.unwrap();
        assert_eq!(calls.lock().len(), 2, "only the running call ends, and no other begins");
    }
    informer.stop().await;
}

// B-15: in client-go a callback that removes a handler deadlocks with a stop of the informer.
#[tokio::test(start_paused = true)]
async fn b_15_a_callback_may_remove_another_handler_while_the_informer_stops() {
    let informer = TestInformer::start(small());
    let other = Arc::new(Mutex::new(Some(informer.informer.on_event(|_| {}))));
    let (go, begun) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (wait, begins) = (go.clone(), begun.clone());
    informer.informer.register().on_event_async(move |_: Event<Thing>| {
        let (begins, wait, other) = (begins.clone(), wait.clone(), other.clone());
        async move {
            begins.notify_one();
            wait.notified().await;
            let other = other.lock().take();
            if let Some(other) = other {
                other.remove(RemoveMode::Drain).await.unwrap();
            }
        }
    });
    within("the callback", begun.notified()).await;
    let stop = async {
        let _ = tokio::join!(informer.informer.stop(), async {
            quiet().await;
            go.notify_one();
        });
    };
    within("the end", stop).await;
    informer.stop().await;
}

// B-17.
#[tokio::test(start_paused = true)]
async fn b_17_starting_twice_starts_once() {
    let informer = TestInformer::new(small(), |options| options);
    assert!(!informer.informer.health().is_live());
    assert_eq!(informer.informer.start(), Ok(()));
    assert_eq!(informer.informer.clone().start(), Ok(()));
    informer.synced().await;
    quiet().await;
    assert_eq!(informer.script.asked().len(), 2, "one list, one watch");
    assert!(informer.informer.health().is_live() && !informer.informer.health().stopped);
    informer.stop().await;
}

#[test]
fn starting_without_a_runtime_fails_and_can_be_tried_again() {
    let script = small();
    let informer = SharedInformer::builder(script.clone()).build();
    assert_eq!(informer.start(), Err(StartError::NoRuntime));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        assert_eq!(informer.start(), Ok(()));
        within("the informer to sync", informer.synced()).await.unwrap();
        script.asks(2).await;
        informer.stop().await;
        script.check_over();
    });
}

// Decision 15.
#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_stops_the_informer() {
    let no_task_left = NoTaskLeft::since_now();
    let script = small();
    let informer = SharedInformer::builder(script.clone()).options(options()).build();
    let handle = informer.on_event(|_| {});
    informer.start().unwrap();
    within("the informer to sync", informer.synced()).await.unwrap();
    script.asks(2).await;
    quiet().await;
    let (store, another) = (informer.store(), informer.clone());
    drop(informer);
    quiet().await;
    assert_eq!(script.log().opened - script.log().closed, 1, "the clone still keeps the informer running");
    drop(another);
    quiet().await;
    assert_eq!(script.log().opened, script.log().closed);
    assert_eq!(store.len(), 2, "the data stays readable");
    within("the removal", handle.remove(RemoveMode::Drain)).await.unwrap();
    script.check_over();
    no_task_left.check();
}

// B-14: in client-go the memory of a stuck handler grows without end.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b_14_a_stuck_handler_costs_one_entry_per_object_beyond_its_bound() {
    struct Stuck {
        release: std::sync::mpsc::Receiver<()>,
        seen: Arc<Mutex<Consistent>>,
    }
    impl EventHandler<Thing> for Stuck {
        fn on_event(&mut self, event: Event<Thing>) {
            // Lets other tasks leave this thread. They would be stuck behind the handler otherwise.
            let _ = tokio::task::block_in_place(|| self.release.recv());
            self.seen.lock().see(&event);
        }
    }
    on_the_real_clock(async {
        let (feed, events) = live();
        let informer = TestInformer::start(Script::new().list("10", ["web/0@1"]).watch([events]));
        let (release, seen) = (std::sync::mpsc::channel(), Arc::<Mutex<Consistent>>::default());
        let stuck = Stuck { release: release.1, seen: seen.clone() };
        let stuck = informer.informer.register().delivery(Delivery::every(5)).handler(stuck);
        for version in 11..1011 {
            feed.send(modified(&format!("web/{}@{version}", version % 3))).unwrap();
        }
        informer.delivered_through("1010").await;
        assert_eq!(informer.told.len(), 1001, "the other handler receives every event");
        // The running call with the rest of its batch, and the events in the mailbox.
        assert!(stuck.backlog() <= 3 + 3, "{}", stuck.backlog());
        assert_eq!(stuck.folds(), 1);
        drop(release.0);
        stuck.remove(RemoveMode::Drain).await.unwrap();
        let told: Vec<_> = seen.lock().0.iter().map(|(key, version)| format!("{key}@{version}")).collect();
        assert_eq!(told, informer.contents(), "the latest state is never lost");
        assert!(informer.errors().is_empty(), "the order is kept: {:?}", informer.errors());
        informer.informer.stop().await;
        informer.script.check_over();
    })
    .await;
}
