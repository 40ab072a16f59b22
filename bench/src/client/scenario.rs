//! What is measured: the phases of each scenario.

use std::sync::Arc;
use std::time::Duration;

use super::cache::{Cache, Handler, Listing};
use super::connection::Connection;
use super::event_counter::{EventCounter, Latency};
use super::measure::{cpu, least, micros, nanos, peak, print, quiet, reset_peak, resident};
use super::{Error, Options, Scenario};
use crate::chance::Chance;

const EVENTS: usize = 50_000;
const EVENTS_FOR_TEN: usize = 20_000;
/// Events per second in the latency measurement.
const RATE: usize = 1000;

/// A synced cache, with its memory.
struct Synced<C> {
    cache: C,
    connection: Connection,
    received: Vec<Arc<EventCounter>>,
    /// Resident bytes before the first request, and after the first sync.
    base: f64,
    settled: f64,
}

pub(super) async fn run<C: Cache>(options: &Options) -> Result<(), Error> {
    let counting = || Arc::new(EventCounter::default());
    match options.scenario {
        Scenario::Streamed => streamed::<C>(options).await,
        Scenario::Listed => sync::<C>(options, Listing::Paged, vec![counting()], &[], Figures::Printed).await.map(drop),
        Scenario::Ten => {
            let received = (0..10).map(|_| counting()).collect();
            let synced = sync::<C>(options, Listing::Streamed, received, &[], Figures::Kept).await?;
            synced.events(options.events.unwrap_or(EVENTS_FOR_TEN)).await
        }
        Scenario::Stuck => {
            let stuck = [Handler::Stuck];
            let synced = sync::<C>(options, Listing::Streamed, vec![counting()], &stuck, Figures::Kept).await?;
            synced.deliver(options.stuck_events, 0).await?;
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
    let received = vec![Arc::new(EventCounter::default())];
    let mut synced = sync::<C>(options, Listing::Streamed, received, &[], Figures::Printed).await?;
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
    let (received, latency) = (Arc::new(EventCounter::default()), Arc::new(Latency::default()));
    let times = [Handler::Times(received.clone(), latency.clone())];
    let mut synced = sync::<C>(options, Listing::Streamed, Vec::new(), &times, Figures::Kept).await?;
    // The events of this handler are counted too.
    synced.received.push(received);
    let count = RATE * options.duration_secs.unwrap_or(10) as usize;
    // Forgets events before the measurement, which have another client's time stamps.
    latency.clear();
    synced.deliver(count, RATE).await?;
    if latency.count() != count as u64 {
        return Err("some events do not say when they were sent".into());
    }
    print("latency_p50", latency.percentile(50.0), "us");
    print("latency_p99", latency.percentile(99.0), "us");
    Ok(())
}

/// Whether the figures of a first sync are printed.
#[derive(PartialEq, Eq)]
enum Figures {
    Printed,
    Kept,
}

/// Starts a cache, and waits until it is synced and all counting handlers have received all objects.
async fn sync<C: Cache>(
    options: &Options,
    listing: Listing,
    received: Vec<Arc<EventCounter>>,
    others: &[Handler],
    figures: Figures,
) -> Result<Synced<C>, Error> {
    let connection = Connection::new(&options.server)?;
    let mut handlers: Vec<_> = received.iter().cloned().map(Handler::Counts).collect();
    handlers.extend_from_slice(others);
    let waited_for = handlers.clone();
    let (base, start, clock) = (resident()?, cpu(), tokio::time::Instant::now());
    reset_peak()?;
    let cache = C::start(&connection, options.kind, listing, handlers).await?;
    for handler in &waited_for {
        if let Handler::Counts(received) | Handler::Times(received, _) = handler {
            received.until_events(options.objects as u64).await;
        }
    }
    while cache.lists() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (used, taken) = (cpu() - start, clock.elapsed());
    quiet().await;
    let (settled, most, objects) = (resident()?, peak()?, options.objects as f64);
    let synced = Synced { cache, connection, received, base, settled };
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
    /// Returns a number of bytes as a multiple of the synced cache's memory.
    fn ratio(&self, size: f64) -> f64 {
        (size - self.base) / (self.settled - self.base)
    }

    fn check(&self, options: &Options) -> Result<(), Error> {
        let (held, objects) = (self.cache.len(), options.objects);
        if held == objects { Ok(()) } else { Err(format!("{held} objects in the cache instead of {objects}").into()) }
    }

    /// Lets the server send events, waits until all handlers have received them, and prints the processor time.
    async fn events(&self, count: usize) -> Result<(), Error> {
        let used = self.deliver(count, 0).await?;
        print("event_cpu", micros(used) / count as f64, "us/event");
        Ok(())
    }

    async fn deliver(&self, count: usize, rate: usize) -> Result<Duration, Error> {
        let before: Vec<_> = self.received.iter().map(|received| received.events()).collect();
        let start = cpu();
        let batch = self.connection.events(count, rate).await?;
        for received in &self.received {
            received.until_version(batch.last).await;
        }
        let used = cpu() - start;
        for (received, before) in self.received.iter().zip(before) {
            let received = received.events() - before;
            if received != count as u64 {
                return Err(format!("a handler received {received} events instead of {count}").into());
            }
        }
        Ok(used)
    }

    /// Measures reads by key. The order of keys is the same for all clients; bench/go/informer uses the same shuffle.
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

    /// Measures a relist without changes.
    async fn relist(&self, options: &Options) -> Result<(), Error> {
        let (received, lists) =
            (self.received.iter().map(|received| received.events()).sum::<u64>(), self.cache.lists());
        reset_peak()?;
        let start = cpu();
        self.connection.expire().await?;
        while self.cache.lists() <= lists {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let used = cpu() - start;
        quiet().await;
        let announced = self.received.iter().map(|received| received.events()).sum::<u64>() - received;
        print("relist_cpu", micros(used) / options.objects as f64, "us/object");
        print("relist_announcements", announced as f64, "calls");
        print("relist_peak", self.ratio(peak()?), "ratio");
        self.check(options)
    }
}
