//! What a pod as a whole requests and may use, and how well it is served for that.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::kinds::rules::json::{Object, child, items, length, object_at, object_at_mut, open, text};
use crate::kinds::rules::quantity::Quantity;

type Amounts = BTreeMap<String, Quantity>;

fn amounts(resources: Option<&Object>, list: &str) -> Amounts {
    let list = resources.and_then(|resources| child(resources, list)).into_iter().flatten();
    list.filter_map(|(name, amount)| Some((name.clone(), Quantity::parse(amount.as_str()?)?))).collect()
}

fn add(into: &mut Amounts, from: &Amounts) {
    for (name, amount) in from {
        into.entry(name.clone()).and_modify(|sum| *sum = sum.plus(*amount)).or_insert(*amount);
    }
}

fn raise(into: &mut Amounts, from: &Amounts) {
    for (name, amount) in from {
        let most = into.entry(name.clone()).or_insert(*amount);
        if amount.value() > most.value() {
            *most = *amount;
        }
    }
}

/// What all containers need at the same time: those that run first, one after the other, or all that run then.
fn together(spec: &Object, list: &str) -> Amounts {
    let of = |container: &Object| amounts(child(container, "resources"), list);
    let mut sum = Amounts::new();
    items(spec, "containers").for_each(|container| add(&mut sum, &of(container)));
    let (mut beside, mut first) = (Amounts::new(), Amounts::new());
    for container in items(spec, "initContainers") {
        let mut own = of(container);
        if text(container, "restartPolicy") == "Always" {
            add(&mut sum, &own);
            add(&mut beside, &own);
            own = beside.clone();
        } else {
            add(&mut own, &beside);
        }
        raise(&mut first, &own);
    }
    raise(&mut sum, &first);
    sum
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_for_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_page(name)
}

/// Fills in what a pod that says something about its resources says nothing about.
pub(super) fn fill(pod: &mut Value) {
    let Some(spec) = object_at_mut(pod, "spec") else { return };
    let resources = child(spec, "resources");
    let (mut requests, mut limits) = (amounts(resources, "requests"), amounts(resources, "limits"));
    if requests.is_empty() && limits.is_empty() {
        return;
    }
    let (needed, allowed) = (together(spec, "requests"), together(spec, "limits"));
    for (name, amount) in &allowed {
        if is_huge_page(name) && !requests.contains_key(name) {
            limits.entry(name.clone()).or_insert(*amount);
        }
    }
    for (name, amount) in needed.iter().filter(|(name, _)| !is_huge_page(name)).chain(&limits) {
        if is_for_pods(name) {
            requests.entry(name.clone()).or_insert(*amount);
        }
    }
    for (name, request) in requests.iter().filter(|(name, _)| is_for_pods(name)) {
        if !limits.contains_key(name) && all_limit(spec, name) {
            let Some(limit) = allowed.get(name) else { continue };
            limits.insert(name.clone(), if request.value() > limit.value() { *request } else { *limit });
        }
    }
    let resources = open(spec, "resources");
    for (list, amounts) in [("requests", requests), ("limits", limits)] {
        for (name, amount) in amounts {
            open(resources, list).entry(name).or_insert_with(|| amount.to_string().into());
        }
    }
}

/// Whether every container says how much of a resource it may use.
fn all_limit(spec: &Object, name: &str) -> bool {
    ["containers", "initContainers", "ephemeralContainers"].into_iter().flat_map(|list| items(spec, list)).all(|own| {
        let limits = child(own, "resources").and_then(|resources| child(resources, "limits"));
        limits.is_some_and(|limits| limits.contains_key(name))
    })
}

/// How well a pod is served: the less it may use beyond what it requests, the better.
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
        let of = |amounts: &Amounts| amounts.get(name).map_or(0, |amount| amount.value());
        match (of(&requests), of(&limits)) {
            (request, limit) if request != limit => "Burstable",
            (0, _) => "BestEffort",
            _ => "Guaranteed",
        }
    };
    let (cpu, memory) = (one("cpu"), one("memory"));
    if cpu == memory { cpu } else { "Burstable" }
}
