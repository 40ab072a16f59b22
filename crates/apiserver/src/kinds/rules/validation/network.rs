//! Validation of services and ingresses.

use std::collections::BTreeSet;

use kube_structural_schema::identifier::{is_dns_label, is_dns_subdomain};
use serde_json::{Value, json};

use super::Cause;
use super::path::{each, find};
use super::pod::check_port;
use crate::kinds::rules::json::{JsonObject, items, length, number, object_at, text};

fn is_headless(spec: &JsonObject) -> bool {
    text(spec, "clusterIP") == "None"
}

pub(super) fn service(service: &Value, causes: &mut Vec<Cause>) {
    let nothing = JsonObject::new();
    let spec = object_at(service, "spec").unwrap_or(&nothing);
    let kind = text(spec, "type");
    if length(spec, "ports") == 0 && !is_headless(spec) && kind != "ExternalName" {
        causes.push(Cause::required("spec.ports"));
    }
    if is_headless(spec) && matches!(kind, "LoadBalancer" | "NodePort") {
        let detail = "may not be set to 'None' for services of this type";
        causes.push(Cause::invalid("spec.clusterIPs[0]", Some(&json!("None")), detail));
    }
    if kind == "ExternalName" {
        if length(spec, "clusterIPs") > 0 {
            causes.push(Cause::forbidden("spec.clusterIPs", "may not be set for ExternalName services"));
        }
        match text(spec, "externalName") {
            "" => causes.push(Cause::required("spec.externalName")),
            name if is_dns_subdomain(name.strip_suffix('.').unwrap_or(name)) => {}
            _ => causes.push(Cause::invalid("spec.externalName", spec.get("externalName"), "must be a DNS subdomain")),
        }
    }
    let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for (index, port) in items(spec, "ports").enumerate() {
        let (field, name) = (format!("spec.ports[{index}]"), text(port, "name"));
        let duplicate = |field: String| Cause::other("FieldValueDuplicate", field, "Duplicate value");
        if name.is_empty() && length(spec, "ports") > 1 {
            causes.push(Cause::required(format!("{field}.name")));
        } else if !name.is_empty() && !is_dns_label(name) {
            causes.push(Cause::invalid(format!("{field}.name"), port.get("name"), "must be a DNS label (RFC 1123)"));
        } else if !name.is_empty() && !names.insert(name) {
            causes.push(duplicate(format!("{field}.name")));
        }
        check_port(&format!("{field}.port"), Some(&json!(number(port, "port"))), causes);
        if number(port, "nodePort") != 0 && kind == "ClusterIP" {
            let detail = "may not be used when `type` is 'ClusterIP'";
            causes.push(Cause::forbidden(format!("{field}.nodePort"), detail));
        }
        if !numbers.insert((text(port, "protocol"), number(port, "port"))) {
            causes.push(duplicate(field));
        }
    }
}

/// Checks an update of a service: an address may not change once it is set.
pub(super) fn check_service_update(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let address = |service| find(service, "spec.clusterIP").and_then(Value::as_str).unwrap_or_default();
    let is_external = |service| find(service, "spec.type").is_some_and(|kind| kind == "ExternalName");
    if !address(old).is_empty() && address(old) != address(new) && !is_external(old) && !is_external(new) {
        let detail = "may not change once set";
        causes.push(Cause::invalid("spec.clusterIPs[0]", find(new, "spec.clusterIPs"), detail));
    }
}

pub(super) fn ingress(ingress: &Value, causes: &mut Vec<Cause>) {
    if find(ingress, "spec.rules").is_none() && find(ingress, "spec.defaultBackend").is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid("spec", None, detail));
    }
    for (field, host) in each(ingress, "spec.rules[].host") {
        let name = host.and_then(Value::as_str).unwrap_or_default();
        let is_address = name.parse::<std::net::IpAddr>().is_ok();
        if !name.is_empty() && (is_address || !is_dns_subdomain(name.strip_prefix("*.").unwrap_or(name))) {
            causes.push(Cause::invalid(field, host, "must be a DNS name, which may begin with '*.'"));
        }
    }
    for (field, http) in each(ingress, "spec.rules[].http").into_iter().filter(|(_, http)| http.is_some()) {
        if http.is_some_and(|http| find(http, "paths").is_none()) {
            causes.push(Cause::required(format!("{field}.paths")));
        }
    }
    for (field, path) in each(ingress, "spec.rules[].http.paths[]") {
        let Some(path) = path else { continue };
        let text = find(path, "path").and_then(Value::as_str).unwrap_or_default();
        let may_be_empty = path["pathType"] == "ImplementationSpecific" && text.is_empty();
        if path["pathType"].is_string() && !text.starts_with('/') && !may_be_empty {
            causes.push(Cause::invalid(format!("{field}.path"), path.get("path"), "must be an absolute path"));
        }
        if find(path, "backend.service").is_none() && find(path, "backend.resource").is_none() {
            let detail = "resource or service backend is required";
            causes.push(Cause::invalid(format!("{field}.backend"), None, detail));
        }
    }
}
