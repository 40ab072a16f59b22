//! Informers on real threads and a real clock, against a server in the same process: writers, readers, handlers in every
//! form that come and go, relists, disconnects and compactions, with both queues. What must be true then is the oracle's
//! business, which the simulation uses too.
//!
//! It takes `STRESS_SECONDS`, five unless set; `cargo xtask stress` takes longer.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests say what is wrong by panicking, and print")]

mod arena;
#[path = "../oracle/mod.rs"]
#[allow(dead_code, reason = "not everybody asks everything of it")]
mod oracle;
mod runtime;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{Identity, QueueOrder};
use tokio::runtime::Builder;

use arena::{Arena, Subject};

/// How long everybody is busy.
fn seconds() -> Duration {
    let seconds =
        std::env::var("STRESS_SECONDS").map_or(5, |text| text.parse().expect("STRESS_SECONDS is not a number"));
    Duration::from_secs(seconds)
}

fn stress<T: Subject>(order: QueueOrder) {
    // Threads give way at drawn places too: what others do in between is what this is about.
    let seeds = AtomicU64::new(0);
    let give_way = move || kube_informer::internal::set_yield_seed(Some(seeds.fetch_add(1, Ordering::Relaxed)));
    let runtime = Builder::new_multi_thread().worker_threads(4).on_thread_start(give_way).enable_all().build().unwrap();
    runtime.block_on(async {
        let arena = Arena::<T>::new(order);
        arena.fight(seconds()).await;
        arena.settle().await;
        arena.end().await;
        // Whoever was told to end has ended; what a worker drops last may take it a moment.
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
