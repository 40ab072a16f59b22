//! Validation of workload kinds.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Cause, name, pod, selector};
use crate::kinds::rules::json::{Object, at, is_there, items, number, object_at, text};

fn count(spec: &Object, key: &str) -> Option<i64> {
    spec.get(key).and_then(Value::as_i64)
}

pub(super) fn deployment(object: &Value, causes: &mut Vec<Cause>) {
    let Some(spec) = object_at(object, "spec") else { return };
    name::check_count(count(spec, "replicas"), "spec.replicas", causes);
    check_template_of_set(spec, causes);
    check_strategy(spec, causes);
    for key in ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        name::check_count(count(spec, key), &format!("spec.{key}"), causes);
    }
    if let Some(deadline) = count(spec, "progressDeadlineSeconds")
        && deadline <= number(spec, "minReadySeconds")
    {
        let field = "spec.progressDeadlineSeconds";
        causes.push(Cause::invalid(field, Some(&json!(deadline)), "must be greater than minReadySeconds"));
    }
}

pub(super) fn replica_set(object: &Value, causes: &mut Vec<Cause>) {
    let Some(spec) = object_at(object, "spec") else { return };
    name::check_count(count(spec, "replicas"), "spec.replicas", causes);
    name::check_count(count(spec, "minReadySeconds"), "spec.minReadySeconds", causes);
    check_template_of_set(spec, causes);
}

pub(super) fn stateful_set(object: &Value, causes: &mut Vec<Cause>) {
    let Some(spec) = object_at(object, "spec") else { return };
    name::check_count(count(spec, "replicas"), "spec.replicas", causes);
    name::check_count(count(spec, "minReadySeconds"), "spec.minReadySeconds", causes);
    if check_selector(spec, causes) {
        check_labels(spec, causes);
        let with_claims = with_claimed_volumes(spec);
        pod::check_template(Some(&with_claims), "spec.template", causes);
    }
    check_endless(spec, "StatefulSet", causes);
}

/// Returns the template with the claims of a stateful set as volumes.
fn with_claimed_volumes(spec: &Object) -> Value {
    let mut template = spec.get("template").cloned().unwrap_or_default();
    let claims = spec.get("volumeClaimTemplates").and_then(Value::as_array).into_iter().flatten();
    let name = |claim| at(claim, "metadata.name").and_then(Value::as_str).unwrap_or_default();
    let names: BTreeSet<_> = claims.map(name).collect();
    if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
        let present = spec.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
        let others =
            present.into_iter().filter(|volume| !names.iter().any(|name| volume.get("name") == Some(&json!(name))));
        let volumes = names.iter().map(|name| json!({"name": name})).chain(others).collect();
        spec.insert("volumes".into(), Value::Array(volumes));
    }
    template
}

pub(super) fn daemon_set(object: &Value, causes: &mut Vec<Cause>) {
    let Some(spec) = object_at(object, "spec") else { return };
    let found = object_at(object, "spec.selector");
    if found.is_none_or(|found| selector::check(found, "spec.selector", causes)) {
        check_labels(spec, causes);
    }
    if let Some(found) = found
        && selector::is_empty(found)
    {
        causes.push(Cause::invalid("spec.selector", spec.get("selector"), "must not be empty"));
    }
    pod::check_template(spec.get("template"), "spec.template", causes);
    check_endless(spec, "DaemonSet", causes);
    for key in ["minReadySeconds", "revisionHistoryLimit"] {
        name::check_count(count(spec, key), &format!("spec.{key}"), causes);
    }
}

pub(super) fn replication_controller(object: &Value, causes: &mut Vec<Cause>) {
    let Some(spec) = object_at(object, "spec") else { return };
    name::check_count(count(spec, "minReadySeconds"), "spec.minReadySeconds", causes);
    let wanted = object_at(object, "spec.selector").filter(|selector| !selector.is_empty());
    if wanted.is_none() {
        causes.push(Cause::required("spec.selector", ""));
    }
    name::check_count(count(spec, "replicas"), "spec.replicas", causes);
    if !is_there(spec, "template") {
        return causes.push(Cause::required("spec.template", ""));
    }
    let labels = object_at(object, "spec.template.metadata.labels");
    let is_met =
        wanted.into_iter().flatten().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value));
    if !is_met {
        causes.push(mismatch(labels));
    }
    pod::check_template(spec.get("template"), "spec.template", causes);
    check_endless(spec, "ReplicationController", causes);
}

