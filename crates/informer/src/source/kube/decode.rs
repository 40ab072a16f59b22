//! Makes objects and events of the bytes that a server sends.

use std::any::Any;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use kube_core::{DynamicObject, TypeMeta};
use serde_json::value::RawValue;

use super::status::WireStatus;
use crate::object::{self, DecodeError, Glimpse, ManagedFields, Object, Raw, ResourceVersion};
use crate::source::{BadObject, Decoded, SourceError, WatchEvent};

/// The annotation that marks the bookmark behind the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Makes objects and events of bytes.
pub(super) struct Decoder<T> {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) managed_fields: ManagedFields,
    pub(super) objects: PhantomData<fn() -> T>,
}

/// A watch event of any form. The server writes `type` first and `object` last, which is read without this.
#[derive(serde::Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl<T: Object> Decoder<T> {
    pub(super) fn object(&self, json: &[u8]) -> Decoded<T> {
        let object = object::decode(Raw::new(json).managed_fields(self.managed_fields));
        match object.and_then(|object| self.check_type(object)) {
            Ok(object) => Decoded::Object(Arc::new(object)),
            Err(error) => Decoded::Bad(self.bad_object(json, error)),
        }
    }

    /// Objects that say of what type they are must be of this one; those in lists of built-in kinds do not say.
    fn check_type(&self, mut object: T) -> Result<T, DecodeError> {
        let Some(dynamic) = (&mut object as &mut dyn Any).downcast_mut::<DynamicObject>() else { return Ok(object) };
        match &dynamic.types {
            Some(types) if types.kind != self.kind => {
                Err(DecodeError::WrongKind { expected: self.kind.clone(), got: types.kind.clone().into() })
            }
            Some(_) => Ok(object),
            None => {
                dynamic.types = Some(TypeMeta { api_version: self.api_version.clone(), kind: self.kind.clone() });
                Ok(object)
            }
        }
    }

    fn bad_object(&self, json: &[u8], error: DecodeError) -> BadObject {
        let glimpse: Glimpse = Raw::new(json).deserialize().unwrap_or_default();
        let error = match &glimpse.kind {
            Some(kind) if *kind != self.kind => {
                DecodeError::WrongKind { expected: self.kind.clone(), got: kind.clone().into() }
            }
            _ => error,
        };
        BadObject { key: glimpse.key(), version: glimpse.metadata.resource_version.map(ResourceVersion::from), error }
    }

    pub(super) fn event(&self, line: &[u8]) -> Result<WatchEvent<T>, SourceError> {
        let (kind, object) = split_event(line).ok_or_else(|| SourceError::NotAnEvent(excerpt(line)))?;
        match &*kind {
            "ADDED" => Ok(WatchEvent::Added(self.object(object))),
            "MODIFIED" => Ok(WatchEvent::Modified(self.object(object))),
            "DELETED" => Ok(WatchEvent::Deleted(self.object(object))),
            "BOOKMARK" => bookmark(object).ok_or_else(|| SourceError::NotAnEvent(excerpt(line))),
            "ERROR" => match serde_json::from_slice::<WireStatus>(object) {
                Ok(status) => Err(SourceError::Status(status.into())),
                Err(_) => Err(SourceError::NotAnEvent(excerpt(line))),
            },
            _ => Err(SourceError::NotAnEvent(excerpt(line))),
        }
    }
}

/// The type and the object of an event.
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

/// The start of some bytes, for a message.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const LENGTH: usize = 120;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LENGTH)]).into_owned();
    if bytes.len() > LENGTH { text + "…" } else { text }
}
