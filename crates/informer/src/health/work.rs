//! What can be said of work that waits, without knowing what it is or who does it.

use std::time::Duration;

/// A queue of work that says how it does: what shows informers can show these beside them, and need not know who works.
///
/// ```
/// use kube_informer::{AnyQueue, QueueHealth};
///
/// struct Letters(Vec<String>);
///
/// impl AnyQueue for Letters {
///     fn health(&self) -> QueueHealth {
///         let mut health = QueueHealth::default();
///         (health.name, health.waiting) = ("letters".to_owned(), self.0.len());
///         health
///     }
/// }
/// ```
pub trait AnyQueue: Send + Sync + 'static {
    /// How it does, at this moment.
    fn health(&self) -> QueueHealth;
}

/// How a queue of work does. What is not known is zero.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct QueueHealth {
    /// Its name, or that of who works on it.
    pub name: String,
    /// How many items can be taken.
    pub waiting: usize,
    /// How many items workers have.
    pub processing: usize,
    /// How many items are to come later.
    pub delayed: usize,
    /// How many items wait until a cache has seen what was written for them.
    pub parked: usize,
    /// How long a worker has had the item that it has had for longest.
    pub longest_running: Duration,
    /// How many items were worked on.
    pub worked: u64,
    /// How many of them failed.
    pub failures: u64,
    /// What went wrong last, until it goes well, with the item it happened to.
    pub last_error: Option<String>,
}
