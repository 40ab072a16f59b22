//! Tables of jobs, cron jobs, pod templates, revisions and disruption budgets.

use jiff::Timestamp;
use serde_json::Value;

use super::age::{age, human, since, time};
use super::control::{TEMPLATE, containers};
use super::label::{labels, selector};
use super::read::Read;

/// Returns the cells of a pod template.
pub(super) fn pod_template(object: &Value, _: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, "template.spec.containers");
    vec![object.name().into(), names, images, labels(object.map("template.metadata.labels")).into()]
}

/// Returns the cells of a controller revision, with its controller.
pub(super) fn controller_revision(object: &Value, now: Timestamp) -> Vec<Value> {
    let owner = object.list("metadata.ownerReferences").iter().find(|owner| owner.flag("controller") == Some(true));
    vec![
        object.name().into(),
        owner.map_or_else(|| "<none>".into(), controller).into(),
        object.count("revision").into(),
        age(object, now).into(),
    ]
}

fn controller(owner: &Value) -> String {
    let (kind, name) = (owner.text("kind"), owner.text("name"));
    let group = owner.text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    let kind = if group.is_empty() { kind.to_lowercase() } else { format!("{kind}.{group}").to_lowercase() };
    if kind.is_empty() { name.into() } else { format!("{kind}/{name}") }
}

/// Returns the cells of a job.
pub(super) fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, TEMPLATE);
    vec![
        object.name().into(),
        status_of_job(object).into(),
        completions(object).into(),
        duration(object, now).into(),
        age(object, now).into(),
        names,
        images,
        selector(object.at("spec.selector")).into(),
    ]
}

fn status_of_job(job: &Value) -> &'static str {
    let holds = |kind: &str| job.condition(kind) == Some("True");
    match () {
        () if holds("Complete") => "Complete",
        () if holds("Failed") => "Failed",
        () if job.is_terminating() => "Terminating",
        () if holds("Suspended") => "Suspended",
        () if holds("FailureTarget") => "FailureTarget",
        () if holds("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

/// Returns how many pods have succeeded, and the total. A job with neither number wants one pod.
fn completions(job: &Value) -> String {
    let succeeded = job.count("status.succeeded");
    match (job.number("spec.completions"), job.number("spec.parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, Some(parallelism)) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

/// Returns how long the job has run.
fn duration(job: &Value, now: Timestamp) -> String {
    // A start or end with the zero time still counts as set.
    if job.at("status.startTime").is_none() {
        return String::new();
    }
    let start = time(job, "status.startTime").unwrap_or(Timestamp::MIN);
    let end = match job.at("status.completionTime") {
        Some(_) => time(job, "status.completionTime").unwrap_or(Timestamp::MIN),
        None => now,
    };
    human(end.duration_since(start))
}

/// Returns the cells of a cron job.
pub(super) fn cron_job(object: &Value, now: Timestamp) -> Vec<Value> {
    let template = "spec.jobTemplate.spec";
    let [names, images] = containers(object, &format!("{template}.template.spec.containers"));
    let last = match object.at("status.lastScheduleTime") {
        Some(_) => since(object, "status.lastScheduleTime", now),
        None => "<none>".into(),
    };
    let suspended = object.flag("spec.suspend") == Some(true);
    vec![
        object.name().into(),
        object.text("spec.schedule").into(),
        object.optional_text("spec.timeZone").unwrap_or("<none>").into(),
        if suspended { "True" } else { "False" }.into(),
        object.list("status.active").len().into(),
        last.into(),
        age(object, now).into(),
        names,
        images,
        selector(object.at(&format!("{template}.selector"))).into(),
    ]
}

/// Returns the cells of a disruption budget.
pub(super) fn pod_disruption_budget(object: &Value, now: Timestamp) -> Vec<Value> {
    let bound = |path: &str| match object.at(path) {
        None => "N/A".into(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    vec![
        object.name().into(),
        bound("spec.minAvailable").into(),
        bound("spec.maxUnavailable").into(),
        object.count("status.disruptionsAllowed").into(),
        age(object, now).into(),
    ]
}
