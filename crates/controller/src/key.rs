//! The items of work queues.

use std::hash::Hash;

/// The type of the items of a queue: a small value, usually the key of an object. Two items that are equal are the same
/// work.
///
/// The queue calls `clone`, `eq` and `hash` while it holds its lock, so they must not use that queue.
pub trait Key: Clone + Eq + Hash + Send + 'static {}

impl<T: Clone + Eq + Hash + Send + 'static> Key for T {}
