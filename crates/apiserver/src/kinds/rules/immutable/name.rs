//! What names look like, and what is said about those that do not.

use serde_json::json;

use super::Cause;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which \
    must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. \
    '*.example.com', regex used for validation is \
    '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
    'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

fn is_label(text: &str) -> bool {
    let is_word = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9');
    text.bytes().next().is_some_and(is_word)
        && text.bytes().next_back().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn report(field: &str, text: &str, problems: &[&str], causes: &mut Vec<Cause>) {
    causes.extend(problems.iter().map(|problem| Cause::invalid(field, Some(&json!(text)), problem)));
}

/// A name without dots.
pub(super) fn check_label(text: &str, field: &str, causes: &mut Vec<Cause>) {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push("must be no more than 63 characters");
    }
    if !is_label(text) {
        problems.push(LABEL);
    }
    report(field, text, &problems, causes);
}

/// A name with dots.
pub(super) fn check_subdomain(text: &str, field: &str, causes: &mut Vec<Cause>) {
    let mut problems = Vec::new();
    if text.len() > 253 {
        problems.push("must be no more than 253 characters");
    }
    if !is_subdomain(text) {
        problems.push(SUBDOMAIN);
    }
    report(field, text, &problems, causes);
}

/// What is wrong with a name with dots, where its length is counted in bytes.
pub(super) fn subdomain_problems(text: &str) -> impl Iterator<Item = &'static str> {
    let length = (text.len() > 253).then_some("must be no more than 253 bytes");
    length.into_iter().chain((!is_subdomain(text)).then_some(SUBDOMAIN))
}

/// A name with dots, all of whose first parts are meant.
pub(super) fn check_wildcard(text: &str, field: &str, causes: &mut Vec<Cause>) {
    let mut problems = Vec::new();
    if text.len() > 253 {
        problems.push("must be no more than 253 characters");
    }
    if !text.strip_prefix("*.").is_some_and(is_subdomain) {
        problems.push(WILDCARD);
    }
    report(field, text, &problems, causes);
}

/// A key that becomes the name of a file.
pub(super) fn check_key(text: &str, field: &str, causes: &mut Vec<Cause>) {
    let mut problems = Vec::new();
    if text.len() > 253 {
        problems.push("must be no more than 253 characters");
    }
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
        problems.push(KEY);
    }
    match text {
        "." => problems.push("must not be '.'"),
        ".." => problems.push("must not be '..'"),
        text if text.starts_with("..") => problems.push("must not start with '..'"),
        _ => {}
    }
    report(field, text, &problems, causes);
}

/// The name of a port.
pub(super) fn check_port_name(text: &str, field: &str, causes: &mut Vec<Cause>) {
    let mut problems = Vec::new();
    if text.len() > 15 {
        problems.push("must be no more than 15 characters");
    }
    if !text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')) {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)");
    }
    if text.contains("--") {
        problems.push("must not contain consecutive hyphens");
    }
    if text.starts_with('-') || text.ends_with('-') {
        problems.push("must not begin or end with a hyphen");
    }
    report(field, text, &problems, causes);
}

/// The number of a port.
pub(super) fn check_port(port: i64, field: &str, causes: &mut Vec<Cause>) {
    if !(1..=65535).contains(&port) {
        causes.push(Cause::invalid(field, Some(&json!(port)), "must be between 1 and 65535, inclusive"));
    }
}

/// A number of things.
pub(super) fn check_count(count: Option<i64>, field: &str, causes: &mut Vec<Cause>) {
    if let Some(count) = count.filter(|count| *count < 0) {
        causes.push(Cause::invalid(field, Some(&json!(count)), "must be greater than or equal to 0"));
    }
}
