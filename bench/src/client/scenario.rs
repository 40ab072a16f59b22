//! What is measured of a cache, one phase after the other.

use std::sync::Arc;
use std::time::Duration;

use super::cache::{Cache, Handler, Listing};
use super::connection::Connection;
use super::measure::{cpu, least, micros, nanos, peak, print, quiet, reset_peak, resident};
use super::told::{Latency, Told};
use super::{Error, Options, Scenario};
use crate::chance::Chance;

const EVENTS: usize = 50_000;
const EVENTS_FOR_TEN: usize = 20_000;
/// Events a second, where it is measured how long they take.
const RATE: usize = 1000;

/// A cache that holds everything, and what it took.
struct Synced<C> {
    cache: C,
    connection: Connection,
    told: Vec<Arc<Told>>,
    /// Resident before the first request, and at rest after the first sync.
    base: f64,
    settled: f64,
}

pub(super) async fn run<C: Cache>(options: &Options) -> Result<(), Error> {
    let counting = || Arc::new(Told::default());
    match options.scenario {
        Scenario::Streamed => streamed::<C>(options).await,
        Scenario::Listed => sync::<C>(options, Listing::Paged, vec![counting()], &[], Figures::Printed).await.map(drop),
        Scenario::Ten => {
            let told = (0..10).map(|_| counting()).collect();
            let synced = sync::<C>(options, Listing::Streamed, told, &[], Figures::Kept).await?;
            synced.events(options.events.unwrap_or(EVENTS_FOR_TEN)).await
        }
        Scenario::Stuck => {
            let stuck = [Handler::Stuck];
            let synced = sync::<C>(options, Listing::Streamed, vec![counting()], &stuck, Figures::Kept).await?;
            synced.tell(options.stuck_events, 0).await?;
            quiet().await;
            print("stuck_rss", synced.ratio(resident()?), "ratio");
            Ok(())
        }
        Scenario::Latency => latency::<C>(options).await,
        Scenario::Reads => {
            let synced = sync::<C>(options, Listing::Streamed, vec![counting()], &[], Figures::Kept).await?;
            synced.gets(options)
        }
    }
}

async fn streamed<C: Cache>(options: &Options) -> Result<(), Error> {
    let told = vec![Arc::new(Told::default())];
    let mut synced = sync::<C>(options, Listing::Streamed, told, &[], Figures::Printed).await?;
    reset_peak()?;
    synced.events(options.events.unwrap_or(EVENTS)).await?;
    quiet().await;
    print("event_peak", synced.ratio(peak()?), "ratio");
    synced.reads(options)?;
    quiet().await;
    synced.relist(options).await?;
    quiet().await;
    let (start, seconds) = (cpu(), options.duration_secs.unwrap_or(5).max(1));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    print("idle_cpu", micros(cpu() - start) / seconds as f64, "us/s");
    Ok(())
}

async fn latency<C: Cache>(options: &Options) -> Result<(), Error> {
    let (told, latency) = (Arc::new(Told::default()), Arc::new(Latency::default()));
    let times = [Handler::Times(told.clone(), latency.clone())];
    let mut synced = sync::<C>(options, Listing::Streamed, Vec::new(), &times, Figures::Kept).await?;
    // Its events are counted like those of the others.
    synced.told.push(told);
    let count = RATE * options.duration_secs.unwrap_or(10) as usize;
    // Objects may say when they were sent to somebody else.
    latency.clear();
    synced.tell(count, RATE).await?;
    if latency.count() != count as u64 {
        return Err("some events do not say when they were sent".into());
    }
    print("latency_p50", latency.percentile(50.0), "us");
    print("latency_p99", latency.percentile(99.0), "us");
    Ok(())
}

/// What becomes of the figures of a first sync.
#[derive(PartialEq, Eq)]
enum Figures {
    Printed,
    Kept,
}

