//! Where a simulation may let other tasks run. In a release build there is nothing here.
//!
//! On one thread nothing runs between two steps that do not wait, so that a simulation on one thread never sees what happens
//! when something does. At these places it draws, from its seed, whether to give way.

#[cfg(debug_assertions)]
mod drawn {
    use std::cell::RefCell;

    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    thread_local! {
        static CHANCE: RefCell<Option<StdRng>> = const { RefCell::new(None) };
    }

    /// From now on tasks of this thread give way as this seed says; `None` for not at all.
    pub fn set(seed: Option<u64>) {
        CHANCE.set(seed.map(StdRng::seed_from_u64));
    }

    pub(crate) async fn give_way() {
        let times = CHANCE.with_borrow_mut(|chance| {
            let chance = chance.as_mut()?;
            Some(if chance.random_bool(0.25) { chance.random_range(1..8) } else { 0 })
        });
        for _ in 0..times.unwrap_or(0) {
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(debug_assertions)]
pub(crate) use self::drawn::give_way;
#[cfg(debug_assertions)]
pub use self::drawn::set;

#[cfg(not(debug_assertions))]
pub(crate) async fn give_way() {}

/// From now on tasks of this thread give way as this seed says: not at all in a release build.
#[cfg(not(debug_assertions))]
pub fn set(_: Option<u64>) {}
