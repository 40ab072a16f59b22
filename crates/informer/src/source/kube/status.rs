//! Conversion of the errors of an API server.

use std::time::Duration;

use http::{Response, header};
use http_body_util::{BodyExt as _, Limited};
use kube_client::client::Body;

use crate::source::Status;

/// How many bytes of an error response are read at most.
const ERROR_BODY_LIMIT: usize = 64 * 1024;

/// A `Status` object, as JSON.
#[derive(serde::Deserialize)]
pub(super) struct WireStatus {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    details: Option<WireDetails>,
}

#[derive(serde::Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct WireDetails {
    retry_after_seconds: Option<u64>,
    causes: Option<Vec<WireCause>>,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct WireCause {
    reason: String,
    message: String,
}

impl From<WireStatus> for Status {
    fn from(status: WireStatus) -> Self {
        const TOO_LARGE: &str = "Too large resource version";
        let WireDetails { retry_after_seconds, causes } = status.details.unwrap_or_default();
        // API servers send three forms: the reason of a cause, its message, and the message of versions before 1.18.
        let version_too_large = causes
            .unwrap_or_default()
            .iter()
            .any(|cause| cause.reason == "ResourceVersionTooLarge" || cause.message == TOO_LARGE)
            || (status.reason == "Timeout" && status.message.contains(TOO_LARGE));
        Self {
            code: status.code,
            reason: status.reason,
            message: one_line(&status.message),
            retry_after: retry_after_seconds.map(Duration::from_secs),
            version_too_large,
        }
    }
}

pub(super) async fn read_status(response: Response<Body>) -> Status {
    let code = response.status().as_u16();
    let retry_after = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let retry_after = retry_after.map(Duration::from_secs);
    let body = Limited::new(response.into_body(), ERROR_BODY_LIMIT).collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let mut status = match serde_json::from_slice::<WireStatus>(&body) {
        Ok(status) => Status::from(status),
        Err(_) => Status { message: one_line(&excerpt(&body)), ..Status::default() },
    };
    status.code = code;
    status.retry_after = status.retry_after.max(retry_after);
    status
}

/// Returns the beginning of an error page that is not a `Status`.
fn excerpt(bytes: &[u8]) -> String {
    const LENGTH: usize = 120;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LENGTH)]).into_owned();
    if bytes.len() > LENGTH { text + "…" } else { text }
}

/// Joins a message into one line, for logs.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
