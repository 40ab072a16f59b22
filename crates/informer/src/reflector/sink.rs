//! Where a reflector puts what it learns.

use std::sync::Arc;

use super::{ListReason, Phase, ReflectorError};
use crate::queue::Delta;

/// Where a reflector puts what it learns.
pub trait Sink<T: ?Sized>: Send + 'static {
    /// Takes a change, which took so many bytes on the wire. A sink that is full waits.
    fn push(&mut self, delta: Delta<T>, bytes: u64) -> impl Future<Output = ()> + Send;

    /// Waits until everything pushed so far is processed.
    fn settled(&mut self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// What is known of an object, once everything pushed is processed.
    fn known(&self, object: &T) -> Option<Arc<T>> {
        let _ = object;
        None
    }

    /// The reflector does something else now.
    fn phase(&mut self, phase: Phase) {
        let _ = phase;
    }

    /// Something was heard from the server: so many bytes.
    fn contact(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// Everything is asked for.
    fn listing(&mut self, reason: ListReason) {
        let _ = reason;
    }

    /// Something went wrong. The reflector goes on.
    fn failed(&mut self, error: &ReflectorError) {
        let _ = error;
    }
}
