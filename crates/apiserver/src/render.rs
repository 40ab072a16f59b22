//! Writes JSON answers in the format the client asked for.

use http::{HeaderValue, Response, header};
use http_body_util::BodyExt;
use serde_json::Value;

use crate::reply::{Body, JSON, YAML, full_body};

/// Browsers and command-line tools get JSON for human eyes.
const HUMAN_AGENTS: [&str; 3] = ["curl", "Wget", "Mozilla/5.0"];

/// Whether JSON is indented for this client.
pub(crate) fn is_pretty(asked: Option<bool>, user_agent: &str) -> bool {
    asked.unwrap_or_else(|| HUMAN_AGENTS.iter().any(|agent| user_agent.starts_with(agent)))
}

/// Indents a JSON body for human eyes. Answers of other types are left alone.
pub(crate) async fn indented(response: Response<Body>) -> Response<Body> {
    rewritten(response, JSON, |value| serde_json::to_string_pretty(value).unwrap_or_default()).await
}

/// Writes a JSON body as YAML. Answers of other types are left alone.
pub(crate) async fn to_yaml(response: Response<Body>) -> Response<Body> {
    rewritten(response, YAML, |value| serde_saphyr::to_string(value).unwrap_or_default()).await
}

async fn rewritten(
    response: Response<Body>,
    media_type: &'static str,
    write: impl FnOnce(&Value) -> String,
) -> Response<Body> {
    if response.headers().get(header::CONTENT_TYPE).is_none_or(|value| value != JSON) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // The bodies of this server do not fail; a fault is only added later.
    let Ok(collected) = body.collect().await else { return Response::from_parts(parts, full_body("")) };
    let bytes = collected.to_bytes();
    let Ok(value) = serde_json::from_slice::<Value>(&bytes) else {
        return Response::from_parts(parts, full_body(bytes));
    };
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    Response::from_parts(parts, full_body(write(&value)))
}
