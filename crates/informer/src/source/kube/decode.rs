//! Makes objects and events of the bytes that a server sends.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::status::WireStatus;
use crate::object::ResourceVersion;
use crate::representation::{self, Decode, DecodeError, Glimpse, ManagedFields, Raw};
use crate::source::{BadObject, Decoded, SourceError, WatchEvent};

/// The annotation on the bookmark that ends an initial state.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Reads the objects of one collection, and refuses those of another kind.
pub(super) struct Reader<T: Decode> {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) managed_fields: ManagedFields,
    pub(super) decoder: Arc<T::Decoder>,
}

#[derive(serde::Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl<T: Decode> Reader<T> {
    pub(super) fn object(&self, json: &[u8]) -> Decoded<T> {
        let raw = Raw::new(json).managed_fields(self.managed_fields).of_kind(&self.api_version, &self.kind);
        match representation::decode::<T>(&self.decoder, raw) {
            Ok(object) => Decoded::Object(object),
            Err(error) => Decoded::Bad(self.bad_object(json, error)),
        }
    }

    /// Reads as much of a bad object as can be read.
    fn bad_object(&self, json: &[u8], error: DecodeError) -> BadObject {
        let glimpse: Glimpse = Raw::new(json).deserialize().unwrap_or_default();
        let error = match &glimpse.kind {
            Some(kind) if *kind != self.kind && !kind.is_empty() => {
                DecodeError::WrongKind { expected: self.kind.clone(), got: kind.clone() }
            }
            _ => error,
        };
        BadObject { key: glimpse.key(), version: glimpse.metadata.resource_version.map(ResourceVersion::from), error }
    }

    pub(super) fn event(&self, line: &[u8]) -> Result<WatchEvent<T>, SourceError> {
        let not_an_event = SourceError::NotAnEvent;
        let (kind, object) = split_event(line).ok_or(not_an_event("the line has no type and object"))?;
        match &*kind {
            "ADDED" => Ok(WatchEvent::Added(self.object(object))),
            "MODIFIED" => Ok(WatchEvent::Modified(self.object(object))),
            "DELETED" => Ok(WatchEvent::Deleted(self.object(object))),
            "BOOKMARK" => bookmark(object).ok_or(not_an_event("the bookmark cannot be read")),
            "ERROR" => match serde_json::from_slice::<WireStatus>(object) {
                Ok(status) => Err(SourceError::Status(status.into())),
                Err(_) => Err(not_an_event("the error cannot be read")),
            },
            _ => Err(not_an_event("its type is not known")),
        }
    }
}

/// The type and the object of an event, in whatever order they come.
fn split_event(line: &[u8]) -> Option<(Cow<'_, str>, &[u8])> {
    let as_the_server_writes = || {
        let rest = line.strip_prefix(br#"{"type":""#)?;
        let (kind, rest) = rest.split_at_checked(memchr::memchr(b'"', rest)?)?;
        let object = rest.strip_prefix(br#"","object":"#)?.trim_ascii_end().strip_suffix(b"}")?;
        let plain = !kind.contains(&b'\\') && object.first() == Some(&b'{');
        plain.then_some((Cow::Borrowed(std::str::from_utf8(kind).ok()?), object))
    };
    as_the_server_writes().or_else(|| {
        let Envelope { kind, object } = serde_json::from_slice(line).ok()?;
        Some((kind, object.get().as_bytes()))
    })
}

fn bookmark<T>(json: &[u8]) -> Option<WatchEvent<T>> {
    let Glimpse { metadata, .. } = Raw::new(json).deserialize().ok()?;
    let version = metadata.resource_version.unwrap_or_default().into();
    let annotation = metadata.annotations.unwrap_or_default().remove(INITIAL_EVENTS_END);
    Some(WatchEvent::Bookmark { version, initial_events_end: annotation.as_deref() == Some("true") })
}
