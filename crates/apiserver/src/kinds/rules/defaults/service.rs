//! Defaults of services and other network kinds.

use serde_json::{Value, json};

use crate::kinds::rules::json::{Object, child, child_mut, fill, fill_zero, is_zero, items_mut, length, open, text};

/// The default timeout of session affinity.
const AFFINITY_SECONDS: i64 = 10800;

pub(super) fn service(service: &mut Object) {
    let spec = open(service, "spec");
    session_affinity(spec);
    fill_zero(spec, "type", "ClusterIP");
    items_mut(spec, "ports").for_each(service_port);
    traffic_policies(spec);
    if text(spec, "type") == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
        virtual_addresses(service);
    }
}

fn session_affinity(spec: &mut Object) {
    fill_zero(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => drop(spec.remove("sessionAffinityConfig")),
        "ClientIP" => {
            let client = child(spec, "sessionAffinityConfig").and_then(|config| child(config, "clientIP"));
            if client.is_none_or(|client| !client.contains_key("timeoutSeconds")) {
                let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
                spec.insert("sessionAffinityConfig".into(), config);
            }
        }
        _ => {}
    }
}

fn service_port(port: &mut Object) {
    fill_zero(port, "protocol", "TCP");
    if is_zero(port.get("targetPort")) {
        let number = port.get("port").cloned().unwrap_or_else(|| json!(0));
        port.insert("targetPort".into(), number);
    }
}

fn traffic_policies(spec: &mut Object) {
    let kind = text(spec, "type").to_owned();
    let is_reached_from_outside = match kind.as_str() {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => length(spec, "externalIPs") > 0,
        _ => false,
    };
    if is_reached_from_outside {
        fill_zero(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
}

fn virtual_addresses(service: &mut Object) {
    let Some(balancer) = child_mut(service, "status").and_then(|status| child_mut(status, "loadBalancer")) else {
        return;
    };
    for ingress in items_mut(balancer, "ingress") {
        if !text(ingress, "ip").is_empty() {
            fill(ingress, "ipMode", "VIP");
        }
    }
}

pub(super) fn endpoints(endpoints: &mut Object) {
    for subset in items_mut(endpoints, "subsets") {
        items_mut(subset, "ports").for_each(|port| fill_zero(port, "protocol", "TCP"));
    }
}

pub(super) fn endpoint_port(port: &mut Object) {
    fill(port, "name", "");
    fill(port, "protocol", "TCP");
}

pub(super) fn network_policy(policy: &mut Object) {
    let spec = open(policy, "spec");
    if length(spec, "policyTypes") == 0 {
        let leaves = length(spec, "egress") > 0;
        let types = if leaves { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        spec.insert("policyTypes".into(), types);
    }
}

pub(super) fn network_policy_port(port: &mut Object) {
    fill(port, "protocol", Value::from("TCP"));
}

pub(super) fn ingress_class(class: &mut Object) {
    if let Some(parameters) = child_mut(class, "spec").and_then(|spec| child_mut(spec, "parameters")) {
        fill(parameters, "scope", "Cluster");
    }
}
