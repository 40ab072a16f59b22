//! The cluster that the demo follows: a real one, or an embedded server.

use std::io::{self, IsTerminal as _, Write as _};

use kube_client::Client;
use kube_embedded_apiserver::{ApiServer, Verb, Workload};
use parking_lot::Mutex;
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use crate::cluster::Cluster;
use crate::view::count;

/// Writes per second to a small embedded cluster.
const RATE: f64 = 8.0;
/// The most writes per second to a large embedded cluster.
const MOST: f64 = 100.0;

/// The cluster that the demo follows.
pub(super) struct World {
    pub(super) client: Client,
    /// A short description for the title.
    pub(super) title: String,
    embedded: Option<Embedded>,
}

struct Embedded {
    server: ApiServer,
    /// The workload; `None` once it runs.
    workload: Mutex<Option<Workload>>,
    rate: f64,
    seed: u64,
}

impl World {
    pub(super) fn real(cluster: Cluster) -> Self {
        let title = format!("{}, read-only", cluster.url);
        Self { client: cluster.client, title, embedded: None }
    }

    /// Creates a server in this process with about this number of pods, most of which run.
    ///
    /// It yields often, so that the caller can wait for something else too: a large cluster takes seconds.
    pub(super) async fn embedded(pods: usize, seed: u64) -> Self {
        let server = ApiServer::builder().seed(seed).garbage_collection(true).build();
        // 60% of the pods are wanted; the others are being replaced when deployments roll. A workload starts with half
        // of its limit, plus up to ten pods.
        let wanted = (pods * 3).div_ceil(5);
        let nodes = (pods / 30).clamp(3, 10);
        let mut workload = Workload::new(seed).nodes(nodes).pods((wanted * 2).saturating_sub(10).max(wanted));
        let mut progress = Progress::new(pods);
        // Each pod needs one step to be scheduled and one to start. In a large cluster most pods are still pending
        // afterwards.
        let settling = (pods * 3).min(pods + 10_000);
        let mut made = 0;
        while made < wanted {
            let Some(step) = workload.step(&server) else { continue };
            made += usize::from(step.resource == "pods" && step.verb == Verb::Create);
            progress.shows(made, wanted + settling).await;
        }
        let mut workload = workload.pods((pods * 4).div_ceil(5));
        for step in 0..settling {
            workload.step(&server);
            progress.shows(made + step, wanted + settling).await;
        }
        progress.ends();
        let rate = (pods as f64 / 200.0).clamp(RATE, MOST);
        let title = format!("embedded server, {} pods", count(pods as u64));
        let embedded = Embedded { server: server.clone(), workload: Mutex::new(Some(workload)), rate, seed };
        Self { client: server.client(), title, embedded: Some(embedded) }
    }

    pub(super) fn server(&self) -> Option<&ApiServer> {
        self.embedded.as_ref().map(|embedded| &embedded.server)
    }

    /// Returns the seed of the embedded server; `None` for a real cluster.
    pub(super) fn seed(&self) -> Option<u64> {
        self.embedded.as_ref().map(|embedded| embedded.seed)
    }

    /// Runs the workload of the embedded server. In a real cluster it does nothing, for ever.
    pub(super) async fn live(&self) {
        let life = self.embedded.as_ref().and_then(|embedded| Some((embedded, embedded.workload.lock().take()?)));
        match life {
            Some((embedded, workload)) => {
                workload.run(embedded.server.clone(), embedded.rate, CancellationToken::new()).await;
            }
            None => std::future::pending().await,
        }
    }
}

/// Prints on stderr, if that is a terminal, how much of a large cluster is created.
struct Progress {
    shown: Option<usize>,
}

impl Progress {
    fn new(pods: usize) -> Self {
        let wanted = pods > 1_000 && io::stderr().is_terminal();
        Self { shown: wanted.then_some(usize::MAX) }
    }

    async fn shows(&mut self, done: usize, of: usize) {
        if done.is_multiple_of(64) {
            yield_now().await;
        }
        let percent = (done * 100 / of.max(1)).min(100);
        if self.shown.is_some_and(|shown| shown != percent) {
            self.shown = Some(percent);
            let _ = write!(io::stderr(), "\rcreating a cluster: {percent} %");
        }
    }

    fn ends(&self) {
        if self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
