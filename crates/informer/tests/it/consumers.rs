//! One state that is built from the events of several informers (issue 22, item 6).

use std::sync::Arc;
use std::sync::mpsc::channel;

use futures_util::stream;
use kube_informer::parts::{
    Decoded, ListEnd, ListOptions, ListStream, ListWatchFns, WatchEvent, WatchOptions, WatchStream,
};
use kube_informer::{
    BatchReason, Consumer, Event, Id, InformerError, KeyRef, Object, QueueOrder, RemoveError, RemoveMode,
    SharedInformer,
};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

use crate::script::{
    Act::{Fail, StayOpen},
    Script, TestInformer, Thing, added, gone, live, modified, on_the_real_clock, options, quiet, within,
};

const ORDERS: [QueueOrder; 2] = [QueueOrder::Ordered, QueueOrder::PerObject];

/// A second type of objects.
struct Room {
    name: String,
    version: String,
}

impl Object for Room {
    fn id(&self) -> Id<'_> {
        Id { key: KeyRef::new("", &self.name), uid: "", version: &self.version }
    }
}

fn room(name: &str, version: u64) -> Room {
    Room { name: name.to_owned(), version: version.to_string() }
}

/// Sends new rooms to their informer.
struct Rooms(mpsc::UnboundedSender<Room>);

impl Rooms {
    /// Returns an informer of rooms that is not started. Its first list has one room, if any.
    fn informer(listed: Option<&'static str>, order: QueueOrder) -> (Self, SharedInformer<Room>) {
        let (sender, receiver) = mpsc::unbounded_channel::<Room>();
        let receiver = Arc::new(Mutex::new(Some(receiver)));
        let source = ListWatchFns::new(
            move |_: ListOptions| async move {
                let end = ListEnd { version: Some("10".into()), ..ListEnd::default() };
                Ok(ListStream::complete(listed.map(|name| room(name, 1)), end))
            },
            move |_: WatchOptions| {
                let receiver = receiver.lock().take();
                let events = stream::unfold(receiver, |receiver| async move {
                    let mut receiver = receiver?;
                    let room = receiver.recv().await?;
                    Some((Ok(WatchEvent::Added(Decoded::Object(room))), Some(receiver)))
                });
                async move { Ok(WatchStream::new(events)) }
            },
        );
        (Self(sender), SharedInformer::builder(source).name("rooms").options(options().queue_order(order)).build())
    }

    fn add(&self, name: &str, version: u64) {
        self.0.send(room(name, version)).unwrap();
    }
}

/// The state of the consumers: what they were called with. It can be read from outside.
#[derive(Clone, Default)]
struct Calls(Arc<watch::Sender<Vec<String>>>);

impl Calls {
    fn note(&mut self, what: String) {
        self.0.send_modify(|calls| calls.push(what));
    }

    fn things(&mut self, events: &[Event<Thing>], reason: BatchReason) {
        self.note(format!("things {reason:?} {}", events.len()));
    }

    fn rooms(&mut self, events: &[Event<Room>], reason: BatchReason) {
        self.note(format!("rooms {reason:?} {}", events.len()));
    }

    fn take(&self) -> Vec<String> {
        self.0.send_replace(Vec::new())
    }

