//! Creates on a subresource that store no object there: evictions and bindings.

use http::Response;
use serde_json::{Value, json};

use crate::api::review;
use crate::api::selector::LabelSelector;
use crate::api::write::{self, DeleteOptions, WriteFailure, WriteOptions};
use crate::hub::Hub;
use crate::kinds::Resource;
use crate::message::reply::{Body, json_reply};
use crate::status::{Status, StatusCause, StatusDetails};
use crate::storage::key::StoreKey;
use crate::storage::object::StoredObject;

/// The subresources that a create acts on: resource, name, and the group, version and kind of the request body.
pub(crate) const PARTS: [(&str, &str, [&str; 3]); 3] = [
    ("pods", "binding", ["", "v1", "Binding"]),
    ("pods", "eviction", ["policy", "v1", "Eviction"]),
    ("serviceaccounts", "token", ["authentication.k8s.io", "v1", "TokenRequest"]),
];

/// Performs a create on a subresource of the object at `key`.
pub(crate) fn act(
    hub: &Hub,
    resource: &Resource,
    part: &str,
    key: &StoreKey,
    sent: &Value,
    options: &WriteOptions,
) -> Result<Response<Body>, WriteFailure> {
    match part {
        "binding" => bind(hub, resource, key, sent, options),
        "eviction" => evict(hub, resource, key, sent, options),
        "token" => review::token(hub, resource, key, sent.clone()),
        _ => Err(Status::no_such_resource().into()),
    }
}

fn done() -> Response<Body> {
    json_reply(201, Status { code: 201, ..Status::failure(201, "", "") }.to_json())
}

/// Sets the node of a pod, once.
fn bind(
    hub: &Hub,
    pods: &Resource,
    key: &StoreKey,
    sent: &Value,
    options: &WriteOptions,
) -> Result<Response<Body>, WriteFailure> {
    if sent["metadata"]["name"].as_str().unwrap_or_default() != key.name() {
        return Err(Status::bad_request("name in URL does not match name in Binding object").into());
    }
    check_target(&sent["target"])?;
    let host = WriteOptions { dry_run: options.dry_run, ..WriteOptions::host() };
    write::patch_unowned(hub, pods, key, &host, |pod| {
        write::check_conditions(pods, key, pod, sent)?;
        if let Some(why) = unfit(key.name(), pod) {
            let message = format!("Operation cannot be fulfilled on pods/binding \"{}\": {why}", key.name());
            let details = StatusDetails { kind: "pods/binding".into(), ..pods.details(key.name()) };
            return Err(Status::failure(409, "Conflict", message).with_details(details).into());
        }
        Ok(bound(pod.clone(), sent, hub))
    })?;
    Ok(done())
}

/// Checks the target of a binding. As in kube-apiserver, the error has no reason.
fn check_target(target: &Value) -> Result<(), Status> {
    let text = |member: &str| target[member].as_str().unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let is_node = matches!(kind, "" | "Node");
    let mut wrong = Vec::new();
    if !is_node {
        wrong.push(format!("target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\""));
    }
    if name.is_empty() {
        wrong.push("target.name: Required value".to_owned());
    } else if let Some(why) = write::subdomain(name).filter(|_| is_node) {
        wrong.push(format!("target.name: Invalid value: {name:?}: {why}"));
    }
    match wrong.as_slice() {
        [] => Ok(()),
        [one] => Err(Status::failure(500, "", one)),
        several => Err(Status::failure(500, "", format!("[{}]", several.join(", ")))),
    }
}

