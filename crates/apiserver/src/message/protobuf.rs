//! Objects in protobuf, by the table of types: as bodies, as lists, and as watch events.

mod decode;
mod encode;

pub(crate) use decode::{Broken, decode};
pub(crate) use encode::{encode, put_bytes, put_text};

use bytes::Bytes;
use serde_json::Value;

use crate::kinds::types::{self, Struct};
use decode::{Field, fields};

/// The media type.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// The prefix of every object.
const MAGIC: &[u8] = b"k8s\0";

/// A received object: its kind and its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Envelope<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) message: &'a [u8],
}

/// Opens the envelope of a body.
pub(crate) fn open(body: &[u8]) -> Result<Envelope<'_>, Broken> {
    let unknown = body.strip_prefix(MAGIC).ok_or(Broken)?;
    let mut envelope = Envelope { api_version: "", kind: "", message: &[] };
    for field in fields(unknown) {
        match field? {
            (1, Field::Bytes(meta)) => {
                for field in fields(meta) {
                    match field? {
                        (1, Field::Bytes(text)) => envelope.api_version = utf8(text)?,
                        (2, Field::Bytes(text)) => envelope.kind = utf8(text)?,
                        _ => {}
                    }
                }
            }
            (2, Field::Bytes(message)) => envelope.message = message,
            _ => {}
        }
    }
    Ok(envelope)
}

fn utf8(bytes: &[u8]) -> Result<&str, Broken> {
    std::str::from_utf8(bytes).map_err(|_| Broken)
}

/// Puts a message into an envelope.
pub(crate) fn seal(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut meta = Vec::new();
    put_text(1, api_version, &mut meta);
    put_text(2, kind, &mut meta);
    let mut sealed = MAGIC.to_vec();
    put_bytes(1, &meta, &mut sealed);
    put_bytes(2, message, &mut sealed);
    put_text(3, "", &mut sealed);
    put_text(4, "", &mut sealed);
    sealed
}

/// Returns an object in its envelope.
pub(crate) fn seal_object(of: &'static Struct, object: &Value) -> Vec<u8> {
    let text = |member: &str| object[member].as_str().unwrap_or_default();
    seal(text("apiVersion"), text("kind"), &encode(of, object))
}

/// Returns a list in its envelope, from the messages of its items.
pub(crate) fn seal_list(
    api_version: &str,
    kind: &str,
    metadata: &Value,
    items: impl Iterator<Item = Bytes>,
) -> Vec<u8> {
    let mut list = Vec::new();
    let metadata = types::named("meta/v1.ListMeta").map(|of| encode(of, metadata)).unwrap_or_default();
    put_bytes(1, &metadata, &mut list);
    for item in items {
        put_bytes(2, &item, &mut list);
    }
    seal(api_version, kind, &list)
}

/// Returns one watch event: its length, its type and its object.
pub(crate) fn frame(change: &str, sealed: &[u8]) -> Bytes {
    let (mut event, mut raw) = (Vec::with_capacity(sealed.len() + 32), Vec::new());
    put_text(1, change, &mut event);
    put_bytes(1, sealed, &mut raw);
    put_bytes(2, &raw, &mut event);
    let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
    let mut framed = length.to_be_bytes().to_vec();
    framed.append(&mut event);
    framed.into()
}

#[cfg(test)]
mod tests;
