//! The clients in Rust, each used as its documentation recommends.

mod kube_rs;
mod ours;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Config;
use kube::api::{ApiResource, GroupVersionKind};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::io::AsyncReadExt as _;

use crate::Error;
use crate::line::Line;

/// How often a client prints its state, if it has changed.
const TICK: Duration = Duration::from_millis(50);

/// The client.
#[derive(Subcommand)]
pub(crate) enum Client {
    /// kube-informer.
    Ours(Options),
    /// kube-rs's reflector.
    KubeRs(Options),
}

/// The collection to watch.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The kubeconfig for the server.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Watch widgets, a custom resource, instead of config maps.
    #[arg(long)]
    widgets: bool,
    /// Watch one namespace instead of all.
    #[arg(long)]
    namespace: Option<String>,
    /// Watch only objects with these labels.
    #[arg(long)]
    selector: Option<String>,
    /// Let kube-rs use a streaming list, which is not its default.
    #[arg(long)]
    streaming: bool,
}

impl Client {
    pub(crate) async fn run(self) -> Result<(), Error> {
        let mut input = tokio::io::stdin();
        let mut nothing = Vec::new();
        let followed = async {
            match &self {
                Self::Ours(options) => ours::follow(options).await,
                Self::KubeRs(options) => kube_rs::follow(options).await,
            }
        };
        tokio::select! {
            ended = input.read_to_end(&mut nothing) => ended.map(|_| ()).map_err(Error::from),
            failed = followed => failed,
        }
    }
}

async fn config(path: &Path) -> Result<Config, Error> {
    let kubeconfig = Kubeconfig::read_from(path)?;
    Ok(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}

fn widgets() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("demo.example.com", "v1", "Widget"), "widgets")
}

/// Returns the content of a config map.
fn content(map: &ConfigMap) -> &str {
    map.data.as_ref().and_then(|data| data.get("writes")).map_or("", String::as_str)
}

/// Prints the state whenever it has changed.
async fn report(mut look: impl FnMut() -> Line) -> Result<(), Error> {
    let mut ticks = tokio::time::interval(TICK);
    let mut last = None;
    loop {
        ticks.tick().await;
        let line = look();
        if last.as_ref() != Some(&line) {
            println!("{}", serde_json::to_string(&line)?);
            last = Some(line);
        }
    }
}
