//! Paths that are not about objects: discovery, version, health.

use http::{HeaderValue, Method, Response, header};

use crate::accept::{Shape, negotiate};
use crate::discovery::{discover, version};
use crate::hub::Hub;
use crate::reply::{Body, TEXT, full_body, page_not_found, reply};
use crate::service::Call;
use crate::status::Status;

/// Answers a path outside the resources.
pub(crate) fn general(hub: &Hub, call: &Call) -> Result<Response<Body>, Status> {
    let steps: Vec<&str> = call.parts.uri.path().split('/').filter(|step| !step.is_empty()).collect();
    let is_read = matches!(call.parts.method, Method::GET | Method::HEAD);
    let found = match steps.as_slice() {
        ["version"] => Some(version(hub.settings.minor_version)),
        [check @ ("healthz" | "livez" | "readyz"), ..] => {
            Some(health(check, call.query.switch("verbose") == Some(true)))
        }
        _ => {
            let agreed = negotiate(call.header(header::ACCEPT), Shape::Discovery)?;
            let catalog = hub.storage.lock().catalog.clone();
            discover(&catalog, &steps, agreed.aggregated, call.header(header::IF_NONE_MATCH))
        }
    };
    match found {
        Some(_) if !is_read => Err(Status::method_not_allowed()),
        Some(response) => Ok(response),
        None => Ok(page_not_found()),
    }
}

fn health(check: &str, verbose: bool) -> Response<Body> {
    let text = if verbose { format!("[+]ping ok\n[+]storage ok\n{check} check passed\n") } else { "ok".to_owned() };
    let mut response = reply(200, TEXT, full_body(text));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
