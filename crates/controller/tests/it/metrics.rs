//! The metrics of a queue under client-go's names: WQ-30.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_controller::{DelayingQueue, Queue, WorkQueue};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use parking_lot::Mutex;

use crate::{ms, pass};

/// The last value of a gauge, the sum of a counter, or all values of a histogram, by name.
#[derive(Clone, Default)]
struct Values(Arc<Mutex<BTreeMap<String, Vec<f64>>>>);

struct Value(Values, String);

impl Values {
    fn value(&self, key: &Key) -> Arc<Value> {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        assert_eq!(labels, ["name=pods"]);
        Arc::new(Value(self.clone(), key.name().strip_prefix("workqueue_").unwrap().to_owned()))
    }

    /// Returns the values that were reported since the last call, sorted by name.
    fn reported(&self) -> Vec<(String, Vec<f64>)> {
        std::mem::take(&mut *self.0.lock()).into_iter().collect()
    }

    fn check(&self, expected: &[(&str, &[f64])]) {
        let reported = self.reported();
        let reported: Vec<(&str, &[f64])> = reported.iter().map(|(name, values)| (&**name, &**values)).collect();
        assert_eq!(reported, expected);
    }
}

impl CounterFn for Value {
    fn increment(&self, value: u64) {
        self.0.0.lock().entry(self.1.clone()).or_default().push(value as f64);
    }

    fn absolute(&self, _: u64) {}
}

impl GaugeFn for Value {
    fn increment(&self, _: f64) {}
    fn decrement(&self, _: f64) {}

    fn set(&self, value: f64) {
        self.0.0.lock().insert(self.1.clone(), vec![value]);
    }
}

impl HistogramFn for Value {
    fn record(&self, value: f64) {
        self.0.0.lock().entry(self.1.clone()).or_default().push(value);
    }
}

impl Recorder for Values {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.value(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.value(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.value(key))
    }
}

const LONGEST: &str = "longest_running_processor_seconds";
const UNFINISHED: &str = "unfinished_work_seconds";
const WAITED: &str = "queue_duration_seconds";
const WORKED: &str = "work_duration_seconds";

// client-go's TestMetrics.
#[tokio::test(start_paused = true)]
async fn a_named_queue_reports_metrics_about_its_items() {
    let values = Values::default();
    let queue = metrics::with_local_recorder(&values, || Queue::named("pods"));
    assert_eq!(queue.name(), Some("pods"));
    queue.add("a");
    values.check(&[("adds_total", &[1.0]), ("depth", &[1.0])]);
    queue.add("a");
    values.check(&[]); // The item waits already.
    pass(500).await;
    let a = queue.get().await.unwrap();
    values.check(&[("depth", &[0.0]), (LONGEST, &[0.0]), (WAITED, &[0.5]), (UNFINISHED, &[0.0])]);
    pass(250).await;
    queue.add("a");
    values.check(&[("adds_total", &[1.0]), ("depth", &[1.0])]);
    queue.add("a");
    values.check(&[]);
    pass(250).await;
    drop(a);
    values.check(&[(LONGEST, &[0.0]), (UNFINISHED, &[0.0]), (WORKED, &[0.5])]);
    let a = queue.get().await.unwrap();
    values.check(&[("depth", &[0.0]), (LONGEST, &[0.0]), (WAITED, &[0.25]), (UNFINISHED, &[0.0])]);
    pass(2000).await;
    queue.add("b");
    let b = queue.get().await.unwrap();
    pass(1000).await;
    values.reported();
    let status = queue.status();
    assert_eq!((status.unfinished, status.longest_running), (ms(4000), ms(3000)));
    values.check(&[(LONGEST, &[3.0]), (UNFINISHED, &[4.0])]);
    drop(a);
    values.check(&[(LONGEST, &[1.0]), (UNFINISHED, &[1.0]), (WORKED, &[3.0])]);
    drop(b);
    values.check(&[(LONGEST, &[0.0]), (UNFINISHED, &[0.0]), (WORKED, &[1.0])]);
    queue.shut_down();
    queue.add("c");
    values.check(&[]);
}

// WQ-10, WQ-30.
#[tokio::test(start_paused = true)]
async fn a_delayed_item_counts_as_a_retry_and_as_added_when_it_is_due() {
    let values = Values::default();
    let queue = metrics::with_local_recorder(&values, || DelayingQueue::named("pods"));
    queue.add_after("a", ms(1000));
    values.check(&[("retries_total", &[1.0])]);
    pass(3000).await;
    let a = queue.get().await.unwrap();
    let reported =
        [("adds_total", &[1.0][..]), ("depth", &[0.0]), (LONGEST, &[0.0]), (WAITED, &[2.0]), (UNFINISHED, &[0.0])];
    values.check(&reported);
    a.retry_after(ms(1000));
    values.check(&[(LONGEST, &[0.0]), ("retries_total", &[1.0]), (UNFINISHED, &[0.0]), (WORKED, &[0.0])]);
    queue.add_after("b", ms(0));
    values.check(&[("adds_total", &[1.0]), ("depth", &[1.0]), ("retries_total", &[1.0])]);
}

#[tokio::test(start_paused = true)]
async fn a_queue_without_a_name_reports_no_metrics() {
    let values = Values::default();
    let queue = metrics::with_local_recorder(&values, WorkQueue::default);
    queue.add("a");
    queue.get().await.unwrap().retry();
    drop(queue.get().await);
    values.check(&[]);
    assert_eq!(queue.name(), None);
}
