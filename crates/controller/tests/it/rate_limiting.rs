//! Items whose delay a limiter decides: ★60 rate_limiting_queue_test, WQ-13, B-32.

use std::sync::Arc;

use kube_controller::limiter::{ItemExponential, TokenBucket};
use kube_controller::{Item, RateLimiter as _, WorkQueue};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::{ms, pass};

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new(ItemExponential::new(ms(1), ms(1000)))
}

// ★60 TestRateLimitingQueue, WQ-13.
#[tokio::test(start_paused = true)]
async fn each_attempt_has_the_delay_that_the_limiter_returns() {
    let queue = queue();
    let start = Instant::now();
    queue.add_rate_limited("one");
    queue.add_rate_limited("one");
    assert_eq!(queue.num_requeues(&"one"), 2);
    queue.add_rate_limited("two");
    queue.add_rate_limited("two");
    queue.forget(&"one");
    assert_eq!((queue.num_requeues(&"one"), queue.num_requeues(&"two")), (0, 2));
    drop(queue.get().await.unwrap());
    assert_eq!(start.elapsed(), ms(1), "the earlier of one and two milliseconds");
    drop(queue.get().await.unwrap());
    queue.add_rate_limited("two");
    drop(queue.get().await.unwrap());
    assert_eq!(start.elapsed(), ms(5));
}

// WQ-13.
#[tokio::test(start_paused = true)]
async fn forgetting_an_item_does_not_mark_it_as_done() {
    let queue = queue();
    queue.add("a");
    let a = queue.get().await.unwrap();
    a.forget();
    queue.add("a");
    assert!(queue.is_empty(), "its worker has it still");
}

// B-32.
#[tokio::test(start_paused = true)]
async fn a_queue_that_is_shut_down_does_not_call_its_limiter() {
    let queue = queue();
    queue.shut_down();
    assert!(!queue.add_rate_limited("a"));
    assert_eq!(queue.num_requeues(&"a"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_item_can_be_handed_to_another_task_and_is_retried_from_there() {
    let queue = queue();
    queue.add("a");
    let item: Item<&str> = queue.get().await.unwrap();
    let mut other = JoinSet::new();
    other.spawn(async move { item.retry() });
    other.join_all().await;
    assert_eq!((queue.status().processing, queue.status().delayed), (0, 1));
    pass(1).await;
    let again = queue.get().await.unwrap();
    assert_eq!(again.num_requeues(), 1);
    assert_eq!(again.queue().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn queues_may_share_a_limiter() {
    let bucket = Arc::new(TokenBucket::new(1.0, 1));
    let (one, two) = (WorkQueue::new(bucket.clone()), WorkQueue::new(bucket.clone()));
    one.add_rate_limited("a");
    two.add_rate_limited("b");
    assert_eq!((one.len(), two.len()), (1, 0));
    assert_eq!(bucket.when(&()), ms(2000));
}
