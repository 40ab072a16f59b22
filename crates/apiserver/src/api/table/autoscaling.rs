//! Horizontal pod autoscalers. Version 1 keeps most metrics in annotations, under older names.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::age;
use super::quantity::{optional_quantity, quantity};
use super::read::{Read, shortened};

/// How many metrics a cell lists before it only counts them.
const SHOWN: usize = 2;
/// The default CPU target, in percent.
const DEFAULT_CPU: i64 = 80;

/// Returns the cells of an autoscaler.
pub(super) fn horizontal_pod_autoscaler(object: &Value, now: Timestamp) -> Vec<Value> {
    let target = "spec.scaleTargetRef";
    let (kind, name) = (object.text(&format!("{target}.kind")), object.text(&format!("{target}.name")));
    vec![
        object.name().into(),
        format!("{kind}/{name}").into(),
        metrics(object).into(),
        object.number("spec.minReplicas").unwrap_or(1).to_string().into(),
        object.count("spec.maxReplicas").into(),
        object.count("status.currentReplicas").into(),
        age(object, now).into(),
    ]
}

fn metrics(object: &Value) -> String {
    let (mut specs, statuses) = if object.text("apiVersion") == "autoscaling/v1" {
        (Cow::Owned(first_version_specs(object)), Cow::Owned(first_version_statuses(object)))
    } else {
        (Cow::Borrowed(object.list("spec.metrics")), Cow::Borrowed(object.list("status.currentMetrics")))
    };
    if specs.is_empty() {
        specs = Cow::Owned(vec![cpu_target(DEFAULT_CPU)]);
    }
    let mut texts: Vec<String> =
        specs.iter().enumerate().map(|(index, spec)| metric(spec, statuses.get(index))).collect();
    let hidden = texts.len().saturating_sub(SHOWN);
    texts.truncate(SHOWN);
    shortened(&texts, ", ", hidden)
}

/// Returns one metric: its current and its target value.
fn metric(spec: &Value, status: Option<&Value>) -> String {
    let source = match spec.text("type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".into(),
    };
    let spec = spec.at(source).unwrap_or(&Value::Null);
    let current =
        status.and_then(|status| status.at(source)).map(|status| status.at("current").unwrap_or(&Value::Null));
    match source {
        "pods" => {
            let current = current.map_or_else(unknown, |current| optional_quantity(current.at("averageValue")));
            format!("{current}/{}", optional_quantity(spec.at("target.averageValue")))
        }
        "external" | "object" => counted(spec, current),
        _ => format!("{}: {}", spec.text("name"), used(spec, current)),
    }
}

/// Returns a metric with a quantity.
fn counted(spec: &Value, current: Option<&Value>) -> String {
    match spec.at("target.averageValue") {
        Some(target) => {
            let current = current.and_then(|current| current.at("averageValue"));
            let current = current.map_or_else(unknown, |average| quantity(Some(average)));
            format!("{current}/{} (avg)", quantity(Some(target)))
        }
        None => {
            let current = current.map_or_else(unknown, |current| optional_quantity(current.at("value")));
            format!("{current}/{}", optional_quantity(spec.at("target.value")))
        }
    }
}

/// Returns a resource metric: a quantity, or a percentage of the request.
fn used(spec: &Value, current: Option<&Value>) -> String {
    if let Some(target) = spec.at("target.averageValue") {
        let current = current.map_or_else(unknown, |current| optional_quantity(current.at("averageValue")));
        return format!("{current}/{}", quantity(Some(target)));
    }
    let percent = |number: Option<i64>| number.map(|number| format!("{number}%"));
    let current = percent(current.and_then(|current| current.number("averageUtilization")));
    let target = percent(spec.number("target.averageUtilization"));
    format!("{}/{}", current.unwrap_or_else(unknown), target.unwrap_or_else(|| "<auto>".into()))
}

fn unknown() -> String {
    "<unknown>".into()
}

fn cpu_target(percent: i64) -> Value {
    json!({ "type": "Resource", "resource": { "name": "cpu", "target": { "averageUtilization": percent } } })
}

/// Returns the list in a JSON annotation, if it is one.
fn annotated(object: &Value, key: &str) -> Option<Vec<Value>> {
    let text = object.entry("metadata.annotations", &format!("autoscaling.alpha.kubernetes.io/{key}"))?;
    match serde_json::from_str(text).ok()? {
        Value::Array(list) => Some(list),
        _ => None,
    }
}

/// Returns the metrics of version 1 in the form of version 2: those of the annotation, then the CPU target.
fn first_version_specs(object: &Value) -> Vec<Value> {
    let mut specs: Vec<Value> =
        annotated(object, "metrics").unwrap_or_default().iter().map(first_version_spec).collect();
    specs.extend(object.number("spec.targetCPUUtilizationPercentage").map(cpu_target));
    specs
}

fn first_version_spec(metric: &Value) -> Value {
    let kind = metric.text("type");
    let (source, target) = match kind {
        "External" => ("external", [("value", "targetValue"), ("averageValue", "targetAverageValue")].as_slice()),
        "Pods" => ("pods", [("averageValue", "targetAverageValue")].as_slice()),
        "Object" => ("object", [("value", "targetValue"), ("averageValue", "averageValue")].as_slice()),
        "Resource" => ("resource", FIRST_VERSION_TARGET),
        "ContainerResource" => ("containerResource", FIRST_VERSION_TARGET),
        _ => return json!({ "type": kind }),
    };
    let from = metric.at(source).unwrap_or(&Value::Null);
    let mut target = renamed(from, target);
    // These are plain quantities in version 1: never missing, and zero by default.
    match kind {
        "Pods" => fill(&mut target, "averageValue"),
        "Object" if from.at("averageValue").is_none() => fill(&mut target, "value"),
        _ => {}
    }
    json!({ "type": kind, source: { "name": from.text("name"), "target": target } })
}

const FIRST_VERSION_TARGET: &[(&str, &str)] =
    &[("averageUtilization", "targetAverageUtilization"), ("averageValue", "targetAverageValue")];

/// Returns the current values of version 1 in the form of version 2.
fn first_version_statuses(object: &Value) -> Vec<Value> {
    if let Some(statuses) = annotated(object, "current-metrics") {
        return statuses.iter().map(first_version_status).collect();
    }
    let percent = object.number("status.currentCPUUtilizationPercentage");
    let status = |percent| json!({ "resource": { "name": "cpu", "current": { "averageUtilization": percent } } });
    percent.map(status).into_iter().collect()
}

fn first_version_status(metric: &Value) -> Value {
    let mut status = json!({});
    let used = [("averageUtilization", "currentAverageUtilization"), ("averageValue", "currentAverageValue")];
    let counted = [("value", "currentValue"), ("averageValue", "currentAverageValue")];
    let described = [("value", "currentValue"), ("averageValue", "averageValue")];
    for (source, names, always) in [
        ("external", counted, "value"),
        ("object", described, "value"),
        ("pods", used, "averageValue"),
        ("resource", used, "averageValue"),
        ("containerResource", used, "averageValue"),
    ] {
        if let Some(from) = metric.at(source) {
            let mut current = renamed(from, &names);
            fill(&mut current, always);
            status[source] = json!({ "current": current });
        }
    }
    status
}

/// Returns the existing members of an object under new names.
fn renamed(from: &Value, names: &[(&str, &str)]) -> Value {
    names.iter().filter_map(|(new, old)| Some(((*new).to_owned(), from.at(old)?.clone()))).collect()
}

fn fill(amounts: &mut Value, member: &str) {
    if amounts.at(member).is_none() {
        amounts[member] = json!("0");
    }
}
