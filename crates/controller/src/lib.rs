//! What acts: work queues carry keys from whoever notices a change to whoever deals with it.
//!
//! ```
//! use kube_controller::WorkQueue;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let queue = WorkQueue::default(); // Retries as client-go's controllers do.
//! queue.add("web/a");
//! queue.add("web/b");
//! queue.add("web/a"); // Waits already: it is dealt with once.
//!
//! let mut attempts = Vec::new();
//! while let Some(key) = queue.get().await {
//!     attempts.push(*key);
//!     match (*key, key.num_requeues()) {
//!         ("web/a", 0) => key.retry(), // Five milliseconds later, in its turn.
//!         _ => key.forget(),           // All went well: what is remembered of failures goes.
//!     } // Whatever happens, letting go of a key says that it is done.
//!     if attempts.len() == 3 {
//!         queue.shut_down();
//!     }
//! }
//! assert_eq!(attempts, ["web/a", "web/b", "web/a"]);
//! # }
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | [`queue`] | holds what is to be done, and hands it out |
//! | [`limiter`] | says how long to wait before doing it again |
//! | [`metrics`] | says how it is going |
//!
//! Nothing here needs a cluster, an informer or a task of its own.

pub mod queue;
pub mod limiter;
pub mod metrics;
mod time;

pub use limiter::RateLimiter;
pub use queue::{DelayingQueue, Item, Priority, Queue, WorkQueue};
