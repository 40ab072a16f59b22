//! The metrics that informers report to the `metrics` facade.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded_apiserver::ApiServer;
use kube_informer::parts::Decoded;
use kube_informer::{Compact, InformerRequest, SharedInformer, SharedInformerFactory};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::script::{
    Act::{Event, Fail, StayOpen},
    NoTaskLeft, Script, Thing, bad, bookmark, gone, interrupted, options, pause, status, within,
};

/// Keeps the last value of a gauge, the sum of a counter and the number of samples of a histogram.
#[derive(Clone, Default)]
struct Values(Arc<Mutex<BTreeMap<String, f64>>>);

/// One metric of [`Values`].
struct Value(Values, String);

impl Values {
    fn value(&self, key: &Key) -> Arc<Value> {
        let labels: Vec<String> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        self.0.lock().entry(name.clone()).or_default();
        Arc::new(Value(self.clone(), name))
    }

    fn get(&self, name: &str) -> f64 {
        *self.0.lock().get(name).unwrap_or_else(|| panic!("no {name} in {:?}", self.0.lock().keys()))
    }
}

impl Value {
    fn change(&self, change: impl FnOnce(f64) -> f64) {
        let mut values = self.0.0.lock();
        let value = values.entry(self.1.clone()).or_default();
        *value = change(*value);
    }
}

impl CounterFn for Value {
    fn increment(&self, by: u64) {
        self.change(|value| value + by as f64);
    }

    fn absolute(&self, to: u64) {
        self.change(|value| value.max(to as f64));
    }
}

impl GaugeFn for Value {
    fn increment(&self, by: f64) {
        self.change(|value| value + by);
    }

    fn decrement(&self, by: f64) {
        self.change(|value| value - by);
    }

    fn set(&self, to: f64) {
        self.change(|_| to);
    }
}

impl HistogramFn for Value {
    fn record(&self, _: f64) {
        self.change(|count| count + 1.0);
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

#[tokio::test(start_paused = true)]
async fn the_counts_of_a_representation_are_gauges() {
    let values = Values::default();
    let _recording = metrics::set_default_local_recorder(&values);
    let server = ApiServer::new();
    server.create("configmaps", Some("web"), serde_json::json!({"metadata": {"name": "a"}})).unwrap();
    let factory = SharedInformerFactory::new(server.client());
    let maps = factory.informer_with(InformerRequest::<Compact<ConfigMap>>::new().name("maps")).unwrap();
    factory.start().unwrap();
    within("the first list", factory.synced()).await.unwrap();
    let map = maps.store().get("web/a").unwrap();
    (0..3).for_each(|_| drop(map.decode().unwrap()));
    tokio::time::sleep(Duration::from_secs(20)).await;
    let get = |figure: &str| {
        let labels = format!("name=maps,group=,version=v1,resource=configmaps,figure={figure}");
        values.get(&format!("informer_representation{{{labels}}}"))
    };
    assert_eq!(["decoded_hits", "decoded_misses", "label_sets"].map(get), [2.0, 1.0, 1.0]);
    within("the factory to stop", factory.stop()).await;
    assert_eq!(["decoded_hits", "decoded_misses", "label_sets"].map(get), [0.0; 3]);
}

// ME-5, and what client-go does not measure (ME-6).
#[tokio::test(start_paused = true)]
async fn events_are_counted_under_client_gos_names_and_gauges_return_to_zero() {
    let values = Values::default();
    // The whole test runs on this thread, so a recorder for this thread is enough.
    let _recording = metrics::set_default_local_recorder(&values);
    let no_task_left = NoTaskLeft::since_now();
    let unreadable = Event(kube_informer::parts::WatchEvent::Modified(Decoded::Bad(bad("web/a@25"))));
    let script = Script::new()
        .list("10", ["web/a@1", "web/b@2"])
        .watch([crate::script::modified("web/a@11"), Fail(gone())])
        .list("20", ["web/a@11"])
        .watch([unreadable, StayOpen])
        .list("30", ["web/a@11"])
        .watch([StayOpen]);
    let informer = SharedInformer::builder(script.clone()).name("things").options(options()).build();
    let gate = Arc::new(Semaphore::new(0));
    let opens = gate.clone();
    informer.register().name("stuck").on_event_async(move |_: kube_informer::Event<Thing>| {
        let opens = opens.clone();
        async move { opens.acquire().await.unwrap().forget() }
    });
    informer.start().unwrap();
    within("the bad event", informer.wait_for_version(&"25".into())).await.unwrap();
    within("the relist", informer.relist()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    for (reason, count) in [("first", 1.0), ("expired", 1.0), ("requested", 1.0)] {
        assert_eq!(values.get(&format!("informer_lists_total{{name=things,reason={reason}}}")), count, "{reason}");
    }
    assert_eq!(values.get("informer_store_resource_version{name=things}"), 30.0);
    assert_eq!(values.get("informer_queued_items{name=things}"), 0.0);
    assert!(values.get("informer_processing_latency_seconds{name=things}") >= 4.0);
    assert_eq!(values.get("informer_watches_total{name=things}"), 3.0);
    assert_eq!(values.get("informer_undecodable_objects_total{name=things}"), 1.0);
    assert_eq!(values.get("informer_failures_total{name=things}"), 1.0, "the version that expired");
    assert!(values.get("informer_last_contact_seconds{name=things}") > 1.0);
    let backlog = "informer_handler_backlog{name=things,handler=stuck}";
    assert!(values.get(backlog) >= 3.0, "two initial adds, an update and a delete; one of them is in the handler");
    gate.add_permits(100);
    within("the informer to stop", informer.stop()).await;
    for gauge in ["informer_queued_items", "informer_store_resource_version", "informer_last_contact_seconds"] {
        assert_eq!(values.get(&format!("{gauge}{{name=things}}")), 0.0, "{gauge}");
    }
    assert_eq!(values.get(backlog), 0.0);
    script.check_over();
    no_task_left.check();
}

#[tokio::test(start_paused = true)]
async fn lists_are_counted_by_their_reason() {
    let values = Values::default();
    let _recording = metrics::set_default_local_recorder(&values);
    let script = Script::new()
        .list("30", [])
        .watch([bookmark("31"), pause(5.0), Fail(status(500, "InternalError"))])
        .list("40", [])
        .watch([bookmark("41"), pause(5.0), Fail(interrupted())])
        // The version request shows that the server is older.
        .list("20", [])
        .list("20", [])
        .watch([StayOpen]);
    let informer = SharedInformer::<Thing>::builder(script.clone()).name("things").options(options()).build();
    informer.start().unwrap();
    within("all requests", script.asks(7)).await;
    let listed = |reason| values.get(&format!("informer_lists_total{{name=things,reason={reason}}}"));
    assert_eq!((listed("first"), listed("failed"), listed("restored")), (1.0, 1.0, 1.0));
    informer.stop().await;
    script.check_over();
}
