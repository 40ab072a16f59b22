//! Prints how long each lock of an informer is held at most, and how often locks are taken for each event:
//! `cargo bench -p kube-informer --features __measured_locks --bench locks`.
//!
//! A hold is measured in processor time of the thread, so that other programs do not make it longer. Each figure is the
//! least of several rounds. Nothing is asserted, because machines differ.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_types,
    missing_docs,
    reason = "a benchmark prints"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use kube_informer::internal::take_lock_figures;
use kube_informer::parts::{
    Decoded, ListEnd, ListOptions, ListStream, ListWatchFns, WatchEvent, WatchOptions, WatchStream,
};
use kube_informer::{
    CancellationToken, Delivery, Event, HandlerHandle, Id, InformerOptions, KeyRef, Object, QueueOrder, RemoveMode,
    SharedInformer,
};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

const OBJECTS: usize = 400_000;
/// How many objects are missing from a relist, and how many are new in it.
const TURNOVER: usize = 10_000;
const EVENTS: u64 = 200_000;
const SINGLE_EVENTS: u64 = 20_000;
const ROUNDS: usize = 3;

struct Thing {
    name: String,
    version: String,
}

impl Object for Thing {
    fn id(&self) -> Id<'_> {
        Id { key: KeyRef::new("default", &self.name), uid: "", version: &self.version }
    }
}

fn thing(number: usize, version: u64) -> Thing {
    Thing { name: format!("thing-{number:07}"), version: version.to_string() }
}

fn main() {
    // `cargo test --benches` only checks that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    for order in [QueueOrder::Ordered, QueueOrder::PerObject] {
        let mut least = Figures::default();
        for _ in 0..ROUNDS {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
            least.add(runtime.block_on(measure(order)));
        }
        least.print(order);
    }
}

/// The figures of one or more rounds, in the order in which they were measured.
#[derive(Default)]
struct Figures {
    /// For each step its name, and the longest hold of each lock.
    holds: Vec<(&'static str, BTreeMap<&'static str, Duration>)>,
    /// For each kind of load its name, and how often locks are taken for an event.
    taken: Vec<(&'static str, f64)>,
}

impl Figures {
    /// Records the longest holds since the last step, and returns how often locks were taken.
    fn step(&mut self, name: &'static str) -> u64 {
        let figures = take_lock_figures();
        self.holds.push((name, figures.iter().map(|lock| (lock.guards, lock.longest)).collect()));
        figures.iter().map(|lock| lock.taken).sum()
    }

    /// Keeps the smaller value of each figure.
    fn add(&mut self, other: Self) {
        if self.holds.is_empty() {
            *self = other;
            return;
        }
        for ((_, least), (_, holds)) in self.holds.iter_mut().zip(other.holds) {
            for (hold) in least {
                *hold = (*hold).min(holds.get(lock).copied().unwrap_or_default());
            }
        }
        for ((_, least), (_, taken)) in self.taken.iter_mut().zip(other.taken) {
            *least = least.min(taken);
        }
    }

    fn print(&self, order: QueueOrder) {
        println!(
            "{order:?} queue, {OBJECTS} objects; the longest hold of each lock in µs, the least of {ROUNDS} rounds"
        );
        let mut longest = Duration::ZERO;
        for (step, holds) in &self.holds {
            longest = holds.values().copied().fold(longest, Duration::max);
            let mut holds: Vec<_> = holds.iter().filter(|(_, hold)| !hold.is_zero()).collect();
            holds.sort_by_key(|(_, hold)| std::cmp::Reverse(**hold));
            let holds = holds.iter().take(5).map(|(hold)| format!("{} {}", short(lock), hold.as_micros()));
            println!("{step:<34} {}", holds.collect::<Vec<_>>().join(", "));
        }
        println!("longest hold of any lock           {:8.2} ms   aim 5 ms", longest.as_secs_f64() * 1e3);
        for (load, taken) in &self.taken {
            println!("{load:<34} {taken:8.2} locks for each event");
        }
    }
}

/// Shortens the name of the type that a lock guards to its last module and its own name.
fn short(guards: &str) -> String {
    let name = guards.split('<').next().unwrap_or(guards);
    let parts: Vec<&str> = name.rsplit("::").take(2).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("::")
}

/// Takes an informer through lists, resyncs, registrations and events.
async fn measure(order: QueueOrder) -> Figures {
    let (sender, receiver) = mpsc::unbounded_channel();
    let lists = Arc::new(Mutex::new((0, 1_000)));
    let informer = informer(order, lists.clone(), receiver);
    let mut figures = Figures::default();
    let (seen, arrived) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
    let handle = {
        let (seen, arrived) = (seen.clone(), arrived.clone());
        informer.register().resync_period(Duration::ZERO).on_event(move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
            arrived.notify_one();
        })
    };
    take_lock_figures();

