//! How a queue ends: ★59's shutdowns, WQ-6, WQ-7, WQ-12, B-30, B-31.

use kube_controller::queue::QueuePhase;
use kube_controller::{DelayingQueue, Queue, WorkQueue};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::{add, at_once, ms, others};

// WQ-6.
#[tokio::test]
async fn a_queue_that_is_shut_down_hands_out_what_it_has() {
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
async fn everybody_who_waits_learns_of_the_end() {
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
async fn shutting_down_waits_for_nobody() {
    let queue = Queue::new();
    queue.add("a");
    let _a = queue.get().await.unwrap();
    queue.shut_down();
    assert_eq!(queue.status().phase, QueuePhase::ShuttingDown);
    assert!(at_once(queue.get()).await.unwrap().is_none());
}

// ★59 TestQueueDrainageUsingShutDownWithDrain, WQ-7, B-30: queued items count, not only those that workers have.
#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_what_is_queued_and_for_what_workers_have() {
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
async fn a_drain_waits_for_what_is_to_be_done_once_more() {
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

// WQ-6. client-go's worker would be told of the end here, and a program with one worker per item would lose this one.
#[tokio::test(start_paused = true)]
async fn who_waits_at_the_end_gets_what_is_to_be_done_once_more() {
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
    let mut told = workers.join_all().await;
    told.sort_unstable();
    assert_eq!(told, [None, None, Some("a")]);
}

// ★59 TestForceQueueShutdownUsingShutDown: here a drain is given up by dropping it.
#[tokio::test(start_paused = true)]
async fn a_drain_can_be_given_up_and_begun_again() {
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
    assert_eq!(at_once(again).await.unwrap(), ["later"], "it is not lost with the first drain");
}

// B-30.
#[tokio::test(start_paused = true)]
async fn any_number_may_wait_for_the_drain() {
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
async fn what_was_to_come_later_is_given_back_the_first_in_front() {
    let queue = DelayingQueue::new();
    queue.add_after("c", ms(3000));
    queue.add_after("b", ms(2000));
    queue.add_after("a", ms(1000));
    tokio::time::advance(ms(1000)).await;
    assert_eq!(queue.shut_down(), ["b", "c"], "a was due");
    assert!(!queue.add_after("d", ms(1)));
    assert_eq!(*queue.get().await.unwrap(), "a");
    assert!(queue.get().await.is_none(), "nothing comes due any more");
    assert!(queue.shut_down().is_empty(), "nothing is given back twice");
}

// B-31: there is no task that would have to end.
#[tokio::test(start_paused = true)]
async fn the_end_is_learnt_at_once_by_who_waits_for_something_later() {
    let queue = DelayingQueue::new();
    queue.add_after("a", ms(3_600_000));
    let start = Instant::now();
    let (none, left) = tokio::join!(queue.get(), queue.drain());
    assert!(none.is_none());
    assert_eq!(left, ["a"]);
    assert_eq!(start.elapsed(), ms(0));
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_retried_at_the_end_is_given_back() {
    let queue = WorkQueue::default();
    add(&queue, &["a", "b", "c"]);
    let (a, b, c) = (queue.get().await.unwrap(), queue.get().await.unwrap(), queue.get().await.unwrap());
    queue.add("c");
    let mut drain = Box::pin(queue.drain());
    assert!(at_once(&mut drain).await.is_none());
    a.retry();
    b.retry_after(ms(1000));
    assert_eq!(queue.num_requeues(&"a"), 0, "the limiter was not asked");
    // Whoever waits for c is not kept busy by what does not come due.
    let mut waits = Box::pin(queue.get());
    assert!(timeout(ms(5000), &mut waits).await.is_err());
    drop(c);
    assert_eq!(*waits.await.unwrap(), "c");
    assert_eq!(drain.await, ["a", "b"]);
}
