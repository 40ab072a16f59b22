//! Prints the figures of the cache and of the handlers: `cargo bench -p kube-informer --bench figures`.
//!
//! Each figure is the least of several rounds. A bare `RwLock<HashMap>` is measured in the same run. Nothing is
//! asserted, because machines differ and ratios tell more than numbers.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_types,
    missing_docs,
    reason = "a benchmark prints"
)]

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kube_informer::parts::{
    Decoded, ListEnd, ListOptions, ListStream, ListWatchFns, WatchEvent, WatchOptions, WatchStream,
};
use kube_informer::{Event, Id, InformerOptions, KeyRef, Object, SharedInformer, Store};
use parking_lot::RwLock;
use tokio::sync::mpsc;

const OBJECTS: usize = 100_000;
const ROUNDS: usize = 5;

struct Thing {
    name: String,
    node: String,
    version: String,
}

impl Object for Thing {
    fn id(&self) -> Id<'_> {
        Id { key: KeyRef::new("default", &self.name), uid: &self.name, version: &self.version }
    }
}

fn thing(number: usize, version: u64) -> Thing {
    Thing { name: name(number), node: format!("node-{}", number % 1000), version: version.to_string() }
}

fn name(number: usize) -> String {
    format!("thing-{number:07}")
}

fn main() {
    // `cargo test --benches` only checks that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("{OBJECTS} objects, indexes by namespace and by node; the least of {ROUNDS} rounds");
    store_figures();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        late_registration().await;
        stuck_handler().await;
        relist().await;
        batches().await;
        lingering().await;
    });
}

/// Returns the least time of several rounds for one step.
fn least(steps: usize, mut round: impl FnMut() -> Duration) -> f64 {
    let least = (0..ROUNDS).map(|_| round()).min().unwrap_or_default();
    least.as_nanos() as f64 / steps as f64
}

fn timed(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

/// Returns an informer whose events arrive through a channel.
fn informer(
    things: impl Fn() -> Vec<Thing> + Send + Sync + 'static,
) -> (SharedInformer<Thing>, mpsc::UnboundedSender<Thing>) {
    informer_with(InformerOptions::new(), things)
}

fn informer_with(
    options: InformerOptions,
    things: impl Fn() -> Vec<Thing> + Send + Sync + 'static,
) -> (SharedInformer<Thing>, mpsc::UnboundedSender<Thing>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let receiver = Arc::new(parking_lot::Mutex::new(Some(receiver)));
    let source = ListWatchFns::new(
        move |_: ListOptions| {
            let things = things();
            async move { Ok(ListStream::complete(things, ListEnd { version: Some("1".into()), ..ListEnd::default() })) }
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
    let informer = SharedInformer::builder(source).options(options).build();
    informer.add_index_with("node", |thing: &Thing, add| add(&thing.node)).unwrap();
    (informer, sender)
}

fn store_figures() {
    let keys: Vec<String> = (0..OBJECTS).map(name).collect();
    let things: Vec<Arc<Thing>> = (0..OBJECTS).map(|number| Arc::new(thing(number, 1))).collect();

    let map: RwLock<HashMap<(String, String), Arc<Thing>>> = RwLock::default();
    for thing in &things {
        map.write().insert(("default".to_owned(), thing.name.clone()), thing.clone());
    }
    let (store, mut writer) = Store::new(1);
    writer.add_index("namespace", |thing: &Thing, add| add(thing.id().key.namespace().unwrap_or_default())).unwrap();
    writer.add_index("node", |thing: &Thing, add| add(&thing.node)).unwrap();
    for thing in &things {
        writer.put(thing.clone());
    }

    let bare = least(OBJECTS, || {
        timed(|| {
            keys.iter().for_each(|key| {
                black_box(map.read().get(&("default".to_owned(), key.clone())).cloned());
            })
        })
    });
    let ours = least(OBJECTS, || {
        timed(|| {
            keys.iter().for_each(|key| {
                black_box(store.get(("default", key.as_str())));
            })
        })
    });
    println!("get                              {ours:8.0} ns   bare map {bare:6.0} ns");

    let stop = AtomicBool::new(false);
    let beside = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut version = 2;
            while !stop.load(Ordering::Relaxed) {
                let start = Instant::now();
                for _ in 0..20 {
                    version += 1;
                    writer.put(Arc::new(thing(version as usize % OBJECTS, version)));
                }
                std::thread::sleep(Duration::from_millis(1).saturating_sub(start.elapsed()));
            }
        });
        let beside = least(OBJECTS, || {
            timed(|| {
                keys.iter().for_each(|key| {
                    black_box(store.get(("default", key.as_str())));
                })
            })
        });
        stop.store(true, Ordering::Relaxed);
        beside
    });
    println!("get beside 20,000 updates/s      {beside:8.0} ns   aim 250 ns");

    let version = AtomicU64::new(1_000_000);
    let fresh = || -> Vec<Arc<Thing>> {
        let version = version.fetch_add(1, Ordering::Relaxed);
        (0..OBJECTS).map(|number| Arc::new(thing(number, version))).collect()
    };
    let bare = least(OBJECTS, || {
        let things = fresh();
        timed(|| {
            things.iter().for_each(|thing| {
                map.write().insert(("default".to_owned(), thing.name.clone()), thing.clone());
            })
        })
    });
    let ours = least(OBJECTS, || {
        let things = fresh();
        timed(|| {
            things.iter().for_each(|thing| {
                writer.put(thing.clone());
            })
        })
    });
    println!("put, two indexes                 {ours:8.0} ns   bare map without {bare:6.0} ns   aim 1,000 ns");

    let held = store.snapshot();
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    let mut version = 2_000_000;
    while start.elapsed() < Duration::from_secs(1) {
        version += 1;
        let thing = Arc::new(thing(version as usize % OBJECTS, version));
        longest = longest.max(timed(|| {
            writer.put(thing);
        }));
    }
    println!("longest write beside a snapshot held for a second  {:6.0} us", longest.as_secs_f64() * 1e6);
    drop(held);

    // Measured after the longest write, because the allocator's work after a million objects would count as a write.
    for size in [1_000, 100_000, 1_000_000] {
        let (store, mut writer) = Store::new(1);
        writer.add_index("node", |thing: &Thing, add| add(&thing.node)).unwrap();
        (0..size).for_each(|number| {
            writer.put(Arc::new(thing(number, 1)));
        });
        let snapshot = least(10_000, || {
            timed(|| {
                (0..10_000).for_each(|_| {
                    black_box(store.snapshot());
                })
            })
        });
        println!("snapshot of {size:9}            {snapshot:8.0} ns   aim 1,000 ns");
    }

    let snapshot = store.snapshot();
    let bare = least(OBJECTS, || {
        timed(|| {
            black_box(map.read().values().filter(|thing| thing.node.len() > 3).count());
        })
    });
    let ours = least(OBJECTS, || {
        timed(|| {
            black_box(snapshot.iter().filter(|thing| thing.node.len() > 3).count());
        })
    });
    println!("scan, an object                  {ours:8.1} ns   bare map {bare:6.1} ns   aim 40 ns");

    let index = store.index("node").unwrap();
    let hits = index.count("node-7");
    let ours = least(1000 * hits, || {
        timed(|| {
            (0..1000).for_each(|_| {
                black_box(index.get("node-7"));
            })
        })
    });
    println!("by index, a hit of {hits:4}          {ours:8.1} ns");
}

