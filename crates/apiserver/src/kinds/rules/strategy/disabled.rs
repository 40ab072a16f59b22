//! Members of features that are off by default: dropped, unless the object that is replaced already has some.

use serde_json::Value;

use super::Write;
use crate::kinds::rules::json::{child_mut, items_mut};

const PROBES: &str = "livenessProbe,readinessProbe,startupProbe";
const CONTAINERS: &str = "containers,initContainers,ephemeralContainers";
const STATUSES: &str = "containerStatuses,initContainerStatuses,ephemeralContainerStatuses";

/// Paths of one feature, below the specification of a pod. `C` stands for each list of containers, `P` for each probe,
/// `S` for each list of their states, and names with commas in between for each of them. Lists are passed through.
type Feature = &'static [&'static str];

const POD_SPEC: &[Feature] = &[
    &["C.volumeMounts.bindMountOptions"],
    &["volumes.emptyDir.mode"],
    &["C.P.grpc.mode"],
    &["C.P.httpGet.protocol", "C.lifecycle.postStart,preStop.httpGet.protocol"],
    &["schedulingGroup"],
    &["evictionResponders"],
    &[
        "volumes.secret,configMap,downwardAPI,projected.defaultUser",
        "volumes.secret,configMap,downwardAPI.items.user",
        "volumes.projected.sources.secret,configMap,downwardAPI.items.user",
        "volumes.projected.sources.serviceAccountToken,clusterTrustBundle,podCertificate.user",
    ],
];
const POD_STATUS: &[Feature] =
    &[&["S.volumeMounts.volumeStatus"], &["nodeAllocatableResourceClaimStatuses"], &["volumeHealth"]];
/// Left over from when containers that run first were said in annotations.
const ANNOTATIONS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];

/// Drops what is at these paths unless the old value has something at one of them.
fn drop_feature(new: &mut Value, old: Option<&Value>, feature: Feature) {
    if old.is_some_and(|old| feature.iter().any(|path| is_used(old, path))) {
        return;
    }
    feature.iter().for_each(|path| remove(new, path));
}

fn steps(path: &str) -> (&str, &str) {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let first = match first {
        "C" => CONTAINERS,
        "P" => PROBES,
        "S" => STATUSES,
        other => other,
    };
    (first, rest)
}

fn is_used(value: &Value, path: &str) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(|element| is_used(element, path)),
        Value::Object(members) => {
            let (first, rest) = steps(path);
            first.split(',').filter_map(|name| members.get(name)).any(|member| match rest {
                "" => !member.is_null() && member.as_array().is_none_or(|elements| !elements.is_empty()),
                rest => is_used(member, rest),
            })
        }
        _ => false,
    }
}

fn remove(value: &mut Value, path: &str) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(|element| remove(element, path)),
        Value::Object(members) => {
            let (first, rest) = steps(path);
            for name in first.split(',') {
                match rest {
                    "" => drop(members.remove(name)),
                    rest => members.get_mut(name).into_iter().for_each(|member| remove(member, rest)),
                }
            }
        }
        _ => {}
    }
}

/// What is dropped from the specification of a pod, or of a template of pods.
fn pod_spec(new: &mut Value, old: Option<&Value>) {
    POD_SPEC.iter().for_each(|feature| drop_feature(new, old, feature));
    stop_signals(new, old);
}

/// A container that said nothing but how it is stopped says nothing about its life at all.
fn stop_signals(new: &mut Value, old: Option<&Value>) {
    if old.is_some_and(|old| is_used(old, "C.lifecycle.stopSignal")) {
        return;
    }
    let Some(spec) = new.as_object_mut() else { return };
    for list in CONTAINERS.split(',') {
        for container in items_mut(spec, list) {
            let Some(lifecycle) = child_mut(container, "lifecycle") else { continue };
            if lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty() {
                container.remove("lifecycle");
            }
        }
    }
}

/// What has the metadata and the specification of a pod: a pod, or a template.
fn template_at(new: &mut Value, old: Option<&Value>, path: &str) {
    let pointer = |member: &str| format!("{path}/{member}");
    if let Some(spec) = new.pointer_mut(&pointer("spec")) {
        pod_spec(spec, old.and_then(|old| old.pointer(&pointer("spec"))));
    }
    let annotations = new.pointer_mut(&pointer("metadata/annotations")).and_then(Value::as_object_mut);
    let is_empty = annotations.is_some_and(|annotations| {
        ANNOTATIONS.iter().for_each(|key| drop(annotations.remove(*key)));
        annotations.is_empty()
    });
    if is_empty && let Some(metadata) = new.pointer_mut(&pointer("metadata")).and_then(Value::as_object_mut) {
        metadata.remove("annotations");
    }
}

pub(super) fn pod(new: &mut Value, old: Option<&Value>) {
    template_at(new, old, "");
    if let Some(status) = new.get_mut("status") {
        let old = old.and_then(|old| old.get("status"));
        POD_STATUS.iter().for_each(|feature| drop_feature(status, old, feature));
    }
}

pub(super) fn pod_template(new: &mut Value, write: &Write<'_>) {
    template_at(new, write.old, "/template");
}

pub(super) fn template(new: &mut Value, write: &Write<'_>) {
    template_at(new, write.old, "/spec/template");
}

pub(super) fn job(new: &mut Value, write: &Write<'_>) {
    drop_feature(new, write.old, &["spec.scheduling"]);
    template(new, write);
}

pub(super) fn cron_job(new: &mut Value, write: &Write<'_>) {
    drop_feature(new, write.old, &["spec.jobTemplate.spec.scheduling"]);
    template_at(new, write.old, "/spec/jobTemplate/spec/template");
}

pub(super) fn lease(new: &mut Value, write: &Write<'_>) {
    drop_feature(new, write.old, &["spec.strategy"]);
    drop_feature(new, write.old, &["spec.preferredHolder"]);
}

/// Nodes are no longer configured by an object.
pub(super) fn node(new: &mut Value, write: &Write<'_>) {
    drop_feature(new, write.old, &["spec.configSource"]);
    drop_feature(new, write.old, &["spec.podPreemptionPolicy"]);
    if write.old.is_none() {
        remove(new, "status.config");
    }
}

pub(super) fn node_status(new: &mut Value, write: &Write<'_>) {
    drop_feature(new, write.old, &["status.config"]);
}

pub(super) fn claim_status(new: &mut Value, write: &Write<'_>) {
    drop_feature(new, write.old, &["status.healthStatus"]);
}

pub(super) fn csi_node(new: &mut Value, write: &Write<'_>) {
    drop_feature(new, write.old, &["status.storageHealth"]);
}
