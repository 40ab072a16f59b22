//! A request, read.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header, request};
use parking_lot::Mutex;
use std::sync::Arc;

use crate::message::accept::Negotiated;
use crate::message::query::Query;
use crate::message::verb::Verb;

/// A request once it is known what it is about.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) id: u64,
    /// `None` if the method may not be used on this path.
    pub(crate) verb: Option<Verb>,
    pub(crate) query: Query,
    /// What the `Accept` header comes to.
    pub(crate) accept: Negotiated,
    pub(crate) parts: request::Parts,
    pub(crate) body: Bytes,
    /// What the client is warned of, whatever becomes of its request.
    pub(crate) warnings: Warnings,
}

/// What a client is warned of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>);

/// How many warnings an answer carries, and how long each may be.
const MOST_WARNINGS: usize = 30;
const LONGEST_WARNING: usize = 256;

impl Warnings {
    pub(crate) fn add(&self, warnings: Vec<String>) {
        self.0.lock().extend(warnings);
    }

    /// Puts them into the headers of an answer.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        for warning in self.0.lock().iter().take(MOST_WARNINGS) {
            let text: String = warning.chars().filter(|sign| !sign.is_control()).take(LONGEST_WARNING).collect();
            let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
            // Text that is not ASCII is sent as it is, as kube-apiserver does.
            if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
                headers.append(header::WARNING, value);
            }
        }
    }
}

impl Call {
    /// A header as text; empty if there is none.
    pub(crate) fn header(&self, name: header::HeaderName) -> &str {
        header_text(&self.parts, name)
    }
}

pub(super) fn header_text(parts: &request::Parts, name: header::HeaderName) -> &str {
    parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
