//! Differences between kube-apiserver and this server on a write: kube-apiserver drops members of features that are off
//! by default, and sets the resources of a pod as a whole. The comparison ignores these members.

use serde_json::Value;

const CONTAINERS: &str = "containers,initContainers,ephemeralContainers";
const PROBES: &str = "livenessProbe,readinessProbe,startupProbe";
const STATUSES: &str = "containerStatuses,initContainerStatuses,ephemeralContainerStatuses";
const USERS: &str = "secret,configMap,downwardAPI,projected";

/// Paths below a pod template or pod. `C` stands for each list of containers, `P` for each probe, `S` for each list of
/// container statuses, `U` for each source of files.
const POD: [&str; 21] = [
    "spec.C.volumeMounts.bindMountOptions",
    "spec.volumes.emptyDir.mode",
    "spec.C.P.grpc.mode",
    "spec.C.P.httpGet.protocol",
    "spec.C.lifecycle",
    "spec.schedulingGroup",
    "spec.evictionResponders",
    "spec.resources",
    "spec.volumes.U.defaultUser",
    "spec.volumes.U.items.user",
    "spec.volumes.projected.sources.U.items.user",
    "spec.volumes.projected.sources.serviceAccountToken,clusterTrustBundle,podCertificate.user",
    "status.S.volumeMounts.volumeStatus",
    "status.nodeAllocatableResourceClaimStatuses",
    "status.volumeHealth",
    "status.qosClass",
    "status.config",
    "status.healthStatus",
    "status.storageHealth",
    "spec.configSource",
    "spec.podPreemptionPolicy",
];

/// Members that only kube-apiserver sets or changes, wherever they are: this server has no such rule.
const MEMBERS: [&str; 12] = [
    "imagePullPolicy",
    "pullPolicy",
    "terminationGracePeriodSeconds",
    "podCIDR",
    "podCIDRs",
    "dataSource",
    "dataSourceRef",
    "lastPhaseTransitionTime",
    "deprecatedTopology",
    "internalTrafficPolicy",
    "deprecated.daemonset.template.generation",
    "rollingUpdate",
];

/// Paths from the root of an object.
const ROOT: [&str; 4] =
    ["spec.scheduling", "spec.jobTemplate.spec.scheduling", "spec.preferredHolder", "spec.strategy"];

/// Removes the members that are not compared.
pub(super) fn forget_dropped(id: &str, object: &mut Value) {
    remove_everywhere(object);
    match id {
        "serviceaccounts" => remove(object, "secrets"),
        "limitranges" => remove(object, "spec.limits"),
        "apiservices.apiregistration.k8s.io" => remove(object, "status"),
        "csidrivers.storage.k8s.io" => remove(object, "metadata.generation"),
        _ => {}
    }
    let prefixes = match id {
        "pods" | "nodes" | "persistentvolumeclaims" | "csinodes.storage.k8s.io" => &["."][..],
        "cronjobs.batch" => &["spec.jobTemplate.spec.template."],
        _ => &["spec.template."],
    };
    for prefix in prefixes {
        POD.iter().for_each(|path| remove(object, format!("{prefix}{path}").trim_start_matches('.')));
        let pointer = format!("/{}/metadata", prefix.replace('.', "/").trim_matches('/')).replace("//", "/");
        let Some(metadata) = object.pointer_mut(&pointer).and_then(Value::as_object_mut) else { continue };
        let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { continue };
        annotations.retain(|key, _| !key.contains("kubernetes.io/init-container"));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    if matches!(id, "jobs.batch" | "cronjobs.batch" | "leases.coordination.k8s.io") {
        ROOT.iter().for_each(|path| remove(object, path));
    }
}

fn remove_everywhere(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(remove_everywhere),
        Value::Object(members) => {
            members.retain(|name, _| !MEMBERS.contains(&name.as_str()));
            members.values_mut().for_each(remove_everywhere);
            if members.get("annotations").is_some_and(|annotations| *annotations == serde_json::json!({})) {
                members.remove("annotations");
            }
        }
        _ => {}
    }
}

fn remove(value: &mut Value, path: &str) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(|element| remove(element, path)),
        Value::Object(members) => {
            let (first, rest) = path.split_once('.').unwrap_or((path, ""));
            let first = match first {
                "C" => CONTAINERS,
                "P" => PROBES,
                "S" => STATUSES,
                "U" => USERS,
                other => other,
            };
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
