//! Prints the figures of work queues and controllers: `cargo bench -p kube-controller --bench figures`.
//!
//! Each figure is the least of several rounds unless it says otherwise, one a line: name, value, unit. `cargo xtask
//! bench` prints the figures of the queue beside client-go's, which `bench/go` measures in the same way, under the same
//! names except for the type of the key. Nothing is asserted, because machines differ and ratios tell more than
//! numbers.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_types,
    missing_docs,
    reason = "a benchmark prints"
)]

use std::convert::Infallible;
use std::future::ready;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use kube_controller::queue::Key;
use kube_controller::{Action, Controller, ControllerHandle, Request, WorkQueue};
use kube_informer::parts::{
    Decoded, ListEnd, ListOptions, ListStream, ListWatchFns, WatchEvent, WatchOptions, WatchStream,
};
use kube_informer::{CancellationToken, Id, KeyRef, Object, ObjectKey, SharedInformer};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const ITEMS: usize = 100_000;
const QUEUED: usize = 1_000_000;
const ROUNDS: usize = 7;
/// How many keys change during the measurement of event to reconcile.
const CHANGING: usize = 10_000;
/// The duration of a reconcile during the measurement of fresh changes.
const WORK: Duration = Duration::from_micros(20);
/// The number of fresh changes.
const FRESH: usize = 40;
/// How many objects change while other keys are parked.
const PASSING: usize = 500;
/// A version that the cache does not reach.
const NEVER: usize = 1_000_000_000;
/// The default number of workers of a controller.
const WORKERS: usize = 4;
/// Our own argument: a separate process measures memory, because a process reuses freed memory.
const MEMORY: &str = "memory-of";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().position(|argument| argument == MEMORY).and_then(|at| arguments.get(at + 1)) {
        Some(key) if key == "ObjectKey" => return print_memory(object_key),
        Some(_) => return print_memory(text),
        None => {}
    }
    // `cargo test --benches` only checks that it builds.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    // As many threads as cores, as Go has.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        queue_figures("ObjectKey", object_key).await;
        queue_figures("String", text).await;
        empty_reconciles(1).await;
        empty_reconciles(WORKERS).await;
        event_to_reconcile().await;
        for parked in [0, 1_000, 10_000] {
            changes_beside_parked_keys(parked).await;
        }
        first_fill().await;
        println!(
            "restart: how long a change waits while {ITEMS} objects are reconciled, {WORK:?} each, {WORKERS} workers"
        );
        restart_with_priorities("priorities", Body::Awaits).await;
        restart_without().await;
        restart_with_priorities("priorities, never awaits", Body::NeverAwaits).await;
    });
}

fn figure(name: &str, value: f64, unit: &str) {
    println!("{name:<44} {value:>10.0} {unit}");
}

fn least(steps: usize, rounds: &[Duration]) -> f64 {
    rounds.iter().min().unwrap().as_nanos() as f64 / steps as f64
}

fn text(number: usize) -> String {
    format!("default/thing-{number:07}")
}

fn object_key(number: usize) -> ObjectKey {
    text(number).parse().unwrap()
}

/// Returns keys in an order that differs from the order of their names.
fn keys<T>(key: fn(usize) -> T) -> Vec<T> {
    (0..ITEMS).map(|number| key(number * 7919 % ITEMS)).collect()
}

async fn queue_figures<T: Key + Sync>(type_name: &str, key: fn(usize) -> T) {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(in_turn(keys(key)).await);
    }
    figure(&format!("add, get, done in turn, {type_name}"), least(ITEMS, &rounds), "ns");
    for workers in [1, 8] {
        rounds.clear();
        for _ in 0..ROUNDS {
            rounds.push(throughput(keys(key), workers).await);
        }
        figure(&format!("add, get, done, workers: {workers}, {type_name}"), least(ITEMS, &rounds), "ns");
    }
    let rounds: Vec<_> = (0..ROUNDS).map(|_| insert(keys(key))).collect();
    figure(&format!("delayed, insert, {type_name}"), least(ITEMS, &rounds), "ns");
    let rounds: Vec<_> = (0..ROUNDS).map(|_| fire(keys(key))).collect();
    figure(&format!("delayed, fire, {type_name}"), least(ITEMS, &rounds), "ns");
    memory(type_name);
}

/// Adds, takes and finishes one key after the other in one task.
async fn in_turn<T: Key>(keys: Vec<T>) -> Duration {
    let queue = WorkQueue::default();
    let start = Instant::now();
    for key in keys {
        queue.add(key);
        queue.get().await.unwrap();
    }
    start.elapsed()
}

