//! The clients that are measured, each in a process of its own.

mod cache;
mod connection;
mod floor;
mod kube_rs;
mod measure;
mod ours;
mod scenario;
mod told;
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

/// Whatever went wrong, nobody can do more than read it.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// Nothing that is measured takes longer; what does has lost something.
const PATIENCE: Duration = Duration::from_secs(900);

/// Who is measured.
#[derive(Subcommand)]
pub(crate) enum Client {
    /// Our informer of whole objects.
    Typed(Options),
    /// Our informer of what a controller reads of a pod.
    View(Options),
    /// Our informer of compressed objects.
    Compact(Options),
    /// kube-rs's reflector of whole objects.
    KubeRs(Options),
    /// Nobody: bytes are read and dropped. What is left of the others' figures is their own.
    Floor(Options),
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// The first sync by a stream, events, reads, a relist, and rest.
    Streamed,
    /// The first sync by pages.
    Listed,
    /// Events with ten handlers.
    Ten,
    /// Events while one of two handlers never returns.
    Stuck,
    /// How long after it was sent an event is told.
    Latency,
    /// Reads by key alone, of as many objects as there are.
    Reads,
}

#[derive(Args)]
pub(crate) struct Options {
    /// Where the server is, such as http://127.0.0.1:8080.
    #[arg(long)]
    server: String,
    /// How many objects it has.
    #[arg(long)]
    objects: usize,
    #[arg(long, value_enum, default_value_t = Scenario::Streamed)]
    scenario: Scenario,
    #[arg(long, value_enum, default_value_t = Kind::Pods)]
    kind: Kind,
    /// How many events: 50,000, or 20,000 for ten handlers.
    #[arg(long)]
    events: Option<usize>,
    /// How many events while a handler is stuck.
    #[arg(long, default_value_t = 100_000)]
    stuck_events: usize,
    /// How many objects are read by their keys: all of them.
    #[arg(long)]
    keys: Option<usize>,
    /// How long to rest (5), or to measure latency (10).
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
