//! Defaults of workload kinds.

use serde_json::{Value, json};

use crate::kinds::rules::json::{Object, child, child_mut, fill, fill_zero, is_there, length, open, text};

/// Returns the labels of the template in a spec.
fn template_labels(spec: &Object) -> Option<Value> {
    let labels = child(spec, "template").and_then(|template| child(template, "metadata"))?.get("labels")?;
    (!labels.is_null()).then(|| labels.clone())
}

/// Copies the labels of the template to an object without labels.
fn label_as_template(object: &mut Object) {
    let labels = child(object, "spec").and_then(template_labels);
    if let Some(labels) = labels
        && child(object, "metadata").is_none_or(|metadata| length(metadata, "labels") == 0)
    {
        open(object, "metadata").insert("labels".into(), labels);
    }
}

pub(super) fn replication_controller(controller: &mut Object) {
    let spec = open(controller, "spec");
    if let Some(labels) = template_labels(spec)
        && length(spec, "selector") == 0
    {
        spec.insert("selector".into(), labels);
    }
    label_as_template(controller);
}

pub(super) fn one_replica(spec: &mut Object) {
    fill(spec, "replicas", 1);
}

pub(super) fn replica_set(set: &mut Object) {
    one_replica(open(set, "spec"));
}

pub(super) fn deployment(deployment: &mut Object) {
    let spec = open(deployment, "spec");
    one_replica(spec);
    let strategy = open(spec, "strategy");
    fill_zero(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let update = open(strategy, "rollingUpdate");
        fill(update, "maxUnavailable", "25%");
        fill(update, "maxSurge", "25%");
    }
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
}

pub(super) fn daemon_set(set: &mut Object) {
    let spec = open(set, "spec");
    let strategy = open(spec, "updateStrategy");
    fill_zero(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let update = open(strategy, "rollingUpdate");
        fill(update, "maxUnavailable", 1);
        fill(update, "maxSurge", 0);
    }
    fill(spec, "revisionHistoryLimit", 10);
}

pub(super) fn stateful_set(set: &mut Object) {
    let spec = open(set, "spec");
    fill_zero(spec, "podManagementPolicy", "OrderedReady");
    let strategy = open(spec, "updateStrategy");
    if text(strategy, "type").is_empty() {
        strategy.insert("type".into(), "RollingUpdate".into());
        fill(strategy, "rollingUpdate", json!({}));
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(update) = child_mut(strategy, "rollingUpdate")
    {
        fill(update, "partition", 0);
        fill(update, "maxUnavailable", 1);
    }
    let retention = open(spec, "persistentVolumeClaimRetentionPolicy");
    fill_zero(retention, "whenDeleted", "Retain");
    fill_zero(retention, "whenScaled", "Retain");
    one_replica(spec);
    fill(spec, "revisionHistoryLimit", 10);
}

pub(super) fn job(job: &mut Object) {
    let spec = open(job, "spec");
    if !is_there(spec, "completions") && !is_there(spec, "parallelism") {
        spec.insert("completions".into(), json!(1));
    }
    fill(spec, "parallelism", 1);
    // With a limit for each index the total number of failures is practically unlimited.
    let backoff = if is_there(spec, "backoffLimitPerIndex") { i32::MAX } else { 6 };
    fill(spec, "backoffLimit", backoff);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    let replacement = if is_there(spec, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    fill(spec, "podReplacementPolicy", replacement);
    fill(spec, "manualSelector", false);
    label_as_template(job);
}

pub(super) fn cron_job(job: &mut Object) {
    let spec = open(job, "spec");
    fill_zero(spec, "concurrencyPolicy", "Allow");
    fill(spec, "suspend", false);
    fill(spec, "successfulJobsHistoryLimit", 3);
    fill(spec, "failedJobsHistoryLimit", 1);
}

pub(super) fn pod_condition_pattern(pattern: &mut Object) {
    fill_zero(pattern, "status", "True");
}

pub(super) fn autoscaler_v1(autoscaler: &mut Object) {
    fill(open(autoscaler, "spec"), "minReplicas", 1);
}

pub(super) fn autoscaler_v2(autoscaler: &mut Object) {
    let spec = open(autoscaler, "spec");
    fill(spec, "minReplicas", 1);
    if length(spec, "metrics") == 0 {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        spec.insert("metrics".into(), json!([metric]));
    }
    if let Some(behavior) = child_mut(spec, "behavior") {
        scaling_up(open(behavior, "scaleUp"));
        scaling_down(open(behavior, "scaleDown"));
    }
}

fn scaling_up(rules: &mut Object) {
    fill(rules, "stabilizationWindowSeconds", 0);
    fill(rules, "selectPolicy", "Max");
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    fill(rules, "policies", json!([pods, percent]));
}

fn scaling_down(rules: &mut Object) {
    fill(rules, "selectPolicy", "Max");
    fill(rules, "policies", json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]));
}
