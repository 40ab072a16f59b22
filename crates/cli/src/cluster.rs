//! The cluster that a command talks to, and its credentials.

use std::env;
use std::path::PathBuf;

use kube_client::Client;
use kube_client::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::failure::Failure;

#[derive(Clone, clap::Args)]
pub(crate) struct Choice {
    /// The kubeconfig to use; otherwise $KUBECONFIG, ~/.kube/config, or the cluster this runs in.
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use; otherwise its current one.
    #[arg(long, help_heading = "Cluster")]
    context: Option<String>,
    /// Use the cluster this runs in, as the service account of this pod.
    #[arg(long, help_heading = "Cluster", conflicts_with_all = ["kubeconfig", "context"])]
    in_cluster: bool,
}

/// A client for a cluster.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    /// The URL of the API server, for messages.
    pub(crate) url: String,
}

impl Choice {
    /// Returns true if the arguments name a cluster. `demo` and `top` use a real cluster only in this case.
    pub(crate) fn is_given(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some() || self.in_cluster
    }

    /// Returns a client that does not retry; the informer retries.
    pub(crate) async fn connect(self) -> Result<Cluster, Failure> {
        let config = self.config().await?;
        let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = kube_informer::client_from(config);
        Ok(Cluster { client: client.map_err(|error| Failure::new(format!("cannot use {url}"), error))?, url })
    }

    async fn config(self) -> Result<Config, Failure> {
        if self.in_cluster {
            return Config::incluster().map_err(|error| {
                let failure = Failure::new("cannot use the cluster this runs in", error);
                failure.hint("--in-cluster is for pods that have a service account; elsewhere name a --kubeconfig")
            });
        }
        let title = match &self.kubeconfig {
            Some(file) => format!("the kubeconfig {}", file.display()),
            None => "the kubeconfig".to_owned(),
        };
        let cannot = |error| Failure::new(format!("cannot use {title}"), error);
        let unread = |error| {
            cannot(error).hint("check the path, and that this is a kubeconfig: --kubeconfig FILE or $KUBECONFIG")
        };
        let Some(kubeconfig) = self.read().map_err(unread)? else {
            return match Config::incluster() {
                Ok(config) if self.context.is_none() => Ok(config),
                _ => Err(Failure::plain("cannot find a cluster: no kubeconfig is named in $KUBECONFIG, none is at \
                    ~/.kube/config, and this does not run in a cluster")
                    .hint("name one with --kubeconfig FILE; `informer serve --kubeconfig-out FILE` makes one, and `informer demo` needs none")),
            };
        };
        check_context(&title, &kubeconfig, self.context.as_deref())?;
        let options = KubeConfigOptions { context: self.context, ..KubeConfigOptions::default() };
        Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(cannot)
    }

    /// Reads the kubeconfig that the arguments or `$KUBECONFIG` name, or the default one.
    ///
    /// Returns `None` if nothing names a kubeconfig and `~/.kube/config` does not exist.
    fn read(&self) -> Result<Option<Kubeconfig>, KubeconfigError> {
        if let Some(file) = &self.kubeconfig {
            return Kubeconfig::read_from(file).map(Some);
        }
        let named = env::var_os("KUBECONFIG").is_some_and(|paths| !paths.is_empty());
        let usual = || env::home_dir().is_some_and(|home| home.join(".kube/config").exists());
        if named || usual() { Kubeconfig::read().map(Some) } else { Ok(None) }
    }
}

/// Checks that the kubeconfig has the wanted context, or a current context if none is wanted.
fn check_context(title: &str, kubeconfig: &Kubeconfig, wanted: Option<&str>) -> Result<(), Failure> {
    let current = kubeconfig.current_context.as_deref().filter(|name| !name.is_empty());
    let known: Vec<&str> = kubeconfig.contexts.iter().map(|context| context.name.as_str()).collect();
    let failure = match wanted.or(current) {
        Some(name) if known.contains(&name) => return Ok(()),
        Some(name) => Failure::plain(format!("{title} has no context {name:?}")),
        None => Failure::plain(format!("{title} has no current context")),
    };
    Err(match known.as_slice() {
        [] => failure.hint("it has no contexts at all; is it the right file?"),
        [one] => failure.hint(format!("the only one is {one}: --context {one}")),
        [first, ..] => failure.hint(format!("it has {}; name one: --context {first}", known.join(", "))),
    })
}
