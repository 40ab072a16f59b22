//! Simulated clusters: an informer and a server with faults in one process, on a paused clock. One seed draws all
//! random choices.
//!
//! After the faults end, the cache must equal the server, and the replayed notifications of every handler must equal
//! the cache. Versions of a key must never have gone back, except for a restore. No mailbox may have exceeded its
//! bound, undecodable objects must be marked, and no task may be left. The oracle holds these invariants for every
//! informer, and the simulation applies them to several representations. The seed also decides where tasks yield.
//!
//! `cargo xtask sim` runs more seeds; a failing seed prints itself, and `SIM_FIRST=seed SIM_SEEDS=1 cargo test --test sim`
//! repeats it exactly, unless it has handlers that block.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed test panics, and the simulation prints figures")]

mod absent;
mod acts;
mod faults;
mod lingering;
mod log;
mod members;
#[path = "../oracle/mod.rs"]
#[allow(dead_code, reason = "the stress test uses the rest of it")]
mod oracle;
mod plan;
mod quiet;
mod rhythm;
mod subject;
mod world;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::internal::set_yield_seed;
use kube_informer::{Compact, View};
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use plan::Plan;
use subject::{Data, Form, Subject};
use world::World;

/// The run stops after this number of failed seeds.
const ENOUGH: usize = 5;

/// The results of a run.
#[derive(Debug, Default)]
struct Report {
    /// A digest of all requests and events, in order.
    trace: u64,
    writes: u64,
    told: u64,
    compared: u64,
    /// How many runs knew the interval of bookmarks at their end, so that the shorter time limits applied.
    rhythms: u64,
    /// How often each fault occurred.
    faults: BTreeMap<String, u64>,
}

impl Report {
    /// Adds another report. The order does not matter.
    fn add(&mut self, other: Self) {
        self.trace = self.trace.wrapping_add(other.trace);
        self.writes += other.writes;
        self.told += other.told;
        self.compared += other.compared;
        self.rhythms += other.rhythms;
        for (fault, count) in other.faults {
            *self.faults.entry(fault).or_default() += count;
        }
    }
}

/// Runs one simulated cluster from its start to its end.
fn simulate(seed: u64) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let report = runtime.block_on(async {
        let tasks = tokio::runtime::Handle::current().metrics();
        let before = tasks.num_alive_tasks();
        log::start();
        let mut random = StdRng::seed_from_u64(seed);
        let plan = Plan::draw(seed, &mut random);
        log::plan(format!("follows {:?} {:?}, {:?}", plan.namespaces, plan.label, plan.options));
        set_yield_seed(plan.yields);
        let report = match plan.form {
            Form::Whole => whole_life::<ConfigMap>(plan, random).await,
            Form::View => whole_life::<View<Data>>(plan, random).await,
            Form::Compact => whole_life::<Compact<ConfigMap>>(plan, random).await,
        };
        set_yield_seed(None);
        // Lets cancelled tasks end.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(tasks.num_alive_tasks(), before, "a task is left");
        report
    });
    drop(runtime);
    report
}

async fn whole_life<T: Subject>(plan: Plan, random: StdRng) -> Report {
    let mut world = World::<T>::new(plan, random);
    world.live().await;
    world.last_act().await;
    world.calm_down().await;
    world.end().await
}

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

#[test]
fn every_seed_ends_with_the_cache_equal_to_the_server() {
    let (first, seeds) = (from_environment("SIM_FIRST", 0), from_environment("SIM_SEEDS", 2000));
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let (sum, failed) = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|part| scope.spawn(move || some((first + part..first + seeds).step_by(threads as usize))))
            .collect();
        let mut sum = (Report::default(), Vec::new());
        for part in parts {
            let (report, failed) = part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            sum.0.add(report);
            sum.1.extend(failed);
        }
        sum
    });
    assert!(failed.is_empty(), "seeds {failed:?} failed");
    println!("seeds                  {seeds:>10}\nwrites                 {:>10}", sum.writes);
    println!("notifications checked  {:>10}\nobjects compared       {:>10}", sum.told, sum.compared);
    println!("rhythm known           {:>10}", sum.rhythms);
    for (fault, count) in &sum.faults {
        println!("  {fault:20} {count:>10}");
    }
    println!("digest           {:016x}", sum.trace);
    if seeds >= 500 {
        assert!(sum.writes >= seeds * 200, "too few writes");
        assert!(sum.faults.values().sum::<u64>() >= seeds * 5, "too few faults");
        for fault in faults::KINDS {
            let fired = sum.faults.get(fault).copied().unwrap_or_default();
            assert!(fired >= 50.min(seeds / 20), "{fault} fired {fired} times only");
        }
    }
}

/// Simulates one cluster after the other. Returns the report and the failed seeds.
fn some(seeds: impl Iterator<Item = u64>) -> (Report, Vec<u64>) {
    let (mut sum, mut failed) = (Report::default(), Vec::new());
    for seed in seeds {
        match std::panic::catch_unwind(|| simulate(seed)) {
            Ok(report) => sum.add(report),
            Err(_) => {
                log::print();
                println!("seed {seed} failed; repeat with SIM_FIRST={seed} SIM_SEEDS=1");
                failed.push(seed);
            }
        }
        if failed.len() == ENOUGH {
            break;
        }
        if (seed + 1) % 1000 == 0 {
            println!("seed {}", seed + 1);
        }
    }
    (sum, failed)
}

#[test]
fn a_seed_repeats_exactly() {
    for seed in 0..20 {
        assert_eq!(simulate(seed).trace, simulate(seed).trace, "seed {seed}");
    }
}
