//! Immutable fields, by kind.

use serde_json::Value;

use super::{Cause, certificate, claim, config, job, service};
use crate::kinds::rules::equal::same;
use crate::kinds::rules::json::{at, object_at};

/// An immutable path, and its name in messages if that differs.
type Field = (&'static str, &'static str);

const SELECTOR: &[Field] = &[("spec.selector", "")];

#[rustfmt::skip]
const ROWS: &[(&str, &[Field])] = &[
    ("deployments.apps", SELECTOR),
    ("replicasets.apps", SELECTOR),
    ("daemonsets.apps", SELECTOR),
    ("statefulsets.apps", &[
        ("spec.selector", ""), ("spec.volumeClaimTemplates", ""), ("spec.serviceName", ""),
        ("spec.podManagementPolicy", ""),
    ]),
    ("controllerrevisions.apps", &[("data", "")]),
    ("secrets", &[("type", "")]),
    ("rolebindings.rbac.authorization.k8s.io", &[("roleRef", "")]),
    ("clusterrolebindings.rbac.authorization.k8s.io", &[("roleRef", "")]),
    ("storageclasses.storage.k8s.io", &[
        ("parameters", ""), ("provisioner", ""), ("reclaimPolicy", ""), ("volumeBindingMode", ""),
    ]),
    ("volumeattachments.storage.k8s.io", &[("spec", "")]),
    ("csidrivers.storage.k8s.io", &[
        ("spec.attachRequired", "spec.attachedRequired"), ("spec.volumeLifecycleModes", ""),
    ]),
    ("csistoragecapacities.storage.k8s.io", &[("nodeTopology", ""), ("storageClassName", "")]),
    ("ingressclasses.networking.k8s.io", &[("spec.controller", "")]),
    ("ipaddresses.networking.k8s.io", &[("spec.parentRef", "")]),
    ("endpointslices.discovery.k8s.io", &[("addressType", "")]),
    ("persistentvolumes", &[("spec.volumeMode", "volumeMode")]),
    ("priorityclasses.scheduling.k8s.io", &[("preemptionPolicy", "")]),
    ("runtimeclasses.node.k8s.io", &[("handler", "")]),
    ("resourceclaims.resource.k8s.io", &[("spec", "")]),
    ("resourceclaimtemplates.resource.k8s.io", &[("spec", "")]),
];

/// Checks the immutable fields of an object.
pub(super) fn check(id: &str, old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    match id {
        "priorityclasses.scheduling.k8s.io" => forbid(old, new, "value", "may not be changed in an update.", causes),
        "volumeattributesclasses.storage.k8s.io" => {
            forbid(old, new, "driverName", "updates to driverName are forbidden.", causes);
            forbid(old, new, "parameters", "updates to parameters are forbidden.", causes);
        }
        "persistentvolumes" => check_source(old, new, causes),
        "nodes" => check_node(old, new, causes),
        "servicecidrs.networking.k8s.io" => check_ranges(old, new, causes),
        _ => {}
    }
    if let Some((_, fields)) = ROWS.iter().find(|(row, _)| *row == id) {
        check_fields(old, new, fields, causes);
    }
    match id {
        "secrets" => config::check_sealed(old, new, &["data"], causes),
        "configmaps" => config::check_sealed(old, new, &["data", "binaryData"], causes),
        "services" => service::check_update(old, new, causes),
        "certificatesigningrequests.certificates.k8s.io" => certificate::check_update(old, new, None, causes),
        "jobs.batch" => job::check_update(old, new, causes),
        "persistentvolumeclaims" => claim::check_update(old, new, causes),
        _ => {}
    }
}

pub(super) fn check_fields(old: &Value, new: &Value, fields: &[Field], causes: &mut Vec<Cause>) {
    for (path, other) in fields {
        let value = at(new, path);
        if same(at(old, path), value) {
            continue;
        }
        let field = if other.is_empty() { path } else { other };
        causes.push(Cause::invalid(*field, value, "field is immutable"));
    }
}

fn forbid(old: &Value, new: &Value, key: &str, detail: &str, causes: &mut Vec<Cause>) {
    if !same(old.get(key), new.get(key)) {
        causes.push(Cause::forbidden(key, detail));
    }
}

/// Checks the source of a volume: all fields of its spec that are not common to all volumes.
fn check_source(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    const COMMON: [&str; 9] = [
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "volumeMode",
        "nodeAffinity",
        "volumeAttributesClassName",
    ];
    let source = |object: &Value| {
        let mut spec = object_at(object, "spec").cloned().unwrap_or_default();
        spec.retain(|key, _| !COMMON.contains(&key.as_str()));
        spec
    };
    let (before, mut after) = (source(old), source(new));
    let secret = "controllerExpandSecretRef";
    if let Some(csi) = before.get("csi").filter(|csi| csi.get(secret).is_none())
        && csi.is_object()
        && let Some(csi) = after.get_mut("csi").and_then(Value::as_object_mut)
    {
        csi.remove(secret);
    }
    if !same(Some(&Value::Object(before)), Some(&Value::Object(after))) {
        let detail = "spec.persistentvolumesource is immutable after creation";
        causes.push(Cause::forbidden("spec.persistentvolumesource", detail));
    }
}

fn check_node(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let list = |node: &Value| at(node, "spec.podCIDRs").and_then(Value::as_array).cloned().unwrap_or_default();
    let (before, after) = (list(old), list(new));
    let detail = "node updates may not change podCIDR except from \"\" to valid";
    let cause = || Cause::forbidden("spec.podCIDRs", detail);
    if !before.is_empty() && before.len() != after.len() {
        causes.push(cause());
    } else if !before.is_empty() {
        causes.extend(before.iter().zip(&after).filter(|(before, after)| before != after).map(|_| cause()));
    }
    let provider = |node: &Value| at(node, "spec.providerID").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (before, after) = (provider(old), provider(new));
    if !before.is_empty() && before != after {
        let what = if after.is_empty() { "cleared" } else { "modified" };
        causes.push(Cause::invalid("spec.providerID", None, &format!("field cannot be {what} once set")));
    }
}

fn check_ranges(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let list = |object: &Value| at(object, "spec.cidrs").and_then(Value::as_array).cloned().unwrap_or_default();
    let (before, after) = (list(old), list(new));
    if before.len() != after.len() && (before.len(), after.len()) != (1, 2) {
        return causes.push(Cause::invalid("spec.cidrs", at(new, "spec.cidrs"), "field is immutable"));
    }
    for (index, (_, range)) in before.iter().zip(&after).enumerate().filter(|(_, (before, range))| before != range) {
        causes.push(Cause::invalid(format!("spec.cidrs[{index}]"), Some(range), "field is immutable"));
    }
}
