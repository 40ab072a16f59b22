//! Queues and mailboxes are bounded, in number and in bytes, and a fast handler never loses events (decision 30).

use std::sync::Arc;
use std::time::Duration;

use kube_informer::{Delivery, Event};
use tokio::sync::Semaphore;

use crate::script::{Act::StayOpen, Script, TestInformer, Thing, Told, live, modified, quiet, thing, within};

fn names(count: usize) -> impl Iterator<Item = Thing> {
    (0..count).map(|number| thing(&format!("web/{number}@{}", number + 1)))
}

// Hole 6.
#[tokio::test(start_paused = true)]
async fn a_first_list_of_more_than_a_hundred_thousand_objects_folds_no_mailbox() {
    const MANY: usize = 120_000;
    let script = Script::new().list_things("200000", names(MANY)).watch([StayOpen]);
    let informer = TestInformer::new(script, |options| options);
    let (fast, told) = (informer.informer.on_event(|_| {}), Told::default());
    let slow = informer.informer.register().on_event(told.handler());
    informer.informer.start().unwrap();
    informer.synced().await;
    assert!(within("both handlers to sync", async { fast.synced().await && slow.synced().await }).await);
    assert_eq!((fast.folds(), slow.folds()), (0, 0));
    assert_eq!(told.len(), MANY);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_that_changes_every_object_folds_no_mailbox() {
    const MANY: usize = 2000;
    let changed = (0..MANY).map(|number| thing(&format!("web/{number}@{}", number + 10_001)));
    let script = Script::new()
        .list_things("10000", names(MANY))
        .watch([StayOpen])
        .list_things("20000", changed)
        .watch([StayOpen]);
    let informer = TestInformer::start(script);
    informer.synced().await;
    let tight = informer.informer.register().delivery(Delivery::every(0)).on_event(|_| {});
    within("the relist", informer.informer.relist()).await.unwrap();
    informer.delivered_through("20000").await;
    quiet().await;
    assert_eq!(tight.folds(), 0);
    informer.stop().await;
}

// A stuck handler keeps old states alive. The bound counts their bytes, not the number of events.
#[tokio::test(start_paused = true)]
async fn a_mailbox_that_keeps_too_many_bytes_of_old_states_is_folded() {
    let (feed, events) = live();
    let informer = TestInformer::start(Script::new().list("10", ["web/a@1"]).watch([events]));
    informer.synced().await;
    let (release, few) = (Arc::new(Semaphore::new(0)), 10 * size_of::<Thing>() as u64);
    let stuck = |delivery| {
        let release = release.clone();
        informer.informer.register().delivery(delivery).on_event_async(move |_: Event<Thing>| {
            let release = release.clone();
            async move { drop(release.acquire().await) }
        })
    };
    let by_bytes = stuck(Delivery::Every { max_backlog: 1_000_000, max_bytes: few });
    let by_number = stuck(Delivery::every(1_000_000));
    for version in 11..511 {
        feed.send(modified(&format!("web/a@{version}"))).unwrap();
    }
    informer.delivered_through("510").await;
    assert_eq!((by_bytes.folds(), by_number.folds()), (1, 0));
    assert!(by_bytes.backlog() < 20 && by_number.backlog() > 490, "{} and {}", by_bytes.backlog(), by_number.backlog());
    release.add_permits(10_000);
    informer.stop().await;
}

// An object that a relist replaces is an old state like any other.
#[tokio::test(start_paused = true)]
async fn a_mailbox_that_keeps_too_many_bytes_of_replaced_objects_is_folded() {
    const MANY: usize = 100;
    let states = |from: usize| (0..MANY).map(move |number| thing(&format!("web/{number}@{}", from + number)));
    let mut script = Script::new().list_things("1000", states(1)).watch([StayOpen]);
    for version in [2000, 3000, 4000] {
        script = script.list_things(&version.to_string(), states(version - 500)).watch([StayOpen]);
    }
    let informer = TestInformer::start(script);
    informer.synced().await;
    let release = Arc::new(Semaphore::new(0));
    let permits = release.clone();
    let max_bytes = (MANY / 2 * size_of::<Thing>()) as u64;
    let delivery = Delivery::Every { max_backlog: 1_000_000, max_bytes };
    let stuck = informer.informer.register().delivery(delivery).on_event_async(move |_: Event<Thing>| {
        let permits = permits.clone();
        async move { drop(permits.acquire().await) }
    });
    for _ in 0..3 {
        within("the relist", informer.informer.relist()).await.unwrap();
    }
    quiet().await; // The last list is in the cache before it is folded for a handler that is behind.
    assert_eq!(stuck.folds(), 1);
    assert!(stuck.backlog() <= 2 * MANY, "{} wait", stuck.backlog());
    release.add_permits(10_000);
    informer.stop().await;
}

// The queue between the reflector and the store is bounded in bytes.
#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded_in_bytes() {
    use kube_informer::parts::{Changes, Delta, OrderedQueue};
    let (store, _writer) = kube_informer::Store::<Thing>::new(0);
    let (sink, mut changes) = Changes::with_sink(OrderedQueue::new(), store);
    let push = |text: &str, bytes| {
        let (sink, object) = (sink.clone(), Arc::new(thing(text)));
        async move { sink.push(Delta::Added(object), bytes).await }
    };
    push("web/a@1", 1 << 40).await; // An empty queue accepts a delta of any size.
    let mut second = std::pin::pin!(push("web/b@2", 1));
    assert!(futures_util::poll!(second.as_mut()).is_pending());
    drop(changes.next().await);
    within("room in the queue", second).await;
    assert_eq!(sink.bytes(), 1);
}

// Hole 12.
#[tokio::test(start_paused = true)]
async fn the_backlog_of_a_stream_counts_events_that_are_out_of_the_mailbox_but_not_yet_returned() {
    use futures_util::StreamExt as _;
    let informer = TestInformer::start(Script::new().list_things("20000", names(10_000)).watch([StayOpen]));
    informer.synced().await;
    let mut events = informer.informer.events();
    assert_eq!(events.backlog(), 10_000);
    assert!(events.next().await.is_some());
    assert_eq!(events.backlog(), 9_999);
    assert!(events.lag() < Duration::from_secs(1));
    for _ in 1..10_000 {
        assert!(events.next().await.is_some());
    }
    assert_eq!((events.backlog(), events.lag()), (0, Duration::ZERO));
    drop(events);
    informer.stop().await;
}
