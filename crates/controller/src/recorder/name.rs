//! Names of events.

/// The longest name that the API server accepts.
const LONGEST: usize = 253;

/// Returns the name of an event about an object with this name: the name of the object and a hexadecimal number, as in
/// client-go.
///
/// Some objects have a name that an event must not have: the ClusterRole `system:node` has a colon, and other names are
/// too long for a suffix. The name of an event about such an object is `event-` and the number.
pub(super) fn event_name(object: &str, number: u64) -> String {
    let name = format!("{object}.{number:016x}");
    if is_subdomain(&name) { name } else { format!("event-{number:016x}") }
}

/// Returns true for a DNS subdomain as Kubernetes checks it (RFC 1123). It does not limit the length of a label.
fn is_subdomain(name: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
        is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(inner)
    };
    name.len() <= LONGEST && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::event_name;

    #[test]
    fn an_event_has_the_name_of_its_object_if_a_server_accepts_that() {
        let (longest, longer) = ("a".repeat(236), "a".repeat(237));
        for name in ["a", "a.b-c.9", "7", &longest] {
            assert_eq!(event_name(name, 0xbeef), format!("{name}.000000000000beef"));
        }
        for name in ["", "system:node", "Pod", "a_b", "a..b", "-a", "a-", "a.-b", "ä", "a b", "a/b", &longer] {
            assert_eq!(event_name(name, 0xbeef), "event-000000000000beef", "{name:?}");
        }
    }
}
