//! What can be said of a queue.

use std::time::Duration;

use kube_informer::health::{AnyQueue, QueueHealth};

use super::{Key, Queue};

/// How a queue is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStatus {
    /// The name, if it has one.
    pub name: Option<String>,
    /// Whether it takes things in.
    pub phase: QueuePhase,
    /// How many items can be taken.
    pub waiting: usize,
    /// How many items workers have.
    pub processing: usize,
    /// How many items are to come later.
    pub delayed: usize,
    /// How long workers have had the items that they have, all together.
    pub unfinished: Duration,
    /// How long a worker has had the item that it has had for longest: if this grows, one is stuck.
    pub longest_running: Duration,
}

/// Whether a queue takes things in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueuePhase {
    /// It does.
    Open,
    /// It does not, and something is still to be done.
    ShuttingDown,
    /// It does not, and all is done.
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

/// For each layer: a queue that delays or limits has a [`Queue`] in it, and gives it by dereference.
impl<T: Key> AnyQueue for Queue<T> {
    fn health(&self) -> QueueHealth {
        self.status().into()
    }
}
