//! Rules of single fields, as rows of tables. A row names the kinds, and the paths, separated by blanks.

use serde_json::Value;

use super::Cause;
use super::path::each;
use crate::kinds::rules::json::is_zero;

type Row = (&'static str, &'static str);

const SETS: &str = "deployments.apps replicasets.apps statefulsets.apps daemonsets.apps";
const BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io clusterrolebindings.rbac.authorization.k8s.io";

/// Fields that must not be missing, zero or empty.
const REQUIRED: &[Row] = &[
    ("cronjobs.batch", "spec.schedule"),
    ("ingresses.networking.k8s.io", "spec.rules[].http.paths[].pathType"),
    (BINDINGS, "roleRef.name subjects[].name"),
    ("roles.rbac.authorization.k8s.io clusterroles.rbac.authorization.k8s.io", "rules[].verbs"),
    ("horizontalpodautoscalers.autoscaling", "spec.scaleTargetRef.kind spec.scaleTargetRef.name spec.maxReplicas"),
    ("persistentvolumeclaims", "spec.accessModes"),
    ("storageclasses.storage.k8s.io", "provisioner"),
    ("certificatesigningrequests.certificates.k8s.io", "spec.signerName"),
];

/// Numbers that must not be negative.
const COUNTS: &[Row] = &[
    ("deployments.apps replicasets.apps statefulsets.apps", "spec.replicas"),
    (SETS, "spec.minReadySeconds"),
    ("deployments.apps daemonsets.apps", "spec.revisionHistoryLimit"),
    (
        "jobs.batch",
        "spec.parallelism spec.completions spec.activeDeadlineSeconds spec.backoffLimit spec.ttlSecondsAfterFinished",
    ),
    ("cronjobs.batch", "spec.startingDeadlineSeconds spec.successfulJobsHistoryLimit spec.failedJobsHistoryLimit"),
    ("horizontalpodautoscalers.autoscaling", "spec.minReplicas spec.maxReplicas"),
    ("leases.coordination.k8s.io", "spec.leaseTransitions"),
];

/// Strings of a fixed set.
const CHOICES: &[(&str, &str, &[&str])] = &[
    (SETS, "spec.template.spec.restartPolicy", &["Always"]),
    ("pods", "spec.restartPolicy", &["Always", "OnFailure", "Never"]),
    ("cronjobs.batch", "spec.concurrencyPolicy", &["Allow", "Forbid", "Replace"]),
    ("services", "spec.type", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]),
    ("services", "spec.ports[].protocol", &["SCTP", "TCP", "UDP"]),
    (
        "ingresses.networking.k8s.io",
        "spec.rules[].http.paths[].pathType",
        &["Exact", "ImplementationSpecific", "Prefix"],
    ),
    (BINDINGS, "roleRef.apiGroup", &["rbac.authorization.k8s.io"]),
    (BINDINGS, "subjects[].kind", &["ServiceAccount", "User", "Group"]),
    ("rolebindings.rbac.authorization.k8s.io", "roleRef.kind", &["Role", "ClusterRole"]),
    ("clusterrolebindings.rbac.authorization.k8s.io", "roleRef.kind", &["ClusterRole"]),
];

/// Checks the rows of a kind.
pub(super) fn check(id: &str, object: &Value, causes: &mut Vec<Cause>) {
    let rows = |rows: &'static [Row]| {
        let own = rows.iter().filter(|(ids, _)| ids.split(' ').any(|one| one == id));
        own.flat_map(|(_, paths)| paths.split_whitespace()).flat_map(|path| each(object, path))
    };
    let missing = rows(REQUIRED).filter(|(_, value)| is_zero(*value));
    causes.extend(missing.map(|(field, _)| Cause::required(field)));
    let negative = rows(COUNTS).filter(|(_, value)| value.and_then(Value::as_i64).is_some_and(|count| count < 0));
    causes.extend(negative.map(|(field, value)| Cause::invalid(field, value, "must not be negative")));
    for (_, path, supported) in CHOICES.iter().filter(|(ids, ..)| ids.split(' ').any(|one| one == id)) {
        let is_other = |value: Option<&Value>| !supported.iter().any(|one| value.is_some_and(|value| value == one));
        // A missing value has a default, or is required.
        let wrong = each(object, path).into_iter().filter(|(_, value)| value.is_some() && is_other(*value));
        causes.extend(wrong.map(|(field, value)| Cause::unsupported(field, value, supported)));
    }
    if id == "leases.coordination.k8s.io" {
        let (field, value) = ("spec.leaseDurationSeconds", &object["spec"]["leaseDurationSeconds"]);
        if value.as_i64().is_some_and(|seconds| seconds <= 0) {
            causes.push(Cause::invalid(field, Some(value), "must be greater than 0"));
        }
    }
}
