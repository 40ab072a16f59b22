//! An item waits once, and one worker at a time has it: ★59, WQ-1 to WQ-5, WQ-8.

use std::sync::Arc;

use kube_controller::Queue;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::{add, at_once, others};

/// Runs fifty producers and ten consumers, as client-go's test does. The consumers call `work` with each item.
async fn producers_and_consumers(work: impl Fn(&Queue<u32>, u32) + Clone + Send + 'static) -> Vec<u32> {
    let queue = Queue::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut producers = JoinSet::new();
    for producer in 0..50 {
        let queue = queue.clone();
        producers.spawn(async move {
            for _ in 0..50 {
                queue.add(producer);
                tokio::task::yield_now().await;
            }
        });
    }
    let mut consumers = JoinSet::new();
    for _ in 0..10 {
        let (queue, seen, work) = (queue.clone(), seen.clone(), work.clone());
        consumers.spawn(async move {
            while let Some(item) = queue.get().await {
                assert_ne!(*item, 1000, "it was added after the queue was shut down");
                seen.lock().push(*item);
                work(&queue, *item);
                tokio::task::yield_now().await;
            }
        });
    }
    producers.join_all().await;
    queue.shut_down();
    assert!(!queue.add(1000), "nothing is taken in any more");
    consumers.join_all().await;
    assert_eq!(queue.len(), 0);
    let mut seen = std::mem::take(&mut *seen.lock());
    seen.sort_unstable();
    seen
}

// ★59 TestBasic.
#[tokio::test(start_paused = true)]
async fn every_item_is_handed_out_and_none_after_the_shutdown() {
    let mut seen = producers_and_consumers(|_, _| {}).await;
    seen.dedup();
    assert_eq!(seen, (0..50).collect::<Vec<_>>());
}

// ★59 TestAddWhileProcessing, WQ-4.
#[tokio::test(start_paused = true)]
async fn an_item_added_while_a_worker_has_it_is_handed_out_once_more() {
    let first = Mutex::new([true; 50]);
    let first = Arc::new(first);
    let seen = producers_and_consumers(move |queue, item| {
        if std::mem::take(&mut first.lock()[item as usize]) {
            for _ in 0..5 {
                queue.add(item);
            }
        }
    })
    .await;
    for item in 0..50 {
        assert!(seen.iter().filter(|seen| **seen == item).count() >= 2, "{item} was not handed out again");
    }
}

// WQ-1, WQ-4.
#[tokio::test]
async fn several_adds_during_processing_cause_exactly_one_more_hand_out() {
    let queue = Queue::new();
    queue.add("a");
    let a = queue.get().await.unwrap();
    for _ in 0..5 {
        queue.add("a");
    }
    assert_eq!(queue.len(), 0);
    drop(a);
    assert_eq!(queue.len(), 1);
    drop(queue.get().await.unwrap());
    assert!(at_once(queue.get()).await.is_none());
}

// ★59 TestLen, WQ-5.
#[tokio::test]
async fn the_length_counts_only_items_that_can_be_taken() {
    let queue = Queue::new();
    assert!(queue.is_empty());
    queue.add("a");
    assert_eq!(queue.len(), 1);
    queue.add("b");
    queue.add("a");
    assert_eq!(queue.len(), 2);
    let _a = queue.get().await.unwrap();
    assert_eq!(queue.len(), 1);
    assert_eq!(queue.status().processing, 1);
}

// ★59 TestReinsert, WQ-3: at the tail.
#[tokio::test]
async fn an_item_added_while_a_worker_has_it_comes_behind_the_others() {
    let queue = Queue::new();
    queue.add("a");
    let a = queue.get().await.unwrap();
    queue.add("a");
    queue.add("b");
    drop(a);
    assert_eq!(*queue.get().await.unwrap(), "b");
    assert_eq!(*queue.get().await.unwrap(), "a");
    queue.add("a");
    assert_eq!(*queue.get().await.unwrap(), "a");
    assert_eq!(queue.len(), 0);
}

// ★59 TestCollapse, WQ-1, WQ-2.
#[tokio::test]
async fn several_adds_before_processing_count_once_and_the_oldest_item_comes_first() {
    let queue = Queue::new();
    add(&queue, &["a", "b", "a", "c", "a"]);
    let mut taken = Vec::new();
    while let Some(Some(item)) = at_once(queue.get()).await {
        taken.push(*item);
    }
    assert_eq!(taken, ["a", "b", "c"]);
}

// ★59 TestCollapseWhileProcessing, WQ-4.
#[tokio::test(start_paused = true)]
async fn a_second_worker_waits_until_the_first_is_done() {
    let queue = Queue::new();
    queue.add("a");
    let first = queue.get().await.unwrap();
    queue.add("a");
    let mut second = JoinSet::new();
    let handle = queue.clone();
    second.spawn(async move { handle.get().await.map(|item| *item) });
    others().await;
    assert!(second.try_join_next().is_none(), "two workers have it");
    drop(first);
    assert_eq!(second.join_next().await.unwrap().unwrap(), Some("a"));
}

#[tokio::test]
async fn neither_an_early_return_nor_a_panic_leaves_an_item_with_a_worker() {
    let queue = Queue::new();
    let mut workers = JoinSet::new();
    for item in ["returns", "panics"] {
        queue.add(item);
        let queue = queue.clone();
        workers.spawn(async move {
            let item = queue.get().await.unwrap();
            queue.add(*item);
            if *item == "panics" {
                std::panic::resume_unwind(Box::new("on purpose")); // Prints no message on the terminal.
            }
        });
    }
    while workers.join_next().await.is_some() {}
    assert_eq!((queue.status().processing, queue.len()), (0, 2));
}

// ★59 TestGarbageCollection, WQ-8.
#[tokio::test]
async fn the_queue_drops_an_item_that_is_done() {
    let queue = Queue::new();
    let item = Arc::new(1);
    queue.add(item.clone());
    queue.add(Arc::new(2));
    drop(queue.get().await.unwrap());
    assert_eq!(Arc::strong_count(&item), 1);
}

#[tokio::test(start_paused = true)]
async fn each_add_wakes_one_waiting_worker() {
    let queue = Queue::new();
    let mut workers = JoinSet::new();
    for _ in 0..4 {
        let queue = queue.clone();
        workers.spawn(async move {
            let item = queue.get().await.unwrap();
            std::future::pending::<()>().await;
            drop(item);
        });
    }
    others().await;
    for item in 0..3 {
        queue.add(item);
    }
    others().await;
    assert_eq!((queue.len(), queue.status().processing), (0, 3));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_get_takes_no_item_and_another_waiter_is_woken() {
    let queue = Queue::new();
    let mut first = Box::pin(queue.get());
    assert!(at_once(&mut first).await.is_none());
    let mut second = Box::pin(queue.get());
    assert!(at_once(&mut second).await.is_none());
    queue.add("a"); // This notifies the first waiter.
    drop(first);
    assert_eq!(*at_once(second).await.unwrap().unwrap(), "a");
}

#[tokio::test]
async fn a_queue_that_is_never_empty_lets_other_tasks_run() {
    let queue = Queue::new();
    let busy = async {
        loop {
            queue.add("a");
            drop(queue.get().await);
        }
    };
    tokio::select! {
        biased;
        () = busy => {}
        () = tokio::task::yield_now() => {}
    }
}
