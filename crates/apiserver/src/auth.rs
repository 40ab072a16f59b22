//! Who may ask: everybody, or whoever knows the token.

use http::{HeaderValue, header, request};

use crate::status::Status;

/// Paths that answer everybody.
const OPEN: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];

/// Refuses a request without the token, if there is one to know.
pub(crate) fn check(token: Option<&str>, parts: &request::Parts) -> Result<(), Status> {
    let Some(token) = token else { return Ok(()) };
    let given = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim);
    if given == Some(token) || OPEN.contains(&parts.uri.path()) {
        return Ok(());
    }
    Err(Status::failure(401, "Unauthorized", "Unauthorized"))
}

/// The header that carries a token; `None` if it cannot stand in one.
pub(crate) fn header(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}
