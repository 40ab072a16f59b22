//! Our cache, client-go's and kube-rs' of the same collections agree whenever no writes happen.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube_client::{Client, Config};
use kube_embedded_apiserver::{ApiServer, History};
use kube_informer_e2e::{Assets, Cluster, Proxy};
use tokio::time::Instant;

use crate::churn::{Churn, Size, WritesPaused};
use crate::peers::{Cache, Caches, ClientGo, Informers, Reflectors, kubectl};
use crate::server::{Collection, Objects, Server};

const SIZE: Size = Size { config_maps: 2_000, widgets: 500 };
/// The time limit for recovery: backoff grows with each failure.
const RECOVERY: Duration = Duration::from_secs(150);

/// All clients of a server.
struct Peers {
    server: Server,
    churn: Churn,
    informers: Informers,
    reflectors: Reflectors,
    /// `None` without Go.
    client_go: Option<ClientGo>,
    compared: usize,
}

impl Peers {
    /// Fills the server, and starts the clients with a kubeconfig.
    async fn start(
        assets: &Assets,
        server: Server,
        client: Config,
        kubeconfig: &Path,
        seed: u64,
    ) -> (Self, WritesPaused) {
        let (churn, silence) = Churn::start(server.clone(), SIZE, seed).await;
        let informers = Informers::start(kube_informer::client_from(client.clone()).unwrap()).await;
        let reflectors = Reflectors::start(Client::try_from(client).unwrap()).await;
        let client_go = match assets.follow() {
            Some(program) => Some(ClientGo::start(program, kubeconfig).await),
            None => {
                println!("side by side: without client-go, because go is not installed");
                None
            }
        };
        let mut peers = Self { server, churn, informers, reflectors, client_go, compared: 0 };
        peers.agree("start").await;
        (peers, silence)
    }

    async fn live(&self, silence: WritesPaused) {
        drop(silence);
        tokio::time::sleep(Duration::from_secs(2)).await;
    }

