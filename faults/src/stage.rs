//! The server of a row, and the steps of a fault.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube_embedded_apiserver::{ApiServer, Fault, FaultId, HttpServer, Saved, Tls, Verb};
use tokio::time::Instant;

use crate::Error;
use crate::proxy::Proxy;
use crate::step::{Certificate, Setup, Step};
use crate::truth::Truth;

/// How often the server's requests and changes are recorded.
const TICK: Duration = Duration::from_millis(20);
/// How long a watch is delayed by `Step::Hold`.
const HELD: Duration = Duration::from_millis(500);
/// The time between two changes.
const CHANGE: Duration = Duration::from_millis(100);
/// How long to wait for a fault that may not be injected.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server with changing objects, and the connection to it.
pub(crate) struct Stage {
    pub(crate) server: ApiServer,
    pub(crate) truth: Truth,
    /// The number of requests over time.
    pub(crate) requests: Vec<(f64, u64)>,
    saved: Option<Saved>,
    http: Option<HttpServer>,
    address: SocketAddr,
    tls: Option<Tls>,
    proxy: Option<Proxy>,
    changes: bool,
    /// True if a step has injected a fault into responses.
    spoils: bool,
    /// The delay of the next watch, which is not a fault of the row.
    held: Option<FaultId>,
    last_change: Instant,
    kubeconfig: PathBuf,
    /// The server's revision at the last look.
    revision: u64,
}

impl Stage {
    pub(crate) async fn new(setup: &Setup, seed: u64, kubeconfig: &Path) -> Result<Self, Error> {
        let mut builder = ApiServer::builder()
            .seed(seed)
            .streaming_lists(setup.streaming)
            .bookmark_interval(Duration::from_secs(setup.bookmarks))
            // The server keeps all events until a step compacts them.
            .history(100_000)
            .history_bytes(1 << 30);
        if let Some(events) = setup.max_lag {
            builder = builder.max_watch_lag(events);
        }
        if let Some(objects) = setup.pace {
            builder = builder.initial_pace(objects, CHANGE);
        }
        let server = builder.build();
        let truth = Truth::new(&server, setup.followed, seed, setup.objects, setup.bytes)?;
        let tls = setup.tls.then(Tls::generate).transpose()?;
        let http = match &tls {
            Some(tls) => server.serve_tls("127.0.0.1:0", tls.clone()).await?,
            None => server.serve("127.0.0.1:0").await?,
        };
        let address = http.addr();
        let proxy = if setup.wire { Some(Proxy::listen(address).await?) } else { None };
        let reached = proxy.as_ref().map_or(address, Proxy::address);
        std::fs::write(kubeconfig, http.kubeconfig().replace(&address.to_string(), &reached.to_string()))?;
        Ok(Self {
            revision: server.revision(),
            server,
            truth,
            requests: Vec::new(),
            saved: None,
            http: Some(http),
            address,
            tls,
            proxy,
            changes: true,
            spoils: false,
            held: None,
            last_change: Instant::now(),
            kubeconfig: kubeconfig.to_owned(),
        })
    }

    /// Runs steps one after the other.
    pub(crate) async fn perform(&mut self, steps: &[Step]) -> Result<(), Error> {
        for step in steps {
            self.step(step).await?;
            self.look()?;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<(), Error> {
        match step {
            Step::Fault(fault) => self.spoil(fault.clone()),
            Step::Clear => self.server.faults().clear(),
            Step::Disconnect => self.server.disconnect_watches(),
            Step::Burst(changes) => {
                for _ in 0..*changes {
                    self.truth.random_change()?;
                }
            }
            Step::Hold => {
                let held = Fault::delay(HELD).verb(Verb::Watch).times(1);
                self.held = Some(self.server.faults().add(held));
            }
            Step::Compact => self.server.compact(),
            Step::Restart(history) => self.server.restart(*history),
            Step::Stop => {
                if let Some(http) = self.http.take() {
                    http.stop().await;
                }
            }
            Step::Serve(certificate) => self.http = Some(self.serve(*certificate).await?),
            Step::Wait(seconds) => self.pass(Duration::from_secs_f64(*seconds)).await?,
            Step::Happens(kind, times) => {
                let start = Instant::now();
                while self.server.faults().count(kind) < *times && start.elapsed() < PATIENCE {
                    self.pass(TICK).await?;
                }
            }
            Step::Save => self.saved = Some(self.server.save()),
            Step::Restore => {
                let saved = self.saved.as_ref().ok_or("no state was saved")?;
                self.server.restore(saved);
                self.truth.reload()?;
            }
            Step::GoDead => self.proxy.iter().for_each(Proxy::go_dead),
            Step::Pause => self.changes = false,
            Step::Resume => self.changes = true,
            Step::Do(work) => work(self)?,
        }
        Ok(())
    }

    async fn serve(&self, certificate: Certificate) -> Result<HttpServer, Error> {
        Ok(match (&self.tls, certificate) {
            (None, _) => self.server.serve(self.address).await?,
            (Some(tls), Certificate::Good) => self.server.serve_tls(self.address, tls.clone()).await?,
            (Some(_), Certificate::Expired) => self.server.serve_tls(self.address, Tls::expired()?).await?,
        })
    }

    /// Waits, and changes objects meanwhile.
    pub(crate) async fn pass(&mut self, duration: Duration) -> Result<(), Error> {
        let end = Instant::now() + duration;
        loop {
            if self.changes && self.last_change.elapsed() >= CHANGE {
                self.last_change = Instant::now();
                self.truth.random_change()?;
            }
            self.look()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            tokio::time::sleep(left.min(TICK)).await;
        }
    }

    /// Injects a fault into responses.
    pub(crate) fn spoil(&mut self, fault: Fault) {
        self.spoils = true;
        self.server.faults().add(fault);
    }

    /// Returns true if a response was faulty, or if the fault affects the server as a whole.
    pub(crate) fn met(&self) -> bool {
        let fired = self.server.faults().fired();
        !self.spoils || fired.iter().any(|firing| firing.request != 0 && Some(firing.fault) != self.held)
    }

    /// Stops changing objects. Later changes are the server's own, and are still recorded.
    pub(crate) fn quieten(&mut self) {
        self.changes = false;
    }

    /// Records requests and the server's own changes.
    fn look(&mut self) -> Result<(), Error> {
        // Recorded requests are cleared, so that many requests do not slow this down. Their ids continue.
        if let Some(last) = self.server.requests().last() {
            self.requests.push((self.truth.now(), last.id));
            self.server.clear_requests();
        }
        if self.server.revision() != self.revision {
            self.revision = self.server.revision();
            if !self.changes {
                self.truth.reload()?;
            }
        }
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Ignored: a temporary file that cannot be removed does no harm.
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}
