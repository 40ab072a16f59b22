//! A candidate in an election, over a network of its own.

use std::sync::Arc;
use std::time::Duration;

use kube_controller::{ElectionSettings, LeaderElector, Term};
use kube_embedded_apiserver::ApiServer;
use kube_informer::CancellationToken;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::network::{Mode, Network};

pub(crate) const LEASE: &str = "default/lead";

pub(crate) fn settings() -> ElectionSettings {
    ElectionSettings { seed: Some(1), unique_identity: false, ..Default::default() }
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A candidate that runs in a task of its own.
pub(crate) struct Candidate {
    pub(crate) elector: Arc<LeaderElector>,
    pub(crate) network: Network,
    pub(crate) cancel: CancellationToken,
    /// True while the future of its run is not polled.
    pub(crate) frozen: watch::Sender<bool>,
    pub(crate) terms: Arc<Mutex<Vec<(Term, Instant)>>>,
    pub(crate) heard: Arc<Mutex<Vec<String>>>,
    pub(crate) task: JoinHandle<()>,
}

impl Candidate {
    pub(crate) fn new(server: &ApiServer, identity: &str, seed: u64) -> Self {
        Self::with(server, identity, seed, settings())
    }

    pub(crate) fn with(server: &ApiServer, identity: &str, seed: u64, settings: ElectionSettings) -> Self {
        Self::connected(server, identity, seed, settings, |elector| elector)
    }

    pub(crate) fn connected(
        server: &ApiServer,
        identity: &str,
        seed: u64,
        mut settings: ElectionSettings,
        connect: impl FnOnce(LeaderElector) -> LeaderElector,
    ) -> Self {
        let network = Network::seeded(seed);
        let (cancel, terms) = (CancellationToken::new(), Arc::<Mutex<Vec<_>>>::default());
        let heard = Arc::<Mutex<Vec<String>>>::default();
        settings.seed = Some(seed);
        let elector = LeaderElector::new(network.client(server), LEASE, identity, settings).unwrap();
        let hears = heard.clone();
        let elector = Arc::new(connect(elector).on_new_leader(move |leader| hears.lock().push(leader.to_owned())));
        let (runs, stops, begun) = (elector.clone(), cancel.clone(), terms.clone());
        let run = async move {
            let lead = |term: Term| {
                begun.lock().push((term.clone(), Instant::now()));
                async move {
                    term.ending().await;
                    // It finishes its work.
                    sleep(secs(3)).await;
                }
            };
            runs.run(stops, lead).await;
        };
        let frozen = watch::Sender::new(false);
        #[allow(clippy::disallowed_methods, reason = "each test ends its candidates")]
        let task = tokio::spawn(freezing(frozen.subscribe(), run));
        Self { elector, network, cancel, frozen, terms, heard, task }
    }

    pub(crate) fn leads(&self) -> bool {
        self.elector.is_leader()
    }

    /// Freezes the candidate, as if its machine stood still: its future is not polled, and its task gets no answers.
    pub(crate) fn freeze(&self) {
        self.network.set(Mode::Stalled);
        self.frozen.send_replace(true);
    }

    pub(crate) fn thaw(&self) {
        self.network.set(Mode::Open);
        self.frozen.send_replace(false);
    }

    pub(crate) fn valid_terms(&self) -> Vec<Term> {
        self.terms.lock().iter().map(|(term, _)| term.clone()).filter(Term::is_valid).collect()
    }
}

/// Polls a future only while it is not frozen.
async fn freezing(mut frozen: watch::Receiver<bool>, run: impl Future<Output = ()>) {
    let mut run = std::pin::pin!(run);
    loop {
        if frozen.wait_for(|frozen| !frozen).await.map(drop).is_err() {
            return;
        }
        let freezes = async { frozen.wait_for(|frozen| *frozen).await.map(drop) };
        tokio::select! {
            biased;
            _ = freezes => {}
            () = &mut run => return,
        }
    }
}

pub(crate) fn lease(server: &ApiServer) -> Value {
    server.get("leases.coordination.k8s.io", Some("default"), "lead").unwrap()["spec"].clone()
}

pub(crate) fn lease_holder(server: &ApiServer) -> Option<String> {
    let lease = server.get("leases.coordination.k8s.io", Some("default"), "lead").ok()?;
    lease["spec"]["holderIdentity"].as_str().map(str::to_owned)
}
