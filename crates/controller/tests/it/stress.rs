//! A queue on real threads and a real clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kube_controller::limiter::ItemExponential;
use kube_controller::{DelayingQueue, Priority, WorkQueue};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::ms;

const KEYS: u64 = 64;
const LASTS: Duration = Duration::from_millis(1500);
/// The smallest number of items that workers have to finish in the test.
const ENOUGH: u64 = 1000;

/// The counters of one key.
#[derive(Default)]
struct Key {
    wanted: AtomicU64,
    seen: AtomicU64,
    held: AtomicBool,
    /// How often a worker finished the key.
    done: AtomicU64,
}

fn all_done(keys: &[Key]) -> u64 {
    keys.iter().map(|key| key.done.load(Ordering::SeqCst)).sum()
}

async fn produce(queue: WorkQueue<u64>, keys: Arc<Vec<Key>>, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let start = Instant::now();
    while start.elapsed() < LASTS || all_done(&keys) < ENOUGH {
        for _ in 0..random.random_range(1..50) {
            let key = random.random_range(0..KEYS);
            keys[key as usize].wanted.fetch_add(1, Ordering::SeqCst);
            let priority = Priority(random.random_range(-1..2));
            let taken_in = match random.random_range(0..4) {
                0 => queue.add_after_with(key, Duration::from_micros(random.random_range(0..3000)), priority),
                1 => queue.add_rate_limited_with(key, priority),
                _ => queue.add_with(key, priority),
            };
            assert!(taken_in);
        }
        match random.random_bool(0.5) {
            true => tokio::task::yield_now().await,
            false => tokio::time::sleep(ms(1)).await,
        }
    }
}

async fn consume(queue: WorkQueue<u64>, keys: Arc<Vec<Key>>, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    loop {
        let patience = Duration::from_micros(random.random_range(0..5000));
        let Ok(got) = timeout(patience, queue.get()).await else { continue };
        let Some(item) = got else { return };
        let key = &keys[*item as usize];
        assert!(!key.held.swap(true, Ordering::SeqCst), "two workers have {item:?}");
        key.seen.fetch_max(key.wanted.load(Ordering::SeqCst), Ordering::SeqCst);
        if random.random_bool(0.2) {
            tokio::task::yield_now().await;
        }
        key.done.fetch_add(1, Ordering::SeqCst);
        key.held.store(false, Ordering::SeqCst);
        match random.random_range(0..20) {
            0 => item.retry(),
            1 => item.retry_after(ms(1)),
            _ => item.forget(),
        }
    }
}

/// Runs as many workers as items. Each worker takes one item and keeps it. A worker that is not woken waits for ever.
async fn round(random: &mut StdRng) {
    const WORKERS: u64 = 4;
    let queue = DelayingQueue::new();
    let mut tasks = JoinSet::new();
    for number in 0..WORKERS {
        let worker = queue.clone();
        tasks.spawn(async move { worker.get().await });
        let (producer, delay) = (queue.clone(), Duration::from_micros(random.random_range(0..200)));
        tasks.spawn(async move {
            match number % 2 {
                0 => producer.add(number),
                _ => producer.add_after(number, delay),
            };
            None
        });
    }
    let held = timeout(Duration::from_secs(30), tasks.join_all()).await.expect("a worker was not woken");
    assert_eq!(held.iter().flatten().count() as u64, WORKERS);
}

#[test]
fn on_real_threads_each_item_wakes_a_worker() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut random = StdRng::seed_from_u64(1);
        let start = Instant::now();
        while start.elapsed() < LASTS {
            round(&mut random).await;
        }
    });
}

#[test]
fn on_real_threads_no_item_is_lost_and_no_two_workers_have_the_same() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let queue = WorkQueue::named("stress", ItemExponential::new(Duration::from_micros(100), ms(5)));
        let keys: Arc<Vec<Key>> = Arc::new((0..KEYS).map(|_| Key::default()).collect());
        let mut consumers = JoinSet::new();
        let mut producers = JoinSet::new();
        (0..8).for_each(|seed| drop(consumers.spawn(consume(queue.clone(), keys.clone(), seed))));
        (0..4).for_each(|seed| drop(producers.spawn(produce(queue.clone(), keys.clone(), 100 + seed))));
        timeout(Duration::from_secs(60), producers.join_all()).await.expect("the producers hang");
        let left = timeout(Duration::from_secs(30), queue.drain()).await.expect("the drain hangs");
        timeout(Duration::from_secs(30), consumers.join_all()).await.expect("a worker hangs");
        for (number, key) in keys.iter().enumerate() {
            let (wanted, seen) = (key.wanted.load(Ordering::SeqCst), key.seen.load(Ordering::SeqCst));
            assert!(wanted == seen || left.contains(&(number as u64)), "{number}: wanted {wanted}, seen {seen}");
        }
        let status = queue.status();
        assert_eq!((status.waiting, status.processing, status.delayed), (0, 0, 0));
    });
}
