//! Bodies of requests, in the formats that are understood.

use http::header;
use serde_json::Value;

use crate::reply::{JSON, YAML};
use crate::service::Call;
use crate::status::Status;
use crate::write::DeleteOptions;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The object in the body.
pub(super) fn decode(call: &Call) -> Result<Value, Status> {
    match media_type(call) {
        "" | JSON => from_json(&call.body),
        YAML => from_yaml(&call.body),
        PROTOBUF => Err(unsupported(
            "this server does not understand objects in protobuf yet; set the content type of the client to \
             application/json",
        )),
        "application/cbor" => Err(unsupported("this server does not understand CBOR")),
        _ => Err(unsupported(
            "the body of the request was in an unknown format - accepted media types include: application/json, \
             application/yaml",
        )),
    }
}

/// The options of a delete: in the body if there is one, else in the query.
pub(super) fn delete_options(call: &Call) -> Result<DeleteOptions, Status> {
    if call.body.is_empty() {
        return DeleteOptions::from_query(&call.query);
    }
    match media_type(call) {
        PROTOBUF => DeleteOptions::from_protobuf(&call.body),
        _ => DeleteOptions::from_value(&decode(call)?),
    }
}

/// The media type of the body, without its parameters.
pub(super) fn media_type(call: &Call) -> &str {
    call.header(header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim()
}

fn from_json(body: &[u8]) -> Result<Value, Status> {
    serde_json::from_slice(body)
        .map_err(|error| Status::bad_request(format!("couldn't get version/kind; json parse error: {error}")))
}

fn from_yaml(body: &[u8]) -> Result<Value, Status> {
    // A name may be `y` or `no`: only `true` and `false` are no strings.
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_slice_with_options(body, options)
        .map_err(|error| Status::bad_request(format!("error converting YAML to JSON: {error}")))
}

fn unsupported(message: &str) -> Status {
    Status::failure(415, "UnsupportedMediaType", message)
}
