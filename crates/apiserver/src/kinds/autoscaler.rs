//! Horizontal pod autoscalers of version 1, which are stored as version 2. Fields that version 1 lacks are kept in
//! annotations, in a JSON form of their own.

use serde_json::{Map, Value, json};

use super::{form, types};

const PREFIX: &str = "autoscaling.alpha.kubernetes.io/";
/// The annotations: name, parent and member of the stored field, and the type of the field or its items.
const ANNOTATED: [(&str, &str, &str, &str); 4] = [
    ("metrics", "spec", "metrics", "autoscaling/v2.MetricSpec"),
    ("behavior", "spec", "behavior", "autoscaling/v2.HorizontalPodAutoscalerBehavior"),
    ("current-metrics", "status", "currentMetrics", "autoscaling/v2.MetricStatus"),
    ("conditions", "status", "conditions", "autoscaling/v2.HorizontalPodAutoscalerCondition"),
];

/// Converts an autoscaler to the stored version.
pub(super) fn to_stored(object: &mut Value) {
    let Some(object) = object.as_object_mut() else { return };
    for (part, old, list, target) in PERCENTAGES {
        let Some(part) = object.get_mut(part).and_then(Value::as_object_mut) else { continue };
        let Some(percent) = part.remove(old).filter(|percent| !percent.is_null()) else { continue };
        let mut used = json!({"averageUtilization": percent});
        if target == TARGET {
            used["type"] = "Utilization".into();
        }
        part.insert(list.to_owned(), json!([{"type": "Resource", "resource": {"name": "cpu", target: used}}]));
    }
    for (name, part, member, of) in ANNOTATED {
        let annotation = annotations(object).and_then(|annotations| annotations.remove(&format!("{PREFIX}{name}")));
        let value = annotation.and_then(|text| serde_json::from_str::<Value>(text.as_str()?).ok());
        let Some(mut value) = value.and_then(|value| read(name, value, of)) else { continue };
        let Some(part) = open(object, part) else { continue };
        // The CPU target has a field in version 1, and comes last.
        if let (Value::Array(items), Some(Value::Array(own)), "metrics") = (&mut value, part.get_mut(member), name) {
            items.append(own);
        }
        part.insert(member.to_owned(), value);
    }
    if let Some(spec) = open(object, "spec")
        && spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty)
    {
        let usual = json!({"type": "Utilization", "averageUtilization": 80});
        spec.insert("metrics".into(), json!([{"type": "Resource", "resource": {"name": "cpu", "target": usual}}]));
    }
    if annotations(object).is_some_and(|annotations| annotations.is_empty())
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("annotations");
    }
}

/// Converts the value of an annotation to its stored form, or returns `None` if it is invalid.
fn read(name: &str, value: Value, of: &str) -> Option<Value> {
    let of = types::named(of)?;
    let formed = |value: Value| form::form(of, value).ok().map(|formed| formed.object);
    if name == "behavior" {
        let behavior = formed(respelt(value, char::to_lowercase))?;
        return behavior.as_object().is_some_and(|members| !members.is_empty()).then_some(behavior);
    }
    let Value::Array(items) = value else { return None };
    let item = |item: Value| match name {
        "metrics" => formed(newer(&item, TARGET)?),
        "current-metrics" => formed(newer(&item, CURRENT)?),
        _ => formed(item),
    };
    items.into_iter().map(item).collect::<Option<Vec<_>>>().map(Value::Array)
}

/// The CPU percentages of version 1: parent and name, and the list and member of version 2.
const PERCENTAGES: [(&str, &str, &str, &str); 2] = [
    ("spec", "targetCPUUtilizationPercentage", "metrics", TARGET),
    ("status", "currentCPUUtilizationPercentage", "currentMetrics", CURRENT),
];

