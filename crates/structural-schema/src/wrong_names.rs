//! The named formats of names, for expressions.

use super::formats::is_dns_1035_label;
use super::identifier::{is_dns_label, is_dns_subdomain, is_label_name};

/// Returns the error in a string as a name of some kind.
pub(crate) fn wrong_name(kind: &str, text: &str) -> Option<String> {
    // A prefix may end with a dash, because more characters follow.
    let (kind, text) = match kind.strip_suffix("Prefix") {
        Some(kind) => (kind, text.strip_suffix('-').map_or(text.to_owned(), |start| format!("{start}a"))),
        None => (kind, text.to_owned()),
    };
    let is_label = |text: &str| text.len() <= 63 && is_label_name(text);
    let is_subdomain = |text: &str| text.len() <= 253 && is_dns_subdomain(text);
    let fits = match kind {
        "dns1123Label" => text.len() <= 63 && is_dns_label(&text),
        "dns1123Subdomain" => is_subdomain(&text),
        "dns1035Label" => text.len() <= 63 && is_dns_1035_label(&text),
        "labelValue" => text.is_empty() || is_label(&text),
        "qualifiedName" => match text.split_once('/') {
            Some((prefix, name)) => is_subdomain(prefix) && is_label(name),
            None => is_label(&text),
        },
        _ => true,
    };
    (!fits).then(|| format!("must have the format {kind}"))
}
