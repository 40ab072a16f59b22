//! Every form of handler (closures, traits, async, blocking, streams), and the ways in which each ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use kube_informer::{
    AsyncEventHandler, Deleted, Delivery, Event, EventHandler, EventHandlerFuncs, FilteringEventHandler, HandlerHandle,
    InformerError, Object as _, RemoveError, RemoveMode, SharedInformer,
};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::script::{
    Act::StayOpen, NoTaskLeft, Script, TestInformer, Thing, Told, added, deleted, live, modified, on_the_real_clock,
    options, quiet, thing, within,
};

type Notes = Arc<Mutex<Vec<String>>>;

fn version(thing: &Thing) -> String {
    thing.id().version.to_owned()
}

fn object(text: &str, values: &[&str]) -> Arc<Thing> {
    let mut thing = thing(text);
    thing.values = values.iter().map(|value| (*value).to_owned()).collect();
    Arc::new(thing)
}

#[tokio::test(start_paused = true)]
async fn each_closure_handles_its_own_kind_of_event_and_each_is_optional() {
    let (feed, events) = live();
    let script = Script::new().list("10", ["web/a@1"]).watch([events]);
    let informer = TestInformer::new(script, |options| options.resync_period(Duration::from_secs(10)));
    let notes = Notes::default();
    let note = |what: &'static str| {
        let notes = notes.clone();
        move |text: String| notes.lock().push(format!("{what} {text}"))
    };
    let (add, update, delete, resync) = (note("add"), note("update"), note("delete"), note("resync"));
    let all = EventHandlerFuncs::<Thing>::new()
        .on_add(move |thing, initial| add(format!("{} {initial}", version(&thing))))
        .on_update(move |old, new| update(format!("{} to {}", version(&old), version(&new))))
        .on_delete(move |gone| delete(format!("{} {}", gone.key(), gone.is_final())))
        .on_resync(move |thing| resync(version(&thing)));
    informer.informer.register().handler(all);
    let update = note("as update");
    let by_update =
        move |old: Arc<Thing>, new: Arc<Thing>| update(format!("{} {}", version(&old), Arc::ptr_eq(&old, &new)));
    informer.informer.register().handler(EventHandlerFuncs::new().on_update(by_update));
    informer.informer.register().handler(EventHandlerFuncs::new());
    informer.informer.start().unwrap();
    informer.synced().await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    feed.send(modified("web/a@11")).unwrap();
    feed.send(added("web/b@12")).unwrap();
    feed.send(deleted("web/a@13")).unwrap();
    informer.delivered_through("13").await;
    quiet().await;
    let (by_update, told): (Vec<String>, Vec<String>) =
        notes.lock().iter().cloned().partition(|note| note.starts_with("as"));
    assert_eq!(told, ["add 1 true", "resync 1", "update 1 to 11", "add 12 false", "delete web/a true"]);
    assert_eq!(
        by_update,
        ["as update 1 true", "as update 1 false"],
        "without `on_resync`, a resync calls `on_update` with the same object twice"
    );
    informer.stop().await;
}

// N-11. Differs: the filter always receives an object, also for a tombstone.
#[test]
fn filtered_turns_updates_into_adds_and_deletes_when_objects_start_or_stop_matching() {
    let (yes, no) = (
        |version: u8| object(&format!("web/a@{version}"), &["yes"]),
        |version: u8| object(&format!("web/a@{version}"), &[]),
    );
    let table = [
        (Event::Added { object: yes(1), initial: true }, "add 1 true"),
        (Event::Added { object: yes(1), initial: false }, "add 1 false"),
        (Event::Added { object: no(1), initial: true }, ""),
        (Event::Updated { old: yes(1), new: yes(2) }, "update 1 to 2"),
        (Event::Updated { old: no(1), new: yes(2) }, "add 2 false"),
        // The delete is not final: the object may still exist.
        (Event::Updated { old: yes(1), new: no(2) }, "delete 1 (tombstone)"),
        (Event::Updated { old: no(1), new: no(2) }, ""),
        (Event::Resynced(yes(1)), "resync 1"),
        (Event::Resynced(no(1)), ""),
        (Event::Deleted(Deleted::Final(yes(2))), "delete 2"),
        (Event::Deleted(Deleted::Unknown(yes(2))), "delete 2 (tombstone)"),
        (Event::Deleted(Deleted::Final(no(2))), ""),
        (Event::Deleted(Deleted::Unknown(no(2))), ""),
    ];
    for (event, expected) in table {
        let (told, description) = (Arc::new(Mutex::new(String::new())), format!("{event:?}"));
        let notes = [told.clone(), told.clone(), told.clone(), told.clone()];
        let [add, update, delete, resync] = notes;
        let handlers = EventHandlerFuncs::new()
            .on_add(move |thing: Arc<Thing>, initial| *add.lock() = format!("add {} {initial}", version(&thing)))
            .on_update(move |old, new| *update.lock() = format!("update {} to {}", version(&old), version(&new)))
            .on_delete(move |gone| {
                let tombstone = if gone.is_final() { "" } else { " (tombstone)" };
                *delete.lock() = format!("delete {}{tombstone}", version(gone.object()));
            })
            .on_resync(move |thing| *resync.lock() = format!("resync {}", version(&thing)));
        let mut filtered = FilteringEventHandler::new(|thing: &Thing| !thing.values.is_empty(), handlers);
        // The known state before the event, if the event is about a known object.
        let before = match &event {
            Event::Added { .. } => None,
            Event::Updated { old, .. } => Some(old.clone()),
            Event::Resynced(_) | Event::Deleted(_) => Some(event.object().clone()),
        };
        if let Some(object) = before {
            filtered.on_event(Event::Added { object, initial: true });
            told.lock().clear();
        }
        filtered.on_event(event);
        assert_eq!(*told.lock(), expected, "{description}");
    }
}

