//! The objects of a workload, as a cluster would show them.

use serde_json::{Value, json};

use super::model::{Deployment, Phase, Pod};

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
    json!({
        "metadata": {"name": deployment.name, "labels": labels},
        "spec": {
            "replicas": deployment.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container(deployment.roll)]}},
        },
        "status": {"replicas": deployment.replicas},
    })
}

fn container(roll: u64) -> Value {
    json!({
        "name": "main",
        "image": format!("registry.example.com/app:{roll}"),
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": "MODE", "value": "production"}, {"name": "ROLL", "value": roll.to_string()}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    })
}

/// A pod, padded to about `bytes` bytes.
pub(super) fn pod(pod: &Pod, bytes: usize) -> Value {
    let ready = pod.phase == Phase::Running;
    let (phase, ready_text) = if ready { ("Running", "True") } else { ("Pending", "False") };
    let scheduled = if pod.node.is_some() { "True" } else { "False" };
    let state = if ready { json!({"running": {}}) } else { json!({"waiting": {"reason": "ContainerCreating"}}) };
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
        "status": {
            "phase": phase,
            "qosClass": "Burstable",
            "conditions": [
                {"type": "PodScheduled", "status": scheduled},
                {"type": "Ready", "status": ready_text},
                {"type": "ContainersReady", "status": ready_text},
            ],
            "containerStatuses": [{
                "name": "main", "ready": ready, "restartCount": pod.restarts, "state": state,
                "image": format!("registry.example.com/app:{}", pod.roll),
            }],
        },
    });
    if let Some(node) = &pod.node {
        object["spec"]["nodeName"] = node.as_str().into();
    }
    let size = if bytes == 0 { 0 } else { bytes.saturating_sub(object.to_string().len() + 200) };
    if size > 0 {
        object["metadata"]["annotations"]["demo.example.com/padding"] = padding(&pod.name, size).into();
    }
    object
}

/// Text that differs from pod to pod, so that it does not compress to nothing.
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
