//! The QoS class of a pod.

use std::collections::BTreeMap;

use kube_structural_schema::Quantity;
use serde_json::Value;

use crate::kinds::rules::json::{Object, child, items, length, object_at};

type Amounts = BTreeMap<String, Quantity>;

fn amounts(resources: Option<&Object>, list: &str) -> Amounts {
    let list = resources.and_then(|resources| child(resources, list)).into_iter().flatten();
    list.filter_map(|(name, amount)| Some((name.clone(), Quantity::parse(amount.as_str()?).ok()?))).collect()
}

fn is_for_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// Returns the QoS class of a pod, from its requests and limits.
pub(super) fn class(pod: &Value) -> &'static str {
    let nothing = Object::new();
    let spec = object_at(pod, "spec").unwrap_or(&nothing);
    let whole = child(spec, "resources").filter(|resources| {
        ["requests", "limits"]
            .into_iter()
            .filter_map(|list| child(resources, list))
            .flatten()
            .any(|(name, _)| is_for_pods(name))
    });
    if let Some(whole) = whole {
        return class_of(Some(whole));
    }
    let mut classes = items(spec, "initContainers")
        .chain(items(spec, "containers"))
        .map(|container| class_of(child(container, "resources")));
    let Some(first) = classes.next() else { return "BestEffort" };
    if classes.all(|class| class == first) { first } else { "Burstable" }
}

fn class_of(resources: Option<&Object>) -> &'static str {
    if resources.is_none_or(|resources| length(resources, "requests") + length(resources, "limits") == 0) {
        return "BestEffort";
    }
    let (requests, limits) = (amounts(resources, "requests"), amounts(resources, "limits"));
    let one = |name: &str| {
        let of = |amounts: &Amounts| amounts.get(name).copied().unwrap_or_default();
        match (of(&requests), of(&limits)) {
            (request, limit) if request != limit => "Burstable",
            (request, _) if request == Quantity::default() => "BestEffort",
            _ => "Guaranteed",
        }
    };
    let (cpu, memory) = (one("cpu"), one("memory"));
    if cpu == memory { cpu } else { "Burstable" }
}
