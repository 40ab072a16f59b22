//! The truth: what a real API server does, what informers make of it, and what their peers do.
//!
//! `cargo xtask e2e` runs it. `E2E_SEED` repeats the chances of a run (not its timing), and `E2E_SECONDS` makes the churn of
//! `convergence` last longer than once through every fault.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests say what is wrong by panicking, and print")]

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
#[allow(dead_code, unused_imports, reason = "the simulation asks for more")]
#[path = "../../../crates/informer/tests/oracle/mod.rs"]
mod oracle;

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}
