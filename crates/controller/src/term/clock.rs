//! A clock that also runs while the machine is suspended.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use kube_informer::internal::after;

/// Reads the time since the machine was started, including the time for which it was suspended.
///
/// The clock of the runtime stops while a machine is suspended. A term that was judged by it alone would still be valid
/// when the machine wakes up, hours after another copy of the program has taken over. On Linux the default reads
/// `CLOCK_BOOTTIME`. On other systems the default stands still, and only the clock of the runtime counts.
#[derive(Clone)]
pub struct SuspendClock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl SuspendClock {
    /// Makes a clock from a function: for tests.
    pub fn new(read: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    pub(crate) fn now(&self) -> Moment {
        Moment { instant: Instant::now(), boot_time: (self.0)() }
    }

    /// Returns true if either clock has reached the moment.
    pub(crate) fn has_reached(&self, moment: Moment) -> bool {
        Instant::now() >= moment.instant || (self.0)() >= moment.boot_time
    }
}

impl Default for SuspendClock {
    fn default() -> Self {
        Self::new(since_boot)
    }
}

impl fmt::Debug for SuspendClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SuspendClock")
    }
}

#[cfg(target_os = "linux")]
fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
fn since_boot() -> Duration {
    Duration::ZERO
}

/// A point in time on both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// By the clock of the runtime.
    pub(crate) instant: Instant,
    /// By the clock that runs during suspend.
    boot_time: Duration,
}

impl Moment {
    pub(crate) fn after(self, duration: Duration) -> Self {
        Self { instant: after(self.instant, duration), boot_time: self.boot_time.saturating_add(duration) }
    }
}
