//! What labels look like, and what is said about those that do not.

use serde_json::json;

use super::{Cause, name};

const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
    for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const PREFIXED: &str = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
const MOST_BYTES: usize = 63;

fn is_name(text: &str) -> bool {
    let ends = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    ends(text.bytes().next())
        && ends(text.bytes().next_back())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn report(field: &str, text: &str, problems: &[String], causes: &mut Vec<Cause>) {
    causes.extend(problems.iter().map(|problem| Cause::invalid(field, Some(&json!(text)), problem)));
}

/// The key of a label: a name, which may have a domain before it.
pub(super) fn check_key(text: &str, field: &str, causes: &mut Vec<Cause>) {
    let mut problems = Vec::new();
    let (prefix, own) = text.split_once('/').map_or((None, text), |(prefix, own)| (Some(prefix), own));
    if own.contains('/') {
        return report(field, text, &[format!("a valid label key {NAME} {PREFIXED}")], causes);
    }
    match prefix {
        Some("") => problems.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            problems.extend(name::subdomain_problems(prefix).map(|problem| format!("prefix part {problem}")))
        }
        None => {}
    }
    if own.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if own.len() > MOST_BYTES {
        problems.push(format!("name part must be no more than {MOST_BYTES} bytes"));
    }
    if !is_name(own) {
        problems.push(format!("name part {NAME}"));
    }
    report(field, text, &problems, causes);
}

/// The value of a label, which may be empty.
pub(super) fn check_value(text: &str, field: &str, causes: &mut Vec<Cause>) {
    let mut problems = Vec::new();
    if text.len() > MOST_BYTES {
        problems.push(format!("must be no more than {MOST_BYTES} bytes"));
    }
    if !text.is_empty() && !is_name(text) {
        problems.push(VALUE.to_owned());
    }
    report(field, text, &problems, causes);
}