    // One handler that receives only the latest states, and one that never takes an event: their mailboxes fold.
    let latest =
        informer.register().name("latest").resync_period(Duration::ZERO).delivery(Delivery::Latest).on_event(|_| {});
    let release = CancellationToken::new();
    let held = release.clone();
    let stuck =
        informer.register().name("stuck").resync_period(Duration::ZERO).delivery(Delivery::Latest).on_event_async(
            move |_| {
                let held = held.clone();
                async move { held.cancelled().await }
            },
        );
    informer.start().unwrap();
    informer.synced().await.unwrap();
    assert!(handle.synced().await && latest.synced().await);
    figures.step("first list");
    *lists.lock() = (TURNOVER, 2_000);
    informer.relist().await.unwrap();
    drained(&handle).await;
    figures.step("relist, every object changed");
    // An older version: the server was restored.
    *lists.lock() = (2 * TURNOVER, 500);
    informer.relist().await.unwrap();
    drained(&handle).await;
    figures.step("relist after a restore");
    release.cancel();
    stuck.remove(RemoveMode::Discard).await.unwrap();
    latest.remove(RemoveMode::Discard).await.unwrap();

    let resynced = Arc::new(AtomicUsize::new(0));
    let count = resynced.clone();
    let resyncing = informer.on_event(move |event| {
        count.fetch_add(usize::from(matches!(event, Event::Resynced(_))), Ordering::Relaxed);
    });
    assert!(resyncing.synced().await);
    figures.step("late handler");
    while resynced.load(Ordering::Relaxed) < OBJECTS {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    resyncing.remove(RemoveMode::Discard).await.unwrap();
    figures.step("resync");
    informer.add_index_with("name", |thing: &Thing, add| add(&thing.name)).unwrap();
    figures.step("late index");

    let before = seen.load(Ordering::Relaxed);
    (0..EVENTS).for_each(|at| sender.send(thing(2 * TURNOVER + at as usize, 10_000_000 + at)).unwrap());
    while seen.load(Ordering::Relaxed) < before + EVENTS {
        arrived.notified().await;
    }
    let taken = figures.step("events at full speed");
    figures.taken.push(("events at full speed, one handler", taken as f64 / EVENTS as f64));
    for at in 0..SINGLE_EVENTS {
        let before = seen.load(Ordering::Relaxed);
        sender.send(thing(2 * TURNOVER + at as usize, 20_000_000 + at)).unwrap();
        while seen.load(Ordering::Relaxed) == before {
            arrived.notified().await;
        }
    }
    let taken = figures.step("events one by one");
    figures.taken.push(("events one by one, one handler", taken as f64 / SINGLE_EVENTS as f64));
    informer.stop().await;
    figures.step("stop");
    figures
}

/// Waits until a handler has taken out all its events.
async fn drained(handle: &HandlerHandle) {
    while handle.backlog() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Returns an informer whose list has objects from a given number on, all with one version, and whose events arrive through a
/// channel.
fn informer(
    order: QueueOrder,
    lists: Arc<Mutex<(usize, u64)>>,
    receiver: mpsc::UnboundedReceiver<Thing>,
) -> SharedInformer<Thing> {
    let receiver = Arc::new(tokio::sync::Mutex::new(receiver));
    let source = ListWatchFns::new(
        move |_: ListOptions| {
            let (first, version) = *lists.lock();
            let things: Vec<Thing> = (first..first + OBJECTS).map(|number| thing(number, version)).collect();
            let end = ListEnd { version: Some(version.into()), ..ListEnd::default() };
            async move { Ok(ListStream::complete(things, end)) }
        },
        move |_: WatchOptions| {
            let receiver = receiver.clone();
            async move {
                let events = futures_util::stream::unfold(receiver, |receiver| async move {
                    let thing = receiver.lock().await.recv().await?;
                    Some((Ok(WatchEvent::Modified(Decoded::Object(thing))), receiver))
                });
                Ok(WatchStream::new(events))
            }
        },
    );
    let options = InformerOptions::new().queue_order(order).resync_period(Duration::from_secs(1));
    SharedInformer::builder(source).options(options).build()
}