/// Measures how long a registration blocks writers.
async fn late_registration() {
    let (informer, _sender) = informer(|| (0..OBJECTS).map(|number| thing(number, 1)).collect());
    informer.start().unwrap();
    informer.synced().await.unwrap();
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let handle = informer.on_event(|event| {
            black_box(event);
        });
        least = least.min(start.elapsed());
        assert!(handle.synced().await);
        handle.remove(kube_informer::RemoveMode::Discard).await.unwrap();
    }
    println!("late registration at {OBJECTS}      {:8.1} us   aim 1,000 us", least.as_secs_f64() * 1e6);
    informer.stop().await;
}

/// Measures how much an eleventh, stuck handler delays ten others.
async fn stuck_handler() {
    let mut medians = Vec::new();
    for stuck in [false, true] {
        let (informer, sender) = informer(Vec::new);
        let start = Instant::now();
        let latencies: Arc<parking_lot::Mutex<Vec<u64>>> = Arc::default();
        for _ in 0..10 {
            let latencies = latencies.clone();
            informer.on_event(move |event| {
                let sent: u64 = event.object().node.parse().unwrap_or_default();
                latencies.lock().push(start.elapsed().as_nanos() as u64 - sent);
            });
        }
        let stuck = stuck.then(|| {
            let registration = informer.register().name("stuck");
            registration.on_event_async(|_| std::future::pending::<()>())
        });
        informer.start().unwrap();
        informer.synced().await.unwrap();
        for version in 2..20_002u64 {
            let node = (start.elapsed().as_nanos() as u64).to_string();
            sender.send(Thing { name: name(version as usize % 1000), node, version: version.to_string() }).unwrap();
            if version % 20 == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        while latencies.lock().len() < 200_000 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut latencies = std::mem::take(&mut *latencies.lock());
        latencies.sort_unstable();
        medians.push(latencies[latencies.len() / 2]);
        if let Some(stuck) = stuck {
            for version in 20_002..1_000_002u64 {
                let thing =
                    Thing { name: name(version as usize % 1000), node: "0".to_owned(), version: version.to_string() };
                sender.send(thing).unwrap();
                if version % 1000 == 0 {
                    tokio::time::sleep(Duration::from_micros(100)).await;
                }
            }
            while informer.store().version().is_none_or(|version| version.is_older_than(&1_000_001.into())) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            println!(
                "mailbox of a stuck handler after 1,000,000 events on 1,000 keys: {} entries, folded {} times",
                stuck.backlog(),
                stuck.folds()
            );
            drop(informer); // A stop would wait for the stuck handler.
        } else {
            informer.stop().await;
        }
    }
    let [without, with] = medians[..] else { return };
    println!(
        "median latency of ten handlers   {:8.1} us with one stuck, {:.1} us without: {:.2}x   aim 1.5x",
        with as f64 / 1e3,
        without as f64 / 1e3,
        with as f64 / without as f64
    );
}

/// Measures a relist of unchanged objects.
async fn relist() {
    let (informer, _sender) = informer(|| (0..OBJECTS).map(|number| thing(number, 1)).collect());
    let told = Arc::new(AtomicU64::new(0));
    let count = told.clone();
    let handle = informer.on_event(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    informer.start().unwrap();
    informer.synced().await.unwrap();
    assert!(handle.synced().await);
    let (before, told_before) = (informer.store().snapshot(), told.load(Ordering::Relaxed));
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        informer.relist().await.unwrap();
        least = least.min(start.elapsed());
    }
    let after = informer.store().snapshot();
    let kept =
        before.iter().filter(|thing| after.get(thing.id().key).is_some_and(|now| std::ptr::eq(now, *thing))).count();
    let announced = told.load(Ordering::Relaxed) - told_before;
    println!(
        "relist of {OBJECTS} unchanged objects: {:.0} ms, {announced} announced, {kept} kept",
        least.as_secs_f64() * 1e3
    );
    informer.stop().await;
}

/// Measures a relist with 20,000 changed objects that a handler receives one by one or as one batch, without what the
/// same relist takes with no handler.
async fn batches() {
    const CHANGED: usize = 20_000;
    let mut least = [Duration::MAX; 3];
    for _ in 0..ROUNDS {
        for (form, least) in least.iter_mut().enumerate() {
            let version = AtomicU64::new(1);
            let (informer, _sender) = informer(move || {
                let version = version.fetch_add(1, Ordering::Relaxed);
                (0..CHANGED).map(|number| thing(number, version)).collect()
            });
            informer.start().unwrap();
            informer.synced().await.unwrap();
            let handle = match form {
                0 => None,
                1 => Some(informer.on_event(|event| count(std::slice::from_ref(&event)))),
                _ => Some(informer.register().on_batch(|events, _| count(events))),
            };
            if let Some(handle) = &handle {
                assert!(handle.synced().await);
            }
            let start = Instant::now();
            informer.relist().await.unwrap();
            while handle.as_ref().is_some_and(|handle| handle.backlog() > 0) {
                tokio::task::yield_now().await;
            }
            *least = (*least).min(start.elapsed());
            informer.stop().await;
        }
    }
    let [without, single, batch] = least.map(|least| least.as_secs_f64() * 1e9 / CHANGED as f64);
    println!("relist of {CHANGED} changed objects, no handler {without:6.0} ns an object");
    println!("  delivered one by one           {:8.0} ns an object", single - without);
    println!("  delivered as one batch         {:8.0} ns an object", batch - without);
}

/// The work of a handler that maintains an index: it hashes each key.
fn count(events: &[Event<Thing>]) {
    events.iter().for_each(|event| {
        black_box(event.key_ref());
    });
}

/// Measures the memory of objects in the cache, and of the same objects while they linger.
async fn lingering() {
    let listed = Arc::new(AtomicBool::new(true));
    let there = listed.clone();
    let options = InformerOptions::new().linger(Duration::from_secs(3)).linger_at_most(OBJECTS, u64::MAX);
    let before = resident();
    let (informer, _sender) = informer_with(options, move || {
        let objects = if there.load(Ordering::Relaxed) { OBJECTS } else { 0 };
        (0..objects).map(|number| thing(number, 1)).collect()
    });
    informer.start().unwrap();
    informer.synced().await.unwrap();
    let cached = resident();
    listed.store(false, Ordering::Relaxed);
    informer.relist().await.unwrap();
    let (lingers, objects) = (resident(), informer.lingering().len());
    while !informer.lingering().is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let each = |bytes: u64| bytes.saturating_sub(before) as f64 / OBJECTS as f64;
    println!(
        "memory of an object              {:8.0} bytes in the cache, {:.0} as one of {objects} that linger, {:.0} after that",
        each(cached),
        each(lingers),
        each(resident())
    );
    informer.stop().await;
}

/// Returns the resident memory of this process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    status.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4096
}
