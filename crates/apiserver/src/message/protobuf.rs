//! Request bodies in protobuf, as Go clients send them. They are decoded by the table of types. Answers are in JSON.

mod decode;

pub(crate) use decode::{Broken, decode};

use decode::{WireField, fields};

/// The media type.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// The prefix of every object.
const MAGIC: &[u8] = b"k8s\0";

/// A received object: its kind and its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProtobufEnvelope<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) message: &'a [u8],
}

/// Opens the envelope of a body.
pub(crate) fn open(body: &[u8]) -> Result<ProtobufEnvelope<'_>, Broken> {
    let unknown = body.strip_prefix(MAGIC).ok_or(Broken)?;
    let mut envelope = ProtobufEnvelope { api_version: "", kind: "", message: &[] };
    for field in fields(unknown) {
        match field? {
            (1, WireField::Bytes(meta)) => {
                for field in fields(meta) {
                    match field? {
                        (1, WireField::Bytes(text)) => envelope.api_version = utf8(text)?,
                        (2, WireField::Bytes(text)) => envelope.kind = utf8(text)?,
                        _ => {}
                    }
                }
            }
            (2, WireField::Bytes(message)) => envelope.message = message,
            _ => {}
        }
    }
    Ok(envelope)
}

fn utf8(bytes: &[u8]) -> Result<&str, Broken> {
    std::str::from_utf8(bytes).map_err(|_| Broken)
}

#[cfg(test)]
mod tests;
