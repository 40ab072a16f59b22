//! The measured clients, each in its own process.

mod cache;
mod connection;
mod floor;
mod kube_rs;
mod measure;
mod ours;
mod scenario;
mod event_counter;
mod view;

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::DynamicObject;
use kube_informer::{Compact, View};

use self::kube_rs::KubeRs;
use self::ours::Ours;
use self::view::PodView;
use crate::objects::Kind;

/// An error of the benchmark, which is only printed.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// The time limit. A client that takes longer has lost something.
const PATIENCE: Duration = Duration::from_secs(900);

/// The measured client.
#[derive(Subcommand)]
pub(crate) enum Client {
    /// kube-informer with whole objects.
    Typed(Options),
    /// kube-informer with the fields of a pod that a controller reads.
    View(Options),
    /// kube-informer with compressed objects.
    Compact(Options),
    /// kube-rs's reflector with whole objects.
    KubeRs(Options),
    /// No client: bytes are read and dropped. The difference from this floor is a client's own cost.
    Floor(Options),
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// The first sync by a streaming list, events, reads, a relist, and an idle period.
    Streamed,
    /// The first sync by pages.
    Listed,
    /// Events with ten handlers.
    Ten,
    /// Events while one of two handlers never returns.
    Stuck,
    /// The time from sending an event until the handler receives it.
    Latency,
    /// Only reads by key, for any number of objects.
    Reads,
}

#[derive(Args)]
pub(crate) struct Options {
    /// The URL of the server, such as http://127.0.0.1:8080.
    #[arg(long)]
    server: String,
    /// The number of objects that the server has.
    #[arg(long)]
    objects: usize,
    #[arg(long, value_enum, default_value_t = Scenario::Streamed)]
    scenario: Scenario,
    #[arg(long, value_enum, default_value_t = Kind::Pods)]
    kind: Kind,
    /// The number of events: 50,000, or 20,000 for ten handlers.
    #[arg(long)]
    events: Option<usize>,
    /// The number of events while a handler is stuck.
    #[arg(long, default_value_t = 100_000)]
    stuck_events: usize,
    /// How many objects are read by key [default: all].
    #[arg(long)]
    keys: Option<usize>,
    /// The seconds of the idle period (default 5), or of the latency measurement (default 10).
    #[arg(long)]
    duration_secs: Option<u64>,
}

impl Client {
    pub(crate) async fn run(self) -> Result<(), Error> {
        tokio::time::timeout(PATIENCE, self.measure()).await.map_err(|_| "not done within fifteen minutes")?
    }

    async fn measure(self) -> Result<(), Error> {
        match &self {
            Self::Typed(options) => match options.kind {
                Kind::Pods => scenario::run::<Ours<Pod>>(options).await,
                Kind::Nodes => scenario::run::<Ours<Node>>(options).await,
                Kind::ConfigMaps => scenario::run::<Ours<ConfigMap>>(options).await,
                Kind::Widgets => scenario::run::<Ours<DynamicObject>>(options).await,
            },
            Self::View(options) => match options.kind {
                Kind::Pods => scenario::run::<Ours<View<PodView>>>(options).await,
                Kind::Nodes | Kind::ConfigMaps | Kind::Widgets => Err("there is a view of pods only".into()),
            },
            Self::Compact(options) => match options.kind {
                Kind::Pods => scenario::run::<Ours<Compact<Pod>>>(options).await,
                Kind::Nodes => scenario::run::<Ours<Compact<Node>>>(options).await,
                Kind::ConfigMaps => scenario::run::<Ours<Compact<ConfigMap>>>(options).await,
                Kind::Widgets => scenario::run::<Ours<Compact<DynamicObject>>>(options).await,
            },
            Self::KubeRs(options) => match options.kind {
                Kind::Pods => scenario::run::<KubeRs<Pod>>(options).await,
                Kind::Nodes => scenario::run::<KubeRs<Node>>(options).await,
                Kind::ConfigMaps => scenario::run::<KubeRs<ConfigMap>>(options).await,
                Kind::Widgets => scenario::run::<KubeRs<DynamicObject>>(options).await,
            },
            Self::Floor(options) => floor::run(options).await,
        }
    }
}
