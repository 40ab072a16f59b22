//! Invalid names, and the error messages about them.

use super::formats::{DNS_1035_LABEL, is_dns_1035_label};
use super::identifier::{is_dns_label, is_dns_subdomain, is_label_name};

fn wrong_pattern(what: &str, examples: &[&str], pattern: &str) -> String {
    let quoted: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{what} (e.g. {}regex used for validation is '{pattern}')", quoted.join(" or "))
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/// Returns the errors of a string as a name of some kind.
pub(crate) fn wrong_name(kind: &str, text: &str) -> Vec<String> {
    // A prefix may end with a dash, because more characters follow.
    let (kind, text) = match kind.strip_suffix("Prefix") {
        Some(kind) if text.ends_with('-') => (kind, format!("{}a", &text[..text.len() - 1])),
        Some(kind) => (kind, text.to_owned()),
        None => (kind, text.to_owned()),
    };
    let text = text.as_str();
    match kind {
        "dns1123Label" => limited(text, 63, is_dns_label(text), || {
            let what = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                        start and end with an alphanumeric character";
            wrong_pattern(what, &["my-name", "123-abc"], LABEL)
        }),
        "dns1123Subdomain" => limited(text, 253, is_dns_subdomain(text), || {
            let what = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                        and must start and end with an alphanumeric character";
            wrong_pattern(what, &["example.com"], &format!("{LABEL}(\\.{LABEL})*"))
        }),
        "dns1035Label" => limited(text, 63, is_dns_1035_label(text), || DNS_1035_LABEL.to_owned()),
        "labelValue" => limited(text, 63, text.is_empty() || is_label_name(text), || {
            let what = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                        and must start and end with an alphanumeric character";
            wrong_pattern(what, &["MyValue", "my_value", "12345"], "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
        }),
        "qualifiedName" => wrong_qualified_name(text),
        _ => Vec::new(),
    }
}

fn limited(text: &str, most: usize, fits: bool, wrong: impl FnOnce() -> String) -> Vec<String> {
    let length = (text.len() > most).then(|| format!("must be no more than {most} bytes"));
    length.into_iter().chain((!fits).then(wrong)).collect()
}

fn wrong_qualified_name(text: &str) -> Vec<String> {
    let what = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                character";
    let wrong = wrong_pattern(what, &["MyName", "my.name", "123-abc"], "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]");
    let mut found = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                found.push("prefix part must be non-empty".to_owned());
            } else {
                found
                    .extend(wrong_name("dns1123Subdomain", prefix).into_iter().map(|why| format!("prefix part {why}")));
            }
            name
        }
        _ => {
            let example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {wrong} {example}")];
        }
    };
    if name.is_empty() {
        found.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        found.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_label_name(name) {
        found.push(format!("name part {wrong}"));
    }
    found
}
