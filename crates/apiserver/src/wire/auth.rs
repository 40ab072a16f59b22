//! Authentication by token, if the server has one.

use http::{HeaderValue, header, request};
use rand::RngExt;

use crate::status::Status;

/// Paths that need no token.
const OPEN: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];

/// Refuses a request without the token, if the server has one.
pub(crate) fn check(token: Option<&str>, parts: &request::Parts) -> Result<(), Status> {
    let Some(token) = token else { return Ok(()) };
    if OPEN.contains(&parts.uri.path()) || knows(token, parts) { Ok(()) } else { Err(unauthorized()) }
}

/// Returns whether a request carries this token.
pub(crate) fn knows(token: &str, parts: &request::Parts) -> bool {
    let given = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    given.and_then(|value| value.strip_prefix("Bearer ")).is_some_and(|given| is_same(given.trim(), token))
}

/// Compares two tokens in constant time.
fn is_same(given: &str, token: &str) -> bool {
    let differing = given.bytes().zip(token.bytes()).fold(0, |found, (one, two)| found | (one ^ two));
    given.len() == token.len() && differing == 0
}

/// Returns the answer to a request without a valid token.
pub(crate) fn unauthorized() -> Status {
    Status::failure(401, "Unauthorized", "Unauthorized")
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