/// Converts a stored autoscaler to version 1.
pub(super) fn to_shown(object: &mut Value) {
    let Some(object) = object.as_object_mut() else { return };
    for (part, old, list, target) in PERCENTAGES {
        let Some(part) = object.get_mut(part).and_then(Value::as_object_mut) else { continue };
        let Some(metrics) = part.get_mut(list).and_then(Value::as_array_mut) else { continue };
        let percent = |metric: &Value| {
            let used = &metric["resource"][target]["averageUtilization"];
            let of_processors = metric["type"] == "Resource" && metric["resource"]["name"] == "cpu";
            Some(used.clone()).filter(|used| of_processors && !used.is_null())
        };
        let found = if target == TARGET {
            let first = metrics.iter().find_map(percent);
            metrics.retain(|metric| percent(metric).is_none());
            first
        } else {
            // A quantity beside the percentage has no field in version 1, only the annotation.
            metrics.iter().filter_map(percent).next_back()
        };
        if let Some(percent) = found {
            part.insert(old.to_owned(), percent);
        }
    }
    // Version 2 omits a zero, and version 1 shows it.
    if let Some(status) = open(object, "status") {
        status.entry("currentReplicas").or_insert_with(|| 0.into());
    }
    for (name, part, member, _) in ANNOTATED {
        let found = object.get_mut(part).and_then(Value::as_object_mut).and_then(|part| part.remove(member));
        let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if let Some(value) = found.filter(|value| !empty(value))
            && let Some(metadata) = open(object, "metadata")
            && let Some(annotations) = open(metadata, "annotations")
        {
            let value = match (name, value) {
                ("metrics", Value::Array(items)) => items.iter().map(|metric| older(metric, TARGET)).collect(),
                ("current-metrics", Value::Array(items)) => items.iter().map(|metric| older(metric, CURRENT)).collect(),
                ("behavior", value) => respelt(value, char::to_uppercase),
                (_, value) => value,
            };
            annotations.insert(format!("{PREFIX}{name}"), value.to_string().into());
        }
    }
}

/// The members with the target and the current values of a metric.
const TARGET: &str = "target";
const CURRENT: &str = "current";

/// The source of a metric, in both versions.
struct Source {
    name: &'static str,
    /// The name of the metric selector in version 1.
    selector: Option<&'static str>,
    /// The quantities, with their names in version 2 and version 1, and whether version 1 always has the first of them.
    target: [(&'static str, &'static str); 2],
    target_always: bool,
    current: [(&'static str, &'static str); 2],
    current_always: bool,
}

const SOURCES: [Source; 5] = [
    resource("resource"),
    resource("containerResource"),
    Source {
        name: "pods",
        selector: Some("selector"),
        target: [("averageValue", "targetAverageValue"), ("", "")],
        target_always: true,
        current: [("averageValue", "currentAverageValue"), ("", "")],
        current_always: true,
    },
    Source {
        name: "object",
        selector: Some("selector"),
        target: [("value", "targetValue"), ("averageValue", "averageValue")],
        target_always: true,
        current: [("value", "currentValue"), ("averageValue", "averageValue")],
        current_always: true,
    },
    Source {
        name: "external",
        selector: Some("metricSelector"),
        target: [("value", "targetValue"), ("averageValue", "targetAverageValue")],
        target_always: false,
        current: [("value", "currentValue"), ("averageValue", "currentAverageValue")],
        current_always: true,
    },
];

const fn resource(name: &'static str) -> Source {
    Source {
        name,
        selector: None,
        target: [("averageValue", "targetAverageValue"), ("averageUtilization", "targetAverageUtilization")],
        target_always: false,
        current: [("averageValue", "currentAverageValue"), ("averageUtilization", "currentAverageUtilization")],
        current_always: true,
    }
}

impl Source {
    fn amounts(&self, side: &str) -> (&[(&'static str, &'static str); 2], bool) {
        if side == TARGET { (&self.target, self.target_always) } else { (&self.current, self.current_always) }
    }
}

/// Copies a value to another name, if it exists.
fn give(from: &Value, name: &str, to: &mut Map<String, Value>, new: &str) {
    if let Some(value) = from.get(name).filter(|value| !value.is_null()) {
        to.insert(new.to_owned(), value.clone());
    }
}

