//! The fields of a pod that a typical controller reads: node, containers and status.

use k8s_openapi::api::core::v1::Pod;
use kube_informer::Projection;
use serde::Deserialize;

#[derive(Deserialize)]
#[allow(dead_code, reason = "the fields are kept as by a controller, although nothing reads them here")]
pub(super) struct PodView {
    pub(super) spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "as above")]
pub(super) struct Spec {
    pub(super) node_name: Option<Box<str>>,
    containers: Box<[Container]>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "as above")]
struct Container {
    name: Box<str>,
    image: Option<Box<str>>,
    #[serde(default)]
    resources: Resources,
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[allow(dead_code, reason = "as above")]
struct Resources {
    requests: Amounts,
    limits: Amounts,
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[allow(dead_code, reason = "as above")]
struct Amounts {
    cpu: Option<Box<str>>,
    memory: Option<Box<str>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
#[allow(dead_code, reason = "as above")]
struct Status {
    phase: Option<Box<str>>,
    #[serde(rename = "podIP")]
    pod_ip: Option<Box<str>>,
    conditions: Box<[Condition]>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "as above")]
struct Condition {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
}

impl Projection for PodView {
    type Of = Pod;
}
