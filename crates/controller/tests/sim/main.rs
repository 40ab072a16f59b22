//! Simulated controllers: programs that create and correct children, a server, and things that go wrong, on a paused clock,
//! all chance from one seed.
//!
//! Whatever happens (conflicts, errors, lost answers, watches that are cut or silent, caches and servers that are behind,
//! deletions in the middle, crashes, another leader), there is never more than one child of an owner, nothing of others is
//! touched, and once all is quiet every owner has exactly its child, as it should be. Children have generated names, so that no
//! server refuses a second one.
//!
//! A failing seed prints itself; `SIM_FIRST=seed SIM_SEEDS=1 cargo test -p kube-controller --test sim` repeats it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests say what is wrong by panicking, and print")]

mod crashes;
mod program;
mod truth;
mod wire;
mod world;

/// Runs a future on a clock that goes on when nobody has anything to do.
fn on_a_paused_clock<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(future)
}

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

#[test]
fn every_seed_ends_with_one_child_for_each_owner() {
    let (first, seeds) = (from_environment("SIM_FIRST", 0), from_environment("SIM_SEEDS", 400));
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let created: u64 = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|part| {
                scope.spawn(move || {
                    (first + part..first + seeds).step_by(threads as usize).map(world::simulate).sum::<u64>()
                })
            })
            .collect();
        parts.into_iter().map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).sum()
    });
    println!("{seeds} seeds from {first}: {created} children were created");
    assert!(created > seeds, "something was done");
}