/// Measures workers that take keys while another task adds them.
async fn throughput<T: Key + Sync>(keys: Vec<T>, workers: usize) -> Duration {
    let (queue, mut tasks) = (WorkQueue::default(), JoinSet::new());
    let start = Instant::now();
    for _ in 0..workers {
        let queue = queue.clone();
        tasks.spawn(async move { while queue.get().await.is_some() {} });
    }
    tasks.spawn(async move {
        for key in keys {
            queue.add(key);
        }
        queue.shut_down();
    });
    while tasks.join_next().await.is_some() {}
    start.elapsed()
}

/// Adds items that become due within an hour, but not during the measurement.
fn insert<T: Key>(keys: Vec<T>) -> Duration {
    let queue = WorkQueue::default();
    let start = Instant::now();
    for (number, key) in keys.into_iter().enumerate() {
        let shuffled = (number * 104_729 % ITEMS) as u64;
        queue.add_after(key, Duration::from_secs(3600) + Duration::from_millis(shuffled));
    }
    start.elapsed()
}

/// Adds items that are due at the same time. No worker waits for them, so the next call makes them ready.
fn fire<T: Key>(keys: Vec<T>) -> Duration {
    let queue = WorkQueue::default();
    let due = Instant::now() + Duration::from_millis(500);
    let mut last = due;
    for key in keys {
        let delay = due.saturating_duration_since(Instant::now());
        queue.add_after(key, delay);
        // Later than `due` if another task ran in between.
        last = last.max(Instant::now() + delay);
    }
    std::thread::sleep(last.saturating_duration_since(Instant::now()));
    let start = Instant::now();
    assert_eq!(queue.len(), ITEMS);
    start.elapsed()
}

/// Prints the memory of a queued item with its key.
fn memory(type_name: &str) {
    let name = format!("queued, memory, {type_name}");
    let measured = Command::new(std::env::current_exe().unwrap()).args([MEMORY, type_name]).output().unwrap();
    match String::from_utf8_lossy(&measured.stdout).trim().parse() {
        Ok(bytes) => figure(&name, bytes, "bytes"),
        Err(_) => println!("{name:<44} {:>10} bytes", "unknown"),
    }
}

/// Prints the bytes of an item, or nothing if the system does not report memory.
fn print_memory<T: Key>(key: fn(usize) -> T) {
    let (before, queue) = (resident(), WorkQueue::default());
    for number in 0..QUEUED {
        queue.add(key(number));
    }
    if let (Some(before), Some(after)) = (before, resident()) {
        println!("{}", after.saturating_sub(before) as f64 / QUEUED as f64);
    }
    drop(queue);
}

/// Returns the resident bytes of this process. Only Linux reports them.
fn resident() -> Option<u64> {
    // Exact, unlike `statm`, which may be wrong by a few pages for each thread.
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let kilobytes = rollup.lines().find_map(|line| line.strip_prefix("Rss:"))?.split_whitespace().next()?;
    Some(kilobytes.parse::<u64>().ok()? * 1024)
}

#[derive(Clone)]
struct Thing {
    name: String,
    version: String,
    /// The time at which a watch sent it. `None` for listed objects.
    sent: Option<Instant>,
}

impl Object for Thing {
    fn id(&self) -> Id<'_> {
        Id { key: KeyRef::new("default", &self.name), uid: "", version: &self.version }
    }
}

fn thing(number: usize, version: usize, sent: Option<Instant>) -> Thing {
    Thing { name: format!("thing-{number:07}"), version: version.to_string(), sent }
}

/// Returns an informer that lists `things` objects, and receives others through a channel.
fn informer(things: usize) -> (SharedInformer<Thing>, mpsc::UnboundedSender<Thing>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let receiver = Mutex::new(Some(receiver));
    let source = ListWatchFns::new(
        move |_: ListOptions| async move {
            let things: Vec<_> = (0..things).map(|number| thing(number, 1, None)).collect();
            Ok(ListStream::complete(things, ListEnd { version: Some("1".into()), ..ListEnd::default() }))
        },
        move |_: WatchOptions| {
            let receiver = receiver.lock().take();
            async move {
                let events = futures_util::stream::unfold(receiver, |receiver| async move {
                    let Some(mut receiver) = receiver else { return std::future::pending().await };
                    let thing: Thing = match receiver.recv().await {
                        Some(thing) => thing,
                        None => std::future::pending().await,
                    };
                    Some((Ok(WatchEvent::Modified(Decoded::Object(thing))), Some(receiver)))
                });
                Ok(WatchStream::new(events))
            }
        },
    );
    (SharedInformer::builder(source).build(), sender)
}

