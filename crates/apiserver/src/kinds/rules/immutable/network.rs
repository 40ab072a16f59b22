//! Validation of ingresses.

use serde_json::{Value, json};

use super::{Cause, name};
use crate::kinds::rules::json::{Object, child, is_there, items, length, number, object_at, text};

const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];

pub(super) fn ingress(ingress: &Value, causes: &mut Vec<Cause>) {
    let nothing = Object::new();
    let spec = object_at(ingress, "spec").unwrap_or(&nothing);
    if length(spec, "rules") == 0 && !is_there(spec, "defaultBackend") {
        let detail = "either `defaultBackend` or `rules` must be specified";
        causes.push(Cause::invalid("spec", spec.get("rules"), detail));
    }
    if let Some(backend) = child(spec, "defaultBackend") {
        check_backend(backend, "spec.defaultBackend", causes);
    }
    for (index, rule) in items(spec, "rules").enumerate() {
        let field = format!("spec.rules[{index}]");
        check_host(text(rule, "host"), &format!("{field}.host"), causes);
        if let Some(http) = child(rule, "http") {
            check_paths(http, &format!("{field}.http"), causes);
        }
    }
}

fn check_host(host: &str, field: &str, causes: &mut Vec<Cause>) {
    if host.is_empty() {
        return;
    }
    if host.parse::<std::net::IpAddr>().is_ok() {
        causes.push(Cause::invalid(field, Some(&json!(host)), "must be a DNS name, not an IP address"));
    }
    if host.contains('*') {
        name::check_wildcard(host, field, causes);
    } else {
        name::check_subdomain(host, field, causes);
    }
}

fn check_paths(http: &Object, field: &str, causes: &mut Vec<Cause>) {
    if length(http, "paths") == 0 {
        causes.push(Cause::required(format!("{field}.paths"), ""));
    }
    for (index, path) in items(http, "paths").enumerate() {
        check_path(path, &format!("{field}.paths[{index}]"), causes);
    }
}

fn check_path(path: &Object, field: &str, causes: &mut Vec<Cause>) {
    let value = text(path, "path");
    let invalid = |detail: &str| Cause::invalid(format!("{field}.path"), Some(&json!(value)), detail);
    if !is_there(path, "pathType") {
        return causes.push(Cause::required(format!("{field}.pathType"), "pathType must be specified"));
    }
    match text(path, "pathType") {
        "Exact" | "Prefix" => {
            if !value.starts_with('/') {
                causes.push(invalid("must be an absolute path"));
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|part| value.contains(part)) {
                causes.push(invalid(&format!("must not contain '{part}'")));
            }
            for end in ["/..", "/."].into_iter().filter(|end| value.ends_with(end)) {
                causes.push(invalid(&format!("cannot end with '{end}'")));
            }
        }
        "ImplementationSpecific" if value.is_empty() || value.starts_with('/') => {}
        "ImplementationSpecific" => causes.push(invalid("must be an absolute path")),
        _ => causes.push(Cause::unsupported(format!("{field}.pathType"), path.get("pathType"), &PATH_TYPES)),
    }
    let nothing = Object::new();
    check_backend(child(path, "backend").unwrap_or(&nothing), &format!("{field}.backend"), causes);
}

fn check_backend(backend: &Object, field: &str, causes: &mut Vec<Cause>) {
    let invalid = |detail: &str| Cause::invalid(field, Some(&json!("")), detail);
    match (child(backend, "service"), is_there(backend, "resource")) {
        (Some(_), true) => causes.push(invalid("cannot set both resource and service backends")),
        (None, true) => {}
        (None, false) => causes.push(invalid("resource or service backend is required")),
        (Some(service), false) => check_service(service, field, causes),
    }
}

fn check_service(service: &Object, field: &str, causes: &mut Vec<Cause>) {
    match text(service, "name") {
        "" => causes.push(Cause::required(format!("{field}.service.name"), "")),
        own => name::check_label(own, &format!("{field}.service.name"), causes),
    }
    let nothing = Object::new();
    let port = child(service, "port").unwrap_or(&nothing);
    match (text(port, "name"), number(port, "number")) {
        ("", 0) => causes.push(Cause::required(field, "port name or number is required")),
        ("", number) => name::check_port(number, &format!("{field}.service.port.number"), causes),
        (own, 0) => name::check_port_name(own, &format!("{field}.service.port.name"), causes),
        _ => causes.push(Cause::invalid(field, Some(&json!("")), "cannot set both port name & port number")),
    }
}
