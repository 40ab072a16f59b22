//! The metrics of horizontal pod autoscalers.

use serde_json::Value;

use super::quantity::{optional_quantity, quantity};
use super::read::{ReadMember, shortened};

/// How many metrics a cell lists before it only counts them.
const SHOWN: usize = 2;

/// Returns the current and the target value of each metric.
pub(super) fn metrics(autoscaler: &Value) -> Value {
    let (specs, statuses) = (autoscaler.list("spec.metrics"), autoscaler.list("status.currentMetrics"));
    if specs.is_empty() {
        // The default target.
        return "cpu: <unknown>/80%".into();
    }
    let texts = specs.iter().enumerate().take(SHOWN).map(|(index, spec)| metric(spec, statuses.get(index)));
    shortened(&texts.collect::<Vec<_>>(), ", ", specs.len().saturating_sub(SHOWN)).into()
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