/// Converts a metric of version 1 to version 2, or returns `None` if it is invalid.
fn newer(metric: &Value, side: &str) -> Option<Value> {
    let mut made = Map::new();
    give(metric.as_object().map(|_| metric)?, "type", &mut made, "type");
    for source in &SOURCES {
        let Some(from) = metric.get(source.name).filter(|from| !from.is_null()) else { continue };
        from.as_object()?;
        let (mut to, mut amounts) = (Map::new(), Map::new());
        match source.selector {
            None => ["name", "container"].into_iter().for_each(|name| give(from, name, &mut to, name)),
            Some(selector) => {
                let mut of = Map::new();
                give(from, "metricName", &mut of, "name");
                give(from, selector, &mut of, "selector");
                to.insert("metric".into(), of.into());
            }
        }
        let (names, always) = source.amounts(side);
        names.iter().for_each(|(new, old)| give(from, old, &mut amounts, new));
        // A target with an average needs no total, but version 1 cannot omit the total.
        let averaged = source.name == "object" && side == TARGET && amounts.contains_key("averageValue");
        if averaged && amounts.get("value").is_some_and(|whole| whole == "0") {
            amounts.remove("value");
        } else if always && !averaged {
            amounts.entry(names[0].0).or_insert_with(|| "0".into());
        }
        if source.name == "object" {
            give(from, "target", &mut to, "describedObject");
        }
        if side == TARGET {
            let kind = match source.name {
                "resource" | "containerResource" if amounts.contains_key("averageUtilization") => "Utilization",
                "external" if amounts.contains_key("value") => "Value",
                "object" if !averaged => "Value",
                _ => "AverageValue",
            };
            amounts.insert("type".into(), kind.into());
        }
        to.insert(side.to_owned(), amounts.into());
        made.insert(source.name.to_owned(), to.into());
    }
    Some(made.into())
}

/// Converts a metric of version 2 to version 1.
fn older(metric: &Value, side: &str) -> Value {
    let mut made = Map::new();
    give(metric, "type", &mut made, "type");
    for source in &SOURCES {
        let Some(from) = metric.get(source.name).filter(|from| from.is_object()) else { continue };
        let mut to = Map::new();
        match source.selector {
            None => ["name", "container"].into_iter().for_each(|name| give(from, name, &mut to, name)),
            Some(selector) => {
                give(&from["metric"], "name", &mut to, "metricName");
                give(&from["metric"], "selector", &mut to, selector);
            }
        }
        let (names, always) = source.amounts(side);
        names.iter().for_each(|(new, old)| give(&from[side], new, &mut to, old));
        if always {
            to.entry(names[0].1).or_insert_with(|| "0".into());
        }
        if source.name == "object" {
            give(from, "describedObject", &mut to, "target");
        }
        made.insert(source.name.to_owned(), to.into());
    }
    made.into()
}

/// Changes the first letter of each name: the annotation of the behaviour uses Go's member names.
fn respelt<L: Iterator<Item = char>>(value: Value, letter: fn(char) -> L) -> Value {
    match value {
        Value::Object(members) => {
            let respelt_name = |name: String| {
                let mut letters = name.chars();
                letters.next().into_iter().flat_map(letter).chain(letters).collect::<String>()
            };
            members.into_iter().map(|(name, value)| (respelt_name(name), respelt(value, letter))).collect()
        }
        Value::Array(items) => items.into_iter().map(|item| respelt(item, letter)).collect(),
        other => other,
    }
}

fn annotations(object: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}

/// Returns a member that is an object, and creates it if it is missing.
fn open<'a>(object: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    object.entry(name).or_insert_with(|| json!({})).as_object_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_missing_in_version_1_are_kept_in_annotations() {
        let memory = json!({"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 70}}});
        let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}});
        let stored =
            json!({"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "metrics": [cpu, memory]}, "status": {}});
        let mut shown = stored.clone();
        to_shown(&mut shown);
        assert_eq!(shown["spec"], json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}));
        assert!(shown["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"].is_string());
        to_stored(&mut shown);
        let kinds = |object: &Value| -> Vec<Value> {
            object["spec"]["metrics"]
                .as_array()
                .unwrap()
                .iter()
                .map(|metric| metric["resource"]["name"].clone())
                .collect()
        };
        assert_eq!(
            (kinds(&shown), shown["metadata"].clone()),
            (vec![json!("memory"), json!("cpu")], json!({"name": "a"}))
        );
    }
}
