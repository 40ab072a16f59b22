//! Finds the pod of a log file, also if the pod was deleted a short time ago.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Index, InformerOptions, InformerRequest, Projection, Selection, SharedInformer, SharedInformerFactory, View,
};
use serde::Deserialize;

/// How long a deleted pod can be found. An agent reads the last lines of a pod some seconds after its end.
pub const LINGERS: Duration = Duration::from_secs(60);
/// The kubelet names the log directory of a static pod by the value of this annotation, and not by the uid.
const MIRROR: &str = "kubernetes.io/config.mirror";
const BY_UID: &str = "uid";
const BY_CONTAINER: &str = "container";

/// The fields of a pod that the agent needs. Other fields are not stored.
#[derive(Deserialize)]
pub struct PodView {
    pub spec: SpecView,
    #[serde(default)]
    status: StatusView,
}

#[derive(Deserialize)]
pub struct SpecView {
    pub containers: Box<[ContainerView]>,
}

#[derive(Deserialize)]
pub struct ContainerView {
    pub name: Box<str>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct StatusView {
    init_container_statuses: Box<[ContainerStatusView]>,
    container_statuses: Box<[ContainerStatusView]>,
    ephemeral_container_statuses: Box<[ContainerStatusView]>,
}

/// The current container of a name, and the one before its last restart.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatusView {
    name: Box<str>,
    #[serde(rename = "containerID", default)]
    id: Option<Box<str>>,
    #[serde(default)]
    last_state: LastStateView,
}

#[derive(Deserialize, Default)]
struct LastStateView {
    terminated: Option<TerminatedView>,
}

#[derive(Deserialize)]
struct TerminatedView {
    #[serde(rename = "containerID", default)]
    id: Option<Box<str>>,
}

impl Projection for PodView {
    type Of = Pod;
}

/// A pod as the agent sees it.
pub type LoggedPod = View<PodView>;

/// Iterates over the ids of all containers of a pod, without the prefix of the runtime, each with the container's name.
fn container_ids(pod: &PodView) -> impl Iterator<Item = (&str, &str)> {
    let StatusView { init_container_statuses: init, container_statuses: main, ephemeral_container_statuses: debug } =
        &pod.status;
    init.iter().chain(main).chain(debug).flat_map(|status| {
        let last = status.last_state.terminated.as_ref().and_then(|last| last.id.as_deref());
        let ids = status.id.as_deref().into_iter().chain(last);
        ids.map(|id| (id.split_once("://").map_or(id, |(_, id)| id), &*status.name))
    })
}

/// Returns the uid, and the hash of a static pod.
fn uids(pod: &LoggedPod) -> Vec<String> {
    let mirror = pod.metadata().annotations().find(|(name, _)| *name == MIRROR).map(|(_, hash)| hash.to_owned());
    let uid = kube_informer::Object::id(pod).uid.to_owned();
    [uid].into_iter().chain(mirror).collect()
}

/// The container that wrote a log file, as the path of the file names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogSource {
    /// `/var/log/pods/<namespace>_<pod>_<uid>/<container>/<number>.log`
    Pod { uid: String, container: String },
    /// `/var/log/containers/<pod>_<namespace>_<container>-<container id>.log`
    Container { id: String },
}

impl LogSource {
    /// Returns the source of a log file; `None` if it is not the log of a container.
    pub fn of(path: &str) -> Option<Self> {
        let mut parts = path.rsplit('/');
        let (file, parent, grandparent) = (parts.next()?, parts.next()?, parts.next()?);
        let stem = file.strip_suffix(".log")?;
        if parent == "containers" {
            let (_, id) = stem.rsplit_once('-')?;
            return Some(Self::Container { id: id.to_owned() });
        }
        let (_, uid) = grandparent.rsplit_once('_')?;
        Some(Self::Pod { uid: uid.to_owned(), container: parent.to_owned() })
    }
}

/// What the agent adds to each line of a log.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Origin {
    pub namespace: String,
    pub pod: String,
    pub container: String,
    pub labels: BTreeMap<String, String>,
    /// True if the pod was deleted.
    pub deleted: bool,
}

/// The pods of one node, by uid and by container id.
pub struct Enricher {
    pods: SharedInformer<LoggedPod>,
    by_uid: Index<LoggedPod>,
    by_container: Index<LoggedPod>,
}

impl Enricher {
    /// Makes the informer of the pods of a node. The factory starts it.
    pub fn new(factory: &SharedInformerFactory, node: &str) -> Result<Self, Box<dyn Error>> {
        let request = InformerRequest::new()
            .select(Selection::new().fields(format!("spec.nodeName={node}"))?)
            .options(InformerOptions::new().linger(LINGERS));
        let pods = factory.informer_with::<LoggedPod>(request)?;
        let by_uid = pods.add_index(BY_UID, uids)?;
        let by_container = pods.add_index_with(BY_CONTAINER, |pod: &LoggedPod, add| {
            container_ids(pod).for_each(|(id, _)| add(id));
        })?;
        Ok(Self { pods, by_uid, by_container })
    }

    /// Returns the informer.
    pub fn pods(&self) -> &SharedInformer<LoggedPod> {
        &self.pods
    }

    /// Finds the pod of a log file by uid or container id, and never by name: the name may belong to another pod now.
    pub fn find(&self, source: &LogSource) -> Option<Origin> {
        let (index, live, value) = match source {
            LogSource::Pod { uid, .. } => (BY_UID, &self.by_uid, uid),
            LogSource::Container { id } => (BY_CONTAINER, &self.by_container, id),
        };
        // The cache first: a pod that is deleted in between is found among the lingering ones.
        if let Some(pod) = live.get(value).into_iter().next() {
            return origin(&pod, source, false);
        }
        let lingering = self.pods.lingering().by_index(index, value);
        origin(lingering.first()?, source, true)
    }
}

fn origin(pod: &Arc<LoggedPod>, source: &LogSource, deleted: bool) -> Option<Origin> {
    let container = match source {
        LogSource::Pod { container, .. } => container,
        LogSource::Container { id } => container_ids(pod).find(|(known, _)| known == id)?.1,
    };
    let metadata = pod.metadata();
    Some(Origin {
        namespace: metadata.namespace().unwrap_or_default().to_owned(),
        pod: metadata.name().to_owned(),
        container: container.to_owned(),
        labels: metadata.labels().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        deleted,
    })
}
