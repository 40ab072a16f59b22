//! Validation of services and of their updates.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Cause, name};
use crate::kinds::rules::json::{Object, is_there, items, length, number, object_at, text};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

fn is_headless(spec: &Object) -> bool {
    length(spec, "clusterIPs") == 1 && text(spec, "clusterIP") == "None"
}

pub(super) fn check(service: &Value, causes: &mut Vec<Cause>) {
    let nothing = Object::new();
    let spec = object_at(service, "spec").unwrap_or(&nothing);
    let kind = text(spec, "type");
    if length(spec, "ports") == 0 && !is_headless(spec) && kind != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    if is_headless(spec) && matches!(kind, "LoadBalancer" | "NodePort") {
        let detail = format!("may not be set to 'None' for {kind} services");
        causes.push(Cause::invalid("spec.clusterIPs[0]", Some(&json!("None")), &detail));
    }
    if kind == "ExternalName" {
        check_external(spec, causes);
    }
    check_ports(spec, causes);
    let affinities = ["ClientIP", "None"];
    if !affinities.contains(&text(spec, "sessionAffinity")) {
        causes.push(Cause::unsupported("spec.sessionAffinity", spec.get("sessionAffinity"), &affinities));
    }
    let first = spec.get("clusterIPs").and_then(|list| list.get(0)).and_then(Value::as_str);
    if first.is_some_and(|first| first != text(spec, "clusterIP")) && kind != "ExternalName" {
        let detail = match text(spec, "clusterIP") {
            "" => "must be empty when `clusterIP` is not specified",
            _ => "first value must match `clusterIP`",
        };
        causes.push(Cause::invalid("spec.clusterIPs", spec.get("clusterIPs"), detail));
    }
    if !TYPES.contains(&kind) {
        causes.push(Cause::unsupported("spec.type", spec.get("type"), &TYPES));
    }
    check_node_ports(spec, causes);
    check_same_ports(spec, causes);
    for key in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if is_there(spec, key) && kind != "LoadBalancer" {
            let detail = "may only be used when `type` is 'LoadBalancer'";
            causes.push(Cause::forbidden(format!("spec.{key}"), detail));
        }
    }
}

fn check_external(spec: &Object, causes: &mut Vec<Cause>) {
    for key in ["clusterIPs", "ipFamilies"] {
        if length(spec, key) > 0 {
            causes.push(Cause::forbidden(format!("spec.{key}"), "may not be set for ExternalName services"));
        }
    }
    if is_there(spec, "ipFamilyPolicy") {
        causes.push(Cause::forbidden("spec.ipFamilyPolicy", "may not be set for ExternalName services"));
    }
    let target = text(spec, "externalName");
    match target.strip_suffix('.').unwrap_or(target) {
        "" => causes.push(Cause::required("spec.externalName", "")),
        target => name::check_subdomain(target, "spec.externalName", causes),
    }
}

fn check_ports(spec: &Object, causes: &mut Vec<Cause>) {
    let (several, mut names) = (length(spec, "ports") > 1, BTreeSet::new());
    for (index, port) in items(spec, "ports").enumerate() {
        let (field, own) = (format!("spec.ports[{index}]"), text(port, "name"));
        if own.is_empty() && several {
            causes.push(Cause::required(format!("{field}.name"), ""));
        } else if !own.is_empty() {
            name::check_label(own, &format!("{field}.name"), causes);
            if !names.insert(own) {
                causes.push(Cause::duplicate(format!("{field}.name"), &json!(own)));
            }
        }
        name::check_port(number(port, "port"), &format!("{field}.port"), causes);
        if !PROTOCOLS.contains(&text(port, "protocol")) {
            causes.push(Cause::unsupported(format!("{field}.protocol"), port.get("protocol"), &PROTOCOLS));
        }
        match port.get("targetPort") {
            Some(Value::String(target)) => name::check_port_name(target, &format!("{field}.targetPort"), causes),
            Some(Value::Number(_)) => {
                name::check_port(number(port, "targetPort"), &format!("{field}.targetPort"), causes)
            }
            _ => {}
        }
    }
}

fn check_node_ports(spec: &Object, causes: &mut Vec<Cause>) {
    if text(spec, "type") == "ClusterIP" {
        for (index, _) in items(spec, "ports").enumerate().filter(|(_, port)| number(port, "nodePort") != 0) {
            let detail = "may not be used when `type` is 'ClusterIP'";
            causes.push(Cause::forbidden(format!("spec.ports[{index}].nodePort"), detail));
        }
    }
    let mut taken = BTreeSet::new();
    for (index, port) in items(spec, "ports").enumerate().filter(|(_, port)| number(port, "nodePort") != 0) {
        let node_port = number(port, "nodePort");
        if !taken.insert((text(port, "protocol"), node_port)) {
            causes.push(Cause::duplicate(format!("spec.ports[{index}].nodePort"), &json!(node_port)));
        }
    }
}

fn check_same_ports(spec: &Object, causes: &mut Vec<Cause>) {
    let mut taken = BTreeSet::new();
    for (index, port) in items(spec, "ports").enumerate() {
        let (protocol, number) = (text(port, "protocol"), number(port, "port"));
        if !taken.insert((protocol, number)) {
            causes.push(Cause::duplicate(format!("spec.ports[{index}]"), &json!(port)));
        }
    }
}

/// Checks the immutable fields of a service.
pub(super) fn check_update(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let nothing = Object::new();
    let (old, new) = (object_at(old, "spec").unwrap_or(&nothing), object_at(new, "spec").unwrap_or(&nothing));
    let is_external = |spec: &Object| text(spec, "type") == "ExternalName";
    let has_none = is_external(old) || is_external(new) || (is_headless(old) && is_headless(new));
    if !has_none {
        check_addresses(old, new, causes);
    }
    let is_balanced = |spec: &Object| text(spec, "type") == "LoadBalancer";
    if is_balanced(old) && is_balanced(new) && old.get("loadBalancerClass") != new.get("loadBalancerClass") {
        let value = new.get("loadBalancerClass");
        causes.push(Cause::invalid("spec.loadBalancerClass", value, "may not change once set"));
    }
    let checks_health = |spec: &Object| is_balanced(spec) && text(spec, "externalTrafficPolicy") == "Local";
    let (before, after) = (number(old, "healthCheckNodePort"), number(new, "healthCheckNodePort"));
    if checks_health(old) && checks_health(new) && before != after {
        causes.push(Cause::forbidden("spec.healthCheckNodePort", "field is immutable"));
    }
}

fn check_addresses(old: &Object, new: &Object, causes: &mut Vec<Cause>) {
    let list = |spec: &Object| spec.get("clusterIPs").and_then(Value::as_array).cloned().unwrap_or_default();
    let (before, after) = (list(old), list(new));
    if after.is_empty() && !before.is_empty() {
        let detail = "primary clusterIP can not be unset";
        return causes.push(Cause::invalid("spec.clusterIPs[0]", new.get("clusterIPs"), detail));
    }
    let compared = if before.len() == after.len() { before.len() } else { 1 };
    for (index, (old, address)) in before.iter().zip(&after).enumerate().take(compared) {
        if old != address {
            let field = format!("spec.clusterIPs[{index}]");
            causes.push(Cause::invalid(field, new.get("clusterIPs"), "may not change once set"));
        }
    }
}
