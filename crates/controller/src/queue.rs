//! Work queues, in three layers. Each layer is usable alone, and each has all methods of the layer before it.
//!
//! | layer | feature | client-go's name |
//! |---|---|---|
//! | [`Queue`] | an item waits once, one worker at a time has it, and it has a [`Priority`] | `Type` |
//! | [`DelayingQueue`] | an item can be added after a delay | `DelayingInterface` |
//! | [`WorkQueue`] | a [`RateLimiter`](crate::RateLimiter) decides the delay | `RateLimitingInterface` |
//!
//! # Guarantees for workers
//!
//! - If an item is added n times before a worker takes it, the queue hands it out once. If it is added while a worker
//!   has it, once or several times, the queue hands it out exactly once more, after that worker is done.
//! - A worker gets an [`Item`]. Dropping the item marks it as done, so an early return or a panic cannot leave an item
//!   behind.
//! - The queue hands out the highest priority first. Within one priority the item that has waited longest comes first.
//!   A second add can raise the priority of a waiting item, but never lower it. Every tenth item that is taken is the
//!   one that has waited longest of all, so no item starves.
//! - A queue that is shut down accepts no items, and hands out those that wait. `drain` waits until all of them are
//!   done. Delayed items are returned to the caller.
//!
//! # How `get` waits
//!
//! A queue has no task. Each call that adds, takes, finishes or counts items first adds the delayed items that are due.
//! One of the callers that wait in `get` sleeps until the next delayed item is due. So a future of `get` that was
//! polled once has to be polled until it is ready, or dropped. If it is kept and not polled, other callers may wait too
//! long, as with any channel.
//!
//! The queue has no limit for the number of items. It holds one entry for each different item, so a queue of keys has
//! at most as many entries as there are objects.

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

pub use crate::key::Key;
pub use delaying::DelayingQueue;
pub use item::Item;
pub use plain::Queue;
pub use priority::Priority;
pub use rate_limiting::WorkQueue;
pub use status::{QueuePhase, QueueStatus};
