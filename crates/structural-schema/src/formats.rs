//! The formats of strings.

use regex::Regex;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use super::identifier::{is_dns_label, is_dns_subdomain};
use super::{duration, url};

/// All formats that are checked, without dashes. Formats that no CRD uses, such as numbers of books, are not.
pub(crate) const KNOWN: [&str; 18] = [
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

/// Returns whether a string has a format.
pub(crate) fn fits(format: &str, text: &str) -> bool {
    match format {
        "uri" => url::parse(text).is_some(),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "ipv4" => text.contains('.') && sloppy_ip(text),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => sloppy_cidr(text),
        "mac" => is_mac(text),
        "uuid" => is_uuid(text, None, false),
        "uuid3" => is_uuid(text, Some('3'), false),
        "uuid4" => is_uuid(text, Some('4'), true),
        "uuid5" => is_uuid(text, Some('5'), true),
        "byte" => is_base64(text),
        "date" => duration::parse_date(text).is_some(),
        "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "k8sshortname" => text.len() <= 63 && is_dns_label(text),
        "k8slongname" => text.len() <= 253 && is_dns_subdomain(text),
        _ => true,
    }
}

/// Returns whether this is a duration: as in Go, or with words such as `3 days and 2 hours`.
fn is_duration(text: &str) -> bool {
    duration::parse(text).is_ok() || DURATION.is_match(text)
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns of this file are right")
}

static DURATION: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)(^|[^0-9])[0-9]{1,18}\s*(ns|nano\w*|us|\u{b5}s|micro\w*|ms|milli\w*|s|sec\w*|m|min\w*|h|hr|hour\w*|d|day\w*|w|wk|week\w*)(\W|[0-9]|$)",
    )
});
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    let char = r"a-zA-Z0-9\p{S}\p{L}";
    regex(&format!(
        r"^([{char}]((-?[{char}]{{0,62}})?)|([{char}](([{char}-]{{0,61}}[{char}])?)(\.))+([a-zA-Z\p{{L}}]){{2,63}})$"
    ))
});
fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && HOSTNAME.is_match(text)
}

/// Returns whether this is a DNS-1035 label: letters, digits and dashes inside.
pub(crate) fn is_dns_1035_label(text: &str) -> bool {
    is_dns_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase())
}

/// Returns whether this is an IP address. Leading zeros are allowed, as in older versions.
pub(crate) fn sloppy_ip(text: &str) -> bool {
    if !text.contains(':') {
        return sloppy_ipv4(text);
    }
    text.parse::<Ipv6Addr>().is_ok()
}

fn sloppy_ipv4(text: &str) -> bool {
    let mut parts = 0;
    text.split('.').all(|part| {
        parts += 1;
        let digits = part.trim_start_matches('0');
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (digits.is_empty() || digits.parse::<u8>().is_ok())
    }) && parts == 4
}

fn sloppy_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = if address.contains(':') { 128 } else { 32 };
    let is_count = !bits.is_empty() && bits.len() <= 8 && bits.bytes().all(|byte| byte.is_ascii_digit());
    sloppy_ip(address) && is_count && bits.parse::<u32>().is_ok_and(|bits| bits <= most)
}

fn is_uuid(text: &str, version: Option<char>, variant: bool) -> bool {
    let mut rest = text;
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((part, after)) = rest.split_at_checked(length) else {
            return false;
        };
        let right_version = index != 2 || version.is_none_or(|version| part.starts_with(version));
        let right_variant = index != 3 || !variant || part.starts_with(['8', '9', 'a', 'b', 'A', 'B']);
        if !right_version || !right_variant || !part.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !text.is_empty() && text.len().is_multiple_of(4) && padding <= 2 && digits.bytes().all(fits)
}

/// Checks the digits of a date and time. Seconds of 60 and unusual zones are not checked closely.
fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    static TIME: LazyLock<Regex> =
        LazyLock::new(|| regex("^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"));
    let Some(found) = TIME.captures(time) else {
        return false;
    };
    let part = |index: usize| found.get(index).map_or("", |part| part.as_str());
    duration::parse_date(date).is_some() && part(1) <= "23" && part(2) <= "59" && part(3) <= "59"
}

/// Returns whether this is an email address of the usual form, alone or after a name.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match (text.find('<'), text.strip_suffix('>')) {
        (Some(start), Some(inner)) => &inner[start + 1..],
        (None, None) => text,
        _ => return false,
    };
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let is_atom = |text: &str| {
        !text.is_empty() && text.chars().all(|char| char.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(char))
    };
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let literal = domain.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    let right_domain = match literal {
        Some(inner) => {
            inner.parse::<Ipv4Addr>().is_ok() || inner.trim_start_matches("IPv6:").parse::<Ipv6Addr>().is_ok()
        }
        None => domain.split('.').all(is_atom),
    };
    (quoted || local.split('.').all(is_atom)) && right_domain
}

/// Returns whether this is a MAC address of 6, 8 or 20 bytes, separated by colons, dashes or dots, or not at all.
fn is_mac(text: &str) -> bool {
    if matches!(text.len(), 12 | 16 | 40) && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return true;
    }
    let (between, digits) = match text.find([':', '-', '.']) {
        Some(2) if !text.contains('.') => (if text.contains(':') { ':' } else { '-' }, 2),
        Some(4) if text.contains('.') => ('.', 4),
        _ => return false,
    };
    let groups: Vec<&str> = text.split(between).collect();
    let fits = |group: &&str| group.len() == digits && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    groups.iter().all(fits) && matches!(groups.len() * digits / 2, 6 | 8 | 20)
}
