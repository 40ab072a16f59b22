//! Simulated controllers: programs that create and correct children, a server, and faults, on a paused clock. One seed
//! decides all random choices.
//!
//! The faults are conflicts, errors, lost answers, webhooks that refuse, missing permissions, slow servers, watches
//! that break or are silent, caches and servers that lag behind, undecodable objects, deletions at any time, handlers
//! that hang, crashes, changes of the namespaces, a change of the leader, and suspended machines.
//!
//! These promises hold in spite of all faults:
//!
//! - An owner never has more than one child.
//! - No child of a live owner is deleted.
//! - No object of another program is changed.
//! - Nothing is written after the term.
//! - Some time after the last fault every owner has exactly its child.
//!
//! Children have generated names, so that no server refuses a second child.
//!
//! A failing test prints its seed; `SIM_FIRST=seed SIM_SEEDS=1 cargo test -p kube-controller --test sim` repeats it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed test panics, and the simulation prints figures")]

mod crashes;
mod elections;
mod program;
mod truth;
mod wire;
mod world;

/// Runs a future on a paused clock, which moves on only when no task can run.
fn on_a_paused_clock<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(future)
}

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

/// Simulates all seeds on all processors, and returns the sum of the results.
fn simulate_all(first: u64, seeds: u64, simulate: fn(u64) -> u64) -> u64 {
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|part| {
                scope.spawn(move || (first + part..first + seeds).step_by(threads as usize).map(simulate).sum::<u64>())
            })
            .collect();
        parts.into_iter().map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).sum()
    })
}

#[test]
fn every_seed_ends_with_one_child_for_each_owner() {
    let (first, seeds) = (from_environment("SIM_FIRST", 0), from_environment("SIM_SEEDS", 400));
    let created = simulate_all(first, seeds, world::simulate);
    println!("{seeds} seeds from {first}: {created} children were created");
    assert!(created > seeds, "too few children were created");
}

#[test]
fn only_a_leader_writes_in_spite_of_faults_of_its_connection_and_its_machine() {
    let (first, seeds) = (from_environment("SIM_FIRST", 0), from_environment("SIM_SEEDS", 400) / 4);
    let started = simulate_all(first, seeds.max(1), elections::simulate);
    println!("{seeds} seeds of elections from {first}: {started} processes were started");
}
