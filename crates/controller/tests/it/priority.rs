//! The order of items by priority.

use kube_controller::{Priority, Queue, WorkQueue};

use crate::{add, at_once, ms};

async fn all(queue: &Queue<&'static str>) -> String {
    let mut taken = String::new();
    while let Some(Some(item)) = at_once(queue.get()).await {
        taken += *item;
    }
    taken
}

#[tokio::test]
async fn the_highest_priority_comes_first_and_within_it_the_oldest_item() {
    let queue = Queue::new();
    for (item, priority) in [("a", 0), ("b", 5), ("c", -5), ("d", 5), ("e", 0), ("f", i32::MAX), ("g", i32::MIN)] {
        queue.add_with(item, Priority(priority));
    }
    assert_eq!(all(&queue).await, "fbdaecg");
}

#[tokio::test]
async fn a_second_add_raises_the_priority_and_never_lowers_it() {
    let queue = Queue::new();
    add(&queue, &["a", "b", "c"]);
    queue.add_with("c", Priority(1));
    queue.add_with("a", Priority::LOW);
    queue.add_with("c", Priority::LOW);
    assert_eq!(all(&queue).await, "cab");
}

#[tokio::test]
async fn an_item_whose_priority_is_raised_keeps_its_age() {
    let queue = Queue::new();
    queue.add_with("old", Priority::LOW);
    queue.add("new");
    queue.add("old");
    assert_eq!(all(&queue).await, "oldnew");
}

#[tokio::test]
async fn every_tenth_item_is_the_oldest_whatever_its_priority() {
    let queue = Queue::new();
    queue.add_with("z", Priority::LOW);
    add(&queue, &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"]);
    assert_eq!(all(&queue).await, "abcdefghizjk");
}

#[tokio::test]
async fn a_priority_is_raised_while_a_worker_has_the_item() {
    let queue = Queue::new();
    queue.add("a");
    let a = queue.get().await.unwrap();
    queue.add_with("a", Priority::LOW);
    queue.add_with("a", Priority(1));
    queue.add_with("a", Priority::LOW);
    queue.add("b");
    drop(a);
    let a = queue.get().await.unwrap();
    assert_eq!((*a, a.priority()), ("a", Priority(1)));
}

#[tokio::test(start_paused = true)]
async fn a_retry_keeps_its_priority() {
    let queue = WorkQueue::default();
    queue.add_with("a", Priority::LOW);
    queue.add_with("b", Priority(1));
    for _ in 0..2 {
        queue.get().await.unwrap().retry();
    }
    tokio::time::advance(ms(5)).await;
    queue.add("c");
    assert_eq!(all(&queue).await, "bca");
    queue.add_with("a", Priority(3));
    queue.get().await.unwrap().retry_after(ms(0));
    assert_eq!(queue.get().await.unwrap().priority(), Priority(3));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_item_keeps_the_higher_of_two_priorities() {
    let queue = WorkQueue::default();
    queue.add_after_with("a", ms(10), Priority(2));
    queue.add_after_with("a", ms(5), Priority::LOW);
    queue.add_after_with("b", ms(5), Priority::LOW);
    queue.add_after_with("b", ms(10), Priority(1));
    queue.add_rate_limited_with("c", Priority(3));
    tokio::time::advance(ms(5)).await;
    assert_eq!(all(&queue).await, "cab");
}
