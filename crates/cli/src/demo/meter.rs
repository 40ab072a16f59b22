//! Keeps the metrics of the libraries: for the summary, and as text for Prometheus on the live page.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram as Values;
use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use parking_lot::Mutex;

/// A name with its labels, in the order in which the text shows them.
type Name = (String, Vec<(String, String)>);

/// Records the metrics of this process. A clone shares them.
#[derive(Clone, Default)]
pub(super) struct MetricsRecorder {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    counters: BTreeMap<Name, Arc<AtomicU64>>,
    gauges: BTreeMap<Name, Arc<AtomicU64>>,
    histograms: BTreeMap<Name, Arc<Times>>,
}

/// Durations in nanoseconds, in constant memory, and their sum in seconds.
struct Times(Mutex<(Values<u64>, f64)>);

/// Percentiles of a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Percentiles {
    pub(super) times: u64,
    pub(super) half: Duration,
    pub(super) most: Duration,
}

impl MetricsRecorder {
    /// Installs a recorder; it keeps everything that is recorded after this call.
    pub(super) fn install() -> Self {
        let meter = Self::default();
        // Cannot fail: only this command installs a recorder, and only once.
        let _ = metrics::set_global_recorder(meter.clone());
        meter
    }

    /// Returns the percentiles of a histogram, for each set of labels.
    pub(super) fn took(&self, name: &str) -> Vec<(BTreeMap<String, String>, Percentiles)> {
        let kept = self.kept.lock();
        let named = kept.histograms.iter().filter(|((known, _), _)| known == name);
        named.map(|((_, labels), times)| (labels.iter().cloned().collect(), times.took())).collect()
    }

    /// Returns all metrics in the text format of Prometheus.
    pub(super) fn render(&self) -> String {
        let kept = self.kept.lock();
        let mut text = String::new();
        let value = |cell: &Arc<AtomicU64>| cell.load(Ordering::Relaxed);
        render(&mut text, "counter", &kept.counters, |cell| value(cell).to_string());
        render(&mut text, "gauge", &kept.gauges, |cell| f64::from_bits(value(cell)).to_string());
        let mut last = "";
        for ((name, labels), times) in &kept.histograms {
            if std::mem::replace(&mut last, name) != name {
                let _ = writeln!(text, "# TYPE {name} summary");
            }
            let (values, sum) = &*times.0.lock();
            for quantile in [0.5, 0.9, 0.99] {
                let labels: Vec<_> =
                    labels.iter().cloned().chain([("quantile".into(), quantile.to_string())]).collect();
                let _ = writeln!(text, "{name}{} {}", shown(&labels), values.value_at_quantile(quantile) as f64 / 1e9);
            }
            let labels = shown(labels);
            let _ = writeln!(text, "{name}_sum{labels} {sum}\n{name}_count{labels} {}", values.len());
        }
        text
    }
}

fn render<V>(text: &mut String, kind: &str, values: &BTreeMap<Name, V>, value: impl Fn(&V) -> String) {
    let mut last = "";
    for ((name, labels), kept) in values {
        if std::mem::replace(&mut last, name) != name {
            let _ = writeln!(text, "# TYPE {name} {kind}");
        }
        let _ = writeln!(text, "{name}{} {}", shown(labels), value(kept));
    }
}

fn shown(labels: &[(String, String)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let escape = |text: &str| text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escape(value))).collect();
    format!("{{{}}}", labels.join(","))
}

fn name(key: &Key) -> Name {
    (key.name().to_owned(), key.labels().map(|label| (label.key().to_owned(), label.value().to_owned())).collect())
}

impl Recorder for MetricsRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.kept.lock().counters.entry(name(key)).or_default().clone())
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.kept.lock().gauges.entry(name(key)).or_default().clone())
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.kept.lock().histograms.entry(name(key)).or_insert_with(Times::new).clone())
    }
}

impl Times {
    fn new() -> Arc<Self> {
        // One nanosecond to one hour, with three digits.
        let values = Values::new_with_bounds(1, 3_600_000_000_000, 3).expect("the bounds are valid constants");
        Arc::new(Self(Mutex::new((values, 0.0))))
    }

    fn took(&self) -> Percentiles {
        let (values, _) = &*self.0.lock();
        let at = |quantile: f64| Duration::from_nanos(values.value_at_quantile(quantile));
        Percentiles { times: values.len(), half: at(0.5), most: at(0.99) }
    }
}

impl HistogramFn for Times {
    fn record(&self, seconds: f64) {
        let (values, sum) = &mut *self.0.lock();
        values.saturating_record((seconds.max(0.0) * 1e9) as u64);
        *sum += seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_metrics_are_rendered_as_prometheus_text() {
        let meter = MetricsRecorder::default();
        metrics::with_local_recorder(&meter, || {
            metrics::counter!("watches_total", "name" => "pods").increment(2);
            metrics::counter!("watches_total", "name" => "say \"hi\"").increment(1);
            metrics::gauge!("queued").set(1.5);
            (1..=100)
                .for_each(|value| metrics::histogram!("latency_seconds", "name" => "pods").record(f64::from(value)));
        });
        let text = meter.render();
        assert!(text.starts_with("# TYPE watches_total counter\nwatches_total{name=\"pods\"} 2\n"), "{text}");
        for line in [
            "watches_total{name=\"say \\\"hi\\\"\"} 1",
            "queued 1.5",
            "latency_seconds_sum{name=\"pods\"} 5050",
            "latency_seconds_count{name=\"pods\"} 100",
        ] {
            assert!(text.lines().any(|known| known == line), "{line} is missing from\n{text}");
        }
        assert_eq!(text.matches("# TYPE").count(), 3);
        let (labels, took) = &meter.took("latency_seconds")[0];
        assert_eq!(
            (labels["name"].as_str(), took.times, took.half.as_secs(), took.most.as_secs()),
            ("pods", 100, 50, 99)
        );
    }
}
