//! Tests against kube-apiserver: the embedded server, the informers, and other clients.
//!
//! `cargo xtask e2e` runs them. `E2E_SEED` repeats the random choices of a run (not its timing), and `E2E_SECONDS`
//! makes `convergence` run longer than once through every fault.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic and print")]

mod churn;
mod conformance;
mod convergence;
mod differential;
mod follower;
mod kinds;
mod kubectl;
mod operators;
mod peers;
mod sample_controller;
mod server;
mod side_by_side;
mod suites;
mod webhooks;
#[allow(dead_code, unused_imports, reason = "the simulation uses more of it")]
#[path = "../../../crates/informer/tests/oracle/mod.rs"]
mod oracle;

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}
