//! The log lines that the documentation promises: `info` for start, sync and stop, and one line at `debug` for each relist
//! and each retry.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use crate::script::Act::{Fail, StayOpen};
use crate::script::{Script, TestInformer, busy, gone, modified, pause, status, unreachable};

/// A layer that keeps the log lines of this library.
#[derive(Clone, Default)]
pub(crate) struct LogLines(Arc<Mutex<Vec<LogLine>>>);

struct LogLine {
    level: Level,
    message: String,
    /// The other fields, as ` name=value`.
    fields: String,
}

impl LogLines {
    /// Keeps the log lines of this thread until the guard is dropped.
    pub(crate) fn capture() -> (Self, DefaultGuard) {
        let lines = Self::default();
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(lines.clone()));
        (lines, guard)
    }

    /// Returns the messages of a level, each with the fields that have one of these names.
    pub(crate) fn at(&self, level: Level, fields: &[&str]) -> Vec<String> {
        let named = |text: &&str| fields.iter().any(|name| text.starts_with(&format!("{name}=")));
        let text = |line: &LogLine| {
            let shown: Vec<&str> = line.fields.split('\n').filter(named).collect();
            [&[line.message.as_str()], shown.as_slice()].concat().join(" ")
        };
        self.0.lock().iter().filter(|line| line.level == level).map(text).collect()
    }
}

impl<S: Subscriber> Layer<S> for LogLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target().starts_with("kube_informer") {
            let mut line = LogLine { level: *event.metadata().level(), message: String::new(), fields: String::new() };
            event.record(&mut line);
            self.0.lock().push(line);
        }
    }
}

impl Visit for LogLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.fields.push_str(&format!("{name}={value:?}\n")),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn start_sync_and_stop_are_one_info_line_each() {
    let (lines, _capturing) = LogLines::capture();
    let script = Script::new().list("10", ["web/a@1", "web/b@2"]).watch([Fail(gone())]);
    let informer = TestInformer::start(script.list("20", ["web/a@1"]).watch([StayOpen]));
    informer.delivered_through("20").await;
    informer.stop().await;
    assert_eq!(
        lines.at(Level::INFO, &["objects"]),
        ["informer started", "informer synced objects=2", "informer stopped"]
    );
}

#[tokio::test(start_paused = true)]
async fn each_list_and_each_retry_is_one_debug_line() {
    let (lines, _capturing) = LogLines::capture();
    let script = Script::new()
        .list_refused(busy())
        .list("10", ["web/a@1"])
        .watch([modified("web/a@11"), pause(30.0)])
        .watch_refused(unreachable())
        .list("12", []) // Answers which version is the newest.
        .watch([pause(30.0), Fail(gone())])
        .list_refused(status(503, "ServiceUnavailable"))
        .list("20", ["web/a@11"])
        .watch([StayOpen]);
    let informer = TestInformer::start(script);
    informer.delivered_through("20").await;
    informer.script.asks(9).await;
    informer.stop().await;
    assert_eq!(
        lines.at(Level::DEBUG, &["reason", "resource_version"]),
        [
            "listing reason=first",
            "waiting before the next attempt",
            "listing reason=first",
            "watch ended; opening another one resource_version=11",
            "waiting before the next attempt",
            "listing reason=expired",
            "waiting before the next attempt",
            "listing reason=expired",
        ]
    );
}
