//! The page for people: one file of markup, style and script, with nothing from elsewhere.

use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::OriginalUri;
use axum::http::{HeaderValue, Response, StatusCode, header};
use rand::RngExt as _;

use crate::answer::plain;

/// The page, with `{{nonce}}` and `{{base}}` to be filled in.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    let page = include_str!("page/page.html").replace("{{style}}", include_str!("page/page.css"));
    page.replace("{{script}}", include_str!("page/page.js"))
});
const ASK: &str = include_str!("page/token.html");

pub(crate) async fn page(OriginalUri(uri): OriginalUri) -> Response<Body> {
    // Nested below a path without a slash at its end, what the page asks for begins with the path's last part.
    let base = match uri.path().rsplit('/').next() {
        None | Some("") => "./".to_owned(),
        Some(last) => format!("./{last}/"),
    };
    filled(StatusCode::OK, &PAGE, &base)
}

/// A page that asks for the token.
pub(crate) fn ask_for_token() -> Response<Body> {
    filled(StatusCode::UNAUTHORIZED, ASK, "")
}

/// Only what has the nonce runs, and only this server is asked for anything: the browser sees to it.
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
