//! Injects faults into the embedded server, and measures how long informers take to recover.

use std::sync::Arc;
use std::time::Duration;

use kube_embedded_apiserver::{Action, ApiServer, Fault, Verb};
use kube_informer::{Health, HealthChanges};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::event_log::EventLog;
use super::program::Program;
use crate::view::{Mark, span};

/// The pause between the end of one fault and the next one.
const CALM: Duration = Duration::from_secs(1);
/// How long to wait for recovery. After that the next fault is injected, and the summary says that this one is not
/// over.
const PATIENCE: Duration = Duration::from_secs(30);

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Disconnected,
    Forgotten,
    Away,
    Busy,
    Silent,
}

impl Kind {
    pub(super) const ALL: [Self; 5] = [Self::Disconnected, Self::Forgotten, Self::Away, Self::Busy, Self::Silent];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Disconnected => "disconnect",
            Self::Forgotten => "410 Gone, and a missed delete",
            Self::Away => "503 Service Unavailable",
            Self::Busy => "429 Too Many Requests, with Retry-After: 1",
            Self::Silent => "silent connection",
        }
    }
}

/// A fault that was injected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Injected {
    pub(super) kind: Kind,
    /// How long it took until every informer watched again; `None` before that.
    pub(super) recovered: Option<Duration>,
}

pub(super) type Record = Arc<Mutex<Vec<Injected>>>;

/// Injects faults into a server.
pub(super) struct Faults {
    server: ApiServer,
    informers: Vec<HealthChanges>,
    event_log: EventLog,
    record: Record,
}

/// Injects the kinds of faults in turn: one for each request in `asked`, and one after each pause if `again_and_again`.
pub(super) async fn run(faults: Option<Faults>, again_and_again: bool, mut asked: mpsc::Receiver<()>) {
    let Some(mut faults) = faults else { return std::future::pending().await };
    faults.wait_until_watching().await;
    for kind in Kind::ALL.into_iter().cycle() {
        tokio::select! {
            biased;
            Some(()) = asked.recv() => {}
            () = tokio::time::sleep(CALM), if again_and_again => {}
            else => return std::future::pending().await,
        }
        faults.inject(kind).await;
    }
}

impl Faults {
    pub(super) fn new(server: ApiServer, program: &Program, event_log: EventLog) -> Self {
        Self { server, informers: program.changes(), event_log, record: Record::default() }
    }

    pub(super) fn record(&self) -> Record {
        self.record.clone()
    }

    /// Waits until every informer watches.
    async fn wait_until_watching(&mut self) {
        for informer in &mut self.informers {
            // Ignored: an informer that has ended does not watch again.
            let _ = informer.wait_for(Health::is_watching).await;
        }
    }

    async fn inject(&mut self, kind: Kind) {
        let watches: Vec<u64> = self.informers.iter_mut().map(|informer| informer.latest().counts.watches).collect();
        let started = Instant::now();
        let at = {
            let mut record = self.record.lock();
            record.push(Injected { kind, recovered: None });
            record.len() - 1
        };
        self.add_fault(kind);
        let recovered = timeout(PATIENCE, async {
            for (informer, before) in self.informers.iter_mut().zip(watches) {
                let _ = informer.wait_for(|health| health.counts.watches > before && health.is_watching()).await;
            }
        });
        match recovered.await {
            Ok(()) => {
                let took = started.elapsed();
                self.record.lock()[at].recovered = Some(took);
                self.event_log.log(Mark::Note, format!("all informers watch again, after {}", span(took)));
            }
            Err(_) => {
                self.event_log.log(Mark::Failed, format!("not all informers watch again after {}", span(PATIENCE)))
            }
        }
    }

    /// Prepares a fault for the next watch of pods, and cuts all watches, so that informers ask again.
    fn add_fault(&self, kind: Kind) {
        let next = |fault: Fault| self.server.faults().add(fault.verb(Verb::Watch).resource("pods").times(1));
        match kind {
            Kind::Disconnected => {
                self.event_log.log(Mark::Note, "the connection breaks: the watch resumes at its last version".into());
            }
            Kind::Forgotten => {
                next(Fault::status(503));
                let pods = self.server.list("pods").map(|(_, pods)| pods).unwrap_or_default();
                let victim = pods.iter().find_map(running_pod);
                let who =
                    victim.map_or_else(String::new, |(namespace, name)| format!("{namespace}/{name} is deleted and "));
                let text = format!("the server answers one request with 503; meanwhile {who}history is lost");
                self.event_log.log(Mark::Note, text);
                self.server.disconnect_watches();
                if let Some((namespace, name)) = victim {
                    // Ignored: the workload may have deleted the pod just now, which is as good.
                    let _ = self.server.delete("pods", Some(namespace), name);
                }
                self.server.compact();
                return;
            }
            Kind::Away => {
                next(Fault::status(503));
                self.event_log.log(Mark::Note, "the server is unavailable: it answers 503".into());
            }
            Kind::Busy => {
                next(Fault::too_many_requests(Some(1)));
                self.event_log.log(Mark::Note, "the server is busy: it answers 429 with Retry-After: 1".into());
            }
            Kind::Silent => {
                next(Fault::new(Action::NoAnswer));
                self.event_log.log(Mark::Note, "the connection falls silent: the server sends no answer".into());
            }
        }
        self.server.disconnect_watches();
    }
}

/// Returns namespace and name of a pod that runs and is not being deleted.
fn running_pod(pod: &Value) -> Option<(&str, &str)> {
    let metadata = &pod["metadata"];
    let stays = pod["status"]["phase"] == "Running" && metadata["deletionTimestamp"].is_null();
    stays.then_some((metadata["namespace"].as_str()?, metadata["name"].as_str()?))
}

/// Returns a short summary of the faults so far.
pub(super) fn note(record: &[Injected]) -> String {
    let (Some(last), faults) = (record.last(), record.len()) else { return String::new() };
    let word = if faults == 1 { "fault" } else { "faults" };
    match last.recovered {
        Some(took) => format!("{faults} {word}, the last recovered after {}", span(took)),
        None => format!("{faults} {word}, the last has not recovered"),
    }
}
