//! Responses and their bodies.

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::Value;
use std::io;

use crate::status::Status;
use crate::storage::object::LINE_END;

/// The body of every response: bytes, produced as the client reads them, or the error of a broken connection.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

pub(crate) const JSON: &str = "application/json";
pub(crate) const YAML: &str = "application/yaml";
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

pub(crate) fn full_body(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn stream_body(stream: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Body {
    StreamBody::new(stream.map(|bytes| bytes.map(Frame::data))).boxed_unsync()
}

/// Returns a response with this code, media type and body.
pub(crate) fn reply(code: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

pub(crate) fn json_reply(code: u16, body: impl Into<Bytes>) -> Response<Body> {
    reply(code, JSON, full_body(body))
}

/// Returns a response with a JSON value.
pub(crate) fn value_reply(code: u16, value: &Value) -> Response<Body> {
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.push(b'\n');
    json_reply(code, bytes)
}

/// Returns kube-apiserver's plain `404 page not found`, for paths outside its groups.
pub(crate) fn page_not_found() -> Response<Body> {
    reply(404, TEXT, full_body("404 page not found\n"))
}

pub(crate) fn status_reply(status: &Status) -> Response<Body> {
    let mut response = json_reply(status.code, status.to_json());
    if let Some(seconds) = status.retry_after_seconds() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Returns the `ERROR` event that ends a watch.
pub(crate) fn error_line(status: &Status) -> Bytes {
    let body = status.to_json();
    let mut line = br#"{"type":"ERROR","object":"#.to_vec();
    line.extend_from_slice(body.trim_ascii_end());
    line.extend_from_slice(LINE_END.as_bytes());
    line.into()
}
