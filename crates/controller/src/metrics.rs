//! The metrics that this crate reports through the `metrics` facade.
//!
//! A queue with a name reports them under client-go's names, with the label `name`. A controller reports them under
//! controller-runtime's names, with the label `controller`.
//!
//! A queue updates its gauges at each [`get`](crate::Queue::get) and when an item is done. Two gauges,
//! [`UNFINISHED_WORK`] and [`LONGEST_RUNNING`], grow with time alone. Each call of [`status`](crate::Queue::status)
//! updates them, too. Call it at intervals, or when metrics are collected, so that these gauges show a stuck worker.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Label, counter, gauge, histogram};

/// Gauge: the number of items that wait, including items that were added again while a worker has them.
pub const DEPTH: &str = "workqueue_depth";
/// Counter: items added. An item that waits already is not counted. An item that a worker has is counted once.
pub const ADDS: &str = "workqueue_adds_total";
/// Histogram: how long an item waits until a worker takes it.
pub const QUEUE_DURATION: &str = "workqueue_queue_duration_seconds";
/// Histogram: how long a worker has an item.
pub const WORK_DURATION: &str = "workqueue_work_duration_seconds";
/// Gauge: the sum of the durations for which workers have had their items.
pub const UNFINISHED_WORK: &str = "workqueue_unfinished_work_seconds";
/// Gauge: the longest duration for which a worker has had its item.
pub const LONGEST_RUNNING: &str = "workqueue_longest_running_processor_seconds";
/// Counter: items added after a delay, whether a limiter or the caller chose the delay.
pub const RETRIES: &str = "workqueue_retries_total";

/// The bucket bounds of both histograms in client-go, in seconds, for exporters that need them. They fit the times of
/// queues and informers, which are often microseconds. For [`RECONCILE_TIME`] use [`RECONCILE_BUCKETS`].
pub const BUCKETS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1];

/// Counter: reconciles, by `result`: `success`, `error` or `requeue_after`.
pub const RECONCILES: &str = "controller_runtime_reconcile_total";
/// Counter: reconciles that failed, for any reason.
pub const RECONCILE_ERRORS: &str = "controller_runtime_reconcile_errors_total";
/// Counter: reconciles that failed and are not tried again.
pub const TERMINAL_ERRORS: &str = "controller_runtime_terminal_reconcile_errors_total";
/// Counter: reconciles that panicked.
pub const RECONCILE_PANICS: &str = "controller_runtime_reconcile_panics_total";
/// Counter: reconciles that exceeded the timeout.
pub const RECONCILE_TIMEOUTS: &str = "controller_runtime_reconcile_timeouts_total";
/// Histogram: how long a reconcile takes.
pub const RECONCILE_TIME: &str = "controller_runtime_reconcile_time_seconds";
/// The bucket bounds of [`RECONCILE_TIME`] in controller-runtime, in seconds, for exporters that need them.
pub const RECONCILE_BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
];
/// Gauge: the number of reconciles that may run at the same time.
pub const MAX_CONCURRENT: &str = "controller_runtime_max_concurrent_reconciles";
/// Gauge: the number of reconciles that run now.
pub const ACTIVE_WORKERS: &str = "controller_runtime_active_workers";
/// Counter: how often a cache did not show a write in time. controller-runtime has no such metric.
pub const UNSEEN_WRITES: &str = "kube_controller_unseen_writes_total";
/// Counter: mappings and predicates that panicked. controller-runtime has no such metric.
pub const MAPPING_PANICS: &str = "kube_controller_mapping_panics_total";
/// Gauge: 1 for the leader, 0 for the others. It has client-go's name, and the name of the lease as the label `name`.
pub const LEADER: &str = "leader_election_master_status";

/// The metric handles of one queue. They are used while the queue is locked, so that the last value set is the newest.
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

/// Sets the gauges to zero: a queue that is dropped has no items.
impl Drop for QueueMetrics {
    fn drop(&mut self) {
        self.depth.set(0.0);
        self.running(Duration::ZERO, Duration::ZERO);
    }
}

/// How a reconcile ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReconcileOutcome {
    Success,
    RequeueAfter,
    Error,
    TerminalError,
    Panic,
    Timeout,
}

/// The metric handles of one controller.
pub(crate) struct ReconcileMetrics {
    success: Counter,
    requeue_after: Counter,
    error: Counter,
    errors: Counter,
    terminal: Counter,
    panics: Counter,
    timeouts: Counter,
    time: Histogram,
    active: Gauge,
}

/// A reconcile that runs. The gauge of active workers counts it until it is dropped.
pub(crate) struct Active<'m>(&'m Gauge);

impl ReconcileMetrics {
    pub(crate) fn new(controller: &str, workers: usize) -> Self {
        let labels = vec![Label::new("controller", controller.to_owned())];
        let result = |result: &'static str| [labels.clone(), vec![Label::new("result", result)]].concat();
        gauge!(MAX_CONCURRENT, labels.clone()).set(workers as f64);
        let active = gauge!(ACTIVE_WORKERS, labels.clone());
        active.set(0.0);
        Self {
            success: counter!(RECONCILES, result("success")),
            requeue_after: counter!(RECONCILES, result("requeue_after")),
            error: counter!(RECONCILES, result("error")),
            errors: counter!(RECONCILE_ERRORS, labels.clone()),
            terminal: counter!(TERMINAL_ERRORS, labels.clone()),
            panics: counter!(RECONCILE_PANICS, labels.clone()),
            timeouts: counter!(RECONCILE_TIMEOUTS, labels.clone()),
            time: histogram!(RECONCILE_TIME, labels.clone()),
            active,
        }
    }

    pub(crate) fn begins(&self) -> Active<'_> {
        self.active.increment(1.0);
        Active(&self.active)
    }

    pub(crate) fn ended(&self, took: Duration, outcome: ReconcileOutcome) {
        self.time.record(took);
        match outcome {
            ReconcileOutcome::Success => return self.success.increment(1),
            ReconcileOutcome::RequeueAfter => return self.requeue_after.increment(1),
            ReconcileOutcome::Error => {}
            ReconcileOutcome::TerminalError => self.terminal.increment(1),
            ReconcileOutcome::Panic => self.panics.increment(1),
            ReconcileOutcome::Timeout => self.timeouts.increment(1),
        }
        self.error.increment(1);
        self.errors.increment(1);
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

pub(crate) fn write_not_seen(controller: &str) {
    counter!(UNSEEN_WRITES, "controller" => controller.to_owned()).increment(1);
}

pub(crate) fn mapping_panicked(controller: &str) {
    counter!(MAPPING_PANICS, "controller" => controller.to_owned()).increment(1);
}

pub(crate) fn leads(lease: &str, leads: bool) {
    gauge!(LEADER, "name" => lease.to_owned()).set(if leads { 1.0 } else { 0.0 });
}
