//! Decodes objects and events from the bytes of an API server.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::status::WireStatus;
use crate::object::ResourceVersion;
use crate::representation::{self, Decode, DecodeError, Glimpse, GlimpseMetadata, ManagedFields, Raw, Types};
use crate::source::{BadObject, Decoded, SourceError, WatchEvent};

/// The annotation on the bookmark that ends an initial state.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Decodes the objects of one collection, and refuses objects of another kind.
pub(super) struct ObjectReader<T: Decode> {
    pub(super) types: Types,
    pub(super) managed_fields: ManagedFields,
    pub(super) decoder: Arc<T::Decoder>,
    /// The buffer for objects that have to be rewritten before decoding.
    pub(super) buffer: String,
}

impl<T: Decode> ObjectReader<T> {
    pub(super) fn object(&mut self, json: &[u8]) -> Decoded<T> {
        let raw = Raw::read(json, self.managed_fields, Some(&self.types), std::mem::take(&mut self.buffer));
        let object = raw.and_then(|raw| {
            let object = representation::decode::<T>(&self.decoder, &raw);
            self.buffer = raw.into_buffer();
            object
        });
        match object {
            Ok(object) => Decoded::Object(object),
            Err(error) => Decoded::Bad(self.bad_object(json, error)),
        }
    }

    /// Returns the error for an item of a list that is larger than the limit. Only its beginning was kept.
    pub(super) fn too_large(&self, beginning: &[u8], limit: usize) -> Decoded<T> {
        let glimpse = Glimpse::read_beginning(beginning);
        Decoded::Bad(self.bad(glimpse, DecodeError::TooLarge { limit }))
    }

    /// Returns the event for an object that is larger than the limit. Only its beginning was kept.
    pub(super) fn too_large_event(&self, beginning: &[u8], limit: usize) -> Result<WatchEvent<T>, SourceError> {
        let mut glimpse = Glimpse::read_event_beginning(beginning);
        let event = glimpse.event.take();
        let object = Decoded::Bad(self.bad(glimpse, DecodeError::TooLarge { limit }));
        match event.as_deref() {
            Some("ADDED") => Ok(WatchEvent::Added(object)),
            Some("MODIFIED") => Ok(WatchEvent::Modified(object)),
            Some("DELETED") => Ok(WatchEvent::Deleted(object)),
            _ => Err(SourceError::TooLarge { limit }),
        }
    }

    /// Reads as much of an undecodable object as possible.
    fn bad_object(&self, json: &[u8], error: DecodeError) -> BadObject {
        self.bad(Glimpse::read(json).unwrap_or_default(), error)
    }

    fn bad(&self, glimpse: Glimpse, error: DecodeError) -> BadObject {
        let error = match &glimpse.kind {
            Some(kind) if *kind != self.types.kind && !kind.is_empty() => {
                DecodeError::WrongKind { expected: self.types.kind.clone(), got: kind.clone() }
            }
            _ => error,
        };
        let key = glimpse.key();
        let GlimpseMetadata { resource_version, uid, generation, owners, .. } = glimpse.metadata;
        let version = resource_version.map(ResourceVersion::from);
        BadObject { key, version, uid, generation, owners, error }
    }

    pub(super) fn event(&mut self, line: &[u8]) -> Result<WatchEvent<T>, SourceError> {
        let quick = split_quickly(line);
        let event = match quick {
            Some((kind, object)) => self.event_of(kind, object),
            None => Err(SourceError::NotAnEvent("the line has no type and object")),
        };
        if is_read(&event) {
            return event;
        }
        match split_properly(line) {
            Some((kind, object)) if quick != Some((kind.as_str(), object)) => self.event_of(&kind, object),
            _ => event,
        }
    }

