//! An item is handed out exactly when it is due, as long as a worker waits, even if other workers start and end.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_controller::DelayingQueue;
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::ms;

#[derive(Debug, Clone)]
enum Act {
    /// Adds the next item after this delay, in milliseconds.
    Add(u64),
    /// Ends one of the workers, if there are two or more.
    End(usize),
    /// Starts a worker, which drops each `get` after this time, in milliseconds.
    Begin(u64),
}

fn acts() -> impl Strategy<Value = Vec<(u64, Act)>> {
    let act = prop_oneof![
        6 => (0..400_u64).prop_map(Act::Add),
        1 => (0..8_usize).prop_map(Act::End),
        1 => (1..300_u64).prop_map(Act::Begin),
    ];
    prop::collection::vec((0..40_u64, act), 1..60)
}

type Came = Arc<Mutex<BTreeMap<u64, Instant>>>;

async fn work(queue: DelayingQueue<u64>, came: Came, patience: u64) {
    loop {
        match timeout(ms(patience), queue.get()).await {
            Ok(Some(item)) => {
                assert!(came.lock().insert(*item, Instant::now()).is_none(), "{item:?} was handed out twice")
            }
            Ok(None) => return,
            Err(_) => {}
        }
    }
}

async fn run(acts: Vec<(u64, Act)>) {
    let queue = DelayingQueue::new();
    let came = Came::default();
    let mut due = BTreeMap::new();
    let mut tasks = JoinSet::new();
    let mut workers = Vec::new();
    for patience in [1_000_000, 100, 1_000_000] {
        workers.push(tasks.spawn(work(queue.clone(), came.clone(), patience)));
    }
    let mut now = Instant::now();
    for (number, (wait, act)) in acts.into_iter().enumerate() {
        now += ms(wait);
        sleep_until(now).await;
        match act {
            Act::Add(delay) => {
                queue.add_after(number as u64, ms(delay));
                due.insert(number as u64, now + ms(delay));
            }
            Act::End(index) if workers.len() > 1 => workers.remove(index % workers.len()).abort(),
            Act::Begin(patience) => workers.push(tasks.spawn(work(queue.clone(), came.clone(), patience))),
            Act::End(_) => {}
        }
    }
    sleep_until(now + ms(500)).await;
    assert!(queue.drain().await.is_empty());
    while let Some(ended) = tasks.join_next().await {
        assert!(ended.is_ok() || ended.is_err_and(|error| error.is_cancelled()));
    }
    assert_eq!(*came.lock(), due);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_item_is_handed_out_when_it_is_due_while_workers_start_and_end(acts in acts()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(acts));
    }
}
