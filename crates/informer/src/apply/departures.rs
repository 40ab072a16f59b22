//! When deleted objects begin to linger, and how large they are assumed to be.

use tokio::time::Instant;

use crate::object::Object;
use crate::processor::Event;
use crate::store::Departure;

/// Estimates the size of deleted objects, if they linger.
pub(super) struct Departures {
    lingers: bool,
    /// How many bytes of memory one byte on the wire takes.
    memory_factor: f64,
    /// How many objects were received, and their bytes on the wire.
    objects: u64,
    bytes: u64,
}

impl Departures {
    pub(super) fn new(lingers: bool, memory_factor: f64) -> Self {
        Self { lingers, memory_factor, objects: 0, bytes: 0 }
    }

    /// Returns true if deleted objects linger.
    pub(super) fn linger(&self) -> bool {
        self.lingers
    }

    /// Records the bytes on the wire of received objects.
    pub(super) fn received(&mut self, objects: usize, bytes: u64) {
        if self.lingers {
            self.objects += objects as u64;
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }

    /// Returns the departure of the objects that these events delete or replace, whose changes took that many bytes on
    /// the wire. `None` if no object lingers.
    pub(super) fn of(&self, events: &[Event<dyn Object>], bytes: u64) -> Option<Departure> {
        let leaves = self.lingers && events.iter().any(|event| !matches!(event, Event::Added { .. }));
        if leaves { self.now(bytes / events.len().max(1) as u64) } else { None }
    }

    /// Returns the departure of objects that take that many bytes on the wire, or about as many as the received objects
    /// if that is zero. `None` if no object lingers.
    pub(super) fn now(&self, bytes: u64) -> Option<Departure> {
        let bytes = if bytes > 0 { bytes } else { self.bytes / self.objects.max(1) };
        let departure = || Departure { at: Instant::now(), bytes: (bytes as f64 * self.memory_factor) as u64 };
        self.lingers.then(departure)
    }
}
