//! The sink of a reflector.

use std::sync::Arc;

use super::{ListReason, Phase, ReflectorError};
use crate::queue::Delta;

/// The receiver of a reflector's deltas: client-go's `ReflectorStore`.
pub trait Sink<T: ?Sized>: Send + 'static {
    /// Takes a change that took `bytes` bytes on the wire. Waits while the sink is full.
    fn push(&mut self, delta: Delta<T>, bytes: u64) -> impl Future<Output = ()> + Send;

    /// Waits until all deltas pushed so far are processed.
    fn settled(&mut self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Returns the cached state of an object. The reflector calls this after [`settled`](Self::settled).
    fn known(&self, object: &T) -> Option<Arc<T>> {
        let _ = object;
        None
    }

    /// Is called when the phase of the reflector changes.
    fn phase(&mut self, phase: Phase) {
        let _ = phase;
    }

    /// Is called when `bytes` bytes arrived from the API server.
    fn contact(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// Is called before a list.
    fn listing(&mut self, reason: ListReason) {
        let _ = reason;
    }

    /// Is called for each error. The reflector goes on.
    fn failed(&mut self, error: &ReflectorError) {
        let _ = error;
    }
}