/// Takes one second for each event.
struct OneSecondHandler(Notes);

impl AsyncEventHandler<Thing> for OneSecondHandler {
    async fn on_add(&mut self, thing: Arc<Thing>, initial: bool) {
        self.0.lock().push(format!("begin {} {initial}", thing.id().key));
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.0.lock().push(format!("end {}", thing.id().key));
    }

    async fn on_delete(&mut self, gone: Deleted<Thing>) {
        self.0.lock().push(format!("begin delete {}", gone.key()));
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.0.lock().push(format!("end delete {}", gone.key()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_async_handler_is_awaited_before_the_next_event() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
    let notes = Notes::default();
    let handle = informer.informer.register().async_handler(OneSecondHandler(notes.clone()));
    informer.synced().await;
    assert!(!handle.is_synced(), "its first call has not returned");
    assert!(within("the handler", handle.synced()).await);
    for act in [modified("web/a@11"), added("web/b@12"), deleted("web/a@13")] {
        feed.send(act).unwrap();
    }
    informer.delivered_through("13").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let expected =
        ["begin web/a true", "end web/a", "begin web/b false", "end web/b", "begin delete web/a", "end delete web/a"];
    assert_eq!(*notes.lock(), expected);
    informer.stop().await;
}

#[tokio::test]
async fn a_blocking_handler_may_block_delays_no_other_handler_and_cannot_wait_for_itself() {
    on_the_real_clock(async {
        let (feed, events) = live();
        let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
        let (release, blocked) = std::sync::mpsc::channel::<()>();
        let own = Arc::new(Mutex::new(None::<HandlerHandle>));
        let (calls, refused, itself) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(None)), own.clone());
        let (counted, outcome) = (calls.clone(), refused.clone());
        let handle = informer.informer.register().name("blocks").on_event_blocking(move |_| {
            let _ = blocked.recv();
            if let Some(handle) = itself.lock().take() {
                *outcome.lock() = Some(Handle::current().block_on(handle.remove(RemoveMode::Drain)));
            }
            counted.fetch_add(1, Ordering::SeqCst);
        });
        *own.lock() = Some(handle);
        feed.send(modified("web/a@11")).unwrap();
        informer.delivered_through("11").await;
        assert_eq!(calls.load(Ordering::SeqCst), 0, "the other handlers do not wait for it");
        drop(release);
        while calls.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(refused.lock().take(), Some(Err(RemoveError::FromItself("blocks".into()))));
        informer.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_blocking_handler_that_panics_receives_the_other_events() {
    on_the_real_clock(async {
        let informer =
            TestInformer::new(Script::new().list("10", ["web/a@1", "web/b@2"]).watch([StayOpen]), |options| options);
        let handle = informer
            .informer
            .register()
            .on_event_blocking(|event: Event<Thing>| panic!("the handler panics on {}", event.key()));
        informer.informer.start().unwrap();
        assert!(handle.synced().await);
        let errors = informer.errors();
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors.iter().all(|error| matches!(error, InformerError::HandlerPanicked { .. })), "{errors:?}");
        informer.stop().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_starts_with_the_cached_objects_then_follows_changes_and_ends_with_the_informer() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
    feed.send(modified("web/a@11")).unwrap();
    informer.delivered_through("11").await;
    let mut stream = informer.informer.events();
    feed.send(added("web/b@12")).unwrap();
    feed.send(deleted("web/a@13")).unwrap();
    informer.delivered_through("13").await;
    assert_eq!(stream.backlog(), 3);
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(format!("{:?}", within("an event", stream.next()).await.unwrap()));
    }
    assert_eq!(seen, ["Added(web/a@11, initial)", "Added(web/b@12)", "Deleted(web/a@13, final)"]);
    informer.informer.stop().await;
    assert!(within("the end", stream.next()).await.is_none());
    let mut late = informer.informer.events();
    assert!(within("the end of a stream that was added after the end", late.next()).await.is_none());
    drop((stream, late));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_keeps_no_objects_alive() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
    informer.synced().await;
    let stream = informer.informer.events();
    feed.send(modified("web/a@11")).unwrap();
    informer.delivered_through("11").await;
    let kept = Arc::downgrade(&informer.informer.store().get("web/a").unwrap());
    feed.send(modified("web/a@12")).unwrap();
    informer.delivered_through("12").await;
    assert!(kept.upgrade().is_some(), "the event waits to be read");
    drop(stream);
    assert!(kept.upgrade().is_none());
    let kept = Arc::downgrade(&informer.informer.store().get("web/a").unwrap());
    feed.send(modified("web/a@13")).unwrap();
    informer.delivered_through("13").await;
    assert!(kept.upgrade().is_none(), "later objects are not kept");
    informer.stop().await;
}

// Decision 15.
#[tokio::test(start_paused = true)]
async fn a_stream_or_a_guard_keeps_the_informer_alive_and_dropping_the_last_one_ends_it() {
    let no_task_left = NoTaskLeft::since_now();
    let (feed, events) = live();
    let script = Script::new().list("10", ["web/a@1"]).watch([events]);
    let informer = SharedInformer::builder(script.clone()).options(options()).build();
    let (told, mut stream) = (Told::default(), informer.events());
    let guard = informer.on_event(told.handler()).remove_on_drop();
    informer.start().unwrap();
    drop(informer);
    within("the first event", stream.next()).await.unwrap();
    drop(stream);
    feed.send(modified("web/a@11")).unwrap();
    told.reaches(2).await;
    assert!(guard.is_synced());
    drop(guard);
    quiet().await;
    no_task_left.check();
    assert_eq!(script.log().closed, 1, "its watch is closed");
    script.check_over();
}

#[tokio::test(start_paused = true)]
async fn dropping_a_guard_removes_its_handler_and_discards_waiting_events() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
    informer.synced().await;
    let told = Told::default();
    let guard = informer.informer.on_event(told.handler()).remove_on_drop();
    assert!(within("its replay", guard.synced()).await);
    drop(guard);
    feed.send(modified("web/a@11")).unwrap();
    informer.delivered_through("11").await;
    quiet().await;
    assert_eq!(told.all(), ["web/a initial add 1"]);
    assert_eq!(informer.told.len(), 2, "the other handler stays");
    informer.stop().await;
}

// Decision 12.
#[tokio::test(start_paused = true)]
async fn a_latest_only_handler_receives_one_event_for_each_waiting_object() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1", "web/b@2", "web/c@3"]).watch([events]));
    informer.synced().await;
    let (permits, told) = (Arc::new(Semaphore::new(3)), Told::default());
    let (gate, note) = (permits.clone(), Arc::new(Mutex::new(told.handler())));
    let latest = informer.informer.register().delivery(Delivery::Latest);
    let handle = latest.on_event_async(move |event: Event<Thing>| {
        let (gate, note) = (gate.clone(), note.clone());
        async move {
            gate.acquire().await.unwrap().forget();
            (note.lock())(event);
        }
    });
    assert!(within("its replay", handle.synced()).await);
    told.clear();
    feed.send(modified("web/a@11")).unwrap();
    informer.delivered_through("11").await; // The handler is processing this event.
    for act in [
        modified("web/a@12"),
        modified("web/a@13"),
        modified("web/a@14"),
        added("web/new@15"),
        modified("web/new@16"),
        added("web/brief@17"),
        deleted("web/brief@18"),
        deleted("web/b@19"),
        added("web/b@20"),
        modified("web/c@21"),
        deleted("web/c@22"),
    ] {
        feed.send(act).unwrap();
    }
    informer.delivered_through("22").await;
    permits.add_permits(100);
    quiet().await;
    assert_eq!(
        told.of("web/a"),
        ["update 1 to 11", "update 11 to 14"],
        "the events are merged: the oldest old state, the newest new state"
    );
    assert_eq!(told.of("web/new"), ["add 16"]);
    assert_eq!(told.of("web/brief"), [""; 0], "added and deleted while the handler was busy");
    assert_eq!(told.of("web/b"), ["delete 19", "add 20"], "a delete and a new add are not merged");
    assert_eq!(told.of("web/c"), ["delete 22"]);
    informer.stop().await;
}
