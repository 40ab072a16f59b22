//! Informers on several threads and the real clock, with a server in the same process: writers, readers, handlers in
//! every form that are added and removed, relists, disconnects and compactions, with both queues. The invariants are
//! those of the oracle, as in the simulation.
//!
//! It takes `STRESS_SECONDS`, five unless set; `cargo xtask stress` takes longer.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed test panics, and the stress test prints figures"
)]

mod arena;
#[path = "../oracle/mod.rs"]
#[allow(dead_code, reason = "the simulation uses the rest of it")]
mod oracle;
mod runtime;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{Identity, QueueOrder};
use tokio::runtime::Builder;

use arena::{Arena, Subject};

/// Returns how long the tasks are busy.
fn seconds() -> Duration {
    let seconds =
        std::env::var("STRESS_SECONDS").map_or(5, |text| text.parse().expect("STRESS_SECONDS is not a number"));
    Duration::from_secs(seconds)
}

fn stress<T: Subject>(order: QueueOrder) {
    // Threads also yield at random places, so that other threads run in between.
    let seeds = AtomicU64::new(0);
    let give_way = move || kube_informer::internal::set_yield_seed(Some(seeds.fetch_add(1, Ordering::Relaxed)));
    let runtime = Builder::new_multi_thread().worker_threads(4).on_thread_start(give_way).enable_all().build().unwrap();
    runtime.block_on(async {
        let arena = Arena::<T>::new(order);
        arena.fight(seconds()).await;
        arena.settle().await;
        arena.end().await;
        // All tasks have ended. A worker may need a few milliseconds to drop the last of them.
        let tasks = tokio::runtime::Handle::current().metrics();
        for _ in 0..100 {
            if tasks.num_alive_tasks() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{} tasks are left", tasks.num_alive_tasks());
    });
}

#[test]
fn an_ordered_queue_under_stress_ends_with_the_cache_equal_to_the_server() {
    stress::<ConfigMap>(QueueOrder::Ordered);
}

#[test]
fn a_queue_per_object_under_stress_ends_with_the_cache_equal_to_the_server() {
    stress::<ConfigMap>(QueueOrder::PerObject);
}

#[test]
fn identities_under_stress_end_equal_to_the_server() {
    stress::<Identity>(QueueOrder::Ordered);
}
