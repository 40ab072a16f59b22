//! Tables of workload controllers: deployments, replica sets, stateful sets, daemon sets.

use jiff::Timestamp;
use serde_json::Value;

use super::age::age;
use super::label::{labels, plain_selector, selector};
use super::read::Read;

/// Returns the names and images of the containers in the list at the path.
pub(super) fn containers(object: &Value, path: &str) -> [Value; 2] {
    let containers = object.list(path);
    ["name", "image"].map(|member| {
        let texts: Vec<&str> = containers.iter().map(|container| container.text(member)).collect();
        texts.join(",").into()
    })
}

/// The path of the containers in a template.
pub(super) const TEMPLATE: &str = "spec.template.spec.containers";

/// Returns the desired number of pods; the default is one.
fn desired(object: &Value) -> i64 {
    object.number("spec.replicas").unwrap_or(1)
}

/// Returns the cells of a deployment.
pub(super) fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, TEMPLATE);
    vec![
        object.name().into(),
        format!("{}/{}", object.count("status.readyReplicas"), desired(object)).into(),
        object.count("status.updatedReplicas").into(),
        object.count("status.availableReplicas").into(),
        age(object, now).into(),
        names,
        images,
        plain_selector(object.at("spec.selector")).into(),
    ]
}

/// Returns the cells of a replica set.
pub(super) fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    replicas(object, selector(object.at("spec.selector")), now)
}

/// Returns the cells of a replication controller. Without a selector it selects by the labels of its template.
pub(super) fn replication_controller(object: &Value, now: Timestamp) -> Vec<Value> {
    let own = object.map("spec.selector").filter(|labels| !labels.is_empty());
    replicas(object, labels(own.or_else(|| object.map("spec.template.metadata.labels"))), now)
}

fn replicas(object: &Value, selector: String, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, TEMPLATE);
    vec![
        object.name().into(),
        desired(object).into(),
        object.count("status.replicas").into(),
        object.count("status.readyReplicas").into(),
        age(object, now).into(),
        names,
        images,
        selector.into(),
    ]
}

/// Returns the cells of a stateful set.
pub(super) fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, TEMPLATE);
    vec![
        object.name().into(),
        format!("{}/{}", object.count("status.readyReplicas"), desired(object)).into(),
        age(object, now).into(),
        names,
        images,
    ]
}

/// Returns the cells of a daemon set.
pub(super) fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, TEMPLATE);
    vec![
        object.name().into(),
        object.count("status.desiredNumberScheduled").into(),
        object.count("status.currentNumberScheduled").into(),
        object.count("status.numberReady").into(),
        object.count("status.updatedNumberScheduled").into(),
        object.count("status.numberAvailable").into(),
        labels(object.map("spec.template.spec.nodeSelector")).into(),
        age(object, now).into(),
        names,
        images,
        selector(object.at("spec.selector")).into(),
    ]
}

/// Returns the cells of a `Scale`.
pub(super) fn scale(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        object.name().into(),
        object.count("spec.replicas").into(),
        object.count("status.replicas").into(),
        age(object, now).into(),
    ]
}
