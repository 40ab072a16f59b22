//! URLs.

use std::collections::BTreeMap;

/// A URL in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) scheme: String,
    pub(crate) host: String,
    path: String,
    pub(crate) query: String,
    fragment: String,
}

impl Url {
    /// Returns its approximate length in bytes.
    pub(crate) fn length(&self) -> usize {
        self.scheme.len() + self.host.len() + self.path.len() + self.query.len() + self.fragment.len()
    }
}

/// Parses a request URI: a whole URL, or an absolute path. Returns `None` if it is not valid.
pub(crate) fn parse(text: &str) -> Option<Url> {
    if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return None;
    }
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    let (scheme, rest) = match text.split_once(':') {
        Some(("", _)) => return None,
        Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
        _ => ("", text),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (host, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(after) => {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            (host_of(authority)?, path)
        }
        // A scheme without a following slash makes the URL opaque.
        None if !rest.starts_with('/') && !scheme.is_empty() => (String::new(), ""),
        None => (String::new(), Some(rest).filter(|rest| rest.starts_with('/'))?),
    };
    Some(Url {
        scheme: scheme.to_ascii_lowercase(),
        host,
        path: unescape(path).map(|_| path.to_owned())?,
        query: query.to_owned(),
        fragment: fragment.to_owned(),
    })
}

/// Returns the host and port of an authority, if both and the user are valid.
fn host_of(authority: &str) -> Option<String> {
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let is_user = |char: char| char.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(char);
    let port = match host.strip_prefix('[') {
        Some(literal) => literal.split_once(']')?.1,
        None => host.find(':').map_or("", |at| &host[at..]),
    };
    let is_port = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_host =
        |char: char| !char.is_ascii() || char.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(char);
    let fits = (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
        && user.chars().all(is_user)
        && host.chars().all(is_host);
    unescape(user).and(unescape(host)).filter(|_| fits).map(|_| host.to_owned())
}

impl Url {
    pub(crate) fn hostname(&self) -> &str {
        match self.host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((inner, _)) => inner,
            None => self.host.split(':').next().unwrap_or(""),
        }
    }

    pub(crate) fn port(&self) -> &str {
        let after = self.host.rsplit(']').next().unwrap_or("");
        after.rsplit_once(':').map_or("", |(_, port)| port)
    }

    /// Returns the path with all special characters escaped.
    pub(crate) fn escaped_path(&self) -> String {
        let mut out = String::new();
        for byte in self.path.bytes() {
            let char = char::from(byte);
            if byte.is_ascii_alphanumeric() || "-_.~$&+,/:;=@%!'()*[]".contains(char) {
                out.push(char);
            } else {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
        out
    }

    pub(crate) fn query_map(&self) -> BTreeMap<String, Vec<String>> {
        let mut map: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Some(name), Some(value)) = (unescape(name), unescape(value)) {
                map.entry(name).or_default().push(value);
            }
        }
        map
    }
}

/// Replaces escapes and plus signs, or returns `None` if an escape is not valid.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => u8::try_from(digit()? * 16 + digit()?).ok()?,
            _ => byte,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
