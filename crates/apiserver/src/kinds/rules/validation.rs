//! Validation: required fields, immutable fields and the commonest mistakes.
//!
//! This is a small subset of kube-apiserver's validation, so that a test of an operator sees its own mistakes. Reasons
//! and fields of causes are those of kube-apiserver; the messages are ours. What kube-apiserver accepts is accepted.

mod cause;
mod config;
mod fixed;
mod network;
mod path;
mod pod;
mod table;
mod workload;

pub(crate) use cause::Cause;

use serde_json::Value;

/// Returns the errors in a created object that has its defaults and is prepared.
pub(crate) fn validate_create(id: &str, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    check(id, object, &mut causes);
    if id == "pods" && path::find(object, "spec.ephemeralContainers").is_some() {
        causes.push(Cause::forbidden("spec.ephemeralContainers", "cannot be set on create"));
    }
    causes
}

/// Returns the errors in an updated object that has its defaults and is prepared.
pub(crate) fn validate_update(id: &str, old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    check(id, new, &mut causes);
    fixed::check(id, old, new, &mut causes);
    causes
}

/// Returns the errors in an object of which a subresource was updated.
pub(crate) fn validate_subresource_update(id: &str, subresource: &str, old: &Value, new: &Value) -> Vec<Cause> {
    match (id, subresource) {
        ("certificatesigningrequests.certificates.k8s.io", _) => config::check_decision(subresource, old, new),
        ("pods", "ephemeralcontainers") => pod::check_ephemeral_containers(old, new),
        _ => Vec::new(),
    }
}

/// Checks the rules that apply to both creates and updates.
fn check(id: &str, object: &Value, causes: &mut Vec<Cause>) {
    table::check(id, object, causes);
    if let Some(spec) = pod::path_of_spec(id) {
        pod::check_spec(object, spec, causes);
    }
    match id {
        "deployments.apps" | "replicasets.apps" | "statefulsets.apps" | "daemonsets.apps" | "jobs.batch" => {
            workload::check(id, object, causes);
        }
        "services" => network::service(object, causes),
        "ingresses.networking.k8s.io" => network::ingress(object, causes),
        "configmaps" => config::config_map(object, causes),
        "secrets" => config::secret(object, causes),
        "persistentvolumeclaims" => config::claim(object, causes),
        "roles.rbac.authorization.k8s.io" | "clusterroles.rbac.authorization.k8s.io" => config::role(object, causes),
        "horizontalpodautoscalers.autoscaling" => workload::autoscaler(object, causes),
        _ => {}
    }
}
