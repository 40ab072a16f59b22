//! URLs.

use std::collections::BTreeMap;

use super::golang::quote;

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

/// Parses a request URI: a whole URL, or an absolute path.
///
/// # Errors
///
/// The error message.
pub(crate) fn parse_request(text: &str) -> Result<Url, String> {
    parse(text, false).map_err(|why| format!("parse {}: {why}", quote(text)))
}

pub(crate) fn parse(text: &str, with_fragment: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() {
        return Err("empty url".to_owned());
    }
    let (text, fragment) = match text.split_once('#') {
        Some((text, fragment)) if with_fragment => (text, fragment),
        _ => (text, ""),
    };
    let (scheme, rest) = split_scheme(text)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let empty = || Url {
        scheme: scheme.to_ascii_lowercase(),
        host: String::new(),
        path: String::new(),
        query: query.to_owned(),
        fragment: fragment.to_owned(),
    };
    if !rest.starts_with('/') {
        // A scheme without a following slash makes the URL opaque.
        return if scheme.is_empty() { Err("invalid URI for request".to_owned()) } else { Ok(empty()) };
    }
    let mut url = empty();
    let path = match rest.strip_prefix("//") {
        Some(after) if !scheme.is_empty() || !rest.starts_with("///") => {
            let end = after.find('/').unwrap_or(after.len());
            let (authority, path) = after.split_at(end);
            if scheme.is_empty() && !with_fragment {
                rest
            } else {
                url.host = host_of(authority)?;
                path
            }
        }
        _ => rest,
    };
    check_escapes(path)?;
    url.path = path.to_owned();
    Ok(url)
}

/// Splits off the scheme: a letter, then letters, digits and some other characters, before a colon.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (index, char) in text.char_indices() {
        match char {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if index > 0 => {}
            ':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..index], &text[index + 1..])),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn host_of(authority: &str) -> Result<String, String> {
    let host = match authority.rsplit_once('@') {
        None => authority,
        Some((user, host)) => {
            let fits = |char: char| char.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(char);
            if !user.chars().all(fits) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            check_escapes(user)?;
            host
        }
    };
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        &host[end + 1..]
    } else {
        host.find(':').map_or("", |at| &host[at..])
    };
    let is_port = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
        return Err(format!("invalid port {} after host", quote(port)));
    }
    let allowed =
        |char: char| !char.is_ascii() || char.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(char);
    if let Some(wrong) = host.chars().find(|char| !allowed(*char)) {
        return Err(format!("invalid character {} in host name", quote(&wrong.to_string())));
    }
    check_escapes(host)?;
    Ok(host.to_owned())
}

fn check_escapes(text: &str) -> Result<(), String> {
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let escape: String = rest[at..].chars().take(3).collect();
        if escape.len() != 3 || !escape[1..].bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(format!("invalid URL escape {}", quote(&escape)));
        }
        rest = &rest[at + 1..];
    }
    Ok(())
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

fn unescape(text: &str) -> Option<String> {
    check_escapes(text).ok()?;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte.unwrap_or(b'0')).to_digit(16).unwrap_or(0);
                let (high, low) = (digit(rest.next()), digit(rest.next()));
                bytes.push((high * 16 + low) as u8);
            }
            _ => bytes.push(byte),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
