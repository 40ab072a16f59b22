//! The syntax of names and labels. The caller checks the length.

/// Returns whether a string has the form of a DNS label (RFC 1123): lower case letters, digits and `-`.
///
/// ```
/// use kube_structural_schema::identifier::is_dns_label;
/// assert!(is_dns_label("web-1"));
/// assert!(!is_dns_label("web.1") && !is_dns_label("-web") && !is_dns_label(""));
/// ```
pub fn is_dns_label(text: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    has_form(text, is_word, |byte| is_word(byte) || *byte == b'-')
}

/// Returns whether a string has the form of a DNS subdomain (RFC 1123): DNS labels with dots between them.
///
/// ```
/// use kube_structural_schema::identifier::is_dns_subdomain;
/// assert!(is_dns_subdomain("kube-root-ca.crt"));
/// assert!(!is_dns_subdomain("a..b") && !is_dns_subdomain("A"));
/// ```
pub fn is_dns_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

/// Returns whether a string has the form of a label value or of the name part of a label key.
///
/// ```
/// use kube_structural_schema::identifier::is_label_name;
/// assert!(is_label_name("My_name.1"));
/// assert!(!is_label_name("-a") && !is_label_name("a/b") && !is_label_name(""));
/// ```
pub fn is_label_name(text: &str) -> bool {
    has_form(text, u8::is_ascii_alphanumeric, |byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// Returns whether the bytes at both ends and those inside have the given forms.
fn has_form(text: &str, at_ends: impl Fn(&u8) -> bool, inside: impl Fn(&u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(&at_ends) && bytes.last().is_some_and(at_ends) && bytes.iter().all(inside)
}
