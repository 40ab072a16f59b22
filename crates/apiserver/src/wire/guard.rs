//! Refuses the requests of web pages, for listeners that a browser on the same machine can reach.

use http::request::Parts;
use http::uri::Authority;
use http::{Method, header};
use std::net::{IpAddr, SocketAddr};

use crate::message::reply::JSON;
use crate::status::Status;

/// The content types that a browser sends without a CORS preflight. An empty one stands for no content type.
const FORM_TYPES: [&str; 4] = ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"];

/// Accepts or refuses requests, by the address of the listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard(pub(crate) SocketAddr);

impl Guard {
    /// Refuses every request that a browser could send for a web page without a CORS preflight.
    pub(crate) fn check(self, parts: &Parts) -> Result<(), Status> {
        if !self.is_meant(parts) {
            let message = "the host of the request is neither the address of the server nor localhost";
            return Err(Status::failure(403, "Forbidden", message));
        }
        if !is_same_site(parts) {
            return Err(Status::failure(403, "Forbidden", "pages of other sites may not use the server"));
        }
        // A browser can post a form to any address. Every other content type needs a CORS preflight first, and so does
        // every other method that writes.
        if parts.method == Method::POST && FORM_TYPES.contains(&media_type(parts).as_str()) {
            let message = format!("the body of the request must be of type {JSON}");
            return Err(Status::failure(415, "UnsupportedMediaType", message));
        }
        Ok(())
    }

    /// Returns whether the host in the request is an address of this server. Any other host name may be a DNS name that
    /// an attacker points here.
    fn is_meant(self, parts: &Parts) -> bool {
        let named = parts.headers.get_all(header::HOST).iter();
        let named = named.map(|value| value.to_str().ok().and_then(|text| text.parse::<Authority>().ok()));
        let mut hosts = named.chain(parts.uri.authority().cloned().map(Some)).peekable();
        hosts.peek().is_some() && hosts.all(|host| host.is_some_and(|host| self.is_own(host.host())))
    }

    fn is_own(self, host: &str) -> bool {
        if host.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let own = self.0.ip().to_canonical();
        literal.parse::<IpAddr>().map(|found| found.to_canonical()).is_ok_and(|found| {
            // A listener on the unspecified address has many addresses. None of them is a name.
            found.is_loopback() || found == own || own.is_unspecified()
        })
    }
}

/// Returns whether the origin, if there is one, is the host of the request.
fn is_same_site(parts: &Parts) -> bool {
    let hosts = [parts.headers.get(header::HOST).and_then(|host| host.to_str().ok()), authority(parts)];
    parts.headers.get_all(header::ORIGIN).iter().all(|origin| {
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        origin.is_some_and(|(_, origin)| hosts.iter().flatten().all(|host| host.eq_ignore_ascii_case(origin)))
    })
}

fn authority(parts: &Parts) -> Option<&str> {
    parts.uri.authority().map(Authority::as_str)
}

/// Returns the media type of the body in lower case, without its parameters.
fn media_type(parts: &Parts) -> String {
    let value = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn check(listens_on: &str, uri: &str, host: Option<&str>, expected: bool) {
        let guard = Guard(listens_on.parse().unwrap());
        let mut request = Request::get(uri);
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        assert_eq!(guard.is_meant(&parts), expected, "{uri} {host:?} on {listens_on}");
    }

    #[test]
    fn only_own_addresses_are_accepted_as_host() {
        for host in ["localhost", "LocalHost:80", "127.0.0.1", "127.8.0.1:4711", "[::1]:80", "10.0.0.7:80"] {
            check("10.0.0.7:80", "/", Some(host), true);
        }
        for host in ["10.0.0.8", "evil.example.com", "127.0.0.1.example.com", "", "a b"] {
            check("10.0.0.7:80", "/", Some(host), false);
        }
        check("10.0.0.7:80", "/", None, false);
        // HTTP/2 puts the host in the URI. If the URI and the header both name a host, both are checked.
        check("[::1]:80", "http://localhost/", None, true);
        check("[::1]:80", "http://evil.example.com/", None, false);
        check("[::1]:80", "http://localhost/", Some("evil.example.com"), false);
        check("0.0.0.0:80", "/", Some("10.0.0.8"), true);
        check("0.0.0.0:80", "/", Some("evil.example.com"), false);
    }
}
