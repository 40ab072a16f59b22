//! Stops informers that the program does not use.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::info;

use super::{FactoryShared, KnownInformer};
use crate::informer::Held;

/// How often an informer is checked during the time after which it is stopped.
const CHECKS: u32 = 4;
/// The shortest time between two checks.
const SHORTEST: Duration = Duration::from_millis(10);

/// When an informer was used last, as far as the checks know.
#[derive(Debug, Default)]
pub(super) struct LastUse {
    /// True if the informer was requested since the last check.
    requested: bool,
    /// The first check that found it idle.
    idle_since: Option<Instant>,
}

impl LastUse {
    pub(super) fn requested(&mut self) {
        self.requested = true;
    }

    /// Records a check, and returns true if the informer has not been used for this time.
    fn is_over(&mut self, idle: bool, time: Duration) -> bool {
        // A handle comes from a request, so nothing used the informer between two checks without one.
        if std::mem::take(&mut self.requested) || !idle {
            self.idle_since = None;
        }
        idle && self.idle_since.get_or_insert_with(Instant::now).elapsed() >= time
    }
}

impl FactoryShared {
    /// Lets the clock task of a new informer check whether the program uses it.
    pub(super) fn stop_if_idle(self: &Arc<Self>, informer: &Held) {
        let Some(time) = self.idle_time else { return };
        let (factory, number) = (Arc::downgrade(self), informer.number());
        informer.check_idle((time / CHECKS).max(SHORTEST), move || {
            let idle = factory.upgrade().and_then(|factory| factory.take_idle(number, time));
            if let Some(known) = idle {
                // Outside the lock, because this calls the factory.
                known.informer.end();
                info!(name = known.informer.name(), "idle informer stopped");
            }
        });
    }

    /// Takes out an informer that was not used for this time. A request that comes later makes a new one, and one that
    /// came before has a handle, so that the informer is not idle.
    fn take_idle(&self, number: u64, time: Duration) -> Option<KnownInformer> {
        let mut state = self.state.lock();
        let (key, known) = state.informers.iter_mut().find(|(_, known)| known.informer.number() == number)?;
        let (key, idle) = (key.clone(), known.informer.is_idle());
        if known.last_use.is_over(idle, time) { state.informers.remove(&key) } else { None }
    }
}