/// A controller that runs until it is dropped.
struct Running {
    handle: ControllerHandle<Thing>,
    cancel: CancellationToken,
    task: JoinSet<()>,
}

impl Running {
    fn start<R: Future<Output = ()> + Send + 'static>(
        informer: &SharedInformer<Thing>,
        workers: usize,
        reconcile: impl Fn(Request<Thing>) -> R + Send + Sync + 'static,
    ) -> Self {
        let controller = Controller::new(informer).workers(workers);
        let (handle, cancel, mut task) = (controller.handle(), CancellationToken::new(), JoinSet::new());
        let (term, reconcile) = (cancel.clone(), Arc::new(reconcile));
        task.spawn(async move {
            controller.run(term, call, reconcile).await.unwrap();
        });
        Self { handle, cancel, task }
    }

    async fn stop(mut self) {
        self.cancel.cancel();
        while self.task.join_next().await.is_some() {}
    }
}

async fn call<F, R>(request: Request<Thing>, reconcile: Arc<F>) -> Result<Action, Infallible>
where
    F: Fn(Request<Thing>) -> R,
    R: Future<Output = ()>,
{
    reconcile(request).await;
    Ok(Action::await_change())
}

/// Waits until the count reaches the expected value.
async fn reaches(count: &AtomicUsize, expected: usize) {
    while count.load(Ordering::Relaxed) < expected {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Measures what a controller adds to a reconcile: it queues the key, takes it, calls the function and handles the
/// result.
async fn empty_reconciles(workers: usize) {
    let (informer, _sender) = informer(ITEMS);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let running = Running::start(&informer, workers, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        ready(())
    });
    reaches(&count, ITEMS).await;
    let mut rounds = Vec::new();
    for round in 2..ROUNDS + 2 {
        let start = Instant::now();
        assert!(running.handle.reconcile_all());
        reaches(&count, round * ITEMS).await;
        rounds.push(start.elapsed());
    }
    figure(&format!("empty reconcile, workers: {workers}"), least(ITEMS, &rounds), "ns");
    running.stop().await;
    informer.stop().await;
}

/// Measures the time from the event of a watch to its reconcile, in a cluster that changes steadily.
async fn event_to_reconcile() {
    let (informer, sender) = informer(CHANGING);
    let (count, waits) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Histogram::<u64>::new(3).unwrap())));
    let (counted, noted) = (count.clone(), waits.clone());
    let running = Running::start(&informer, WORKERS, move |request| {
        if let Some(sent) = request.object().and_then(|thing| thing.sent) {
            noted.lock().record(sent.elapsed().as_nanos() as u64).unwrap();
        }
        counted.fetch_add(1, Ordering::Relaxed);
        ready(())
    });
    reaches(&count, CHANGING).await;
    // A thread of its own, because it sleeps for less time than the runtime's timer allows.
    let feed = tokio::task::spawn_blocking(move || {
        for number in 0..CHANGING {
            sender.send(thing(number, number + 2, Some(Instant::now()))).unwrap();
            std::thread::sleep(Duration::from_micros(200));
        }
        sender
    });
    let _sender = feed.await.unwrap();
    reaches(&count, 2 * CHANGING).await;
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let wait = waits.lock().value_at_quantile(quantile);
        figure(&format!("event to reconcile, {CHANGING} keys, {name}"), wait as f64 / 1e3, "us");
    }
    running.stop().await;
    informer.stop().await;
}

/// Measures the time from a change to its reconcile while other keys wait for their writes.
async fn changes_beside_parked_keys(parked: usize) {
    let (informer, sender) = informer(parked + PASSING);
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, writes) = (count.clone(), informer.clone());
    let running = Running::start(&informer, WORKERS, move |request| {
        let number: usize = request.key().name().trim_start_matches("thing-").parse().unwrap();
        if number < parked {
            request.wrote(&writes, &thing(number, NEVER, None));
        }
        counted.fetch_add(1, Ordering::Relaxed);
        ready(())
    });
    reaches(&count, parked + PASSING).await;
    let (mut rounds, mut version) = (Vec::new(), 1);
    for round in 1..=ROUNDS {
        let start = Instant::now();
        for number in parked..parked + PASSING {
            version += 1;
            sender.send(thing(number, version, None)).unwrap();
        }
        reaches(&count, parked + PASSING + round * PASSING).await;
        rounds.push(start.elapsed());
        assert_eq!(running.handle.status().parked, parked);
    }
    figure(&format!("change to reconcile, parked keys: {parked}"), least(PASSING, &rounds), "ns");
    running.stop().await;
    informer.stop().await;
}

