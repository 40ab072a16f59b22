//! Tables of cluster objects: namespaces, nodes, quotas, leases, priority classes, CRDs.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::age::{age, created_at};
use super::quantity::quantity;
use super::read::{Read, or};

/// Returns the cells of a namespace.
pub(super) fn namespace(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![object.name().into(), or(object.text("status.phase"), "Active").into(), age(object, now).into()]
}

/// Returns the cells of a node.
pub(super) fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    let info = |member: &str| object.text(&format!("status.nodeInfo.{member}")).to_owned();
    let known = |member: &str| or(&info(member), "<unknown>").to_owned();
    let architecture = match info("architecture").as_str() {
        "" => String::new(),
        architecture => format!(" ({architecture})"),
    };
    vec![
        object.name().into(),
        status_of_node(object).into(),
        or(&roles(object), "<none>").into(),
        age(object, now).into(),
        info("kubeletVersion").into(),
        address(object, "InternalIP").into(),
        address(object, "ExternalIP").into(),
        known("osImage").into(),
        format!("{}{architecture}", known("kernelVersion")).into(),
        known("containerRuntimeVersion").into(),
    ]
}

fn status_of_node(node: &Value) -> String {
    // The last condition of a type counts here.
    let ready = node.list("status.conditions").iter().rfind(|condition| condition.text("type") == "Ready");
    let status = match ready.map(|condition| condition.text("status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let disabled = if node.flag("spec.unschedulable") == Some(true) { ",SchedulingDisabled" } else { "" };
    format!("{status}{disabled}")
}

/// Returns the roles in the node's labels, sorted and without duplicates.
fn roles(node: &Value) -> String {
    let labels = node.map("metadata.labels").into_iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.into_iter().collect::<Vec<_>>().join(",")
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    let address = node.list("status.addresses").iter().find(|address| address.text("type") == kind);
    address.map_or("<none>", |address| address.text("address"))
}

/// Returns the cells of a quota, with limits separate from requests.
pub(super) fn resource_quota(object: &Value, now: Timestamp) -> Vec<Value> {
    let used = object.map("status.used");
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in object.map("status.hard").into_iter().flatten() {
        let used = quantity(used.and_then(|used| used.get(resource)));
        let text = format!("{resource}: {used}/{}", quantity(Some(hard)));
        if resource.starts_with("limits.") { limits.push(text) } else { requests.push(text) }
    }
    vec![object.name().into(), requests.join(", ").into(), limits.join(", ").into(), age(object, now).into()]
}

/// Returns the cells of a lease.
pub(super) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![object.name().into(), object.text("spec.holderIdentity").into(), age(object, now).into()]
}

/// Returns the cells of a priority class.
pub(super) fn priority_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        object.name().into(),
        object.count("value").into(),
        object.flag("globalDefault").unwrap_or(false).into(),
        age(object, now).into(),
        object.optional_text("preemptionPolicy").unwrap_or("PreemptLowerPriority").into(),
    ]
}

/// Returns the cells of a CRD.
pub(super) fn custom_resource_definition(object: &Value, _: Timestamp) -> Vec<Value> {
    let mut versions: Vec<String> = object
        .list("spec.versions")
        .iter()
        .filter(|version| version.flag("served") == Some(true))
        .map(|version| {
            let stored = if version.flag("storage") == Some(true) { "(storage)" } else { "" };
            format!("{}{stored}", version.text("name"))
        })
        .collect();
    versions.sort_unstable();
    let established = |condition: &Value| condition.text("type") == "Established" && condition.text("status") == "True";
    vec![
        object.name().into(),
        object.text("spec.scope").into(),
        versions.join(",").into(),
        created_at(object).into(),
        object.text("spec.group").into(),
        object.text("spec.names.kind").into(),
        object.joined("spec.names.shortNames", ",").into(),
        object.list("status.conditions").iter().any(established).into(),
    ]
}
