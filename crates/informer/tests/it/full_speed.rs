//! A handler that keeps up receives every event, however fast events arrive. A handler that falls behind delays nothing
//! else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use kube_informer::parts::{
    Decoded, ListEnd, ListOptions, ListStream, ListWatchFns, WatchEvent, WatchOptions, WatchStream,
};
use kube_informer::{Delivery, Event, InformerOptions, QueueOrder, ResourceVersion, SharedInformer};
use tokio::time::Instant;

use crate::script::{Thing, on_the_real_clock, thing, within};

const OBJECTS: usize = 500;
const EVENTS: usize = 20_000;
/// Far fewer than the events. The mailbox of a handler that falls behind is folded, and the handler misses some events.
const BACKLOG: usize = 1500;

/// Returns an informer whose source has all its events ready at once.
fn informer(order: QueueOrder) -> SharedInformer<Thing> {
    let objects = || (0..OBJECTS).map(|number| thing(&format!("web/{number}@{}", number + 1)));
    let source = ListWatchFns::new(
        move |_: ListOptions| async move {
            let end = ListEnd { version: Some(ResourceVersion::from(OBJECTS as u64)), ..ListEnd::default() };
            Ok(ListStream::complete(objects(), end))
        },
        |_: WatchOptions| async {
            let events = (0..EVENTS).map(|number| {
                let object = thing(&format!("web/{}@{}", number % OBJECTS, OBJECTS + number + 1));
                Ok(WatchEvent::Modified(Decoded::Object(object)))
            });
            Ok(WatchStream::new(stream::iter(events).chain(stream::pending())))
        },
    );
    SharedInformer::builder(source).options(InformerOptions::new().queue_order(order).seed(7)).build()
}

/// Counts updates.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn see(&self, event: &Event<Thing>) {
        self.0.fetch_add(usize::from(matches!(event, Event::Updated { .. })), Ordering::Relaxed);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Adds `times` handlers of each form, and checks that each receives every event.
async fn every_handler_receives_every_event(order: QueueOrder, times: usize, delivery: Delivery) {
    let informer = informer(order);
    let (mut counts, mut streams) = (Vec::new(), tokio::task::JoinSet::new());
    for _ in 0..times {
        let [sync, awaiting, stream] = [Count::default(), Count::default(), Count::default()];
        counts.extend([("sync", sync.clone()), ("async", awaiting.clone()), ("stream", stream.clone())]);
        informer.register().delivery(delivery).on_event(move |event| sync.see(&event));
        informer.register().delivery(delivery).on_event_async(move |event| {
            awaiting.see(&event);
            async {}
        });
        let mut events = informer.register().delivery(delivery).events();
        streams.spawn(async move {
            while let Some(event) = events.next().await {
                stream.see(&event);
            }
        });
    }
    informer.start().unwrap();
    let last = ResourceVersion::from((OBJECTS + EVENTS) as u64);
    within("the last event", informer.wait_for_version(&last)).await.unwrap();
    let delivered = async {
        while counts.iter().any(|(_, count)| count.get() < EVENTS)
            && informer.health().handlers.iter().any(|handler| handler.backlog > 0)
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("the deliveries", delivered).await;
    for (form, count) in counts {
        assert_eq!(count.get(), EVENTS, "{form}, {order:?}");
    }
    for handler in informer.health().handlers {
        assert_eq!(handler.folds, 0, "{}", handler.name);
    }
    informer.stop().await;
}

// A paused clock passes the limit of 5 ms only when no task can run, so a busy machine does not change the result.
#[tokio::test(start_paused = true)]
async fn a_handler_that_keeps_up_receives_every_event_however_small_its_bound() {
    for (order, times) in [(QueueOrder::Ordered, 1), (QueueOrder::Ordered, 4), (QueueOrder::PerObject, 1)] {
        every_handler_receives_every_event(order, times, Delivery::every(BACKLOG)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn on_one_worker_every_handler_receives_every_event() {
    on_the_real_clock(every_handler_receives_every_event(QueueOrder::Ordered, 4, Delivery::default())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_two_workers_every_handler_receives_every_event() {
    on_the_real_clock(every_handler_receives_every_event(QueueOrder::Ordered, 2, Delivery::default())).await;
}

/// Returns how long the cache takes to reach the last event on a paused clock, where only waiting takes time.
async fn time_to_the_last_event(informer: &SharedInformer<Thing>) -> Duration {
    let last = ResourceVersion::from((OBJECTS + EVENTS) as u64);
    let start = Instant::now();
    informer.start().unwrap();
    within("the last event", informer.wait_for_version(&last)).await.unwrap();
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn the_informer_does_not_wait_for_a_handler_that_awaits() {
    let (informer, count) = (informer(QueueOrder::Ordered), Count::default());
    informer.register().delivery(Delivery::every(10)).on_event_async(|_| std::future::pending());
    let counted = count.clone();
    informer.on_event(move |event| counted.see(&event));
    assert_eq!(time_to_the_last_event(&informer).await, Duration::ZERO);
    while count.get() < EVENTS {
        tokio::task::yield_now().await;
    }
    informer.stop_within(Duration::from_secs(1)).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn the_informer_waits_once_for_a_stream_that_is_not_polled() {
    let informer = informer(QueueOrder::Ordered);
    let forgotten = informer.register().delivery(Delivery::every(10)).events();
    let took = time_to_the_last_event(&informer).await;
    assert!(took <= Duration::from_millis(10), "{took:?}");
    assert_eq!(forgotten.folds(), 1, "its memory is still bounded");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_wait_for_its_own_informer() {
    let (informer, count) = (informer(QueueOrder::Ordered), Count::default());
    let (waits, counted) = (informer.clone(), count.clone());
    let mut first = true;
    informer.register().on_event_async(move |event| {
        counted.see(&event);
        let waits = std::mem::take(&mut first).then(|| waits.clone());
        async move {
            if let Some(informer) = waits {
                informer.wait_for_latest().await.unwrap();
                informer.relist().await.unwrap();
            }
        }
    });
    informer.start().unwrap();
    let all = async {
        while count.get() < EVENTS {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("every event", all).await;
    informer.stop().await;
}

/// A future that panics when it is dropped, which no task catches.
struct Bomb;

impl Future for Bomb {
    type Output = ();

    fn poll(self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        std::task::Poll::Ready(())
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropped by the test");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_informer_does_not_wait_for_a_handler_whose_task_has_panicked() {
    let (informer, count) = (informer(QueueOrder::Ordered), Count::default());
    informer.register().on_event_async(|_| Bomb);
    let counted = count.clone();
    informer.on_event(move |event| counted.see(&event));
    assert_eq!(time_to_the_last_event(&informer).await, Duration::ZERO);
    while count.get() < EVENTS {
        tokio::task::yield_now().await;
    }
    informer.stop().await;
}