/// Measures the time to fill the queue at the start of a term with a warm cache.
async fn first_fill() {
    let (informer, _sender) = informer(ITEMS);
    informer.start().unwrap();
    informer.synced().await.unwrap();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let running = Running::start(&informer, 1, |_| std::future::pending());
        while running.handle.status().queue.is_none_or(|queue| queue.waiting + queue.processing < ITEMS) {
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
        rounds.push(start.elapsed());
        drop(running);
    }
    let milliseconds = rounds.iter().min().unwrap().as_secs_f64() * 1e3;
    figure(&format!("begin of a term: {ITEMS} keys are queued after"), milliseconds, "ms");
    informer.stop().await;
}

/// Measures fresh changes: what each reconcile does, and how long the changes waited.
#[derive(Clone)]
struct Fresh {
    begun: Arc<AtomicUsize>,
    waits: Arc<Mutex<Vec<Duration>>>,
    body: Body,
}

#[derive(Clone, Copy, PartialEq)]
enum Body {
    /// It yields, as a reconcile that sends requests does.
    Awaits,
    /// It keeps its thread, as a reconcile that only computes does.
    NeverAwaits,
}

impl Fresh {
    fn new(body: Body) -> Self {
        Self { begun: Arc::default(), waits: Arc::default(), body }
    }

    async fn reconcile(self, thing: Option<Arc<Thing>>) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        if let Some(sent) = thing.and_then(|thing| thing.sent) {
            self.waits.lock().push(sent.elapsed());
        }
        let start = Instant::now();
        while start.elapsed() < WORK {
            std::hint::spin_loop();
        }
        if self.body == Body::Awaits {
            tokio::task::yield_now().await;
        }
    }

    /// Changes objects one by one while the objects of the first list are reconciled, and prints how long the changes
    /// waited.
    async fn measure(&self, name: &str, sender: &mpsc::UnboundedSender<Thing>) {
        reaches(&self.begun, 1).await;
        for number in ITEMS..ITEMS + FRESH {
            sender.send(thing(number, number, Some(Instant::now()))).unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        reaches(&self.begun, ITEMS + FRESH).await;
        let mut waits = std::mem::take(&mut *self.waits.lock());
        waits.sort_unstable();
        assert_eq!(waits.len(), FRESH);
        figure(&format!("restart, {name}, median"), waits[FRESH / 2].as_secs_f64() * 1e6, "us");
        figure(&format!("restart, {name}, longest"), waits[FRESH - 1].as_secs_f64() * 1e6, "us");
    }
}

/// Measures how long a fresh change waits after a restart, while a controller reconciles the whole first list.
async fn restart_with_priorities(name: &str, body: Body) {
    let ((informer, sender), fresh) = (informer(ITEMS), Fresh::new(body));
    let reconciled = fresh.clone();
    let running = Running::start(&informer, WORKERS, move |request| reconciled.clone().reconcile(request.object()));
    fresh.measure(name, &sender).await;
    running.stop().await;
    informer.stop().await;
}

/// The same with a queue without priorities.
async fn restart_without() {
    let ((informer, sender), fresh) = (informer(ITEMS), Fresh::new(Body::Awaits));
    informer.start().unwrap();
    informer.synced().await.unwrap();
    let (queue, mut workers) = (WorkQueue::default(), JoinSet::new());
    let adds = queue.clone();
    let handler = informer.on_event(move |event| _ = adds.add(ObjectKey::of(&**event.object()).unwrap()));
    for _ in 0..WORKERS {
        let (queue, store, fresh) = (queue.clone(), informer.store().clone(), fresh.clone());
        workers.spawn(async move {
            while let Some(key) = queue.get().await {
                fresh.clone().reconcile(store.get(&*key)).await;
            }
        });
    }
    fresh.measure("no priorities", &sender).await;
    queue.shut_down();
    while workers.join_next().await.is_some() {}
    drop(handler);
    informer.stop().await;
}
