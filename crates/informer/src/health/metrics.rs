//! The metrics that an informer reports to the `metrics` facade.
//!
//! Names are client-go's where it has them: `informer_queued_items`, `informer_processing_latency_seconds`,
//! `informer_store_resource_version`. Additional metrics count lists and watches by reason, errors, undecodable
//! objects, the backlog of each handler, and the figures of a representation (`informer_representation`, by `figure`).

use std::collections::HashMap;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Label, counter, gauge, histogram};

use crate::lock::Mutex;
use crate::object::{ResourceType, ResourceVersion};
use crate::reflector::ListReason;

/// The metric handles of one informer, registered once.
pub(crate) struct Metrics {
    labels: Vec<Label>,
    queued: Gauge,
    latency: Histogram,
    store_version: Gauge,
    last_contact: Gauge,
    watches: Counter,
    undecodable: Counter,
    failures: Counter,
    /// The backlog of each handler, and how often its mailbox was folded, by the name of the handler.
    handlers: Mutex<HashMap<String, (Gauge, Counter)>>,
    /// The figures of the representation, by name.
    figures: Mutex<HashMap<&'static str, Gauge>>,
}

impl Metrics {
    pub(crate) fn new(name: &str, resource: Option<&ResourceType>) -> Self {
        let mut labels = vec![Label::new("name", name.to_owned())];
        if let Some(ResourceType { group, version, plural, .. }) = resource {
            labels.push(Label::new("group", group.clone()));
            labels.push(Label::new("version", version.clone()));
            labels.push(Label::new("resource", plural.clone()));
        }
        Self {
            queued: gauge!("informer_queued_items", labels.clone()),
            latency: histogram!("informer_processing_latency_seconds", labels.clone()),
            store_version: gauge!("informer_store_resource_version", labels.clone()),
            last_contact: gauge!("informer_last_contact_seconds", labels.clone()),
            watches: counter!("informer_watches_total", labels.clone()),
            undecodable: counter!("informer_undecodable_objects_total", labels.clone()),
            failures: counter!("informer_failures_total", labels.clone()),
            handlers: Mutex::default(),
            figures: Mutex::default(),
            labels,
        }
    }

    pub(crate) fn processed(&self, waiting: usize, took: Duration) {
        self.queued.set(waiting as f64);
        self.latency.record(took);
    }

    /// Sets the version. Only its last fifteen digits are reported, because a gauge cannot represent more.
    pub(crate) fn store_version(&self, version: &ResourceVersion) {
        let text = version.as_str();
        let digits = text.get(text.len().saturating_sub(15)..).and_then(|digits| digits.parse::<u64>().ok());
        self.store_version.set(digits.unwrap_or_default() as f64);
    }

    pub(crate) fn listing(&self, reason: ListReason) {
        counter!("informer_lists_total", self.labels_and(Label::new("reason", reason.as_str()))).increment(1);
    }

    pub(crate) fn watching(&self) {
        self.watches.increment(1);
    }

    pub(crate) fn failed(&self) {
        self.failures.increment(1);
    }

    pub(crate) fn undecodable(&self) {
        self.undecodable.increment(1);
    }

    /// Sets how long ago the API server last sent something.
    pub(crate) fn last_contact(&self, age: Duration) {
        self.last_contact.set(age.as_secs_f64());
    }

    /// Sets the figures of the representation, by name.
    pub(crate) fn figures(&self, figures: &[(&'static str, f64)]) {
        for (name, value) in figures {
            let known = self.figures.lock().get(name).cloned();
            // Registered outside the lock: a recorder is user code.
            let gauge = known
                .unwrap_or_else(|| gauge!("informer_representation", self.labels_and(Label::new("figure", *name))));
            gauge.set(*value);
            self.figures.lock().insert(name, gauge);
        }
    }

    fn labels_and(&self, label: Label) -> Vec<Label> {
        let mut labels = self.labels.clone();
        labels.push(label);
        labels
    }

    /// Returns the histogram of the duration of a handler's calls.
    pub(crate) fn handler_latency(&self, handler: &str) -> Histogram {
        histogram!("informer_handler_latency_seconds", self.labels_and(Label::new("handler", handler.to_owned())))
    }

    pub(crate) fn backlog(&self, handler: &str, waiting: usize, folds: u64) {
        let known = self.handlers.lock().get(handler).cloned();
        let (backlog, folded) = known.unwrap_or_else(|| {
            let labels = self.labels_and(Label::new("handler", handler.to_owned()));
            (gauge!("informer_handler_backlog", labels.clone()), counter!("informer_handler_folds_total", labels))
        });
        backlog.set(waiting as f64);
        folded.absolute(folds);
        self.handlers.lock().insert(handler.to_owned(), (backlog, folded));
    }

    /// Sets the backlog of a removed handler to zero.
    pub(crate) fn forget_handler(&self, handler: &str) {
        let removed = self.handlers.lock().remove(handler);
        if let Some((backlog, _)) = removed {
            backlog.set(0.0);
        }
    }

    /// Sets all gauges to zero, because the informer has stopped.
    pub(crate) fn zero(&self) {
        self.queued.set(0.0);
        self.store_version.set(0.0);
        self.last_contact.set(0.0);
        let handlers = self.handlers.lock().clone();
        handlers.values().for_each(|(backlog, _)| backlog.set(0.0));
        let figures = self.figures.lock().clone();
        figures.values().for_each(|figure| figure.set(0.0));
    }
}
