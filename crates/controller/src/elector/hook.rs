//! The function that is called with each new leader.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::mpsc;
use tracing::error;

pub(super) type NewLeader = dyn Fn(&str) + Send + Sync;

/// How many leaders may wait for a slow function. Further ones are not announced.
pub(super) const MOST_WAITING: usize = 16;

/// Calls the function with each leader that comes. A panic in it is logged.
pub(super) async fn announce(hook: Option<Arc<NewLeader>>, mut leaders: mpsc::Receiver<String>) {
    while let Some(leader) = leaders.recv().await {
        let Some(hook) = &hook else { continue };
        if catch_unwind(AssertUnwindSafe(|| hook(&leader))).is_err() {
            error!(%leader, "the function for new leaders panicked");
        }
    }
}