/// Checks a selector, and returns whether it can be compared with labels.
fn check_selector(spec: &Object, causes: &mut Vec<Cause>) -> bool {
    let Some(value) = spec.get("selector") else {
        causes.push(Cause::required("spec.selector", ""));
        return true;
    };
    let Some(found) = value.as_object() else { return false };
    if selector::is_empty(found) {
        causes.push(Cause::invalid("spec.selector", Some(value), "must not be empty"));
        return true;
    }
    let is_usable = selector::check(found, "spec.selector", causes);
    if !is_usable {
        causes.push(Cause::invalid("spec.selector", Some(value), "invalid label selector"));
    }
    is_usable
}

fn mismatch(labels: Option<&Object>) -> Cause {
    let labels = labels.filter(|labels| !labels.is_empty()).map(|labels| Value::Object(labels.clone()));
    let detail = "`selector` does not match template `labels`";
    Cause::invalid("spec.template.metadata.labels", labels.as_ref(), detail)
}

/// Checks that the selector matches the labels of the template. A missing selector matches nothing, an empty one
/// everything.
pub(super) fn check_labels(spec: &Object, causes: &mut Vec<Cause>) {
    let found = spec.get("selector").and_then(Value::as_object);
    let labels = spec.get("template").and_then(|template| object_at(template, "metadata.labels"));
    if !found.is_some_and(|found| selector::matches(found, labels)) {
        causes.push(mismatch(labels));
    }
}

fn check_template_of_set(spec: &Object, causes: &mut Vec<Cause>) {
    if check_selector(spec, causes) {
        check_labels(spec, causes);
        pod::check_template(spec.get("template"), "spec.template", causes);
        check_endless(spec, "ReplicaSet", causes);
    }
}

/// Checks that the restart policy is `Always`.
fn check_endless(spec: &Object, kind: &str, causes: &mut Vec<Cause>) {
    let Some(pod) = spec.get("template").and_then(|template| object_at(template, "spec")) else { return };
    if text(pod, "restartPolicy") != "Always" {
        let field = "spec.template.spec.restartPolicy";
        causes.push(Cause::unsupported(field, pod.get("restartPolicy"), &["Always"]));
    }
    if is_there(pod, "activeDeadlineSeconds") {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        causes.push(Cause::forbidden("spec.template.spec.activeDeadlineSeconds", &detail));
    }
}

fn check_strategy(spec: &Object, causes: &mut Vec<Cause>) {
    let Some(strategy) = spec.get("strategy").and_then(Value::as_object) else { return };
    if text(strategy, "type") == "Recreate" && is_there(strategy, "rollingUpdate") {
        let detail = "may not be specified when strategy `type` is 'Recreate'";
        causes.push(Cause::forbidden("spec.strategy.rollingUpdate", detail));
    }
}

pub(super) fn autoscaler(object: &Value, causes: &mut Vec<Cause>) {
    let Some(spec) = object_at(object, "spec") else { return };
    let (least, most) = (count(spec, "minReplicas"), number(spec, "maxReplicas"));
    let invalid = |field: &str, value: i64, detail: &str| Cause::invalid(field, Some(&json!(value)), detail);
    if least.is_some_and(|least| most < least) {
        causes.push(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"));
    }
    let counts_outside = items(spec, "metrics").any(|metric| matches!(text(metric, "type"), "Object" | "External"));
    if least == Some(0) && !counts_outside {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        causes.push(Cause::forbidden("spec.metrics", detail));
    }
    for key in ["kind", "name"] {
        if object_at(object, "spec.scaleTargetRef").is_none_or(|target| text(target, key).is_empty()) {
            causes.push(Cause::required(format!("spec.scaleTargetRef.{key}"), ""));
        }
    }
    name::check_count(least, "spec.minReplicas", causes);
    match most {
        0 => causes.push(Cause::required("spec.maxReplicas", "")),
        most if most < 0 => causes.push(invalid("spec.maxReplicas", most, "must be greater than or equal to 1")),
        _ => {}
    }
}
