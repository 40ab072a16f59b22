//! The status of a queue.

use std::time::Duration;

use kube_informer::{AnyQueue, QueueHealth};

use super::{Key, Queue};

/// The status of a queue at one point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStatus {
    /// The name of the queue, if it has one.
    pub name: Option<String>,
    /// Whether the queue accepts items.
    pub phase: QueuePhase,
    /// The number of items that can be taken.
    pub waiting: usize,
    /// The number of items that workers have.
    pub processing: usize,
    /// The number of delayed items.
    pub delayed: usize,
    /// The sum of the durations for which workers have had their items.
    pub unfinished: Duration,
    /// The longest duration for which a worker has had its item. If it keeps growing, that worker is stuck.
    pub longest_running: Duration,
}

/// Whether a queue accepts items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueuePhase {
    /// The queue accepts items.
    Open,
    /// The queue accepts no items, and some items are not done yet.
    ShuttingDown,
    /// The queue accepts no items, and all items are done.
    Drained,
}

impl From<QueueStatus> for QueueHealth {
    fn from(status: QueueStatus) -> Self {
        let mut health = Self::default();
        health.name = status.name.unwrap_or_default();
        (health.waiting, health.processing, health.delayed) = (status.waiting, status.processing, status.delayed);
        health.longest_running = status.longest_running;
        health
    }
}

/// Covers all layers: a [`DelayingQueue`](super::DelayingQueue) and a [`WorkQueue`](super::WorkQueue) dereference to
/// their [`Queue`].
impl<T: Key> AnyQueue for Queue<T> {
    fn health(&self) -> QueueHealth {
        self.status().into()
    }
}
