//! Items for the other crates, the tests and the benchmarks of this workspace. They are not part of the API, and change
//! without notice.

pub use crate::apply::{BatchGuard, ChangesSink};
#[cfg(feature = "__measured_locks")]
pub use crate::lock::{LockFigures, take as take_lock_figures};
pub use crate::source::ByteMeter;
pub use crate::time::{after, rounded};
pub use crate::yield_point::set_seed as set_yield_seed;
