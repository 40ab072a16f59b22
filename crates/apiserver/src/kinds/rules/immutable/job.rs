//! Validation of jobs and of their updates.

use serde_json::{Value, json};

use super::{Cause, name, pod, selector, workload};
use crate::kinds::rules::equal::same;
use crate::kinds::rules::json::{Object, at, copy, is_there, number, object_at, open, text};

pub(super) fn job(object: &Value, causes: &mut Vec<Cause>) {
    let Some(spec) = object_at(object, "spec") else { return };
    check_spec(spec, "spec", causes);
    let is_usable = match object_at(object, "spec.selector") {
        Some(found) => selector::check(found, "spec.selector", causes),
        None => {
            causes.push(Cause::required("spec.selector", ""));
            true
        }
    };
    if is_usable {
        workload::check_labels(spec, causes);
    }
}

pub(super) fn cron_job(object: &Value, causes: &mut Vec<Cause>) {
    let Some(spec) = object_at(object, "spec") else { return };
    if text(spec, "schedule").is_empty() {
        causes.push(Cause::required("spec.schedule", ""));
    }
    let count = |key: &str| spec.get(key).and_then(Value::as_i64);
    name::check_count(count("startingDeadlineSeconds"), "spec.startingDeadlineSeconds", causes);
    let policies = ["Allow", "Forbid", "Replace"];
    if !policies.contains(&text(spec, "concurrencyPolicy")) {
        causes.push(Cause::unsupported("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), &policies));
    }
    if let Some(template) = object_at(object, "spec.jobTemplate.spec") {
        check_spec(template, "spec.jobTemplate.spec", causes);
        if template.get("manualSelector") == Some(&Value::Bool(true)) {
            let field = "spec.jobTemplate.spec.manualSelector";
            causes.push(Cause::unsupported(field, template.get("manualSelector"), &["nil", "false"]));
        }
    }
    for key in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        name::check_count(count(key), &format!("spec.{key}"), causes);
    }
}

fn check_spec(spec: &Object, field: &str, causes: &mut Vec<Cause>) {
    for key in ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"] {
        name::check_count(spec.get(key).and_then(Value::as_i64), &format!("{field}.{key}"), causes);
    }
    if text(spec, "completionMode") == "Indexed" && !is_there(spec, "completions") {
        causes.push(Cause::required(format!("{field}.completions"), "when completion mode is Indexed"));
    }
    pod::check_template(spec.get("template"), &format!("{field}.template"), causes);
    let pod = spec.get("template").and_then(|template| object_at(template, "spec"));
    let policy = pod.map(|pod| text(pod, "restartPolicy")).unwrap_or_default();
    let field = format!("{field}.template.spec.restartPolicy");
    match policy {
        "OnFailure" | "Never" => {}
        "Always" | "" => causes.push(Cause::required(field, "valid values: \"OnFailure\", \"Never\"")),
        policy => causes.push(Cause::unsupported(field, Some(&json!(policy)), &["OnFailure", "Never"])),
    }
}

/// Checks the immutable fields of a job.
pub(super) fn check_update(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    check_completions(old, new, causes);
    super::fixed::check_fields(old, new, &[("spec.selector", "")], causes);
    check_template(old, new, causes);
    let fields = ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"];
    for key in fields {
        let path = format!("spec.{key}");
        if !same(at(old, &path), at(new, &path)) {
            causes.push(Cause::invalid(&path, at(new, &path), "field is immutable"));
        }
    }
}

fn check_completions(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let field = "spec.completions";
    let (before, after) = (at(old, field), at(new, field));
    let is_indexed = at(new, "spec.completionMode").and_then(Value::as_str) == Some("Indexed");
    let detail = match after {
        _ if same(before, after) => return,
        _ if !is_indexed => "field is immutable",
        Some(after) if Some(after) != at(new, "spec.parallelism") => {
            "can only be modified in tandem with spec.parallelism"
        }
        _ => return,
    };
    causes.push(Cause::invalid(field, after, detail));
}

/// Checks the template. A suspended job that has not started may change its scheduling fields and resources.
fn check_template(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let mut before = at(old, "spec.template").cloned().unwrap_or_default();
    let mut after = at(new, "spec.template").cloned().unwrap_or_default();
    let mut path = "spec.template";
    if is_open(old) {
        keep_open(&mut before, &after);
        let spec = |template: &Value| template.get("spec").cloned().unwrap_or_default();
        (before, after) = (spec(&before), spec(&after));
        path = "spec.template.spec";
    }
    if !same(Some(&before), Some(&after)) {
        causes.push(Cause::invalid(path, Some(&after), "field is immutable"));
    }
}

fn is_open(job: &Value) -> bool {
    let nothing = Object::new();
    let status = object_at(job, "status").unwrap_or(&nothing);
    let has_stopped = crate::kinds::rules::json::items(status, "conditions")
        .any(|condition| text(condition, "type") == "Suspended" && text(condition, "status") == "True");
    at(job, "spec.suspend") == Some(&Value::Bool(true))
        && (!is_there(status, "startTime") || has_stopped)
        && number(status, "active") == 0
}

/// Copies the mutable fields from `after` into `before`.
fn keep_open(before: &mut Value, after: &Value) {
    let nothing = Object::new();
    let (Some(before), Some(after)) = (before.as_object_mut(), after.as_object()) else { return };
    let part = |key: &str| after.get(key).and_then(Value::as_object).unwrap_or(&nothing);
    for key in ["labels", "annotations"] {
        copy(part("metadata"), open(before, "metadata"), key);
    }
    let (spec, wanted) = (open(before, "spec"), part("spec"));
    for key in ["nodeSelector", "tolerations", "schedulingGates"] {
        copy(wanted, spec, key);
    }
    let affinity = wanted.get("affinity").and_then(Value::as_object);
    copy(affinity.unwrap_or(&nothing), open(spec, "affinity"), "nodeAffinity");
    if affinity.is_none() && open(spec, "affinity").is_empty() {
        spec.remove("affinity");
    }
    for list in ["containers", "initContainers"] {
        let new: Vec<_> = crate::kinds::rules::json::items(wanted, list).collect();
        for (container, new) in crate::kinds::rules::json::items_mut(spec, list).zip(new) {
            copy(new, container, "resources");
        }
    }
}
