//! The objects that every cluster has.

use serde_json::{Value, json};
use std::net::SocketAddr;

/// The port of the API server in a cluster, for an address whose port is not known yet.
const PORT: u16 = 6443;

/// Returns each object with the name of its resource. `address` is the address of the API server.
pub(super) fn objects(address: SocketAddr) -> Vec<(&'static str, Value)> {
    let port = if address.port() == 0 { PORT } else { address.port() };
    let kubernetes = json!({"name": "kubernetes", "namespace": "default"});
    let labelled = |labels: Value| {
        let mut metadata = kubernetes.clone();
        metadata["labels"] = labels;
        metadata
    };
    let endpoint_port = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
    let service = json!({
        "metadata": labelled(json!({"component": "apiserver", "provider": "kubernetes"})),
        "spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]},
    });
    let endpoints = json!({
        "metadata": labelled(json!({"endpointslice.kubernetes.io/skip-mirror": "true"})),
        "subsets": [{"addresses": [{"ip": address.ip()}], "ports": endpoint_port}],
    });
    let slice = json!({
        "metadata": labelled(json!({"kubernetes.io/service-name": "kubernetes"})),
        "addressType": if address.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{"addresses": [address.ip()], "conditions": {"ready": true}}],
        "ports": endpoint_port,
    });
    let authentication =
        json!({"metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"}});
    let mut objects = vec![
        ("services", service),
        ("endpoints", endpoints),
        ("endpointslices.discovery.k8s.io", slice),
        ("configmaps", authentication),
        ("clusterroles.rbac.authorization.k8s.io", everything()),
        ("clusterrolebindings.rbac.authorization.k8s.io", masters()),
    ];
    objects.extend(["admin", "edit", "view"].map(|name| ("clusterroles.rbac.authorization.k8s.io", aggregated(name))));
    let priorities = [
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their node.",
        ),
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but may move to another node.",
        ),
    ];
    objects.extend(priorities.map(|(name, value, description)| {
        let object = json!({"metadata": {"name": name}, "value": value, "description": description});
        ("priorityclasses.scheduling.k8s.io", object)
    }));
    objects
}

fn default_role(name: &str) -> Value {
    json!({
        "name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    })
}

fn everything() -> Value {
    let resources = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    let urls = json!({"nonResourceURLs": ["*"], "verbs": ["*"]});
    json!({"metadata": default_role("cluster-admin"), "rules": [resources, urls]})
}

fn masters() -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({
        "metadata": default_role("cluster-admin"),
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:masters"}],
    })
}

/// Returns a role whose rules are those of other roles. A controller of the cluster fills them in.
fn aggregated(name: &str) -> Value {
    let label = format!("rbac.authorization.k8s.io/aggregate-to-{name}");
    let selectors = json!([{"matchLabels": {label: "true"}}]);
    json!({"metadata": default_role(name), "aggregationRule": {"clusterRoleSelectors": selectors}, "rules": null})
}
