//! Validation of workload kinds and autoscalers.

use serde_json::{Value, json};

use super::Cause;
use super::path::find;
use crate::kinds::rules::json::{JsonObject, at, child, is_zero, items, length, number, object_at, text};

/// Checks the selector of a set or job, and its template.
pub(super) fn check(id: &str, object: &Value, causes: &mut Vec<Cause>) {
    let labels = object_at(object, "spec.template.metadata.labels");
    match object_at(object, "spec.selector") {
        // kube-apiserver reports a missing selector of a daemon set by the labels alone.
        None if id == "daemonsets.apps" => {}
        None => causes.push(Cause::required("spec.selector")),
        Some(selector) if id != "jobs.batch" && is_empty(selector) => {
            causes.push(Cause::invalid("spec.selector", at(object, "spec.selector"), "must not be empty"));
        }
        Some(_) => {}
    }
    if !object_at(object, "spec.selector").is_some_and(|selector| matches(selector, labels)) {
        let detail = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", None, detail));
    }
    match id {
        "deployments.apps" => {
            let ready = at(object, "spec.minReadySeconds").and_then(Value::as_i64).unwrap_or(0);
            let field = "spec.progressDeadlineSeconds";
            if at(object, field).and_then(Value::as_i64).is_some_and(|deadline| deadline <= ready) {
                causes.push(Cause::invalid(field, at(object, field), "must be greater than minReadySeconds"));
            }
            let is_recreated = at(object, "spec.strategy.type") == Some(&json!("Recreate"));
            if is_recreated && at(object, "spec.strategy.rollingUpdate").is_some() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                causes.push(Cause::forbidden("spec.strategy.rollingUpdate", detail));
            }
        }
        "jobs.batch" => {
            let field = "spec.template.spec.restartPolicy";
            match find(object, field).and_then(Value::as_str) {
                Some("OnFailure" | "Never") => {}
                Some("Always") | None => causes.push(Cause::required(field)),
                Some(_) => causes.push(Cause::unsupported(field, at(object, field), &["OnFailure", "Never"])),
            }
            if at(object, "spec.completionMode") == Some(&json!("Indexed")) && at(object, "spec.completions").is_none()
            {
                causes.push(Cause::required("spec.completions"));
            }
        }
        _ => {}
    }
}

fn is_empty(selector: &JsonObject) -> bool {
    length(selector, "matchLabels") + length(selector, "matchExpressions") == 0
}

/// Returns whether a selector matches these labels. An invalid requirement matches everything.
fn matches(selector: &JsonObject, labels: Option<&JsonObject>) -> bool {
    let value = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let mut by_labels = child(selector, "matchLabels").into_iter().flatten();
    by_labels.all(|(key, wanted)| value(key) == wanted.as_str())
        && items(selector, "matchExpressions").all(|expression| {
            let found = value(text(expression, "key"));
            let mut values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let is_listed = found.is_some_and(|found| values.any(|value| value == found));
            match text(expression, "operator") {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => true,
            }
        })
}

pub(super) fn autoscaler(object: &Value, causes: &mut Vec<Cause>) {
    let Some(spec) = object_at(object, "spec") else { return };
    let (least, most) = (spec.get("minReplicas").and_then(Value::as_i64), number(spec, "maxReplicas"));
    if least.is_some_and(|least| most < least) {
        let detail = "must be greater than or equal to `minReplicas`";
        causes.push(Cause::invalid("spec.maxReplicas", spec.get("maxReplicas"), detail));
    }
    let counts_outside = items(spec, "metrics").any(|metric| matches!(text(metric, "type"), "Object" | "External"));
    if is_zero(spec.get("minReplicas")) && least.is_some() && !counts_outside {
        let detail = "scaling to zero needs an Object or External metric";
        causes.push(Cause::forbidden("spec.metrics", detail));
    }
}