    async fn reaches(&self, count: usize) {
        let mut calls = self.0.subscribe();
        within("the calls", calls.wait_for(|calls| calls.len() >= count)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn one_state_receives_the_batches_of_all_informers_and_learns_once_that_all_are_synced() {
    for order in ORDERS {
        let (feed, events) = live();
        let script = Script::new()
            .list("10", ["web/a@1", "web/b@2"])
            .watch([events])
            .list("20", ["web/a@12", "web/c@13"])
            .watch([StayOpen]);
        let things = TestInformer::new(script, |options| options.queue_order(order));
        let (feed_rooms, rooms) = Rooms::informer(Some("hall"), order);
        let calls = Calls::default();
        let consumer = Consumer::new(calls.clone())
            .name("both")
            .on(&things.informer, Calls::things)
            .on(rooms.register(), Calls::rooms)
            .on_synced(|calls| calls.note("synced".to_owned()))
            .start();
        things.informer.start().unwrap();
        things.delivered_through("10").await;
        quiet().await;
        assert!(!consumer.is_synced());
        // In the per-object queue each change of a list is a batch of its own.
        let batches = |reason: &str, changes: usize| match order {
            QueueOrder::Ordered => vec![format!("things {reason} {changes}")],
            QueueOrder::PerObject => vec!["things Live 1".to_owned(); changes],
        };
        assert_eq!(calls.take(), batches("FirstList", 2));
        rooms.start().unwrap();
        assert!(within("the consumer", consumer.synced()).await);
        let first = if order == QueueOrder::Ordered { "FirstList" } else { "Live" };
        assert_eq!(calls.take(), [format!("rooms {first} 1"), "synced".to_owned()]);
        feed_rooms.add("cellar", 11);
        quiet().await;
        assert_eq!(calls.take(), ["rooms Live 1"]);
        feed.send(Fail(gone())).unwrap();
        things.delivered_through("20").await;
        quiet().await;
        assert_eq!(calls.take(), batches("Relist", 3));
        assert_eq!((consumer.name(), consumer.backlog(), consumer.handlers().len()), ("both", 0, 2));
        rooms.stop().await;
        things.stop().await; // The last one: it checks that no task is left.
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn informers_take_turns_and_no_lock_is_held_during_a_call() {
    on_the_real_clock(async {
        let (feed, events) = live();
        let things = TestInformer::start(Script::new().list("10", []).watch([events]));
        let (feed_rooms, rooms) = Rooms::informer(None, QueueOrder::Ordered);
        rooms.start().unwrap();
        let (calls, (release, released)) = (Calls::default(), channel::<()>());
        let (thing_store, room_store) = (things.informer.clone(), rooms.clone());
        let consumer = Consumer::new(calls.clone())
            .on(&things.informer, move |calls, events, reason| {
                calls.things(events, reason);
                // The program may do anything with its informers meanwhile.
                assert!(thing_store.health().is_live() && room_store.health().is_live());
                drop(room_store.on_event(|_| {}));
                let _ = tokio::task::block_in_place(|| released.recv());
            })
            .on(&rooms, Calls::rooms)
            .start();
        assert!(within("the consumer", consumer.synced()).await);
        feed.send(added("web/a@11")).unwrap();
        calls.reaches(1).await;
        // Both informers have events now. The one that was called last is called last.
        feed_rooms.add("hall", 11);
        within("the room", rooms.wait_for_version(&11_u64.into())).await.unwrap();
        feed_rooms.add("cellar", 12);
        within("the room", rooms.wait_for_version(&12_u64.into())).await.unwrap();
        for version in 12_u64..15 {
            feed.send(modified(&format!("web/a@{version}"))).unwrap();
            within("the store", things.informer.wait_for_version(&version.into())).await.unwrap();
        }
        assert_eq!(calls.take(), ["things Live 1"]);
        release.send(()).unwrap();
        calls.reaches(2).await;
        assert_eq!(calls.take(), ["rooms Live 2", "things Live 3"], "a batch has all changes until its turn");
        drop(release);
        rooms.stop().await;
        things.stop().await; // The last one: it checks that no task is left.
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_reported_by_its_informer_and_the_state_receives_the_next_batch() {
    let (feed, events) = live();
    let things = TestInformer::new(Script::new().list("10", ["web/a@1"]).watch([events]), |options| options);
    let (feed_rooms, rooms) = Rooms::informer(Some("hall"), QueueOrder::Ordered);
    let errors = Arc::new(Mutex::new(Vec::new()));
    let hook = errors.clone();
    rooms.on_error(move |error| hook.lock().push(error.to_string()));
    let calls = Calls::default();
    let consumer = Consumer::new(calls.clone())
        .name("both")
        .on(&things.informer, |calls, events, reason| {
            calls.things(events, reason);
            assert!(reason != BatchReason::FirstList, "oops");
        })
        .on(&rooms, Calls::rooms)
        .on_synced(|calls| {
            calls.note("synced".to_owned());
            panic!("again");
        })
        .start();
    things.informer.start().unwrap();
    things.delivered_through("10").await;
    quiet().await;
    rooms.start().unwrap();
    assert!(within("the consumer", consumer.synced()).await, "the batch counts as delivered");
    assert_eq!(calls.take(), ["things FirstList 1", "rooms FirstList 1", "synced"]);
    let reported = things.errors();
    assert!(
        matches!(&reported[..], [InformerError::HandlerPanicked { handler, message }] if handler == "both" && message == "oops"),
        "{reported:?}"
    );
    assert!(matches!(&errors.lock()[..], [error] if error.contains("again")), "{errors:?}");
    feed.send(modified("web/a@11")).unwrap();
    things.delivered_through("11").await;
    feed_rooms.add("cellar", 11);
    quiet().await;
    assert_eq!(calls.take(), ["things Live 1", "rooms Live 1"]);
    rooms.stop().await;
    things.stop().await; // The last one: it checks that no task is left.
}

#[tokio::test(start_paused = true)]
async fn a_removed_consumer_receives_nothing_more_and_its_state_is_dropped() {
    let (feed, events) = live();
    let things = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]).may_end_early());
    let (feed_rooms, rooms) = Rooms::informer(Some("hall"), QueueOrder::Ordered);
    rooms.start().unwrap();
    let (calls, state) = (Calls::default(), Arc::new(()));
    let noted = calls.clone();
    let consumer = Consumer::new((calls.clone(), state.clone()))
        .on(&things.informer, |(calls, _), events, reason| calls.things(events, reason))
        .on(&rooms, |(calls, _), events, reason| calls.rooms(events, reason))
        .start();
    assert!(within("the consumer", consumer.synced()).await);
    within("the removal", consumer.remove(RemoveMode::Discard)).await.unwrap();
    assert_eq!(Arc::strong_count(&state), 1);
    calls.take();
    feed.send(modified("web/a@11")).unwrap();
    feed_rooms.add("cellar", 11);
    things.delivered_through("11").await;
    quiet().await;
    assert_eq!(noted.take(), [""; 0]);

    let second = Consumer::new(calls.clone()).on(&things.informer, Calls::things).on(&rooms, Calls::rooms).start();
    second.into_handlers().into_iter().for_each(|handler| drop(handler.remove_on_drop()));
    quiet().await;
    assert!(things.informer.health().handlers.len() == 1 && rooms.health().handlers.is_empty());
    rooms.stop().await;
    things.stop().await; // The last one: it checks that no task is left.
}

// Otherwise the call would wait for its own end: the handler of the other informer waits for its turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_function_can_stop_another_informer_of_its_consumer_and_cannot_remove_the_consumer() {
    on_the_real_clock(async {
        let (feed, events) = live();
        let things = TestInformer::start(Script::new().list("10", []).watch([events]));
        let (feed_rooms, rooms) = Rooms::informer(None, QueueOrder::Ordered);
        rooms.start().unwrap();
        let handle = Arc::new(std::sync::OnceLock::<kube_informer::ConsumerHandle>::new());
        let (calls, (release, released)) = (Calls::default(), channel::<()>());
        let (consumer, other) = (handle.clone(), rooms.clone());
        let started = Consumer::new(calls.clone())
            .name("both")
            .on(&things.informer, move |calls, events, reason| {
                calls.things(events, reason);
                let outcome = tokio::task::block_in_place(|| {
                    released.recv().unwrap();
                    let removed = Handle::current().block_on(consumer.get().unwrap().remove(RemoveMode::Drain));
                    Handle::current().block_on(other.stop());
                    removed
                });
                assert_eq!(outcome, Err(RemoveError::FromItself("both".to_owned())));
                calls.note("stopped".to_owned());
            })
            .on(&rooms, Calls::rooms)
            .start();
        assert!(within("the consumer", started.synced()).await);
        assert!(handle.set(started).is_ok());
        feed.send(added("web/a@11")).unwrap();
        calls.reaches(1).await;
        feed_rooms.add("hall", 11);
        within("the room", rooms.wait_for_version(&11_u64.into())).await.unwrap();
        release.send(()).unwrap();
        calls.reaches(2).await;
        assert_eq!(calls.take(), ["things Live 1", "stopped"]);
        rooms.stop().await;
        things.stop().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_consumer_whose_informer_stops_before_its_first_list_is_not_synced() {
    let things = TestInformer::start(Script::new().list_hangs());
    let (_, rooms) = Rooms::informer(Some("hall"), QueueOrder::Ordered);
    rooms.start().unwrap();
    let calls = Calls::default();
    let consumer = Consumer::new(calls.clone())
        .on(&things.informer, Calls::things)
        .on(&rooms, Calls::rooms)
        .on_synced(|calls| calls.note("synced".to_owned()))
        .start();
    quiet().await;
    rooms.stop().await;
    let synced = consumer.synced();
    things.stop().await;
    assert!(!within("the end", synced).await);
    assert_eq!(calls.take(), ["rooms FirstList 1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_wait_for_their_turn_are_not_delivered_after_the_removal() {
    on_the_real_clock(async {
        let (feed, events) = live();
        let things = TestInformer::start(Script::new().list("10", []).watch([events]));
        let (feed_rooms, rooms) = Rooms::informer(None, QueueOrder::Ordered);
        rooms.start().unwrap();
        let (calls, (release, released)) = (Calls::default(), channel::<()>());
        let consumer = Consumer::new(calls.clone())
            .on(&things.informer, move |calls, events, reason| {
                calls.things(events, reason);
                let _ = tokio::task::block_in_place(|| released.recv());
            })
            .on(&rooms, Calls::rooms)
            .start();
        assert!(within("the consumer", consumer.synced()).await);
        feed.send(added("web/a@11")).unwrap();
        calls.reaches(1).await;
        feed_rooms.add("hall", 11);
        within("the room", rooms.wait_for_version(&11_u64.into())).await.unwrap();
        let mut removal = std::pin::pin!(consumer.handlers()[1].remove(RemoveMode::Discard));
        assert!(futures_util::poll!(&mut removal).is_pending(), "the room waits for its turn");
        release.send(()).unwrap();
        removal.await.unwrap();
        assert_eq!(calls.take(), ["things Live 1"]);
        rooms.stop().await;
        things.stop().await; // The last one: it checks that no task is left.
    })
    .await;
}
