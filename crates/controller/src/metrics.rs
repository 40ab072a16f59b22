//! What a named queue tells the `metrics` facade, under client-go's names, with the label `name`.
//!
//! The gauges follow each [`get`](crate::Queue::get) and each item that is done. The two that grow with time alone also
//! follow each [`status`](crate::Queue::status): ask for it now and then, or while metrics are collected, and a worker
//! that is stuck shows.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Label, counter, gauge, histogram};

/// Gauge: how many items are to be done, those included that were added while a worker has them.
pub const DEPTH: &str = "workqueue_depth";
/// Counter: items added. One that waits already is not counted, one that a worker has is counted once.
pub const ADDS: &str = "workqueue_adds_total";
/// Histogram: how long an item waits until it is taken.
pub const QUEUE_DURATION: &str = "workqueue_queue_duration_seconds";
/// Histogram: how long a worker has an item.
pub const WORK_DURATION: &str = "workqueue_work_duration_seconds";
/// Gauge: how long workers have had the items that they have, all together.
pub const UNFINISHED_WORK: &str = "workqueue_unfinished_work_seconds";
/// Gauge: how long a worker has had the item that it has had for longest.
pub const LONGEST_RUNNING: &str = "workqueue_longest_running_processor_seconds";
/// Counter: items put in for later, whether a limiter or somebody else said when.
pub const RETRIES: &str = "workqueue_retries_total";

/// The bounds that client-go gives both histograms, in seconds, for exporters that ask.
pub const BUCKETS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1];

/// The handles of one queue, taken once. They are used while the queue is locked, so that the last value set is the
/// newest.
pub(crate) struct QueueMetrics {
    depth: Gauge,
    adds: Counter,
    queue_duration: Histogram,
    work_duration: Histogram,
    unfinished: Gauge,
    longest: Gauge,
    retries: Counter,
}

impl QueueMetrics {
    pub(crate) fn new(name: &str) -> Self {
        let labels = vec![Label::new("name", name.to_owned())];
        Self {
            depth: gauge!(DEPTH, labels.clone()),
            adds: counter!(ADDS, labels.clone()),
            queue_duration: histogram!(QUEUE_DURATION, labels.clone()),
            work_duration: histogram!(WORK_DURATION, labels.clone()),
            unfinished: gauge!(UNFINISHED_WORK, labels.clone()),
            longest: gauge!(LONGEST_RUNNING, labels.clone()),
            retries: counter!(RETRIES, labels),
        }
    }

    pub(crate) fn added(&self, depth: usize) {
        self.adds.increment(1);
        self.depth.set(depth as f64);
    }

    pub(crate) fn taken(&self, depth: usize, waited: Duration) {
        self.depth.set(depth as f64);
        self.queue_duration.record(waited);
    }

    pub(crate) fn done(&self, worked: Duration) {
        self.work_duration.record(worked);
    }

    pub(crate) fn retried(&self) {
        self.retries.increment(1);
    }

    pub(crate) fn running(&self, unfinished: Duration, longest: Duration) {
        self.unfinished.set(unfinished.as_secs_f64());
        self.longest.set(longest.as_secs_f64());
    }
}
