//! The live page: one file with markup, style and script, without external resources.

use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::OriginalUri;
use axum::http::{HeaderValue, Response, StatusCode, header};
use rand::RngExt as _;

use crate::answer::plain;

/// The page, with the placeholders `{{nonce}}` and `{{base}}`.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    let page = include_str!("page/page.html").replace("{{style}}", include_str!("page/page.css"));
    page.replace("{{script}}", include_str!("page/page.js"))
});
const ASK: &str = include_str!("page/token.html");

pub(crate) async fn page(OriginalUri(uri): OriginalUri) -> Response<Body> {
    // If the page is nested below a path without a trailing slash, relative URLs start with the last part of the path.
    let base = match uri.path().rsplit('/').next() {
        None | Some("") => "./".to_owned(),
        Some(last) => format!("./{last}/"),
    };
    filled(StatusCode::OK, &PAGE, &base)
}

/// Returns the page that asks for the token.
pub(crate) fn ask_for_token() -> Response<Body> {
    filled(StatusCode::UNAUTHORIZED, ASK, "")
}

/// Fills in a page. The policy lets the browser run only code with the nonce, and send requests only to this server.
fn filled(status: StatusCode, page: &str, base: &str) -> Response<Body> {
    let nonce = format!("{:032x}", rand::rng().random::<u128>());
    let body = page.replace("{{nonce}}", &nonce).replace("{{base}}", &escaped(base));
    let mut response = plain(status, "text/html; charset=utf-8", body);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}
