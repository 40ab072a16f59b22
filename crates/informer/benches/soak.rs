//! A long run under load: `cargo xtask soak 10m`, or `cargo bench -p kube-informer --bench soak -- --for 10m`.
//!
//! One informer over an embedded server: many objects, steady changes, readers, indexes, a relist each minute, and
//! twenty handlers. One handler is stuck until the end, and one panics. Prints a row at intervals. Fails if a handler
//! lost events or received them out of order, or if memory grew.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::disallowed_types,
    missing_docs,
    reason = "a benchmark prints"
)]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use hdrhistogram::Histogram;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded_apiserver::{ApiServer, RequestRecord, Verb};
use kube_informer::{
    Delivery, Event, HandlerHandle, InformerError, InformerOptions, InformerRequest, SharedInformer,
    SharedInformerFactory, Store,
};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

const NAMESPACES: usize = 20;
const HANDLERS: usize = 20;
/// How many changes the server keeps.
const HISTORY: usize = 20_000;
const READERS: usize = 4;
const PANICS_AT: &str = "this handler panics at times";

/// Runs an informer under load for a long time.
#[derive(Parser)]
struct Arguments {
    /// The duration of the run.
    #[arg(long = "for", default_value = "1m")]
    duration: humantime::Duration,
    /// The number of objects.
    #[arg(long, default_value_t = 100_000)]
    objects: usize,
    /// The number of changes a second.
    #[arg(long, default_value_t = 2_000)]
    rate: u64,
    /// Cargo passes this to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    // `cargo test --benches` only checks that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
        if text != Some(PANICS_AT) {
            usual(panic);
        }
    }));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let failures = runtime.block_on(soak(&Arguments::parse()));
    failures.iter().for_each(|failure| eprintln!("failed: {failure}"));
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The lags of all handlers since the last printed row.
type Lags = Arc<Mutex<Histogram<u64>>>;

/// The objects of one handler according to its events: a version for each object, zero for none.
#[derive(Clone)]
struct Copy(Arc<Mutex<Vec<u64>>>);

impl Copy {
    fn new(objects: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![0; objects])))
    }

    fn take(&self, event: &Event<ConfigMap>, disorder: &AtomicU64) {
        let object = event.object();
        let version: u64 = object.metadata.resource_version.as_deref().unwrap_or_default().parse().unwrap_or_default();
        let mut copy = self.0.lock();
        let known = &mut copy[number_of(object)];
        let fits = match event {
            Event::Added { .. } => *known == 0,
            Event::Updated { old, .. } => old.metadata.resource_version.as_deref() == Some(&*known.to_string()),
            Event::Deleted(_) => *known != 0,
            Event::Resynced(_) => *known == version,
        };
        if !fits {
            disorder.fetch_add(1, Ordering::Relaxed);
        }
        *known = if let Event::Deleted(_) = event { 0 } else { version };
    }
}

