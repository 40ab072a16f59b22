//! The metrics of a controller under controller-runtime's names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube_controller::limiter::ItemExponential;
use kube_controller::metrics::RECONCILE_BUCKETS;
use kube_controller::{Action, Controller, Request};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use parking_lot::Mutex;

use crate::cluster::{Cluster, Notes, Run};

/// The sum of the reported values, by name and labels. For a histogram it is the number of values.
#[derive(Clone, Default)]
struct Sums(Arc<Mutex<BTreeMap<String, f64>>>);

struct Sum(Sums, String);

impl Sums {
    fn sum(&self, key: &Key) -> Arc<Sum> {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        Arc::new(Sum(self.clone(), format!("{} {}", key.name(), labels.join(" "))))
    }

    fn get(&self, name: &str) -> f64 {
        self.0.lock().get(name).copied().unwrap_or_else(|| panic!("no value was reported for {name}"))
    }
}

impl Sum {
    fn add(&self, value: f64) {
        *self.0.0.lock().entry(self.1.clone()).or_default() += value;
    }
}

impl CounterFn for Sum {
    fn increment(&self, value: u64) {
        self.add(value as f64);
    }

    fn absolute(&self, _: u64) {}
}

impl GaugeFn for Sum {
    fn increment(&self, value: f64) {
        self.add(value);
    }

    fn decrement(&self, value: f64) {
        self.add(-value);
    }

    fn set(&self, value: f64) {
        self.0.0.lock().insert(self.1.clone(), value);
    }
}

impl HistogramFn for Sum {
    fn record(&self, _: f64) {
        self.add(1.0);
    }
}

impl Recorder for Sums {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.sum(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.sum(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.sum(key))
    }
}

#[tokio::test(start_paused = true)]
async fn each_reconcile_is_counted_by_its_result() {
    let sums = Sums::default();
    let _recorder = metrics::set_default_local_recorder(&sums);
    let cluster = Cluster::new();
    cluster.owner("a");
    let reconcile = |request: Request<Deployment>, _: Arc<Notes>| async move {
        match request.failures() {
            0 => Err("an error"),
            1 => panic!("a panic"),
            2 => std::future::pending().await,
            3 => Ok(Action::requeue(Duration::from_secs(3600))),
            _ => Ok(Action::await_change()),
        }
    };
    let limiter = ItemExponential::new(Duration::from_secs(1), Duration::from_secs(10));
    let controller = Controller::new(&cluster.owners).name("c").workers(3).limiter(limiter);
    let run = Run::of(controller.timeout(Duration::from_secs(5)), reconcile);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(sums.get("controller_runtime_active_workers controller=c"), 1.0, "one is stuck");
    assert!(sums.get("workqueue_longest_running_processor_seconds name=c") > 1.0, "and shows");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let metric = |name: &str| sums.get(&format!("controller_runtime_{name}"));
    assert_eq!(metric("reconcile_total controller=c result=error"), 3.0);
    assert_eq!(metric("reconcile_total controller=c result=requeue_after"), 1.0);
    assert_eq!(metric("reconcile_errors_total controller=c"), 3.0);
    assert_eq!(metric("reconcile_panics_total controller=c"), 1.0);
    assert_eq!(metric("reconcile_timeouts_total controller=c"), 1.0);
    assert_eq!(metric("reconcile_time_seconds controller=c"), 4.0);
    assert_eq!(metric("active_workers controller=c"), 0.0);
    assert_eq!(metric("max_concurrent_reconciles controller=c"), 3.0);
    assert_eq!(sums.get("workqueue_adds_total name=c"), 4.0, "the first, and three that were tried again");
    run.end().await;
}

#[test]
fn usual_reconcile_times_are_in_different_buckets() {
    let usual = [0.004, 0.02, 0.08, 0.12, 0.3, 0.7, 1.1, 2.2, 4.8, 12.0, 27.0, 45.0, 90.0];
    let buckets = usual.map(|seconds| RECONCILE_BUCKETS.partition_point(|bound| *bound < seconds));
    assert!(buckets.is_sorted_by(|bucket, next| bucket < next), "{buckets:?}");
}
