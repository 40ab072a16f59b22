//! Validation: immutable fields, required fields and common mistakes.
//!
//! This is a subset of kube-apiserver's validation. Reasons and fields of causes are those of kube-apiserver; the
//! messages are ours.

mod cause;
mod certificate;
mod claim;
mod config;
mod fixed;
mod job;
mod name;
mod network;
mod pod;
mod pod_update;
mod selector;
mod service;
mod workload;

pub(crate) use cause::Cause;

use serde_json::Value;

/// Returns the errors in a created object that has its defaults and is prepared.
pub(crate) fn validate_create(id: &str, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    check(id, object, None, &mut causes);
    causes
}

/// Returns the errors in an updated object that has its defaults and is prepared.
pub(crate) fn validate_update(id: &str, old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    check(id, new, Some(old), &mut causes);
    fixed::check(id, old, new, &mut causes);
    causes
}

/// Returns the errors in an object of which a subresource was updated.
pub(crate) fn validate_subresource_update(id: &str, subresource: &str, old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    match (id, subresource) {
        ("certificatesigningrequests.certificates.k8s.io", _) => {
            certificate::check_object(new, &mut causes);
            certificate::check_update(old, new, Some(subresource), &mut causes);
        }
        ("pods", "ephemeralcontainers") => pod_update::check_ephemeral_containers(old, new, &mut causes),
        _ => {}
    }
    causes
}

/// Checks the rules that apply to both creates and updates.
fn check(id: &str, object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    match id {
        "pods" => pod::check_object(object, old, causes),
        "podtemplates" => pod::check_template(object.get("template"), "template", causes),
        "deployments.apps" => workload::deployment(object, causes),
        "replicasets.apps" => workload::replica_set(object, causes),
        "replicationcontrollers" => workload::replication_controller(object, causes),
        "statefulsets.apps" => workload::stateful_set(object, causes),
        "daemonsets.apps" => workload::daemon_set(object, causes),
        "jobs.batch" => job::job(object, causes),
        "cronjobs.batch" => job::cron_job(object, causes),
        "services" => service::check(object, causes),
        "ingresses.networking.k8s.io" => network::ingress(object, causes),
        "configmaps" => config::config_map(object, causes),
        "secrets" => config::secret(object, causes),
        "persistentvolumeclaims" => claim::claim(object, causes),
        "storageclasses.storage.k8s.io" if old.is_none() => config::storage_class(object, causes),
        "rolebindings.rbac.authorization.k8s.io" => config::binding(object, true, causes),
        "clusterrolebindings.rbac.authorization.k8s.io" => config::binding(object, false, causes),
        "roles.rbac.authorization.k8s.io" => config::role(object, true, causes),
        "clusterroles.rbac.authorization.k8s.io" => config::role(object, false, causes),
        "horizontalpodautoscalers.autoscaling" => workload::autoscaler(object, causes),
        "leases.coordination.k8s.io" => config::lease(object, causes),
        "certificatesigningrequests.certificates.k8s.io" => certificate::check_object(object, causes),
        _ => {}
    }
}
