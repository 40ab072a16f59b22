//! Items that are added after a delay: ★60, WQ-10, WQ-11.

use std::time::Duration;

use kube_controller::DelayingQueue;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::{at_once, ms, others, pass};

// ★60 TestSimpleQueue, WQ-10.
#[tokio::test(start_paused = true)]
async fn an_item_is_handed_out_after_its_delay_and_not_before() {
    let queue = DelayingQueue::new();
    queue.add_after("a", ms(50));
    assert!(queue.is_empty());
    assert_eq!(queue.status().delayed, 1);
    pass(49).await;
    assert!(queue.is_empty());
    pass(1).await;
    assert_eq!(queue.len(), 1);
    assert_eq!(*queue.get().await.unwrap(), "a");
    pass(10_000).await;
    assert!(queue.is_empty(), "the item is handed out once");
}

// WQ-10.
#[tokio::test(start_paused = true)]
async fn a_delay_of_zero_adds_the_item_at_once() {
    let queue = DelayingQueue::new();
    queue.add_after("a", Duration::ZERO);
    assert_eq!(queue.len(), 1);
}

// ★60 TestDeduping, WQ-11.
#[tokio::test(start_paused = true)]
async fn of_two_delays_the_earlier_time_counts() {
    let queue = DelayingQueue::new();
    for (first, second) in [(50, 30), (30, 50)] {
        queue.add_after("a", ms(first));
        queue.add_after("a", ms(second));
        pass(29).await;
        assert!(queue.is_empty());
        pass(1).await;
        drop(queue.get().await.unwrap());
        pass(60).await;
        assert!(queue.is_empty(), "the later time does not count");
    }
}

// ★60 TestAddTwoFireEarly, TestCopyShifting: sorted by due time; items due at the same time in the order of arrival.
#[tokio::test(start_paused = true)]
async fn delayed_items_are_handed_out_in_the_order_of_their_due_times() {
    let queue = DelayingQueue::new();
    for (item, delay) in [("c", 300), ("a", 100), ("d", 300), ("b", 200)] {
        queue.add_after(item, ms(delay));
    }
    pass(1000).await;
    queue.add("e");
    for expected in ["a", "b", "c", "d", "e"] {
        assert_eq!(*queue.get().await.unwrap(), expected);
    }
}

// ★60: the timer of the first item is reset, WQ-11.
#[tokio::test(start_paused = true)]
async fn a_worker_that_waits_for_a_later_item_is_woken_for_an_earlier_one() {
    let queue = DelayingQueue::new();
    let start = Instant::now();
    let mut worker = JoinSet::new();
    let handle = queue.clone();
    worker.spawn(async move {
        let mut came = Vec::new();
        while let Some(item) = handle.get().await {
            came.push((*item, start.elapsed().as_millis()));
        }
        came
    });
    others().await; // The worker waits, and no item is delayed.
    queue.add_after("c", ms(10_000));
    others().await; // The worker waits for c.
    queue.add_after("b", ms(5000));
    others().await;
    queue.add_after("a", ms(1000));
    tokio::time::sleep(ms(20_000)).await;
    queue.shut_down();
    assert_eq!(worker.join_all().await, [[("a", 1000), ("b", 5000), ("c", 10_000)]]);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_is_done_before_its_delay_ends_is_handed_out_again_when_it_is_due() {
    let queue = DelayingQueue::new();
    queue.add_after("a", ms(50));
    queue.add("a");
    drop(queue.get().await.unwrap());
    pass(50).await;
    let a = queue.get().await.unwrap();
    queue.add_after("a", ms(50));
    pass(50).await;
    assert!(queue.is_empty(), "a worker has it");
    drop(a);
    assert_eq!(queue.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn when_the_timekeeper_is_dropped_another_waiter_replaces_it() {
    let queue = DelayingQueue::new();
    queue.add_after("a", ms(100));
    queue.add_after("b", ms(200));
    let mut first = Box::pin(queue.get());
    assert!(at_once(&mut first).await.is_none());
    let mut second = JoinSet::new();
    let handle = queue.clone();
    second.spawn(async move { handle.get().await.map(|item| *item) });
    others().await;
    drop(first);
    let start = Instant::now();
    assert_eq!(second.join_next().await.unwrap().unwrap(), Some("a"));
    assert_eq!(start.elapsed(), ms(100));
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_gets_a_due_item_that_another_call_made_ready() {
    let queue = DelayingQueue::new();
    queue.add_after("a", ms(100));
    let mut get = Box::pin(queue.get());
    assert!(at_once(&mut get).await.is_none());
    pass(100).await;
    assert_eq!(queue.len(), 1);
    assert_eq!(*at_once(get).await.unwrap().unwrap(), "a");
}

#[tokio::test(start_paused = true)]
async fn any_duration_is_legal() {
    let queue = DelayingQueue::new();
    queue.add_after("a", Duration::MAX);
    queue.add_after("b", Duration::MAX - ms(1));
    queue.add_after("c", Duration::from_nanos(1));
    let start = Instant::now();
    assert_eq!(*queue.get().await.unwrap(), "c");
    assert!(start.elapsed() <= ms(2));
    assert!(tokio::time::timeout(Duration::from_secs(365 * 24 * 3600), queue.get()).await.is_err());
    assert_eq!(queue.shut_down(), ["a", "b"]);
}
