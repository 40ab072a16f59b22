//! Which cluster to talk to.

use std::path::PathBuf;

use kube_client::Client;
use kube_client::config::{Config, KubeConfigOptions, Kubeconfig};

use crate::failure::Failure;

#[derive(clap::Args)]
pub(crate) struct Choice {
    /// The kubeconfig to use; otherwise $KUBECONFIG, ~/.kube/config, or the cluster this runs in.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use; otherwise its current one.
    #[arg(long)]
    context: Option<String>,
}

/// A cluster that can be asked.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    /// Its address, for messages.
    pub(crate) url: String,
}

impl Choice {
    /// A client that leaves retrying to the informer.
    pub(crate) async fn connect(self) -> Result<Cluster, Failure> {
        let options = KubeConfigOptions { context: self.context, ..KubeConfigOptions::default() };
        let config = match &self.kubeconfig {
            Some(file) => {
                let what = || format!("cannot use the kubeconfig {}", file.display());
                let kubeconfig = Kubeconfig::read_from(file).map_err(|error| Failure::new(what(), error))?;
                let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
                config.map_err(|error| Failure::new(what(), error))?
            }
            None if options.context.is_some() => {
                let config = Config::from_kubeconfig(&options).await;
                config.map_err(|error| Failure::new("cannot use the kubeconfig", error))?
            }
            None => Config::infer().await.map_err(|error| {
                Failure::new("cannot find a cluster", error)
                    .hint("name one with --kubeconfig FILE, or try `informer demo`, which needs none")
            })?,
        };
        let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = kube_informer::client_from(config);
        Ok(Cluster { client: client.map_err(|error| Failure::new(format!("cannot use {url}"), error))?, url })
    }
}
