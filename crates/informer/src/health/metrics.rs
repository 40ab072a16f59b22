//! What an informer tells the `metrics` facade.
//!
//! Names are client-go's where it has them: `informer_queued_items`, `informer_processing_latency_seconds`,
//! `informer_store_resource_version`. Ours beside them count lists and watches by reason, failures, objects that could not
//! be read, what waits for each handler, and what a representation has to say (`informer_representation`, by `figure`).

use std::collections::HashMap;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Label, counter, gauge, histogram};

use crate::lock::Mutex;
use crate::object::{ResourceType, ResourceVersion};
use crate::reflector::ListReason;

/// The handles of one informer, taken once.
pub(crate) struct Metrics {
    labels: Vec<Label>,
    queued: Gauge,
    latency: Histogram,
    store_version: Gauge,
    last_contact: Gauge,
    watches: Counter,
    undecodable: Counter,
    failures: Counter,
    /// What waits for each handler, and how often it was folded, by the handler's name.
    handlers: Mutex<HashMap<String, (Gauge, Counter)>>,
    /// What the representation has to say, by its name.
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

    /// The last fifteen digits: as much as a gauge can tell apart.
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

    /// How long ago the server was heard of.
    pub(crate) fn last_contact(&self, age: Duration) {
        self.last_contact.set(age.as_secs_f64());
    }

    /// What the representation has to say, each by its name.
    pub(crate) fn figures(&self, figures: &[(&'static str, f64)]) {
        for (name, value) in figures {
            let known = self.figures.lock().get(name).cloned();
            // Made with no lock held: a recorder is code of the user's.
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

    /// Where the time that a handler's calls take is recorded.
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

    /// A handler is gone: nothing waits for it any more.
    pub(crate) fn forget_handler(&self, handler: &str) {
        let removed = self.handlers.lock().remove(handler);
        if let Some((backlog, _)) = removed {
            backlog.set(0.0);
        }
    }

    /// Nothing waits and nothing is known any more.
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
