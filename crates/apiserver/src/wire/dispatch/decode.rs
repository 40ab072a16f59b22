//! Decodes request bodies.

use http::header;
use serde_json::Value;

use crate::api::write::{DeleteOptions, WriteOptions};
use crate::kinds::types::{self, Struct};
use crate::message::document::{self, BodyDocument};
use crate::message::protobuf::{self, PROTOBUF};
use crate::message::reply::{JSON, YAML};
use crate::status::Status;
use crate::wire::call::Call;

/// Returns the object in the body. A protobuf body is decoded as this type.
pub(super) fn decode(call: &Call, of: Option<&'static Struct>) -> Result<BodyDocument, Status> {
    match (media_type(call), of) {
        ("" | JSON, _) => from_json(&call.body),
        (YAML, _) => from_yaml(&call.body),
        (PROTOBUF, Some(of)) => from_protobuf(&call.body, of).map(BodyDocument::from),
        ("application/cbor", _) => Err(unsupported("this server does not understand CBOR")),
        (_, of) => {
            let more = if of.is_some() { ", application/vnd.kubernetes.protobuf" } else { "" };
            Err(unsupported(&format!(
                "the body of the request was in an unknown format - accepted media types include: application/json, \
                 application/yaml{more}"
            )))
        }
    }
}

/// Returns the options of a delete: from the body if there is one, otherwise from the query.
pub(super) fn delete_options(call: &Call) -> Result<DeleteOptions, Status> {
    let options = if call.body.is_empty() {
        DeleteOptions::from_query(&call.query)?
    } else {
        DeleteOptions::from_value(decode(call, types::named("meta/v1.DeleteOptions"))?.value)?
    };
    Ok(DeleteOptions { caller: call.caller.clone(), ..options })
}

/// Returns the options of a create, update or patch.
pub(super) fn write_options(call: &Call, kind: &'static str) -> Result<WriteOptions, Status> {
    let options = WriteOptions::parse(&call.query, kind, call.header(header::USER_AGENT))?;
    Ok(WriteOptions { caller: call.caller.clone(), ..options })
}

/// Returns the media type of the body, without its parameters.
pub(super) fn media_type(call: &Call) -> &str {
    call.header(header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim()
}

fn from_json(body: &[u8]) -> Result<BodyDocument, Status> {
    document::read(body)
        .map_err(|error| Status::bad_request(format!("couldn't get version/kind; json parse error: {error}")))
}

fn from_yaml(body: &[u8]) -> Result<BodyDocument, Status> {
    document::read_yaml(body).map_err(|error| Status::bad_request(format!("error converting YAML to JSON: {error}")))
}

fn from_protobuf(body: &[u8], of: &'static Struct) -> Result<Value, Status> {
    let refuse = |_| Status::bad_request("the body of the request is no object in protobuf");
    let envelope = protobuf::open(body).map_err(refuse)?;
    let mut object = protobuf::decode(of, envelope.message).map_err(refuse)?;
    for (member, text) in [("kind", envelope.kind), ("apiVersion", envelope.api_version)] {
        if !text.is_empty() {
            object[member] = text.into();
        }
    }
    Ok(object)
}

fn unsupported(message: &str) -> Status {
    Status::failure(415, "UnsupportedMediaType", message)
}
