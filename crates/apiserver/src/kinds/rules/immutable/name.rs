//! Validation of names, labels, ports and counts.

use kube_structural_schema::identifier::{is_dns_label, is_dns_subdomain, is_label_name};
use serde_json::json;

use super::Cause;

fn require(holds: bool, text: &str, detail: &str, field: &str, causes: &mut Vec<Cause>) {
    if !holds {
        causes.push(Cause::invalid(field, Some(&json!(text)), detail));
    }
}

pub(super) fn check_label(text: &str, field: &str, causes: &mut Vec<Cause>) {
    require(text.len() <= 63 && is_dns_label(text), text, "must be a DNS label (RFC 1123)", field, causes);
}

pub(super) fn check_subdomain(text: &str, field: &str, causes: &mut Vec<Cause>) {
    require(text.len() <= 253 && is_dns_subdomain(text), text, "must be a DNS subdomain (RFC 1123)", field, causes);
}

/// Checks a host such as `*.example.com`.
pub(super) fn check_wildcard(text: &str, field: &str, causes: &mut Vec<Cause>) {
    let holds = text.len() <= 253 && text.strip_prefix("*.").is_some_and(is_dns_subdomain);
    require(holds, text, "must be '*.' and a DNS subdomain", field, causes);
}

/// Checks a key of a ConfigMap or Secret, which becomes the name of a file.
pub(super) fn check_key(text: &str, field: &str, causes: &mut Vec<Cause>) {
    let has_form = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let holds = text.len() <= 253 && has_form && text != "." && !text.starts_with("..");
    require(holds, text, "must consist of alphanumeric characters, '-', '_' or '.'", field, causes);
}

pub(super) fn check_port_name(text: &str, field: &str, causes: &mut Vec<Cause>) {
    let has_letter = text.bytes().any(|byte| byte.is_ascii_lowercase());
    let holds = text.len() <= 15 && is_dns_label(text) && has_letter && !text.contains("--");
    let detail = "must be at most 15 lower case letters, digits and hyphens, with at least one letter";
    require(holds, text, detail, field, causes);
}

pub(super) fn check_port(port: i64, field: &str, causes: &mut Vec<Cause>) {
    if !(1..=65535).contains(&port) {
        causes.push(Cause::invalid(field, Some(&json!(port)), "must be between 1 and 65535, inclusive"));
    }
}

pub(super) fn check_count(count: Option<i64>, field: &str, causes: &mut Vec<Cause>) {
    if let Some(count) = count.filter(|count| *count < 0) {
        causes.push(Cause::invalid(field, Some(&json!(count)), "must be greater than or equal to 0"));
    }
}

/// Checks the key of a label: a name with an optional DNS subdomain and slash.
pub(super) fn check_label_key(text: &str, field: &str, causes: &mut Vec<Cause>) {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let is_prefix = |prefix: &str| prefix.len() <= 253 && is_dns_subdomain(prefix);
    let holds = name.len() <= 63 && is_label_name(name) && prefix.is_none_or(is_prefix);
    require(holds, text, "must be a label key", field, causes);
}

/// Checks the value of a label, which may be empty.
pub(super) fn check_label_value(text: &str, field: &str, causes: &mut Vec<Cause>) {
    let holds = text.is_empty() || text.len() <= 63 && is_label_name(text);
    require(holds, text, "must be a label value", field, causes);
}
