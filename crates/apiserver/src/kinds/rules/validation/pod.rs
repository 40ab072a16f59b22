//! Validation of pods and pod templates.

use std::collections::BTreeSet;

use kube_structural_schema::identifier::is_dns_label;
use serde_json::Value;

use super::Cause;
use super::path::{each, find};
use crate::kinds::rules::json::{JsonObject, is_zero, items, items_mut, length, object_at, same, text};

/// Returns where objects of a kind have the spec of a pod.
pub(super) fn path_of_spec(id: &str) -> Option<&'static str> {
    Some(match id {
        "pods" => "spec",
        "deployments.apps" | "replicasets.apps" | "statefulsets.apps" | "daemonsets.apps" | "jobs.batch" => {
            "spec.template.spec"
        }
        "cronjobs.batch" => "spec.jobTemplate.spec.template.spec",
        _ => return None,
    })
}

/// Checks the spec of a pod at this path.
pub(super) fn check_spec(object: &Value, at: &str, causes: &mut Vec<Cause>) {
    if find(object, &format!("{at}.containers")).is_none() {
        causes.push(Cause::required(format!("{at}.containers")));
    }
    for list in ["containers[]", "initContainers[]"] {
        for member in ["name", "image", "ports[].containerPort", "env[].name", "volumeMounts[].mountPath"] {
            let missing =
                each(object, &format!("{at}.{list}.{member}")).into_iter().filter(|(_, value)| is_zero(*value));
            causes.extend(missing.map(|(field, _)| Cause::required(field)));
        }
        for (field, port) in each(object, &format!("{at}.{list}.ports[].containerPort")) {
            check_port(&field, port.filter(|port| **port != 0), causes);
        }
    }
    let mut known = BTreeSet::new();
    for path in ["containers[].name", "initContainers[].name", "volumes[].name"] {
        if path.starts_with("volumes") {
            known.clear();
        }
        for (field, value) in each(object, &format!("{at}.{path}")) {
            let name = value.and_then(Value::as_str).unwrap_or_default();
            if name.is_empty() {
                if path.starts_with("volumes") {
                    causes.push(Cause::required(field));
                }
            } else if name.len() > 63 || !is_dns_label(name) {
                causes.push(Cause::invalid(field, value, "must be a DNS label (RFC 1123)"));
            } else if !known.insert(name) {
                causes.push(Cause::other("FieldValueDuplicate", field, &format!("Duplicate value: {name:?}")));
            }
        }
    }
    check_mounts(object, at, causes);
}

pub(super) fn check_port(field: &str, port: Option<&Value>, causes: &mut Vec<Cause>) {
    if port.and_then(Value::as_i64).is_some_and(|port| !(1..=65535).contains(&port)) {
        causes.push(Cause::invalid(field, port, "must be between 1 and 65535"));
    }
}

/// Checks that each mounted volume exists. A stateful set also has volumes for its claims.
fn check_mounts(object: &Value, at: &str, causes: &mut Vec<Cause>) {
    let volumes = each(object, &format!("{at}.volumes[].name")).into_iter();
    let claims = each(object, "spec.volumeClaimTemplates[].metadata.name").into_iter();
    let known: BTreeSet<&str> = volumes.chain(claims).filter_map(|(_, name)| name?.as_str()).collect();
    for list in ["containers[]", "initContainers[]"] {
        for (field, value) in each(object, &format!("{at}.{list}.volumeMounts[].name")) {
            let name = value.and_then(Value::as_str).unwrap_or_default();
            if !known.contains(name) {
                causes.push(Cause::other("FieldValueNotFound", field, &format!("Not found: {name:?}")));
            }
        }
    }
}

/// Checks an update of a pod: only images, tolerations, scheduling gates and the deadline may change.
pub(super) fn check_update(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let spec = |pod: &Value| object_at(pod, "spec").cloned().unwrap_or_default();
    let (mut before, mut after) = (spec(old), spec(new));
    for list in ["containers", "initContainers"] {
        if length(&before, list) != length(&after, list) {
            return causes.push(Cause::forbidden(format!("spec.{list}"), "containers may not be added or removed"));
        }
    }
    let tolerations = |spec: &JsonObject| -> Vec<JsonObject> {
        let all = items(spec, "tolerations").cloned();
        all.map(|mut one| one.remove("tolerationSeconds").map_or(one.clone(), |_| one)).collect()
    };
    let kept = tolerations(&after);
    if !tolerations(&before).iter().all(|toleration| kept.contains(toleration)) {
        causes.push(Cause::forbidden("spec.tolerations", "existing tolerations can not be modified"));
    }
    // A pod with scheduling gates may still get a narrower node selector and affinity.
    let is_gated = length(&before, "schedulingGates") > 0;
    for spec in [&mut before, &mut after] {
        for list in ["containers", "initContainers"] {
            items_mut(spec, list).for_each(|container| drop(container.remove("image")));
        }
        for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations", "terminationGracePeriodSeconds"] {
            spec.remove(key);
        }
        if is_gated {
            ["nodeSelector", "affinity"].iter().for_each(|key| drop(spec.remove(*key)));
        }
    }
    if !same(Some(&before.into()), Some(&after.into())) {
        let detail = "only images, tolerations, scheduling gates and activeDeadlineSeconds of a pod may change";
        causes.push(Cause::forbidden("spec", detail));
    }
}

/// Checks that no ephemeral container is removed or changed.
pub(super) fn check_ephemeral_containers(old: &Value, new: &Value) -> Vec<Cause> {
    let nothing = JsonObject::new();
    let of = |pod| items(object_at(pod, "spec").unwrap_or(&nothing), "ephemeralContainers").collect::<Vec<_>>();
    let (before, after) = (of(old), of(new));
    let is_gone = |container: &&&JsonObject| !after.contains(container);
    let gone = before.iter().filter(is_gone).map(|container| text(container, "name"));
    let detail = |name| format!("existing ephemeral containers {name:?} may not be removed or changed");
    gone.map(|name| Cause::forbidden("spec.ephemeralContainers", &detail(name))).collect()
}
