//! The tag of a container image, which decides the default pull policy.

/// Returns `Always` for the tag `latest`, and `IfNotPresent` for any other tag and for an invalid name.
pub(crate) fn pull_policy(image: &str) -> &'static str {
    if tag(image) == Some("latest") { "Always" } else { "IfNotPresent" }
}

/// Returns the tag of a valid name: `latest` if it has neither a tag nor a digest.
fn tag(image: &str) -> Option<&str> {
    if image.len() == 64 && image.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let (rest, digest) = image.split_once('@').map_or((image, None), |(rest, digest)| (rest, Some(digest)));
    let (domain, remainder) = match rest.split_once('/') {
        Some((first, after)) if is_domain_like(first) => (first, after),
        _ => ("docker.io", rest),
    };
    let (path, tag) = remainder.split_once(':').map_or((remainder, None), |(path, tag)| (path, Some(tag)));
    // Short names of Docker Hub are expanded, so they are longer than they look.
    let short = if domain == "docker.io" && !path.contains('/') { "library/".len() } else { 0 };
    let is_sound = is_domain(domain)
        && path.split('/').all(is_component)
        && short + path.len() < 256
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest);
    match (is_sound, tag, digest) {
        (false, _, _) | (true, None, Some(_)) => None,
        (true, None, None) => Some("latest"),
        (true, tag, _) => tag,
    }
}

/// Returns whether the part before the first slash is a registry, and not part of the path in the default registry.
fn is_domain_like(first: &str) -> bool {
    first.contains(['.', ':']) || first == "localhost" || first.to_lowercase() != first
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (domain, None),
    };
    let is_host = match host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        Some(address) => !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':'),
        None => host.split('.').all(|part| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !part.starts_with('-')
                && !part.ends_with('-')
        }),
    };
    is_host && port.is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns whether this is lower case letters and digits, separated by a dot, one or two underscores, or dashes.
fn is_component(component: &str) -> bool {
    let is_word = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9');
    let ends = component.bytes().next().is_some_and(is_word) && component.bytes().next_back().is_some_and(is_word);
    ends && component
        .split(|letter: char| letter.is_ascii() && is_word(letter as u8))
        .all(|between| matches!(between, "" | "." | "_" | "__") || between.bytes().all(|byte| byte == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&tag.len())
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

/// Returns whether this is a digest of a known algorithm, with its length.
fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == length && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
