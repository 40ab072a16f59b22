//! Access checks: token, host name, and site of origin.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;

use axum::http::{HeaderMap, Uri, header};

/// The credentials of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenCheck {
    /// The request has the token, or none is required.
    Valid,
    /// The request has the token in its URL; the browser should keep it as a cookie.
    ValidInUrl,
    /// The request has no token, or a wrong one.
    Invalid,
}

/// Checks the token of a request: in the header, in the URL, or in a cookie.
pub(crate) fn check_token(token: &str, headers: &HeaderMap, uri: &Uri) -> TokenCheck {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.split_once(' '));
    let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, given)| given.trim());
    if bearer.is_some_and(|given| equal(token, given)) {
        return TokenCheck::Valid;
    }
    let query = uri.query().unwrap_or_default().as_bytes();
    if form_urlencoded::parse(query).any(|(name, given)| name == "token" && equal(token, &given)) {
        return TokenCheck::ValidInUrl;
    }
    let name = cookie_name(token);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies = cookies.flat_map(|value| value.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    if cookies.any(|(given, value)| given == name && equal(&encoded(token), value)) {
        return TokenCheck::Valid;
    }
    TokenCheck::Invalid
}

/// Returns the cookie with the token, for this path and the paths below it.
pub(crate) fn cookie(token: &str, path: &str) -> String {
    let (name, value) = (cookie_name(token), encoded(token));
    // A `;` would begin another attribute.
    let path = if path.contains(';') { "/" } else { path };
    format!("{name}={value}; Path={path}; HttpOnly; SameSite=Lax")
}

/// Returns a cookie name for a token. Browsers share cookies between all ports of a host, so that each token needs a
/// name.
fn cookie_name(token: &str) -> String {
    let mut hasher = DefaultHasher::new();
    token.hash(&mut hasher);
    format!("inspect-{:016x}", hasher.finish())
}

fn encoded(token: &str) -> String {
    form_urlencoded::byte_serialize(token.as_bytes()).collect()
}

/// Compares a token in constant time. An empty token never matches.
fn equal(token: &str, given: &str) -> bool {
    let different = token.bytes().zip(given.bytes()).fold(0, |different, (left, right)| different | (left ^ right));
    token.len() == given.len() && std::hint::black_box(different) == 0 && !token.is_empty()
}

/// Returns true if the request uses a loopback address or `localhost` as its host. Another site's page can point its
/// own host name to this machine (DNS rebinding), but cannot send a loopback name.
pub(crate) fn has_loopback_host(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let Ok(host) = host.to_str() else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(address, _)| address),
        None => host.split(':').next(),
    };
    name.is_some_and(|name| {
        name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

/// Returns true if the browser reports a background request from another site's page.
pub(crate) fn comes_from_another_site(headers: &HeaderMap) -> bool {
    let says = |name: &str, value: &str| headers.get(name).is_some_and(|given| given.as_bytes() == value.as_bytes());
    says("sec-fetch-site", "cross-site") && !says("sec-fetch-mode", "navigate")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn host(text: &'static str) -> bool {
        has_loopback_host(&HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(text))]))
    }

    #[test]
    fn only_loopback_host_names_are_accepted() {
        for own in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.8.9.1", "[::1]:80", "[::1]"] {
            assert!(host(own), "{own}");
        }
        for foreign in
            ["", "evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example", "[::2]", "10.0.0.1", "[::1"]
        {
            assert!(!host(foreign), "{foreign}");
        }
        assert!(!has_loopback_host(&HeaderMap::new()));
    }

    #[test]
    fn a_token_is_accepted_as_header_parameter_or_cookie_unless_it_is_empty() {
        let (none, uri) = (HeaderMap::new(), Uri::from_static("/"));
        let with = |name: header::HeaderName, value: &str| {
            HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
        };
        let token = "a b;c";
        assert_eq!(check_token(token, &with(header::AUTHORIZATION, "bearer a b;c"), &uri), TokenCheck::Valid);
        assert_eq!(check_token(token, &none, &Uri::from_static("/?token=a+b%3Bc")), TokenCheck::ValidInUrl);
        let kept = cookie(token, "/x");
        let kept = kept.split(';').next().unwrap();
        assert_eq!(check_token(token, &with(header::COOKIE, &format!("other=1; {kept}")), &uri), TokenCheck::Valid);
        assert_eq!(check_token("other", &with(header::COOKIE, kept), &uri), TokenCheck::Invalid);
        for wrong in ["Bearer", "Bearer a b;d", "Bearer a b;cc", "Basic a b;c"] {
            assert_eq!(check_token(token, &with(header::AUTHORIZATION, wrong), &uri), TokenCheck::Invalid, "{wrong}");
        }
        assert_eq!(
            check_token("", &with(header::AUTHORIZATION, "Bearer "), &Uri::from_static("/?token=")),
            TokenCheck::Invalid
        );
    }
}
