//! The routes, and the access check before each of them.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{OriginalUri, Request, State};
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::IntoResponse as _;
use axum::routing::get;

use crate::answer::Refusal;
use crate::guard::{TokenCheck, check_token, comes_from_another_site, cookie, has_loopback_host};
use crate::state::InspectionState;
use crate::{informers, objects, page, probes, stream};

/// The access check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessCheck {
    /// The request needs the token, unless it is a probe.
    ByToken,
    /// The request needs a loopback host name.
    ByHost,
    /// No check: the program checks access.
    ByProgram,
    /// Only probes are answered, because the program has set neither a token nor `open`.
    ProbesOnly,
}

/// Paths that reveal only whether the program is healthy, and why it is not. They need no token: a kubelet asks for them,
/// and a token in the spec of a pod would be readable by every user who may read pods.
const PROBES: [&str; 2] = ["/livez", "/readyz"];

pub(crate) fn router(shown: Arc<InspectionState>, guarded: AccessCheck) -> Router {
    Router::new()
        .route("/", get(page::page))
        .route("/api/informers", get(informers::all))
        .route("/api/informers/{id}", get(informers::one))
        .route("/api/informers/{id}/keys", get(objects::keys))
        .route("/api/informers/{id}/values", get(objects::values))
        .route("/api/informers/{id}/object", get(objects::object))
        .route("/api/informers/{id}/history", get(objects::history))
        .route("/api/queues", get(informers::queues))
        .route("/api/stream", get(stream::stream))
        .route("/livez", get(probes::live))
        .route("/readyz", get(probes::ready))
        .route("/metrics", get(probes::metrics))
        .fallback(nothing_here)
        .method_not_allowed_fallback(read_only)
        .layer(from_fn_with_state((shown.clone(), guarded), guard))
        .with_state(shown)
}

async fn nothing_here() -> Refusal {
    Refusal::missing("this path does not exist", "`api/informers` lists the informers, and `/` is the live page")
}

async fn read_only() -> Refusal {
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "all paths are read-only", "use GET")
}

async fn guard(
    State((shown, guarded)): State<(Arc<InspectionState>, AccessCheck)>,
    OriginalUri(uri): OriginalUri,
    request: Request,
    next: Next,
) -> Response<Body> {
    let headers = request.headers();
    let for_people = request.method() == Method::GET && request.uri().path() == "/";
    let is_probe = PROBES.contains(&request.uri().path());
    let token = match &shown.settings.token {
        Some(token) if !is_probe => check_token(token, headers, request.uri()),
        _ => TokenCheck::Valid,
    };
    let mut response = if guarded == AccessCheck::ByHost && !has_loopback_host(headers) {
        let hint = "open it as 127.0.0.1 or localhost; with a token other names are accepted too";
        Refusal::forbidden("this is not a name of this machine", hint).into_response()
    } else if guarded == AccessCheck::ProbesOnly && !is_probe {
        let hint = "set `Inspection::token`, or call `Inspection::open` if the program checks access itself";
        Refusal::forbidden("no token is set, so that only probes are answered", hint).into_response()
    } else if comes_from_another_site(headers) {
        Refusal::forbidden("the request comes from another site's page", "open the page itself").into_response()
    } else {
        match (token, &shown.settings.token) {
            (TokenCheck::Invalid, _) if for_people => page::ask_for_token(),
            (TokenCheck::Invalid, _) => refuse(),
            (TokenCheck::ValidInUrl, Some(token)) if for_people => keep_token(token, uri.path()),
            _ => next.run(request).await,
        }
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // A response other than the page needs no resources.
    let nothing = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(nothing);
    response
}

fn refuse() -> Response<Body> {
    let hint = "send it as `Authorization: Bearer …`, or open the page with `?token=…`";
    let mut response = Refusal::new(StatusCode::UNAUTHORIZED, "this needs a token", hint).into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Sets the cookie, and redirects to the URL without the token, because users copy URLs and share screens.
fn keep_token(token: &str, path: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let place = format!("./{}", path.rsplit('/').next().unwrap_or_default());
    if let (Ok(cookie), Ok(place)) = (HeaderValue::from_str(&cookie(token, path)), HeaderValue::from_str(&place)) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}
