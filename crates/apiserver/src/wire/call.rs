//! A parsed request.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header, request};
use parking_lot::Mutex;
use std::sync::Arc;

use crate::api::webhook::Caller;
use crate::message::accept::Negotiated;
use crate::message::query::Query;
use crate::message::verb::Verb;

/// A request with its verb and its options.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) id: u64,
    /// The verb; `None` if the path does not allow the method.
    pub(crate) verb: Option<Verb>,
    pub(crate) query: Query,
    /// The result of the `Accept` header.
    pub(crate) accept: Negotiated,
    pub(crate) parts: request::Parts,
    pub(crate) body: Bytes,
    /// The warnings for the client, sent whether or not the request succeeds.
    pub(crate) warnings: Warnings,
    /// Calls webhooks, if the cluster has any.
    pub(crate) caller: Option<Caller>,
}

/// The warnings of one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>);

/// The maximum number of warnings in an answer, and the maximum length of each.
const MOST_WARNINGS: usize = 30;
const LONGEST_WARNING: usize = 256;

impl Warnings {
    pub(crate) fn add(&self, warnings: Vec<String>) {
        let mut known = self.0.lock();
        for warning in warnings {
            if !known.contains(&warning) {
                known.push(warning);
            }
        }
    }

    /// Writes the warnings into the headers of an answer.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        for warning in self.0.lock().iter().take(MOST_WARNINGS) {
            let text: String = warning.chars().filter(|sign| !sign.is_control()).take(LONGEST_WARNING).collect();
            let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
            // Text that is not ASCII is sent unchanged, as kube-apiserver does.
            if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
                headers.append(header::WARNING, value);
            }
        }
    }
}

impl Call {
    /// Returns a header as a string; empty if it is missing.
    pub(crate) fn header(&self, name: header::HeaderName) -> &str {
        header_text(&self.parts, name)
    }
}

pub(super) fn header_text(parts: &request::Parts, name: header::HeaderName) -> &str {
    parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