    fn event_of(&mut self, kind: &str, object: &[u8]) -> Result<WatchEvent<T>, SourceError> {
        let not_an_event = SourceError::NotAnEvent;
        match kind {
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

/// Returns false if the line may have been split at the wrong byte.
fn is_read<T>(event: &Result<WatchEvent<T>, SourceError>) -> bool {
    match event {
        Ok(WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) => {
            matches!(object, Decoded::Object(_))
        }
        Ok(WatchEvent::Bookmark { .. }) => true,
        Err(error) => !matches!(error, SourceError::NotAnEvent(_)),
    }
}

/// Splits an event into type and object, if it is written as kube-apiserver writes it. This does not check that the
/// object ends at the end of the line: decoding fails for anything but one object.
fn split_quickly(line: &[u8]) -> Option<(&str, &[u8])> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let (kind, rest) = rest.split_at_checked(memchr::memchr(b'"', rest)?)?;
    let object = rest.strip_prefix(br#"","object":"#)?.trim_ascii_end().strip_suffix(b"}")?;
    let plain = !kind.contains(&b'\\') && object.first() == Some(&b'{');
    plain.then_some((std::str::from_utf8(kind).ok()?, object))
}

/// Splits an event with its fields in any order, and with other fields.
fn split_properly(line: &[u8]) -> Option<(String, &[u8])> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_slice(line).ok()?;
    let kind = serde_json::from_str(members.get("type")?.get()).ok()?;
    Some((kind, members.get("object")?.get().as_bytes()))
}

fn bookmark<T>(json: &[u8]) -> Option<WatchEvent<T>> {
    let Glimpse { metadata, .. } = Glimpse::read(json)?;
    let version = metadata.resource_version.unwrap_or_default().into();
    let annotation = metadata.annotations.get(INITIAL_EVENTS_END).and_then(|text| text.0.as_deref());
    Some(WatchEvent::Bookmark { version, initial_events_end: annotation == Some("true") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::representation::Identity;

    fn read(line: &str) -> String {
        let types = Types::new("v1".to_owned(), "Pod".to_owned());
        let (managed_fields, decoder, buffer) = (ManagedFields::Skip, Arc::new(()), String::new());
        format!("{:?}", ObjectReader::<Identity> { types, managed_fields, decoder, buffer }.event(line.as_bytes()))
    }

    #[test]
    fn other_fields_of_an_event_are_ignored_at_every_position() {
        let pod = r#"{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"}}"#;
        let status = r#"{"kind":"Status","code":410,"reason":"Expired"}"#;
        for (kind, object) in [("ADDED", pod), ("DELETED", pod), ("BOOKMARK", pod), ("ERROR", status)] {
            let plain = read(&format!(r#"{{"type":"{kind}","object":{object}}}"#));
            assert!(!plain.contains("Bad") && !plain.contains("NotAnEvent"), "{plain}");
            for more in [r#""more":1"#, r#""more":{"a":[1]}"#, r#""more":"}""#] {
                assert_eq!(read(&format!(r#"{{{more},"type":"{kind}","object":{object}}}"#)), plain, "{more} in front");
                assert_eq!(read(&format!(r#"{{"type":"{kind}",{more},"object":{object}}}"#)), plain, "{more} between");
                assert_eq!(read(&format!(r#"{{"type":"{kind}","object":{object},{more}}}"#)), plain, "{more} behind");
                assert_eq!(read(&format!(r#"{{"object":{object},"type":"{kind}",{more}}} "#)), plain, "{more} last");
            }
        }
    }

    #[test]
    fn the_last_duplicate_key_counts() {
        let pod = r#"{"metadata":{"name":"a","resourceVersion":"7"}}"#;
        let other = r#"{"metadata":{"name":"b","resourceVersion":"8"}}"#;
        let deleted = read(&format!(r#"{{"type":"DELETED","object":{other}}}"#));
        assert_eq!(read(&format!(r#"{{"type":"ADDED","object":{pod},"type":"DELETED","object":{other}}}"#)), deleted);
        let bookmark = read(r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}"#);
        let twice = r#"{"type":"BOOKMARK","object":{"metadata":{},"metadata":{"resourceVersion":"7"}}}"#;
        assert_eq!(read(twice), bookmark);
    }

    #[test]
    fn an_undecodable_object_costs_one_event() {
        let bad = read("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\u{1}\"}}}");
        assert!(bad.starts_with("Ok(Added(Bad("), "{bad}");
        let named = read(r#"{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"a"}},"more":1}"#);
        assert!(named.contains("WrongKind") && named.contains('a'), "{named}");
        assert!(read(r#"{"type":"ADDED"}"#).contains("NotAnEvent"));
        assert!(read("nonsense").contains("NotAnEvent"));
    }
}