async fn soak(arguments: &Arguments) -> Vec<String> {
    let duration = *arguments.duration;
    let server = ApiServer::builder().seed(1).history(HISTORY).build();
    println!("creating {} objects", arguments.objects);
    for namespace in 0..NAMESPACES {
        server.create("namespaces", None, json!({"metadata": {"name": format!("ns-{namespace}")}})).unwrap();
    }
    let start = Instant::now();
    for number in 0..arguments.objects {
        server.create("configmaps", Some(&namespace(number)), config_map(number, start)).unwrap();
    }

    let factory = SharedInformerFactory::new(server.client());
    let options = InformerOptions::new().relist_period(Duration::from_secs(60));
    let informer: SharedInformer<ConfigMap> = factory.informer_with(InformerRequest::new().options(options)).unwrap();
    // In addition to the index by namespace, which every store has.
    informer
        .add_index("colour", |map: &ConfigMap| map.metadata.labels.as_ref().and_then(|all| all.get("colour")).cloned())
        .unwrap();

    let panics = Arc::new(AtomicU64::new(0));
    let other_errors = Arc::new(Mutex::new(Vec::new()));
    informer.on_error({
        let (panics, other_errors) = (panics.clone(), other_errors.clone());
        move |error| match error {
            InformerError::HandlerPanicked { .. } => {
                panics.fetch_add(1, Ordering::Relaxed);
            }
            other => other_errors.lock().push(other.to_string()),
        }
    });

    let lags: Lags = Arc::new(Mutex::new(Histogram::new(3).unwrap()));
    let disorder = Arc::new(AtomicU64::new(0));
    let release = Arc::new(Semaphore::new(0));
    let copies: Vec<Copy> = (0..HANDLERS).map(|_| Copy::new(arguments.objects)).collect();
    let handles: Vec<HandlerHandle> = (copies.iter().enumerate())
        .map(|(at, copy)| add_handler(&informer, at, copy.clone(), (&lags, &disorder, &release), start))
        .collect();

    factory.start().unwrap();
    let before = Instant::now();
    factory.synced().await.unwrap();
    println!("synced in {:.2?}", before.elapsed());

    let stop = Arc::new(AtomicBool::new(false));
    let reads = Arc::new(AtomicU64::new(0));
    let readers: Vec<_> = (0..READERS as u64)
        .map(|seed| {
            let (store, stop, reads, objects) = (informer.store(), stop.clone(), reads.clone(), arguments.objects);
            std::thread::spawn(move || read(&store, seed, objects, &stop, &reads))
        })
        .collect();
    let writes = Arc::new(AtomicU64::new(0));
    let writer = {
        let (server, stop, writes) = (server.clone(), stop.clone(), writes.clone());
        let (rate, objects) = (arguments.rate, arguments.objects);
        tokio::task::spawn_blocking(move || write(&server, (rate, objects), start, &stop, &writes))
    };

    println!("  time    writes  memory MB   lag ms p50    p99    max   stuck waits  folds  panics caught   reads/s");
    let rows = 20.min(duration.as_secs().max(1)) as u32;
    let (began, mut memory, mut read_before) = (Instant::now(), Vec::new(), 0);
    for row in 1..=rows {
        tokio::time::sleep((duration * row / rows).saturating_sub(began.elapsed())).await;
        let lag = std::mem::replace(&mut *lags.lock(), Histogram::new(3).unwrap());
        let ms = |quantile: f64| lag.value_at_quantile(quantile) as f64 / 1e3;
        memory.push(resident());
        let read = reads.load(Ordering::Relaxed);
        println!(
            "{:6.0} {:9} {:10} {:14.1} {:6.1} {:6.1} {:13} {:6} {:14} {:9}",
            began.elapsed().as_secs_f64(),
            writes.load(Ordering::Relaxed),
            memory[memory.len() - 1] / 1_000_000,
            ms(0.5),
            ms(0.99),
            ms(1.0),
            handles[STUCK].backlog(),
            handles[STUCK].folds(),
            panics.load(Ordering::Relaxed),
            (read - read_before) * u64::from(rows) / duration.as_secs().max(1),
        );
        read_before = read;
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap();
    readers.into_iter().for_each(|reader| reader.join().unwrap());

    let mut failures = grown(&memory);
    // Memory grows until every object has changed, because the stuck handler keeps the first state of each, and until
    // the history of the server is full.
    if arguments.rate * duration.as_secs() / 3 < (3 * arguments.objects).max(2 * HISTORY) as u64 {
        println!("the run is too short to tell whether memory grows");
        failures.clear();
    }
    failures.extend(std::mem::take(&mut *other_errors.lock()).into_iter().map(|error| format!("reported: {error}")));
    // The stuck handler is processing its initial events. After them at most one event for each existing object and one
    // for each delete waits.
    let waits = handles[STUCK].backlog();
    if waits > 3 * arguments.objects {
        failures.push(format!("{waits} events wait for the stuck handler"));
    }
    release.add_permits(Semaphore::MAX_PERMITS / 2);
    failures.extend(lost(&server, &informer, &copies).await);
    if disorder.load(Ordering::Relaxed) > 0 {
        failures.push(format!("{} events contradicted earlier ones", disorder.load(Ordering::Relaxed)));
    }
    let everything =
        |request: &RequestRecord| request.query.contains("sendInitialEvents=true") || request.verb == Verb::List;
    let asked = server.requests().iter().filter(|request| everything(request)).count();
    println!("{asked} lists; panics caught: {}", panics.load(Ordering::Relaxed));
    factory.stop().await;
    failures
}

const STUCK: usize = 0;
/// A small bound on single events. The number of objects soon bounds the memory beyond that.
const STUCK_DELIVERY: Delivery = Delivery::Every { max_backlog: 1_000, max_bytes: 1024 * 1024 };
const PANICS: usize = 1;

fn add_handler(
    informer: &SharedInformer<ConfigMap>,
    at: usize,
    copy: Copy,
    (lags, disorder, release): (&Lags, &Arc<AtomicU64>, &Arc<Semaphore>),
    start: Instant,
) -> HandlerHandle {
    let (lags, disorder, release) = (lags.clone(), disorder.clone(), release.clone());
    match at {
        STUCK => informer.register().name("stuck").delivery(STUCK_DELIVERY).on_event_async(move |event| {
            let (copy, disorder, release) = (copy.clone(), disorder.clone(), release.clone());
            async move {
                let _permit = release.acquire().await;
                copy.take(&event, &disorder);
            }
        }),
        PANICS => {
            let mut calls = 0_u64;
            informer.register().name("panics").on_event(move |event| {
                copy.take(&event, &disorder);
                calls += 1;
                assert!(!calls.is_multiple_of(1_000), "{PANICS_AT}");
            })
        }
        _ => informer.register().name(format!("handler-{at}")).on_event(move |event| {
            copy.take(&event, &disorder);
            // Only updates: initial events and events of a relist have waited elsewhere.
            if let Event::Updated { new, .. } = event {
                let written: u64 = new.data.as_ref().and_then(|data| data.get("at")?.parse().ok()).unwrap_or_default();
                let lag = (start.elapsed().as_micros() as u64).saturating_sub(written);
                lags.lock().record(lag).unwrap();
            }
        }),
    }
}

/// Reads as a controller does: objects by key, by index, and sometimes a snapshot.
fn read(store: &Store<ConfigMap>, seed: u64, objects: usize, stop: &AtomicBool, reads: &AtomicU64) {
    let mut random = StdRng::seed_from_u64(seed);
    let index = store.index("colour").unwrap();
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..1_000 {
            let number = random.random_range(0..objects);
            std::hint::black_box(store.get((&*namespace(number), &*name(number))));
        }
        std::hint::black_box(index.count("red"));
        if random.random_range(0..100) == 0 {
            let snapshot = store.snapshot();
            assert_eq!(snapshot.iter().count(), snapshot.len());
        }
        reads.fetch_add(1_000, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Updates, deletes and creates objects at a steady rate.
fn write(server: &ApiServer, (rate, objects): (u64, usize), start: Instant, stop: &AtomicBool, writes: &AtomicU64) {
    let mut random = StdRng::seed_from_u64(7);
    let mut gone = Vec::new();
    let began = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let due = began.elapsed().as_millis() as u64 * rate / 1_000;
        while writes.load(Ordering::Relaxed) < due {
            let number = random.random_range(0..objects);
            let (namespace, object) = (namespace(number), config_map(number, start));
            let known = !gone.contains(&number);
            match random.random_range(0..20) {
                0 if known && gone.len() < 1_000 => {
                    server.delete("configmaps", Some(&namespace), &name(number)).unwrap();
                    gone.push(number);
                }
                _ if known => drop(server.update("configmaps", Some(&namespace), object).unwrap()),
                _ => {
                    server.create("configmaps", Some(&namespace), object).unwrap();
                    gone.retain(|other| *other != number);
                }
            }
            writes.fetch_add(1, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Compares the server, the cache and the events of each handler, object by object, after the last change.
async fn lost(server: &ApiServer, informer: &SharedInformer<ConfigMap>, copies: &[Copy]) -> Vec<String> {
    let (revision, objects) = server.list("configmaps").unwrap();
    let mut truth = vec![0; copies[0].0.lock().len()];
    for object in objects {
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse().unwrap_or(0);
        truth[number_in(object["metadata"]["name"].as_str().unwrap_or_default())] = version;
    }
    let caught_up = async {
        // A bookmark or a relist may still bring changes.
        while copies.iter().any(|copy| *copy.0.lock() != truth) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), caught_up).await.is_ok();
    let mut cached = vec![0; truth.len()];
    for object in informer.store().snapshot().iter() {
        let version = object.metadata.resource_version.as_deref().unwrap_or_default();
        cached[number_of(object)] = version.parse().unwrap_or(0);
    }
    let mut failures = Vec::new();
    if cached != truth {
        failures.push(format!("the cache differs from the server at {revision}"));
    }
    if !in_time {
        let wrong = copies.iter().enumerate().filter(|(_, copy)| *copy.0.lock() != truth);
        failures.extend(wrong.map(|(at, _)| format!("handler {at} received other events")));
    }
    let live = truth.iter().filter(|version| **version != 0).count();
    println!("compared {live} objects in the server, the cache and {} handlers", copies.len());
    failures
}

/// Checks that memory at the end is at most a tenth above the first third.
fn grown(memory: &[usize]) -> Vec<String> {
    let early = memory.iter().take(memory.len().div_ceil(3)).max().copied().unwrap_or(0);
    let late = memory.last().copied().unwrap_or(0);
    println!("memory: {} MB at most in the first third, {} MB at the end", early / 1_000_000, late / 1_000_000);
    if late > early + early / 10 { vec!["memory grew".to_owned()] } else { Vec::new() }
}

fn config_map(number: usize, start: Instant) -> Value {
    let colour = ["red", "green", "blue"][number % 3];
    json!({
        "metadata": {"name": name(number), "labels": {"colour": colour}},
        "data": {"at": (start.elapsed().as_micros() as u64).to_string(), "text": "x".repeat(400)},
    })
}

fn name(number: usize) -> String {
    format!("map-{number}")
}

fn namespace(number: usize) -> String {
    format!("ns-{}", number % NAMESPACES)
}

fn number_of(object: &ConfigMap) -> usize {
    number_in(object.metadata.name.as_deref().unwrap_or_default())
}

fn number_in(name: &str) -> usize {
    name.trim_start_matches("map-").parse().unwrap_or_default()
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    status.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}
