//! The objects of a workload, as a cluster would show them.

use serde_json::{Value, json};

use super::model::{Deployment, Pod, PodPhase};

/// The name of the container that every pod has.
const MAIN: &str = "main";
/// About how many bytes the server's defaults and the node name add to a pod.
const FILLED_IN: usize = 1_900;

pub(super) fn namespace(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

pub(super) fn node(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        }},
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {
            "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "allocatable": {"cpu": "4", "memory": "15Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "nodeInfo": {"kubeletVersion": "v1.37.0", "osImage": "Linux", "architecture": "amd64"},
        },
    })
}

pub(super) fn deployment(deployment: &Deployment) -> Value {
    let labels = json!({"app": deployment.name});
    let mut object = json!({
        "metadata": {"name": deployment.name, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container(deployment.roll)]}},
        },
    });
    let change = deployment_change(&object, deployment);
    json_patch::merge(&mut object, &change);
    object
}

/// Returns the merge patch that brings the found object to the current state of the deployment. The patch leaves out
/// fields of other clients, except in lists, which it contains whole.
pub(super) fn deployment_change(found: &Value, deployment: &Deployment) -> Value {
    let Deployment { replicas, roll, .. } = deployment;
    let containers = &found["spec"]["template"]["spec"]["containers"];
    let main = containers.as_array().and_then(|entries| entries.iter().find(|entry| entry["name"] == MAIN));
    let env = main.map_or(&Value::Null, |main| &main["env"]);
    let env = with_entry(env, "name", &json!({"name": "ROLL", "value": roll.to_string()}));
    let containers = with_entry(containers, "name", &json!({"name": MAIN, "image": image(*roll), "env": env}));
    json!({
        "spec": {"replicas": replicas, "template": {"spec": {"containers": containers}}},
        "status": {"replicas": replicas},
    })
}

/// Returns the name of the replica set of a deployment's roll.
pub(super) fn set_name(app: &str, roll: u64) -> String {
    format!("{app}-{roll}")
}

/// Returns a replica set owned by this deployment, as found on the server.
pub(super) fn replica_set(deployment: &Deployment, owner: &Value) -> Value {
    let labels = json!({"app": deployment.name, "pod-template-hash": deployment.roll.to_string()});
    let spec = json!({"containers": [container(deployment.roll)]});
    json!({
        "metadata": {
            "name": set_name(&deployment.name, deployment.roll), "labels": labels,
            "annotations": {"deployment.kubernetes.io/revision": deployment.roll.to_string()},
            "ownerReferences": [owner_reference(owner, "apps/v1", "Deployment")],
        },
        "spec": {
            "replicas": deployment.replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    })
}

/// Returns an owner reference to this object.
pub(super) fn owner_reference(owner: &Value, api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true})
}

/// Merges an entry into the list entry with the same key, or appends it.
fn with_entry(list: &Value, key: &str, entry: &Value) -> Value {
    let mut entries = list.as_array().cloned().unwrap_or_default();
    match entries.iter_mut().find(|known| known[key] == entry[key]) {
        Some(known) => json_patch::merge(known, entry),
        None => {
            // Merged into null, so that members set to null are removed.
            let mut fresh = Value::Null;
            json_patch::merge(&mut fresh, entry);
            entries.push(fresh);
        }
    }
    entries.into()
}

fn image(roll: u64) -> String {
    format!("registry.example.com/app:{roll}")
}

fn container(roll: u64) -> Value {
    json!({
        "name": MAIN,
        "image": image(roll),
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": "MODE", "value": "production"}, {"name": "ROLL", "value": roll.to_string()}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    })
}

/// Returns a pod, padded to about `bytes` bytes.
pub(super) fn pod(pod: &Pod, bytes: usize) -> Value {
    let mut object = json!({
        "metadata": {
            "name": pod.name,
            "labels": {"app": pod.app, "roll": pod.roll.to_string()},
            "annotations": {"demo.example.com/app": pod.app},
        },
        "spec": {
            "containers": [container(pod.roll)],
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 30,
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
        },
        "status": {"qosClass": "Burstable"},
    });
    let change = pod_change(&object, pod);
    json_patch::merge(&mut object, &change);
    let size = if bytes == 0 { 0 } else { bytes.saturating_sub(object.to_string().len() + FILLED_IN) };
    if size > 0 {
        object["metadata"]["annotations"]["demo.example.com/padding"] = padding(&pod.name, size).into();
    }
    object
}

/// Returns the merge patch that brings the found object to the current state of the pod. The patch leaves out fields of
/// other clients, except in lists, which it contains whole.
pub(super) fn pod_change(found: &Value, pod: &Pod) -> Value {
    let ready = pod.phase == PodPhase::Running;
    let (phase, ready_text) = if ready { ("Running", "True") } else { ("Pending", "False") };
    let scheduled = if pod.node.is_some() { "True" } else { "False" };
    let state = if ready {
        json!({"running": {}, "waiting": null})
    } else {
        json!({"running": null, "waiting": {"reason": "ContainerCreating"}})
    };
    let mut conditions = found["status"]["conditions"].clone();
    for (kind, status) in [("PodScheduled", scheduled), ("Ready", ready_text), ("ContainersReady", ready_text)] {
        conditions = with_entry(&conditions, "type", &json!({"type": kind, "status": status}));
    }
    let container = json!({
        "name": MAIN, "ready": ready, "restartCount": pod.restarts, "state": state, "image": image(pod.roll),
    });
    let containers = with_entry(&found["status"]["containerStatuses"], "name", &container);
    let mut change = json!({"status": {"phase": phase, "conditions": conditions}});
    // The kubelet of the node reports the containers, so a pod without a node has none yet.
    if let Some(node) = &pod.node {
        change["spec"] = json!({"nodeName": node});
        change["status"]["containerStatuses"] = containers;
    }
    change
}

/// Returns a string that differs from pod to pod, so that it does not compress to nothing.
fn padding(name: &str, size: usize) -> String {
    let mut state = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut text = String::with_capacity(size + 16);
    while text.len() < size {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(&format!("{state:016x}"));
    }
    text.truncate(size);
    text
}
