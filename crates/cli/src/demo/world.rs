//! What is followed: a cluster that was named, or one that is made on the spot.

use std::io::{self, IsTerminal as _, Write as _};

use kube_client::Client;
use kube_embedded_apiserver::{ApiServer, Verb, Workload};
use parking_lot::Mutex;
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use crate::cluster::Cluster;
use crate::view::count;

/// How many writes a second a small cluster sees.
const RATE: f64 = 8.0;
/// How many a large one sees at most.
const MOST: f64 = 100.0;

/// What is followed.
pub(super) struct World {
    pub(super) client: Client,
    /// What it is, in a few words.
    pub(super) title: String,
    embedded: Option<Embedded>,
}

struct Embedded {
    server: ApiServer,
    /// What is to happen in it, until it happens.
    workload: Mutex<Option<Workload>>,
    rate: f64,
    seed: u64,
}

impl World {
    pub(super) fn real(cluster: Cluster) -> Self {
        let title = format!("{}, read only", cluster.url);
        Self { client: cluster.client, title, embedded: None }
    }

    /// A server in this process with about so many pods, most of which run. It takes a while if they are many; who waits can do
    /// something else meanwhile.
    pub(super) async fn embedded(pods: usize, seed: u64) -> Self {
        let server = ApiServer::builder().seed(seed).garbage_collection(true).build();
        // Some three in five are wanted; the others are on their way out when deployments roll. A workload begins with half of what
        // it may have, and up to ten more.
        let wanted = (pods * 3).div_ceil(5);
        let nodes = (pods / 30).clamp(3, 10);
        let mut workload = Workload::new(seed).nodes(nodes).pods((wanted * 2).saturating_sub(10).max(wanted));
        let mut progress = Progress::new(pods);
        // Each is scheduled and then starts; some are still on their way when the curtain rises, and of very many most.
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

    /// Where chance comes from, if it is ours.
    pub(super) fn seed(&self) -> Option<u64> {
        self.embedded.as_ref().map(|embedded| embedded.seed)
    }

    /// Lets things happen in it; in a real cluster they happen by themselves.
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

/// Says how far the making of a large cluster is: on stderr, if somebody looks.
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
            let _ = write!(io::stderr(), "\rmaking a cluster: {percent} %");
        }
    }

    fn ends(&self) {
        if self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
