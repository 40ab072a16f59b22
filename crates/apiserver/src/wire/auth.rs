//! Authentication by token, if the server has one.

use http::{HeaderValue, header, request};
use rand::RngExt;

use crate::status::Status;

/// Paths that need no token.
const OPEN: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];

/// Refuses a request without the token, if the server has one.
pub(crate) fn check(token: Option<&str>, parts: &request::Parts) -> Result<(), Status> {
    match token {
        Some(token) if !OPEN.contains(&parts.uri.path()) => check_always(token, parts),
        _ => Ok(()),
    }
}

/// Refuses a request without this token, on any path.
pub(crate) fn check_always(token: &str, parts: &request::Parts) -> Result<(), Status> {
    let given = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, given) = given.and_then(|value| value.split_once(' ')).unwrap_or_default();
    let knows = scheme.eq_ignore_ascii_case("Bearer") && is_same(given.trim(), token);
    if knows { Ok(()) } else { Err(Status::failure(401, "Unauthorized", "Unauthorized")) }
}

/// Compares two tokens in constant time.
fn is_same(given: &str, token: &str) -> bool {
    let differing = given.bytes().zip(token.bytes()).fold(0, |found, (one, two)| found | (one ^ two));
    given.len() == token.len() && differing == 0
}

/// Returns a random token. It does not come from the seed.
pub(crate) fn fresh_token() -> String {
    format!("{:032x}", rand::rng().random::<u128>())
}

/// Returns the header with a token, or `None` if the token is not a valid header value.
pub(crate) fn header(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}
