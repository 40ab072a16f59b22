//! Queues of what is to be done, in three layers. Each is usable alone, and each has everything of the one before.
//!
//! | layer | what it adds | client-go's name |
//! |---|---|---|
//! | [`Queue`] | an item waits once, is never with two workers, and has a [`Priority`] | `Type` |
//! | [`DelayingQueue`] | an item may come later | `DelayingInterface` |
//! | [`WorkQueue`] | a [`RateLimiter`](crate::RateLimiter) says how much later | `RateLimitingInterface` |
//!
//! # What workers may rely on
//!
//! - An item that is added n times before anybody takes it is handed out once. One that is added while a worker has it,
//!   however often, is handed out exactly once more, after that worker is done.
//! - A worker gets an [`Item`]. Dropping it says done: neither an early return nor a panic leaves an item behind.
//! - The highest priority comes first, and what has waited longest comes first within it. A second add can raise the
//!   priority of what waits, never lower it. Every tenth item taken is the one that has waited longest of all, so that
//!   nothing starves.
//! - Once shut down, a queue takes nothing in, and hands out what it has. `drain` waits until all of that is done. What
//!   was to come later is given back.
//!
//! # How it waits
//!
//! A queue has no task. Whoever looks at it lets in what has become due, and one of those who wait in `get` sleeps
//! until the next is. So a `get` that was begun should be polled until it answers, or dropped; one that is kept and not
//! polled may keep others waiting, as with any channel.
//!
//! What waits is not bounded in number but by its nature: there is one entry for each different item, as many as there
//! are objects.

mod priority;
mod order;
mod running;
mod ready;
mod delayed;
mod shared;
mod status;
mod item;
mod plain;
mod delaying;
mod rate_limiting;

use std::hash::Hash;

pub use delaying::DelayingQueue;
pub use item::Item;
pub use plain::Queue;
pub use priority::Priority;
pub use rate_limiting::WorkQueue;
pub use status::{QueuePhase, QueueStatus};

/// What a queue can hold: small, and equal if it is the same work. Usually the key of an object.
///
/// Its clones, comparisons and hashes are made while the queue is locked, and must not look at that queue.
pub trait Key: Clone + Eq + Hash + Send + 'static {}

impl<T: Clone + Eq + Hash + Send + 'static> Key for T {}