/// Returns why a pod cannot be bound, or `None` if it can.
fn unfit(name: &str, pod: &Value) -> Option<String> {
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return Some(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    if let Some(known) = pod["spec"]["nodeName"].as_str().filter(|known| !known.is_empty()) {
        return Some(format!("pod {name} is already assigned to node {known:?}"));
    }
    let gates = pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    gates.then(|| format!("pod {name} has non-empty .spec.schedulingGates"))
}

/// Returns the bound pod, with the labels and annotations of the binding.
fn bound(mut pod: Value, binding: &Value, hub: &Hub) -> Value {
    pod["spec"]["nodeName"] = binding["target"]["name"].clone();
    for member in ["annotations", "labels"] {
        let Some(more) = binding["metadata"][member].as_object().filter(|more| !more.is_empty()) else { continue };
        match pod["metadata"][member].as_object_mut() {
            Some(known) => known.extend(more.clone()),
            None => pod["metadata"][member] = more.clone().into(),
        }
    }
    if let Some(status) = pod["status"].as_object_mut() {
        status.remove("nominatedNodeName");
    }
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": hub.clock.now_text()});
    let Some(conditions) = pod["status"]["conditions"].as_array_mut() else {
        pod["status"]["conditions"] = json!([scheduled]);
        return pod;
    };
    match conditions.iter_mut().find(|condition| condition["type"] == "PodScheduled") {
        Some(known) => *known = scheduled,
        None => conditions.push(scheduled),
    }
    pod
}

/// Deletes a pod, unless a disruption budget forbids it.
fn evict(
    hub: &Hub,
    pods: &Resource,
    key: &StoreKey,
    sent: &Value,
    asked: &WriteOptions,
) -> Result<Response<Body>, WriteFailure> {
    if sent["metadata"]["name"].as_str().unwrap_or_default() != key.name() {
        return Err(Status::bad_request("name in URL does not match name in Eviction object").into());
    }
    let mut options = match &sent["deleteOptions"] {
        Value::Null => DeleteOptions::default(),
        options => DeleteOptions::from_value(options.clone())?,
    };
    options.dry_run |= asked.dry_run;
    let (pod, budgets, found) = {
        let mut state = hub.storage.lock();
        let pod = state.object(pods, key).ok_or_else(|| WriteFailure::not_found(pods, key.name()))?;
        let budgets = state.catalog.named("poddisruptionbudgets.policy").cloned();
        let found: Vec<_> = match &budgets {
            Some(budgets) => state.collection(budgets).objects().values().cloned().collect(),
            None => Vec::new(),
        };
        (pod, budgets, found)
    };
    let value = pod.value();
    // A pod that has finished, not started or is being deleted does not count for a disruption budget.
    let disturbs = !pod.is_marked() && !matches!(phase(&value), "Succeeded" | "Failed" | "Pending");
    let covering = found.iter().find(|budget| budget.key.namespace() == key.namespace() && covers(budget, &pod));
    if let (Some(budget), Some(budgets), true) = (covering, budgets, disturbs)
        && (is_ready(&value) || counts_unready(&budget.value()))
    {
        let host = WriteOptions { dry_run: options.dry_run, ..WriteOptions::host() };
        write::patch_with(hub, &budgets, &budget.key, &host, |budget| Ok(spend(budget, key, hub)?))?;
    }
    write::delete(hub, pods, key, &options)?;
    Ok(done())
}

fn phase(pod: &Value) -> &str {
    pod["status"]["phase"].as_str().unwrap_or_default()
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Returns whether the budget also guards pods that are not ready: only while too few pods are ready.
fn counts_unready(budget: &Value) -> bool {
    let status = |member: &str| budget["status"][member].as_i64().unwrap_or(0);
    let (healthy, desired) = (status("currentHealthy"), status("desiredHealthy"));
    budget["spec"]["unhealthyPodEvictionPolicy"] != "AlwaysAllow" && !(healthy >= desired && desired > 0)
}

fn covers(budget: &StoredObject, pod: &StoredObject) -> bool {
    let selector = &budget.value()["spec"]["selector"];
    LabelSelector::of(selector).is_some_and(|selector| selector.matches(pod))
}

/// Takes one disruption from a budget, if one is left.
fn spend(budget: &Value, pod: &StoreKey, hub: &Hub) -> Result<Value, Status> {
    let allowed = budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0);
    if allowed <= 0 {
        let name = budget["metadata"]["name"].as_str().unwrap_or_default();
        let (healthy, desired) = (&budget["status"]["currentHealthy"], &budget["status"]["desiredHealthy"]);
        let cause = StatusCause::new(
            "DisruptionBudget",
            "",
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"),
        );
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let details = StatusDetails { causes: vec![cause], ..StatusDetails::default() };
        return Err(Status::failure(429, "TooManyRequests", message).with_details(details));
    }
    let mut budget = budget.clone();
    budget["status"]["disruptionsAllowed"] = (allowed - 1).into();
    if !budget["status"]["disruptedPods"].is_object() {
        budget["status"]["disruptedPods"] = json!({});
    }
    budget["status"]["disruptedPods"][pod.name()] = hub.clock.now_text().into();
    Ok(budget)
}
