//! Write strategy of pods.

use serde_json::{Value, json};

use super::{RuleContext, pod_resources};
use crate::kinds::rules::equal::same;
use crate::kinds::rules::json::{
    Object, at, child, child_mut, copy_at, is_there, is_zero, items_mut, length, number, object_at, object_at_mut,
    open, text,
};

/// The prefix of the deprecated annotations for AppArmor profiles, before the container name.
const PROFILE: &str = "container.apparmor.security.beta.kubernetes.io/";

pub(super) fn prepare(pod: &mut Value, write: &RuleContext<'_>) {
    if let Some(old) = write.old {
        if at(pod, "spec.resources").is_none() {
            copy_at(old, pod, "spec.resources");
        }
        return;
    }
    hold_at_gates(pod, write.now);
    select_by_own_labels(pod);
    apply_profiles(pod);
    let class = pod_resources::class(pod);
    if let Some(pod) = pod.as_object_mut() {
        open(pod, "status").insert("qosClass".into(), class.into());
    }
}

/// Sets the condition `SchedulingGated` on a new pod that has scheduling gates.
fn hold_at_gates(pod: &mut Value, now: &str) {
    if object_at(pod, "spec").is_none_or(|spec| length(spec, "schedulingGates") == 0) {
        return;
    }
    let condition = json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastTransitionTime": now,
    });
    if let Some(pod) = pod.as_object_mut() {
        open(pod, "status").insert("conditions".into(), json!([condition]));
    }
}

/// Adds the pod's own values of `matchLabelKeys` and similar fields to the label selectors.
fn select_by_own_labels(pod: &mut Value) {
    let labels = object_at(pod, "metadata.labels").cloned().unwrap_or_default();
    let Some(spec) = object_at_mut(pod, "spec") else { return };
    for side in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = child_mut(spec, "affinity").and_then(|affinity| child_mut(affinity, side)) else {
            continue;
        };
        for weighted in items_mut(affinity, "preferredDuringSchedulingIgnoredDuringExecution") {
            if let Some(term) = child_mut(weighted, "podAffinityTerm") {
                select_by_keys(term, &labels);
            }
        }
        items_mut(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
            .for_each(|term| select_by_keys(term, &labels));
    }
    items_mut(spec, "topologySpreadConstraints").for_each(|constraint| select_by_keys(constraint, &labels));
}

fn select_by_keys(term: &mut Object, labels: &Object) {
    let mut expressions = Vec::new();
    for (list, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in term.get(list).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if let Some(value) = labels.get(key) {
                expressions.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    let Some(selector) = child_mut(term, "labelSelector").filter(|_| !expressions.is_empty()) else { return };
    match selector.get_mut("matchExpressions").and_then(Value::as_array_mut) {
        Some(present) => present.append(&mut expressions),
        None => drop(selector.insert("matchExpressions".into(), Value::Array(expressions))),
    }
}

/// Copies AppArmor profiles from annotations to the containers that they name.
fn apply_profiles(pod: &mut Value) {
    if at(pod, "spec.os.name").and_then(Value::as_str) == Some("windows") {
        return;
    }
    let annotations = object_at(pod, "metadata.annotations").cloned().unwrap_or_default();
    let general = at(pod, "spec.securityContext.appArmorProfile").cloned();
    let Some(spec) = object_at_mut(pod, "spec") else { return };
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in items_mut(spec, list) {
            let key = format!("{PROFILE}{}", text(container, "name"));
            let Some(profile) = annotations.get(&key).and_then(Value::as_str).and_then(profile) else { continue };
            let context = child(container, "securityContext");
            let has_own = context.is_some_and(|context| is_there(context, "appArmorProfile"));
            if !has_own && !same(Some(&profile), general.as_ref()) {
                open(container, "securityContext").insert("appArmorProfile".into(), profile);
            }
        }
    }
}

fn profile(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        annotation => {
            let name = annotation.strip_prefix("localhost/")?;
            let is_sound = !name.is_empty() && name.trim() == name && name.len() <= 4095;
            is_sound.then(|| json!({"type": "Localhost", "localhostProfile": name}))
        }
    }
}

/// Changes nothing but the ephemeral containers.
pub(super) fn prepare_ephemeral_containers(old: &Value, pod: &mut Value) {
    let containers = at(pod, "spec.ephemeralContainers").cloned();
    copy_at(old, pod, "spec");
    copy_at(old, pod, "status");
    if let Some(spec) = object_at_mut(pod, "spec") {
        match containers {
            Some(containers) => drop(spec.insert("ephemeralContainers".into(), containers)),
            None => drop(spec.remove("ephemeralContainers")),
        }
    }
}

pub(super) fn prepare_status(pod: &mut Value, write: &RuleContext<'_>) {
    let nothing = Object::new();
    let old = write.old.and_then(|old| object_at(old, "status")).unwrap_or(&nothing);
    if let Some(pod) = pod.as_object_mut() {
        let status = open(pod, "status");
        // A writer of an older version may omit these; they are kept.
        for key in [
            "qosClass",
            "resourceClaimStatuses",
            "extendedResourceClaimStatus",
            "nodeAllocatableResourceClaimStatuses",
            "observedGeneration",
        ] {
            if is_zero(status.get(key))
                && let Some(value) = old.get(key)
            {
                status.insert(key.into(), value.clone());
            }
        }
        keep_condition_generations(old, status);
    }
}

/// Copies the observed generations of old conditions to new ones of the same type, in order.
fn keep_condition_generations(old: &Object, status: &mut Object) {
    let mut left: Vec<_> = crate::kinds::rules::json::items(old, "conditions").collect();
    for condition in items_mut(status, "conditions") {
        let found = left.iter().position(|old| text(old, "type") == text(condition, "type"));
        let Some(old) = found.map(|position| left.remove(position)) else { continue };
        if number(condition, "observedGeneration") == 0 && number(old, "observedGeneration") != 0 {
            condition.insert("observedGeneration".into(), json!(number(old, "observedGeneration")));
        }
    }
}
