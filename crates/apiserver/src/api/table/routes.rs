//! Tables of ingresses, network policies and address ranges.

use jiff::Timestamp;
use serde_json::Value;

use super::age::age;
use super::label::selector;
use super::network::load_balancer;
use super::read::{Read, shortened};

/// How many hosts a cell lists before it only counts them.
const SHOWN: usize = 3;

/// Returns the cells of an ingress.
pub(super) fn ingress(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports = if object.list("spec.tls").is_empty() { "80" } else { "80, 443" };
    vec![
        object.name().into(),
        object.optional_text("spec.ingressClassName").unwrap_or("<none>").into(),
        hosts(object.list("spec.rules")).into(),
        load_balancer(object).into(),
        ports.into(),
        age(object, now).into(),
    ]
}

/// Returns the hosts of the rules. Rules after the third host are counted, even without a host.
fn hosts(rules: &[Value]) -> String {
    let mut shown = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= shown.len() == SHOWN;
        if let (false, Some(host)) = (more, rule.filled("host")) {
            shown.push(host.to_owned());
        }
    }
    match shown.is_empty() {
        true => "*".into(),
        false => shortened(&shown, ",", if more { rules.len() - SHOWN } else { 0 }),
    }
}

/// Returns the cells of an ingress class.
pub(super) fn ingress_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let default = object.entry("metadata.annotations", "ingressclass.kubernetes.io/is-default-class") == Some("true");
    let mark = if default { " (default)" } else { "" };
    vec![
        format!("{}{mark}", object.name()).into(),
        object.text("spec.controller").into(),
        object.at("spec.parameters").map_or_else(|| "<none>".into(), parameters).into(),
        age(object, now).into(),
    ]
}

fn parameters(reference: &Value) -> String {
    let (kind, name) = (reference.text("kind"), reference.text("name"));
    match reference.optional_text("apiGroup") {
        Some(group) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

/// Returns the cells of a network policy.
pub(super) fn network_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![object.name().into(), selector(object.at("spec.podSelector")).into(), age(object, now).into()]
}

/// Returns the cells of an address in use.
pub(super) fn ip_address(object: &Value, now: Timestamp) -> Vec<Value> {
    let parent = object.at("spec.parentRef").map_or_else(|| "<none>".into(), parent);
    vec![object.name().into(), parent.into(), age(object, now).into()]
}

fn parent(reference: &Value) -> String {
    let (group, resource) = (reference.text("group"), reference.text("resource"));
    let resource = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    let mut parent = resource.to_lowercase();
    for part in reference.filled("namespace").into_iter().chain([reference.text("name")]) {
        parent.push('/');
        parent.push_str(part);
    }
    parent
}

/// Returns the cells of a range of addresses for services.
pub(super) fn service_cidr(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![object.name().into(), object.joined("spec.cidrs", ",").into(), age(object, now).into()]
}
