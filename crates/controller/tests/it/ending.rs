//! The shutdown of a queue: the shutdown tests of ★59, WQ-6, WQ-7, WQ-12, B-30, B-31.

use kube_controller::queue::QueuePhase;
use kube_controller::{DelayingQueue, Queue, WorkQueue};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::{add, at_once, ms, others};

// WQ-6.
#[tokio::test]
async fn a_queue_that_is_shut_down_hands_out_the_items_that_wait() {
    let queue = Queue::new();
    queue.add("a");
    queue.add("b");
    queue.shut_down();
    queue.shut_down();
    assert!(!queue.add("c"));
    assert_eq!(*queue.get().await.unwrap(), "a");
    assert_eq!(*queue.get().await.unwrap(), "b");
    assert!(queue.get().await.is_none());
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_wakes_all_waiting_workers() {
    let queue = Queue::<u32>::new();
    let mut workers = JoinSet::new();
    for _ in 0..5 {
        let queue = queue.clone();
        workers.spawn(async move { queue.get().await.is_none() });
    }
    others().await;
    queue.shut_down();
    assert_eq!(workers.join_all().await, [true; 5]);
}

// ★59 TestQueueDrainageUsingShutDown: no drain.
#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_workers() {
    let queue = Queue::new();
    queue.add("a");
    let _a = queue.get().await.unwrap();
    queue.shut_down();
    assert_eq!(queue.status().phase, QueuePhase::ShuttingDown);
    assert!(at_once(queue.get()).await.unwrap().is_none());
}

// ★59 TestQueueDrainageUsingShutDownWithDrain, WQ-7, B-30: queued items count, not only those that workers have.
#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_queued_items_and_for_items_that_workers_have() {
    let queue = Queue::new();
    queue.add("a");
    queue.add("b");
    let a = queue.get().await.unwrap();
    let mut drain = Box::pin(queue.drain());
    assert!(at_once(&mut drain).await.is_none());
    drop(a);
    assert!(at_once(&mut drain).await.is_none(), "b is still queued");
    let b = queue.get().await.unwrap();
    assert!(at_once(&mut drain).await.is_none(), "a worker has b");
    drop(b);
    assert!(at_once(drain).await.is_some());
    assert_eq!(queue.status().phase, QueuePhase::Drained);
}

// ★59 TestQueueDrainageUsingShutDownWithDrainWithDirtyItem.
#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_an_item_that_was_added_while_a_worker_has_it() {
    let queue = Queue::new();
    queue.add("a");
    let a = queue.get().await.unwrap();
    queue.add("a");
    let mut drain = Box::pin(queue.drain());
    assert!(at_once(&mut drain).await.is_none());
    drop(a);
    assert!(at_once(&mut drain).await.is_none());
    assert_eq!(*queue.get().await.unwrap(), "a");
    assert!(at_once(drain).await.is_some());
}

// WQ-6. In client-go the waiting workers would end here, and a program with one worker per item would lose this item.
#[tokio::test(start_paused = true)]
async fn a_waiting_worker_gets_an_item_that_was_added_again_before_the_shutdown() {
    let queue = Queue::new();
    queue.add("a");
    let a = queue.get().await.unwrap();
    queue.add("a");
    queue.shut_down();
    let mut workers = JoinSet::new();
    for _ in 0..3 {
        let queue = queue.clone();
        workers.spawn(async move { queue.get().await.map(|item| *item) });
    }
    others().await;
    assert!(workers.try_join_next().is_none());
    drop(a);
    let mut results = workers.join_all().await;
    results.sort_unstable();
    assert_eq!(results, [None, None, Some("a")]);
}

// ★59 TestForceQueueShutdownUsingShutDown: here the caller ends a drain by dropping it.
#[tokio::test(start_paused = true)]
async fn a_drain_can_be_dropped_and_called_again() {
    let queue = DelayingQueue::new();
    queue.add("a");
    queue.add_after("later", ms(1));
    let a = queue.get().await.unwrap();
    let start = Instant::now();
    assert!(timeout(ms(500), queue.drain()).await.is_err());
    assert_eq!(start.elapsed(), ms(500));
    let mut again = Box::pin(queue.drain());
    assert!(at_once(&mut again).await.is_none());
    drop(a);
    assert_eq!(at_once(again).await.unwrap(), ["later"], "the item is not lost with the first drain");
}

// B-30.
#[tokio::test(start_paused = true)]
async fn several_callers_can_wait_for_the_drain() {
    let queue = Queue::new();
    queue.add("a");
    let mut drains = JoinSet::new();
    for _ in 0..5 {
        let queue = queue.clone();
        drains.spawn(async move { queue.drain().await });
    }
    others().await;
    drop(queue.get().await.unwrap());
    drains.join_all().await;
}

// WQ-12, B-31.
#[tokio::test(start_paused = true)]
async fn a_shutdown_returns_the_delayed_items_the_first_due_first() {
    let queue = DelayingQueue::new();
    queue.add_after("c", ms(3000));
    queue.add_after("b", ms(2000));
    queue.add_after("a", ms(1000));
    tokio::time::advance(ms(1000)).await;
    assert_eq!(queue.shut_down(), ["b", "c"], "a was due before the shutdown");
    assert!(!queue.add_after("d", ms(1)));
    assert_eq!(*queue.get().await.unwrap(), "a");
    assert!(queue.get().await.is_none(), "no item becomes due after the shutdown");
    assert!(queue.shut_down().is_empty(), "no item is returned twice");
}

// B-31: the queue has no task that would have to end.
#[tokio::test(start_paused = true)]
async fn a_worker_that_waits_for_a_delayed_item_ends_at_once_at_the_shutdown() {
    let queue = DelayingQueue::new();
    queue.add_after("a", ms(3_600_000));
    let start = Instant::now();
    let (none, left) = tokio::join!(queue.get(), queue.drain());
    assert!(none.is_none());
    assert_eq!(left, ["a"]);
    assert_eq!(start.elapsed(), ms(0));
}

#[tokio::test(start_paused = true)]
async fn a_drain_returns_the_items_that_workers_retry() {
    let queue = WorkQueue::default();
    add(&queue, &["a", "b", "c"]);
    let (a, b, c) = (queue.get().await.unwrap(), queue.get().await.unwrap(), queue.get().await.unwrap());
    queue.add("c");
    let mut drain = Box::pin(queue.drain());
    assert!(at_once(&mut drain).await.is_none());
    a.retry();
    b.retry_after(ms(1000));
    assert_eq!(queue.num_requeues(&"a"), 0, "the limiter was not asked");
    // The worker that waits for c sleeps: delayed items of a queue that is shut down do not become due.
    let mut waits = Box::pin(queue.get());
    assert!(timeout(ms(5000), &mut waits).await.is_err());
    drop(c);
    assert_eq!(*waits.await.unwrap(), "c");
    assert_eq!(drain.await, ["a", "b"]);
}
