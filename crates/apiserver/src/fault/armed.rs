//! Faults that were chosen for one request, and how they change its answer.

use http::{Response, header};
use http_body_util::BodyDataStream;
use std::io;

use super::action::Layer;
use super::bytes::FaultyBytes;
use super::lines::FaultyLines;
use super::{Action, Faults, Firing};
use crate::reply::{Body, status_reply, stream_body};
use crate::status::{Status, StatusDetails};

/// A fault chosen for one request. It is on record only once it takes effect.
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

    /// Writes down that the fault has taken effect.
    pub(super) fn fire(&self) {
        self.faults.record(self.firing.clone());
    }
}

/// Applies what happens before there is an answer. Returns an answer that takes the place of the real one.
pub(crate) async fn before_answer(armed: &[Armed]) -> io::Result<Option<Response<Body>>> {
    for fault in armed {
        match &fault.action {
            Action::Delay(delay) => {
                fault.fire();
                tokio::time::sleep(*delay).await;
            }
            Action::ResetBeforeAnswer => {
                fault.fire();
                return Err(reset());
            }
            Action::Status { code, retry_after } => {
                fault.fire();
                return Ok(Some(status_reply(&injected_status(*code, *retry_after))));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Applies what happens to the body of the answer.
pub(crate) fn spoil(armed: Vec<Armed>, mut response: Response<Body>, is_watch: bool) -> Response<Body> {
    let (mut lines, mut bytes) = (Vec::new(), Vec::new());
    for fault in armed {
        match fault.action.layer() {
            Layer::Answer => {}
            Layer::Lines if is_watch => lines.push(fault),
            Layer::Lines => {}
            Layer::Bytes => bytes.push(fault),
        }
    }
    if lines.is_empty() && bytes.is_empty() {
        return response;
    }
    response.headers_mut().remove(header::CONTENT_LENGTH);
    let body = |body: Body| {
        let body = match lines.is_empty() {
            true => body,
            false => stream_body(FaultyLines::new(BodyDataStream::new(body), lines).into_stream()),
        };
        match bytes.is_empty() {
            true => body,
            false => stream_body(FaultyBytes::new(BodyDataStream::new(body), bytes).into_stream()),
        }
    };
    response.map(body)
}

/// A broken connection.
pub(super) fn reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer")
}

/// The status a real server gives with a code.
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
