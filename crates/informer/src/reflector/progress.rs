//! The minimum speed of a response: a connection that delivers only a few bytes at a time counts as dead.

use std::time::Duration;

use tokio::time::Instant;

use crate::source::{ByteMeter, SourceError};
use crate::time::after;

/// Within one deadline at least this many bytes must arrive, or this many objects.
const BYTES: u64 = 16 * 1024;
const OBJECTS: u64 = 16;

/// Measures the speed, one deadline after another.
#[derive(Debug)]
pub(super) struct Pace {
    deadline: Duration,
    since: Instant,
    bytes: u64,
    objects: u64,
    /// True if the interval began in the middle of an object.
    within: bool,
}

impl Pace {
    pub(super) fn new(deadline: Duration, meter: &ByteMeter) -> Self {
        let (bytes, within) = (meter.received(), meter.is_within());
        Self { deadline, since: Instant::now(), bytes, objects: 0, within }
    }

    /// Returns the time of the next check.
    pub(super) fn due(&self) -> Instant {
        after(self.since, self.deadline)
    }

    /// Checks a list or an initial state, in which data must arrive all the time.
    pub(super) fn check(&mut self, meter: &ByteMeter, objects: u64) -> Result<(), SourceError> {
        self.check_if(|came| came < OBJECTS, meter, objects)
    }

    /// Checks a watch, which may be silent between events. Only a connection that is in the middle of an object at both
    /// ends of the interval can fail. For such a connection only bytes count.
    pub(super) fn check_within(&mut self, meter: &ByteMeter, objects: u64) -> Result<(), SourceError> {
        let within = self.within && meter.is_within();
        self.check_if(|_| within, meter, objects)
    }

    fn check_if(
        &mut self,
        is_few: impl FnOnce(u64) -> bool,
        meter: &ByteMeter,
        objects: u64,
    ) -> Result<(), SourceError> {
        if Instant::now() < self.due() {
            return Ok(());
        }
        // Objects that were removed again do not count.
        let (received, came) = (meter.received() - self.bytes, objects.saturating_sub(self.objects));
        if received < BYTES && is_few(came) {
            return Err(SourceError::Stalled { received, objects: came, within: self.deadline });
        }
        *self = Self { objects, ..Self::new(self.deadline, meter) };
        Ok(())
    }
}
