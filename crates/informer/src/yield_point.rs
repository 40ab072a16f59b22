//! Points at which a simulation lets other tasks run. In a release build they do nothing.
//!
//! On one thread no other task runs between two steps that do not await. So a simulation on one thread would never see
//! what happens if another task runs there. At these points the simulation draws from its seed whether to yield.

#[cfg(debug_assertions)]
mod seeded {
    use std::cell::RefCell;

    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    thread_local! {
        static RNG: RefCell<Option<StdRng>> = const { RefCell::new(None) };
    }

    /// Sets the seed by which tasks of this thread yield. With `None` they never yield.
    pub fn set_seed(seed: Option<u64>) {
        RNG.set(seed.map(StdRng::seed_from_u64));
    }

    pub(crate) async fn maybe_yield() {
        let times = RNG.with_borrow_mut(|rng| {
            let rng = rng.as_mut()?;
            Some(if rng.random_bool(0.25) { rng.random_range(1..8) } else { 0 })
        });
        for _ in 0..times.unwrap_or(0) {
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(debug_assertions)]
pub(crate) use self::seeded::maybe_yield;
#[cfg(debug_assertions)]
pub use self::seeded::set_seed;

#[cfg(not(debug_assertions))]
pub(crate) async fn maybe_yield() {}

/// Does nothing: in a release build no task yields.
#[cfg(not(debug_assertions))]
pub fn set_seed(_: Option<u64>) {}
