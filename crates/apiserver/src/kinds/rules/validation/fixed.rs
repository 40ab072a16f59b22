//! Immutable fields, by kind.

use serde_json::{Value, json};

use super::{Cause, config, network, pod};
use crate::kinds::rules::json::{at, same};

/// The kinds, and their immutable fields.
const ROWS: &[(&str, &str)] = &[
    ("deployments.apps", "spec.selector"),
    ("replicasets.apps", "spec.selector"),
    ("daemonsets.apps", "spec.selector"),
    ("statefulsets.apps", "spec.selector spec.volumeClaimTemplates spec.serviceName spec.podManagementPolicy"),
    ("jobs.batch", "spec.selector spec.completionMode spec.podFailurePolicy spec.managedBy spec.successPolicy"),
    ("controllerrevisions.apps", "data"),
    ("secrets", "type"),
    ("rolebindings.rbac.authorization.k8s.io", "roleRef"),
    ("clusterrolebindings.rbac.authorization.k8s.io", "roleRef"),
    ("storageclasses.storage.k8s.io", "parameters provisioner reclaimPolicy volumeBindingMode"),
    ("volumeattachments.storage.k8s.io", "spec"),
    ("ingressclasses.networking.k8s.io", "spec.controller"),
    ("endpointslices.discovery.k8s.io", "addressType"),
    ("runtimeclasses.node.k8s.io", "handler"),
];

/// Checks the immutable fields of an object.
pub(super) fn check(id: &str, old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let own = ROWS.iter().filter(|(row, _)| *row == id).flat_map(|(_, paths)| paths.split_whitespace());
    let changed = own.filter(|path| !same(at(old, path), at(new, path)));
    causes.extend(changed.map(|path| Cause::invalid(path, at(new, path), "field is immutable")));
    match id {
        "pods" => pod::check_update(old, new, causes),
        "secrets" => config::check_sealed(old, new, &["immutable", "data"], causes),
        "configmaps" => config::check_sealed(old, new, &["immutable", "data", "binaryData"], causes),
        "services" => network::check_service_update(old, new, causes),
        "persistentvolumeclaims" => config::check_claim_update(old, new, causes),
        "priorityclasses.scheduling.k8s.io" if !same(old.get("value"), new.get("value")) => {
            causes.push(Cause::forbidden("value", "may not be changed in an update"));
        }
        // The template of a suspended job may change.
        "jobs.batch" if at(old, "spec.suspend") != Some(&Value::Bool(true)) => {
            let path = "spec.template";
            if !same(at(old, path), at(new, path)) {
                causes.push(Cause::invalid(path, None, "field is immutable"));
            }
            let is_indexed = at(new, "spec.completionMode") == Some(&json!("Indexed"));
            let path = "spec.completions";
            if !is_indexed && !same(at(old, path), at(new, path)) {
                causes.push(Cause::invalid(path, at(new, path), "field is immutable"));
            }
        }
        _ => {}
    }
}
