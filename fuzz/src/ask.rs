//! A request to the embedded server, and its response.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kube_embedded_apiserver::ApiServer;
use serde_json::Value;
use std::time::Duration;
use tower::ServiceExt as _;

pub(crate) const JSON: &str = "application/json";
pub(crate) const YAML: &str = "application/yaml";
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const OPERATIONS: &str = "application/json-patch+json";

/// Messages of errors that kube-apiserver answers with 500 too. Patches that do not fit their object are in
/// `may_break`.
const AS_IF_BROKEN: [&str; 6] = [
    "resourceVersion: Invalid value",
    "resourceVersion should not be set on objects to be created",
    "etcdserver: request is too large",
    "defaults make the object too large",
    "target.kind: Unsupported value",
    "target.name: ",
];

/// Longer than the server takes, after its response, to serve a new resource or to empty a namespace.
const SETTLED: Duration = Duration::from_millis(200);

/// A request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) content_type: &'a str,
    pub(crate) accept: &'a str,
    pub(crate) body: Vec<u8>,
}

/// A response; of a watch only the code.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Bytes,
}

impl<'a> Ask<'a> {
    pub(crate) fn get(target: &'a str) -> Self {
        Self { method: "GET", target, ..Self::default() }
    }

    pub(crate) fn json(method: &'a str, target: &'a str, body: &Value) -> Self {
        Self { method, target, content_type: JSON, body: body.to_string().into_bytes(), ..Self::default() }
    }

    /// Sends the request. Panics if there is no response, or if the response is a 5xx that kube-apiserver does not
    /// send.
    pub(crate) async fn send(&self, server: &ApiServer) -> Answer {
        let Self { method, target, content_type, accept, body } = self;
        let request = Request::builder().method(*method).uri(*target);
        let request = request.header("content-type", *content_type).header("accept", *accept);
        // An invalid HTTP request cannot reach a server.
        let Ok(request) = request.body(Full::new(Bytes::from(body.clone()))) else {
            return Answer { code: 400, body: Bytes::new() };
        };
        let response = server.clone().oneshot(request).await.expect("the server answers");
        let code = response.status().as_u16();
        if target.contains("watch") && code < 400 {
            return Answer { code, body: Bytes::new() };
        }
        let body = response.into_body().collect().await.expect("the whole answer").to_bytes();
        let answer = Answer { code, body };
        assert!(code < 500 || self.may_break(&answer), "{method} {target}: {answer:?}");
        answer
    }

    /// Returns true if kube-apiserver answers with this 5xx too.
    fn may_break(&self, answer: &Answer) -> bool {
        let said = String::from_utf8_lossy(&answer.body);
        let misfit = self.method == "PATCH" && (self.content_type == STRATEGIC || self.content_type == APPLY);
        match answer.code {
            500 if misfit => !said.contains("failed to decode managed fields"),
            500 => AS_IF_BROKEN.iter().any(|known| said.contains(known)),
            // The server waited for a future version, or for the requested time.
            504 => said.contains("Timeout"),
            _ => false,
        }
    }
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        self.code < 300
    }

    /// Returns the body, parsed as JSON.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Waits until the server has finished the work after its responses.
pub(crate) async fn settled() {
    tokio::time::sleep(SETTLED).await;
}

/// Returns the paths at which two values differ, with the values.
pub(crate) fn differences(one: &Value, other: &Value) -> Vec<String> {
    let mut found = Vec::new();
    differ(one, other, "", &mut found);
    found
}

fn differ(one: &Value, other: &Value, path: &str, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(members), Value::Object(others)) => {
            let added = others.keys().filter(|name| !members.contains_key(*name));
            for name in members.keys().chain(added) {
                match (one.get(name), other.get(name)) {
                    (Some(one), Some(other)) => differ(one, other, &format!("{path}/{name}"), found),
                    (one, other) => found.push(format!("{path}/{name}: {one:?} and {other:?}")),
                }
            }
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            for (index, (one, other)) in items.iter().zip(others).enumerate() {
                differ(one, other, &format!("{path}/{index}"), found);
            }
        }
        _ if one == other => {}
        _ => found.push(format!("{path}: {one} and {other}")),
    }
}

/// Percent-encodes every byte.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
