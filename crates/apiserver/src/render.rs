//! Writes JSON answers in the format the client asked for.

use http::{HeaderValue, Response, header};
use http_body_util::BodyExt;
use serde_json::Value;

use crate::accept::Format;
use crate::reply::{Body, JSON, full_body};

/// Browsers and command-line tools get JSON for human eyes.
const HUMAN_AGENTS: [&str; 3] = ["curl", "Wget", "Mozilla/5.0"];

/// Whether JSON is indented for this client.
pub(crate) fn is_pretty(asked: Option<bool>, user_agent: &str) -> bool {
    asked.unwrap_or_else(|| HUMAN_AGENTS.iter().any(|agent| user_agent.starts_with(agent)))
}

/// Rewrites a whole JSON body. Answers of other types, and those that are fine as they are, are left alone.
pub(crate) async fn render(response: Response<Body>, format: Format, pretty: bool) -> Response<Body> {
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|value| value == JSON);
    if !is_json || format == Format::Json && !pretty {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // The bodies of this server do not fail; a fault is only added later.
    let Ok(collected) = body.collect().await else { return Response::from_parts(parts, full_body("")) };
    let bytes = collected.to_bytes();
    let Ok(value) = serde_json::from_slice::<Value>(&bytes) else {
        return Response::from_parts(parts, full_body(bytes));
    };
    let text = match format {
        Format::Json => serde_json::to_string_pretty(&value).unwrap_or_default(),
        Format::Yaml => {
            parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/yaml"));
            serde_saphyr::to_string(&value).unwrap_or_default()
        }
    };
    Response::from_parts(parts, full_body(text))
}
