//! Faults that were chosen for one request, and how they change its response.

use http::{HeaderValue, Response, header};
use http_body::Body as _;
use http_body_util::{BodyDataStream, BodyExt};
use std::io;

use super::action::Layer;
use super::bytes::FaultyBytes;
use super::lines::FaultyLines;
use super::{Action, Facts, Faults, Firing};
use crate::message::reply::{Body, full_body, reply, status_reply, stream_body};
use crate::message::verb::Verb;
use crate::status::{Status, StatusDetails};
use crate::storage::state::Storage;

/// A fault chosen for one request. It is recorded only when it takes effect.
#[derive(Debug)]
pub(crate) struct Armed {
    pub(super) action: Action,
    firing: Firing,
    faults: Faults,
}

impl Armed {
    pub(super) fn new(action: Action, firing: Firing, faults: Faults) -> Self {
        Self { action, firing, faults }
    }

    /// Records that the fault took effect.
    pub(super) fn fire(&self) {
        self.faults.record(self.firing.clone());
    }
}

/// Applies the faults that act before there is a response. Returns a response that replaces the normal one.
pub(crate) async fn before_answer(storage: &Storage, armed: &[Armed]) -> io::Result<Option<Response<Body>>> {
    for fault in armed.iter().filter(|fault| fault.action.layer() == Layer::Answer) {
        fault.fire();
        match &fault.action {
            Action::Delay(delay) => tokio::time::sleep(*delay).await,
            Action::Compact => storage.compact(),
            Action::ResetBeforeAnswer => return Err(reset()),
            Action::NoAnswer => return std::future::pending().await,
            Action::Status { code, retry_after } => {
                return Ok(Some(status_reply(&injected_status(*code, *retry_after))));
            }
            Action::VersionTooLarge => {
                let current = storage.revision();
                return Ok(Some(status_reply(&Status::version_too_large(current + 1, current))));
            }
            Action::Page { code, content_type, header, body } => {
                let mut page = reply(*code, content_type, full_body(body.clone()));
                let value = header.as_ref().and_then(|(_, value)| HeaderValue::from_str(value).ok());
                if let (Some((name, _)), Some(value)) = (header, value) {
                    page.headers_mut().insert(*name, value);
                }
                return Ok(Some(page));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Applies the faults that act before compression: to the headers, objects and events of the response.
pub(crate) async fn spoil_content(
    armed: &mut Vec<Armed>,
    mut response: Response<Body>,
    facts: &Facts,
) -> Response<Body> {
    let is_watch = facts.verb == Verb::Watch && response.status().is_success();
    let mut lines = Vec::new();
    for fault in armed.extract_if(.., |fault| fault.action.layer() != Layer::Bytes) {
        match fault.action.layer() {
            Layer::Headers => spoil_headers(&fault, &mut response),
            Layer::Items => response = spoil_list(&fault, response, facts).await,
            Layer::Lines if is_watch => lines.push(fault),
            Layer::Answer | Layer::Lines | Layer::Bytes => {}
        }
    }
    if lines.is_empty() {
        return response;
    }
    response.map(|body| stream_body(FaultyLines::new(BodyDataStream::new(body), lines).into_stream()))
}

/// Applies the faults that act on the bytes of the response as they are sent.
pub(crate) fn spoil_bytes(armed: Vec<Armed>, mut response: Response<Body>) -> Response<Body> {
    if armed.is_empty() {
        return response;
    }
    if armed.iter().any(|fault| fault.action == Action::UnaskedGzip) {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    // With a content length the client notices that the body is cut short. Without one the body only ends.
    if armed.iter().any(|fault| matches!(fault.action, Action::ResetAfterBytes(_)))
        && let Some(length) = response.body().size_hint().exact()
    {
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
    response.map(|body| stream_body(FaultyBytes::new(BodyDataStream::new(body), armed).into_stream()))
}

fn spoil_headers(fault: &Armed, response: &mut Response<Body>) {
    fault.fire();
    let headers = response.headers_mut();
    match fault.action {
        Action::ContentType(None) => {
            headers.remove(header::CONTENT_TYPE);
        }
        Action::ContentType(Some(content_type)) => {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        Action::Warnings(count) => {
            for number in 0..count {
                if let Ok(warning) = HeaderValue::from_str(&format!("299 - \"warning {number}\"")) {
                    headers.append(header::WARNING, warning);
                }
            }
        }
        Action::ConnectionClose => {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        _ => {}
    }
}

async fn spoil_list(fault: &Armed, response: Response<Body>, facts: &Facts) -> Response<Body> {
    let Action::List(flaw) = fault.action else { return response };
    if !response.status().is_success() {
        return response;
    }
    let (parts, body) = response.into_parts();
    let whole = match body.collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) => return Response::from_parts(parts, stream_body(futures_util::stream::iter([Err(error)]))),
    };
    let spoilt = flaw.spoil(&whole, facts);
    if spoilt.is_some() {
        fault.fire();
    }
    Response::from_parts(parts, full_body(spoilt.unwrap_or(whole)))
}

/// Returns the error of a broken connection, after earlier bytes have had a chance to be sent.
pub(super) async fn reset_after_sending() -> io::Error {
    // A connection flushes when it has nothing more to write.
    tokio::task::yield_now().await;
    reset()
}

/// Returns the error of a broken connection.
fn reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer")
}

/// Returns the status that kube-apiserver sends with this code.
pub(super) fn injected_status(code: u16, retry_after: Option<u32>) -> Status {
    let (reason, message) = match code {
        400 => ("BadRequest", "the server rejected our request for an unknown reason"),
        401 => ("Unauthorized", "Unauthorized"),
        403 => ("Forbidden", "forbidden"),
        404 => ("NotFound", "the server could not find the requested resource"),
        409 => ("Conflict", "the server reported a conflict"),
        410 => ("Expired", "The resourceVersion for the provided watch is too old."),
        422 => ("Invalid", "the server rejected our request due to an error in our request"),
        429 => ("TooManyRequests", "storage is (re)initializing"),
        500 => ("InternalError", "Internal error occurred: injected fault"),
        503 => ("ServiceUnavailable", "apiserver is shutting down"),
        504 => ("Timeout", "Timeout: request did not complete within the allotted timeout"),
        _ => ("", "injected fault"),
    };
    let status = Status::failure(code, reason, message);
    match retry_after {
        Some(seconds) => {
            status.with_details(StatusDetails { retry_after_seconds: seconds, ..StatusDetails::default() })
        }
        None => status,
    }
}
