//! How every example finds a server: an embedded one with some life in it, or a real one if asked.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kube_client::Client;
use kube_client::config::{Config, KubeConfigOptions, Kubeconfig};
use kube_embedded_apiserver::ApiServer;
use serde_json::json;
use tokio::task::JoinSet;

/// Where the objects come from. With neither option an API server is embedded, and no cluster is needed.
#[derive(Args)]
pub struct Connection {
    /// Use the cluster of this kubeconfig, usually ~/.kube/config.
    #[arg(long, value_name = "FILE", conflicts_with = "in_cluster")]
    pub kubeconfig: Option<PathBuf>,
    /// Use the cluster this program runs in.
    #[arg(long)]
    pub in_cluster: bool,
    /// End after so many seconds; otherwise with Ctrl-C.
    #[arg(long = "for", value_name = "SECONDS")]
    pub seconds: Option<u64>,
}

/// A client, and what keeps the embedded server alive.
pub struct Connected {
    pub client: Client,
    _life: JoinSet<()>,
}

impl Connection {
    pub async fn connect(&self) -> Result<Connected, Box<dyn std::error::Error>> {
        let mut life = JoinSet::new();
        let client = if let Some(file) = &self.kubeconfig {
            let kubeconfig = Kubeconfig::read_from(file)?;
            let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
            kube_informer::client_from(config)?
        } else if self.in_cluster {
            kube_informer::client_from(Config::incluster()?)?
        } else {
            let server = ApiServer::new();
            let client = server.client();
            life.spawn(live(server));
            client
        };
        Ok(Connected { client, _life: life })
    }

    /// Waits until it is time to end.
    pub async fn until_the_end(&self) {
        let time = async {
            match self.seconds {
                Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = time => {}
        }
    }
}

/// Pods come, run and go.
async fn live(server: ApiServer) {
    for round in 0u64.. {
        let name = format!("web-{}", round % 5);
        let pod = |phase: &str| {
            json!({
                "metadata": {"name": name, "labels": {"app": "web"}},
                "spec": {"nodeName": format!("worker-{}", round % 2), "containers": [{"name": "web", "image": "web:1"}]},
                "status": {"phase": phase},
            })
        };
        let pods = ("pods", Some("default"));
        // What is there already, or gone already, is as good as done.
        let _ = server.delete(pods.0, pods.1, &name);
        let _ = server.create(pods.0, pods.1, pod("Pending"));
        tokio::time::sleep(Duration::from_millis(300)).await;
        let _ = server.update(pods.0, pods.1, pod("Running"));
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}
