//! Tests of the promises of queues, limiters, controllers and electors, one file per promise, on a paused clock. Some
//! tests run queues on real threads.

#![allow(clippy::unwrap_used, reason = "tests say what is wrong by panicking")]

mod queue;
mod ending;
mod priority;
mod delaying;
mod rate_limiting;
mod limiters;
mod metrics;
mod model;
mod timing;
mod stress;
mod cluster;
mod controller;
mod own_writes;
mod undecodable;
mod terms;
mod limits;
mod panics;
mod outcomes;
mod scopes;
mod sources;
mod reconcile_metrics;
mod network;
mod candidate;
mod election;
mod renewals;
mod manager;
mod finalizer;
mod finalizer_run;
mod status_patch;
mod apply;
mod events;

use std::time::Duration;

use kube_controller::Queue;

/// Polls a future once, and returns its output if it is ready.
async fn at_once<F: Future>(future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = tokio::task::coop::unconstrained(future) => Some(output),
        () = std::future::ready(()) => None,
    }
}

/// Adds the items, one after the other.
fn add(queue: &Queue<&'static str>, items: &[&'static str]) {
    for item in items {
        queue.add(item);
    }
}

/// Lets all other tasks run until they wait.
async fn others() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

async fn pass(milliseconds: u64) {
    tokio::time::advance(Duration::from_millis(milliseconds)).await;
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