/// Starts a cache, and waits until it holds everything and all who count were told of it.
async fn sync<C: Cache>(
    options: &Options,
    listing: Listing,
    told: Vec<Arc<Told>>,
    others: &[Handler],
    figures: Figures,
) -> Result<Synced<C>, Error> {
    let connection = Connection::new(&options.server)?;
    let mut handlers: Vec<_> = told.iter().cloned().map(Handler::Counts).collect();
    handlers.extend_from_slice(others);
    let waited_for = handlers.clone();
    let (base, start, clock) = (resident()?, cpu(), tokio::time::Instant::now());
    reset_peak()?;
    let cache = C::start(&connection, options.kind, listing, handlers).await?;
    for handler in &waited_for {
        if let Handler::Counts(told) | Handler::Times(told, _) = handler {
            told.until_events(options.objects as u64).await;
        }
    }
    while cache.lists() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (used, taken) = (cpu() - start, clock.elapsed());
    quiet().await;
    let (settled, most, objects) = (resident()?, peak()?, options.objects as f64);
    let synced = Synced { cache, connection, told, base, settled };
    synced.check(options)?;
    if figures == Figures::Printed {
        print("sync_cpu", micros(used) / objects, "us/object");
        print("sync_time", taken.as_secs_f64(), "s");
        print("base_rss", base, "bytes");
        print("settled_rss", (settled - base) / objects, "bytes/object");
        print("sync_peak", synced.ratio(most), "ratio");
    }
    Ok(synced)
}

impl<C: Cache> Synced<C> {
    /// A size in terms of what the cache took once it had settled.
    fn ratio(&self, size: f64) -> f64 {
        (size - self.base) / (self.settled - self.base)
    }

    fn check(&self, options: &Options) -> Result<(), Error> {
        let (held, objects) = (self.cache.len(), options.objects);
        if held == objects { Ok(()) } else { Err(format!("{held} objects in the cache instead of {objects}").into()) }
    }

    /// Has events sent, waits until everybody was told, and prints what that took.
    async fn events(&self, count: usize) -> Result<(), Error> {
        let used = self.tell(count, 0).await?;
        print("event_cpu", micros(used) / count as f64, "us/event");
        Ok(())
    }

    async fn tell(&self, count: usize, rate: usize) -> Result<Duration, Error> {
        let before: Vec<_> = self.told.iter().map(|told| told.events()).collect();
        let start = cpu();
        let batch = self.connection.events(count, rate).await?;
        for told in &self.told {
            told.until_version(batch.last).await;
        }
        let used = cpu() - start;
        for (told, before) in self.told.iter().zip(before) {
            let told = told.events() - before;
            if told != count as u64 {
                return Err(format!("a handler was told {told} events instead of {count}").into());
            }
        }
        Ok(used)
    }

    /// Reads by key, in an order that is the same for all programs: bench/go/informer makes it the same way.
    fn gets(&self, options: &Options) -> Result<(), Error> {
        let mut keys = self.cache.keys();
        Chance::new(7, "keys", 0).shuffle(&mut keys);
        keys.truncate(options.keys.unwrap_or(keys.len()));
        let each = |time: Duration| nanos(time) / keys.len() as f64;
        let mut found = 0;
        print("get", each(least(|| found += self.cache.get(&keys))), "ns");
        if self.cache.get_from_snapshot(&keys).is_some() {
            print("snapshot_get", each(least(|| found += self.cache.get_from_snapshot(&keys).unwrap_or(0))), "ns");
        }
        if found == 0 || found % keys.len() != 0 {
            return Err("some objects were not found by their keys".into());
        }
        Ok(())
    }

    fn reads(&mut self, options: &Options) -> Result<(), Error> {
        self.gets(options)?;
        let start = cpu();
        if self.cache.index_by_node()? {
            print("index_cpu", micros(cpu() - start) / options.objects as f64, "us/object");
        }
        let nodes = self.cache.nodes();
        let mut found = 0;
        let taken = nanos(least(|| found = self.cache.on_nodes(&nodes)));
        print("by_index", taken / found as f64, "ns/object");
        print("by_index_call", taken / nodes.len() as f64, "ns");

        let mut found = Ok(0);
        let taken = nanos(least(|| found = self.cache.selected()));
        if found? == 0 {
            return Err("nothing was selected".into());
        }
        print("select", taken / options.objects as f64, "ns/object");
        Ok(())
    }

    /// Has everything listed again, though nothing has changed.
    async fn relist(&self, options: &Options) -> Result<(), Error> {
        let (told, lists) = (self.told.iter().map(|told| told.events()).sum::<u64>(), self.cache.lists());
        reset_peak()?;
        let start = cpu();
        self.connection.expire().await?;
        while self.cache.lists() <= lists {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let used = cpu() - start;
        quiet().await;
        let announced = self.told.iter().map(|told| told.events()).sum::<u64>() - told;
        print("relist_cpu", micros(used) / options.objects as f64, "us/object");
        print("relist_announcements", announced as f64, "calls");
        print("relist_peak", self.ratio(peak()?), "ratio");
        self.check(options)
    }
}
