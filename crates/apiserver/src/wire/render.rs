//! Converts JSON answers to the form and format that the client requested.

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http::{HeaderValue, Response, header};
use http_body_util::BodyExt;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

use crate::api::table::RowPrinter;
use crate::hub::Hub;
use crate::message::accept::{Agreed, Format};
use crate::message::reply::{Body, JSON, YAML, full_body, stream_body};

/// User agents that get indented JSON.
const HUMAN_AGENTS: [&str; 3] = ["curl", "Wget", "Mozilla/5.0"];

/// The final form of an answer; it travels with the response.
#[derive(Clone)]
pub(crate) struct Rendering {
    pub(crate) agreed: Agreed,
    /// Whether the answer has one line for each event.
    pub(crate) is_watch: bool,
    /// Whether JSON is indented.
    pub(crate) pretty: bool,
    /// The printer for a table, and the hub, whose clock is used for ages.
    pub(crate) table: Option<(RowPrinter, Arc<Hub>)>,
}

/// Returns whether JSON is indented for this client.
pub(crate) fn is_pretty(asked: Option<bool>, user_agent: &str) -> bool {
    asked.unwrap_or_else(|| HUMAN_AGENTS.iter().any(|agent| user_agent.starts_with(agent)))
}

/// Converts a JSON answer. Answers of other media types stay unchanged.
pub(crate) async fn render(response: Response<Body>, rendering: &Rendering) -> Response<Body> {
    if response.headers().get(header::CONTENT_TYPE).is_none_or(|value| value != JSON) {
        return response;
    }
    let response = match &rendering.table {
        Some((printer, hub)) if rendering.is_watch && response.status().is_success() => {
            let (mut printer, hub) = (printer.clone(), hub.clone());
            return by_line(response, move |event| printed(&mut printer, event, hub.clock.now()));
        }
        Some((printer, hub)) if response.status().is_success() => {
            rewritten(response, JSON, |value| to_table(printer, value, hub.clock.now())).await
        }
        _ => response,
    };
    match rendering.agreed.format {
        Format::Yaml => {
            rewritten(response, YAML, |value| serde_saphyr::to_string(value).ok().map(String::into_bytes)).await
        }
        Format::Json if rendering.pretty => {
            rewritten(response, JSON, |value| serde_json::to_vec_pretty(value).ok()).await
        }
        Format::Json => response,
    }
}

async fn rewritten(
    response: Response<Body>,
    media_type: &'static str,
    write: impl FnOnce(&Value) -> Option<Vec<u8>>,
) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    // Bodies of this server do not fail; faults are added later.
    let Ok(collected) = body.collect().await else { return Response::from_parts(parts, full_body("")) };
    let bytes = collected.to_bytes();
    // An answer that a fault has made invalid is sent unchanged.
    let written = serde_json::from_slice::<Value>(&bytes).ok().and_then(|value| write(&value));
    let Some(written) = written else { return Response::from_parts(parts, full_body(bytes)) };
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    Response::from_parts(parts, full_body(written))
}

/// Converts the events of a watch one by one.
fn by_line(response: Response<Body>, write: impl FnMut(&Value) -> Option<Bytes> + Send + 'static) -> Response<Body> {
    let (parts, body) = response.into_parts();
    let events = stream::unfold((body, BytesMut::new(), write), |(mut body, mut rest, mut write)| async move {
        loop {
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line = rest.split_to(end + 1).freeze();
                let event = serde_json::from_slice(&line).ok();
                let written = event.and_then(|event| write(&event)).unwrap_or(line);
                return Some((Ok(written), (body, rest, write)));
            }
            match body.frame().await {
                Some(Ok(frame)) => rest.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
                Some(Err(error)) => return Some((Err(error), (body, BytesMut::new(), write))),
                None if rest.is_empty() => return None,
                // A fault has cut the line short.
                None => return Some((Ok(std::mem::take(&mut rest).freeze()), (body, rest, write))),
            }
        }
    });
    Response::from_parts(parts, stream_body(events.boxed()))
}

/// Converts a list or an object to a table. A `Status` stays unchanged.
fn to_table(printer: &RowPrinter, value: &Value, now: Timestamp) -> Option<Vec<u8>> {
    let kind = value["kind"].as_str()?;
    let table = match &value["items"] {
        _ if kind == "Status" => return None,
        Value::Array(_) if kind.ends_with("List") => printer.list(value, now),
        _ => printer.object(value, now),
    };
    let mut bytes = serde_json::to_vec(&table).ok()?;
    bytes.push(b'\n');
    Some(bytes)
}

fn printed(printer: &mut RowPrinter, event: &Value, now: Timestamp) -> Option<Bytes> {
    if event["type"] == "ERROR" {
        return None;
    }
    let event = json!({"type": event["type"], "object": printer.event(&event["object"], now)});
    Some(format!("{event}\n").into())
}
