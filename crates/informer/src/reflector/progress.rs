//! Whether enough comes: a connection that brings a few bytes now and then is as good as dead.

use std::time::Duration;

use tokio::time::Instant;

use crate::source::{ByteMeter, SourceError};
use crate::time::after;

/// In one deadline so many bytes must come, or so many objects.
const BYTES: u64 = 16 * 1024;
const OBJECTS: u64 = 16;

/// Measures what comes, one deadline after the other.
#[derive(Debug)]
pub(super) struct Pace {
    deadline: Duration,
    since: Instant,
    bytes: u64,
    objects: u64,
    /// Whether it began in the middle of an object.
    within: bool,
}

impl Pace {
    pub(super) fn new(deadline: Duration, meter: &ByteMeter) -> Self {
        let (bytes, within) = (meter.received(), meter.is_within());
        Self { deadline, since: Instant::now(), bytes, objects: 0, within }
    }

    /// When it is to be checked next.
    pub(super) fn due(&self) -> Instant {
        after(self.since, self.deadline)
    }

    /// While a list or an initial state is coming, something must come all the time.
    pub(super) fn check(&mut self, meter: &ByteMeter, objects: u64) -> Result<(), SourceError> {
        self.check_if(|came| came < OBJECTS, meter, objects)
    }

    /// While nothing is owed, a connection that is always in the middle of an object is behind: then only bytes count.
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
        // What turns out to be gone again is taken off the count.
        let (received, came) = (meter.received() - self.bytes, objects.saturating_sub(self.objects));
        if received < BYTES && is_few(came) {
            return Err(SourceError::Stalled { received, objects: came, within: self.deadline });
        }
        *self = Self { objects, ..Self::new(self.deadline, meter) };
        Ok(())
    }
}