    /// Waits until every cache equals the server's state, while no writes happen.
    async fn agree(&mut self, after: &str) {
        let start = Instant::now();
        loop {
            let expected = self.truth().await;
            let caches = self.caches().await;
            let differs = caches.iter().find_map(|(name, cache)| differs(name, cache, &expected));
            // A write that timed out may still succeed later.
            match differs {
                None if self.truth().await == expected => {
                    self.compared += caches.values().map(Cache::len).sum::<usize>();
                    let seconds = start.elapsed().as_secs_f64();
                    println!("side by side: {} caches agree after {after}, in {seconds:.1} s", caches.len());
                    return;
                }
                differs => assert!(start.elapsed() < RECOVERY, "after {after}: {differs:?}"),
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    async fn caches(&mut self) -> Caches {
        let mut caches = self.informers.caches();
        caches.append(&mut self.reflectors.caches());
        if let Some(client_go) = &mut self.client_go {
            caches.append(&mut client_go.caches().await);
        }
        caches
    }

    /// Returns the config maps and widgets of the server.
    async fn truth(&self) -> [Cache; 2] {
        let config_maps = self.server.list(Collection::ConfigMaps).await.1;
        [cache_of(config_maps), cache_of(self.server.list(Collection::Widgets).await.1)]
    }

    async fn end(self, what: &str) {
        println!("side by side: {what}, {} writes, {} objects compared", self.churn.writes(), self.compared);
        self.churn.stop().await;
        self.informers.stop().await;
        if let Some(client_go) = self.client_go {
            client_go.stop().await;
        }
    }
}

fn cache_of(objects: Objects) -> Cache {
    let text = |object: &serde_json::Value, field: &str| object["metadata"][field].as_str().unwrap().to_owned();
    let entry = |(key, object)| (key, format!("{} {}", text(&object, "resourceVersion"), text(&object, "uid")));
    objects.into_iter().map(entry).collect()
}

/// Returns the first key at which a cache is wrong.
fn differs(name: &str, cache: &Cache, [config_maps, widgets]: &[Cache; 2]) -> Option<String> {
    let expected = if name.ends_with("widgets") { widgets } else { config_maps };
    let keys = expected.keys().chain(cache.keys());
    let key = { keys }.find(|key| cache.get(*key) != expected.get(*key))?;
    Some(format!("{name}: {key}: here {:?}, there {:?}", cache.get(key), expected.get(key)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_caches_agree_on_kube_apiserver() {
    let seed = crate::from_environment("E2E_SEED", 1);
    let assets = Assets::ready().unwrap();
    let mut cluster = Cluster::start(&assets).await.unwrap();
    println!("side by side: {cluster}");
    let server = Server::connect(cluster.operator().await.unwrap());
    server.define_widgets().await;
    let proxy = Proxy::start(cluster.port(), seed).await.unwrap();
    let client = cluster.reader(proxy.port()).await.unwrap();
    let kubeconfig = cluster.reader_kubeconfig(proxy.port()).unwrap();
    let (mut peers, silence) = Peers::start(&assets, server, client, &kubeconfig, seed).await;

    peers.live(silence).await;
    let silence = peers.churn.pause().await;
    peers.agree("churn").await;

    // This fault comes first, because backoff grows with each failure.
    proxy.refuse();
    peers.live(silence).await;
    cluster.compact().await.unwrap();
    cluster.kill_apiserver().await.unwrap();
    cluster.start_apiserver().await.unwrap();
    proxy.pass();
    let silence = peers.churn.pause().await;
    peers.agree("versions expired").await;

    peers.live(silence).await;
    cluster.kill_apiserver().await.unwrap();
    cluster.start_apiserver().await.unwrap();
    peers.live(peers.churn.pause().await).await;
    let silence = peers.churn.pause().await;
    peers.agree("a restart").await;

    peers.live(silence).await;
    proxy.cut_within(200_000);
    tokio::time::sleep(Duration::from_secs(5)).await;
    proxy.pass();
    let silence = peers.churn.pause().await;
    peers.agree("cut connections").await;

    if let Some(program) = assets.kubectl() {
        let (expected, caches) = (peers.truth().await, kubectl(&program, &cluster.kubeconfig()).await);
        assert_eq!(caches.iter().find_map(|(name, cache)| differs(name, cache, &expected)), None);
    }
    drop(silence);
    peers.end("kube-apiserver").await;
    proxy.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_caches_agree_on_the_embedded_server() {
    let seed = crate::from_environment("E2E_SEED", 1);
    let assets = Assets::ready().unwrap();
    let embedded = ApiServer::builder().seed(seed).build();
    let listening = embedded.serve("127.0.0.1:0").await.unwrap();
    let client = Config::new(listening.url().parse().unwrap());
    let kubeconfig = Kubeconfig::write(&listening.kubeconfig());
    let server = Server::connect(client.clone());
    server.define_widgets().await;
    let (mut peers, silence) = Peers::start(&assets, server, client, &kubeconfig.0, seed).await;

    peers.live(silence).await;
    let silence = peers.churn.pause().await;
    peers.agree("churn").await;

    peers.live(silence).await;
    embedded.disconnect_watches();
    let silence = peers.churn.pause().await;
    peers.agree("a disconnect").await;

    peers.live(silence).await;
    embedded.restart(History::Lost);
    peers.live(peers.churn.pause().await).await;
    let silence = peers.churn.pause().await;
    peers.agree("a restart").await;

    if let Some(program) = assets.kubectl() {
        let (expected, caches) = (peers.truth().await, kubectl(&program, &kubeconfig.0).await);
        assert_eq!(caches.iter().find_map(|(name, cache)| differs(name, cache, &expected)), None);
    }
    drop(silence);
    peers.end("the embedded server").await;
    listening.stop().await;
}

/// A kubeconfig in a temporary file.
struct Kubeconfig(PathBuf);

impl Kubeconfig {
    fn write(text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kube-informer-e2e-{}.kubeconfig", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
