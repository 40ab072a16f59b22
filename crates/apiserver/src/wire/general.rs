//! Paths that are not about objects: discovery, version, health.

use http::{HeaderValue, Method, Response, header};

use crate::api::discovery::{discover, version};
use crate::api::openapi;
use crate::hub::Hub;
use crate::message::reply::{Body, TEXT, full_body, page_not_found, reply, value_reply};
use crate::status::Status;
use crate::wire::call::Call;

/// Answers a path outside the resources.
pub(crate) fn general(hub: &Hub, call: &Call) -> Result<Response<Body>, Status> {
    let steps: Vec<&str> = call.parts.uri.path().split('/').filter(|step| !step.is_empty()).collect();
    let is_read = matches!(call.parts.method, Method::GET | Method::HEAD);
    let found = match steps.as_slice() {
        ["version"] => Some(version(hub.settings.minor_version)),
        [check @ ("healthz" | "livez" | "readyz"), ..] => {
            Some(health(check, call.query.switch("verbose") == Some(true)))
        }
        ["openapi", "v3", rest @ ..] => describe(hub, rest),
        _ => {
            let agreed = call.accept.answer.clone()?;
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

/// Answers with the OpenAPI index, or with one of its documents.
fn describe(hub: &Hub, steps: &[&str]) -> Option<Response<Body>> {
    let (catalog, revision) = {
        let state = hub.storage.lock();
        (state.catalog.clone(), state.catalog.changes())
    };
    let (group, version) = match steps {
        [] => {
            let mut versions: Vec<(&str, &str)> =
                catalog.served().map(|resource| (resource.group.as_str(), resource.version.as_str())).collect();
            versions.sort_unstable();
            versions.dedup();
            // Only CRDs change the documents, and each change has a new revision.
            return Some(value_reply(200, &openapi::index(versions, &revision.to_string())));
        }
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => return None,
    };
    catalog.serves(group, version).then(|| value_reply(200, &openapi::document(group, version, &catalog)))
}

fn health(check: &str, verbose: bool) -> Response<Body> {
    let text = if verbose { format!("[+]ping ok\n[+]storage ok\n{check} check passed\n") } else { "ok".to_owned() };
    let mut response = reply(200, TEXT, full_body(text));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
