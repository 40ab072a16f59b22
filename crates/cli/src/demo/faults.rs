//! Trouble on purpose, and how long it takes until all is well again.

use std::sync::Arc;
use std::time::Duration;

use kube_embedded_apiserver::{Action, ApiServer, Fault, Verb};
use kube_informer::{Health, HealthChanges};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::program::Program;
use super::teller::Teller;
use crate::view::{Mark, span};

/// How long nothing goes wrong between two faults.
const CALM: Duration = Duration::from_secs(1);
/// Longer than any recovery takes; then the next fault comes all the same, and the summary says so.
const PATIENCE: Duration = Duration::from_secs(30);

/// What can go wrong.
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
            Self::Forgotten => "410 Gone, and a delete that nobody saw",
            Self::Away => "503 Service Unavailable",
            Self::Busy => "429 Too Many Requests, come back in a second",
            Self::Silent => "silent connection",
        }
    }
}

/// A fault that was let happen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Injected {
    pub(super) kind: Kind,
    /// After how long every informer followed the server again; `None` if not yet.
    pub(super) recovered: Option<Duration>,
}

pub(super) type Record = Arc<Mutex<Vec<Injected>>>;

/// Lets things go wrong.
pub(super) struct Faults {
    server: ApiServer,
    informers: Vec<HealthChanges>,
    teller: Teller,
    record: Record,
}

/// Lets things go wrong in turn: when somebody asks for it, and if it is wanted again and again.
pub(super) async fn run(faults: Option<Faults>, again_and_again: bool, mut asked: mpsc::Receiver<()>) {
    let Some(mut faults) = faults else { return std::future::pending().await };
    faults.calm_down().await;
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
    pub(super) fn new(server: ApiServer, program: &Program, teller: Teller) -> Self {
        Self { server, informers: program.changes(), teller, record: Record::default() }
    }

    pub(super) fn record(&self) -> Record {
        self.record.clone()
    }

    /// Waits until everything is followed.
    async fn calm_down(&mut self) {
        for informer in &mut self.informers {
            // One that has ended does not come back.
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
        self.spoil(kind);
        let recovered = timeout(PATIENCE, async {
            for (informer, before) in self.informers.iter_mut().zip(watches) {
                let _ = informer.wait_for(|health| health.counts.watches > before && health.is_watching()).await;
            }
        });
        match recovered.await {
            Ok(()) => {
                let took = started.elapsed();
                self.record.lock()[at].recovered = Some(took);
                self.teller.tell(Mark::Note, format!("all is followed again, {} later", span(took)));
            }
            Err(_) => self.teller.tell(Mark::Failed, format!("not everything is followed {} later", span(PATIENCE))),
        }
    }

    /// What goes wrong does so for the next watch of pods; all watches are cut, so that there is a next one.
    fn spoil(&self, kind: Kind) {
        let next = |fault: Fault| self.server.faults().add(fault.verb(Verb::Watch).resource("pods").times(1));
        match kind {
            Kind::Disconnected => {
                self.teller.tell(Mark::Note, "the connection breaks: the watch goes on where it was".into());
            }
            Kind::Forgotten => {
                next(Fault::status(503));
                let pods = self.server.list("pods").map(|(_, pods)| pods).unwrap_or_default();
                let victim = pods.iter().find_map(settled);
                let who = victim.map_or_else(String::new, |(namespace, name)| format!("{namespace}/{name} goes and "));
                let text = format!("the server is away for a moment; meanwhile {who}history is lost");
                self.teller.tell(Mark::Note, text);
                self.server.disconnect_watches();
                if let Some((namespace, name)) = victim {
                    // If it went by itself just now, all the better.
                    let _ = self.server.delete("pods", Some(namespace), name);
                }
                self.server.compact();
                return;
            }
            Kind::Away => {
                next(Fault::status(503));
                self.teller.tell(Mark::Note, "the server is away: it answers 503".into());
            }
            Kind::Busy => {
                next(Fault::too_many_requests(Some(1)));
                self.teller.tell(Mark::Note, "the server is busy: it answers 429, come back in a second".into());
            }
            Kind::Silent => {
                next(Fault::new(Action::NoAnswer));
                self.teller.tell(Mark::Note, "the connection falls silent: there is no answer at all".into());
            }
        }
        self.server.disconnect_watches();
    }
}

/// Namespace and name of a pod that would stay if nobody touched it.
fn settled(pod: &Value) -> Option<(&str, &str)> {
    let metadata = &pod["metadata"];
    let stays = pod["status"]["phase"] == "Running" && metadata["deletionTimestamp"].is_null();
    stays.then_some((metadata["namespace"].as_str()?, metadata["name"].as_str()?))
}

/// How the faults so far went, in a few words.
pub(super) fn note(record: &[Injected]) -> String {
    let (Some(last), faults) = (record.last(), record.len()) else { return String::new() };
    let word = if faults == 1 { "fault" } else { "faults" };
    match last.recovered {
        Some(took) => format!("{faults} {word}, the last was over after {}", span(took)),
        None => format!("{faults} {word}, the last is not over"),
    }
}
