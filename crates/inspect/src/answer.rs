//! Responses: JSON, or an error.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde::Serialize;

use crate::model::Failure;

/// A value that becomes a JSON response.
pub(crate) struct Json<T>(pub(crate) StatusCode, pub(crate) T);

impl<T: Serialize> Json<T> {
    pub(crate) fn ok(value: T) -> Self {
        Self(StatusCode::OK, value)
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response<Body> {
        let Self(status, value) = self;
        match serde_json::to_vec(&value) {
            Ok(text) => plain(status, "application/json", text),
            // Does not happen with our types. If it did, the inspected program must not panic.
            Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "application/json", "{}"),
        }
    }
}

/// Why a request was refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    error: String,
    hint: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { status, error: error.into(), hint: hint.into() }
    }

    pub(crate) fn bad(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, hint)
    }

    pub(crate) fn missing(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error, hint)
    }

    pub(crate) fn forbidden(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, error, hint)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        let Self { status, error, hint } = self;
        Json(status, Failure { error, hint }).into_response()
    }
}

/// Returns a response with a whole body.
pub(crate) fn plain(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
