//! Reads the identity, the generation and the owners of an object that cannot be decoded as a whole.

#![cfg(feature = "kube")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::object::{KeyRef, ObjectKey};

/// The fields that identify an object. A field with a value of another type counts as absent. Other errors in the
/// object do not matter.
#[derive(Debug, Default)]
pub(crate) struct Glimpse {
    /// The type of a watch event, if the JSON is an event.
    pub(crate) event: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) metadata: GlimpseMetadata,
}

#[derive(Debug, Default)]
pub(crate) struct GlimpseMetadata {
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) uid: Option<String>,
    pub(crate) generation: Option<i64>,
    pub(crate) annotations: BTreeMap<String, GlimpseText>,
    /// The uids of the owners; `None` if they could not be read.
    pub(crate) owners: Option<Vec<String>>,
    has_owners: bool,
}

impl Glimpse {
    /// Reads an object, or returns `None` if the JSON is not an object. If a key occurs twice, the last one counts, as
    /// in all JSON that this crate reads.
    pub(crate) fn read(json: &[u8]) -> Option<Self> {
        let mut glimpse = Self::default();
        let mut reader = serde_json::Deserializer::from_slice(json);
        Object(&mut glimpse).deserialize(&mut reader).and_then(|()| reader.end()).ok()?;
        if !glimpse.metadata.has_owners {
            glimpse.metadata.owners = Some(Vec::new());
        }
        Some(glimpse)
    }

    /// Reads the beginning of an object whose rest was not kept: every field before the cut.
    pub(crate) fn read_beginning(json: &[u8]) -> Self {
        let mut glimpse = Self::default();
        // This always fails at the cut. The fields before it are kept.
        let _ = Object(&mut glimpse).deserialize(&mut serde_json::Deserializer::from_slice(json));
        glimpse
    }

    /// Reads the beginning of a watch event in the same way.
    pub(crate) fn read_event_beginning(json: &[u8]) -> Self {
        let mut glimpse = Self::default();
        let _ = Event(&mut glimpse).deserialize(&mut serde_json::Deserializer::from_slice(json));
        glimpse
    }

    /// Returns the key, if at least a name could be read.
    pub(crate) fn key(&self) -> Option<ObjectKey> {
        let name = self.metadata.name.as_deref().filter(|name| !name.is_empty())?;
        Some(ObjectKey::from(KeyRef::new(self.metadata.namespace.as_deref().unwrap_or_default(), name)))
    }
}

/// A string, or `None` for a value of any other type.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct GlimpseText(pub(crate) Option<String>);

/// Generates a visitor that writes the fields of a JSON object into a glimpse.
macro_rules! fields_of {
    ($name:ident, $into:ty, |$glimpse:ident, $map:ident| { $($key:literal => $read:expr,)+ }) => {
        struct $name<'g>(&'g mut $into);

        impl<'de> DeserializeSeed<'de> for $name<'_> {
            type Value = ();

            fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
                reader.deserialize_any(self)
            }
        }

        impl<'de> Visitor<'de> for $name<'_> {
            type Value = ();

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut $map: M) -> Result<(), M::Error> {
                let $glimpse = self.0;
                while let Some(key) = $map.next_key::<Cow<'_, str>>()? {
                    match &*key {
                        $($key => $read,)+
                        _ => drop($map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(())
            }

            fn visit_unit<E>(self) -> Result<(), E> {
                Ok(())
            }
        }
    };
}

fields_of!(Event, Glimpse, |glimpse, map| {
    "type" => glimpse.event = map.next_value::<GlimpseText>()?.0,
    "object" => map.next_value_seed(Object(glimpse))?,
});

fields_of!(Object, Glimpse, |glimpse, map| {
    "kind" => glimpse.kind = map.next_value::<GlimpseText>()?.0,
    "metadata" => {
        glimpse.metadata = GlimpseMetadata::default();
        map.next_value_seed(Metadata(&mut glimpse.metadata))?;
    },
});

fields_of!(Metadata, GlimpseMetadata, |metadata, map| {
    "namespace" => metadata.namespace = map.next_value::<GlimpseText>()?.0,
    "name" => metadata.name = map.next_value::<GlimpseText>()?.0,
    "resourceVersion" => metadata.resource_version = map.next_value::<GlimpseText>()?.0,
    "uid" => metadata.uid = map.next_value::<GlimpseText>()?.0,
    // Not parsed as a number first: one out of range would end the reading of the whole object.
    "generation" => metadata.generation = map.next_value::<Box<RawValue>>()?.get().parse().ok(),
    "ownerReferences" => {
        metadata.has_owners = true;
        metadata.owners = owner_uids(&map.next_value()?);
    },
    "annotations" => metadata.annotations = map.next_value::<Option<BTreeMap<String, GlimpseText>>>()?.unwrap_or_default(),
});

/// Returns the uids of the owner references, or `None` if one of them cannot be read.
fn owner_uids(references: &serde_json::Value) -> Option<Vec<String>> {
    match references {
        serde_json::Value::Null => Some(Vec::new()),
        serde_json::Value::Array(owners) => {
            owners.iter().map(|owner| owner["uid"].as_str().map(str::to_owned)).collect()
        }
        _ => None,
    }
}

impl<'de> Deserialize<'de> for GlimpseText {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct AnyType;

        impl<'de> Visitor<'de> for AnyType {
            type Value = GlimpseText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_str<E>(self, text: &str) -> Result<GlimpseText, E> {
                Ok(GlimpseText(Some(text.to_owned())))
            }

            fn visit_unit<E>(self) -> Result<GlimpseText, E> {
                Ok(GlimpseText(None))
            }

            fn visit_bool<E>(self, _: bool) -> Result<GlimpseText, E> {
                Ok(GlimpseText(None))
            }

            fn visit_i64<E>(self, _: i64) -> Result<GlimpseText, E> {
                Ok(GlimpseText(None))
            }

            fn visit_u64<E>(self, _: u64) -> Result<GlimpseText, E> {
                Ok(GlimpseText(None))
            }

            fn visit_f64<E>(self, _: f64) -> Result<GlimpseText, E> {
                Ok(GlimpseText(None))
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<GlimpseText, S::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(GlimpseText(None))
            }

            fn visit_map<M: MapAccess<'de>>(self, mut fields: M) -> Result<GlimpseText, M::Error> {
                while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(GlimpseText(None))
            }
        }

        reader.deserialize_any(AnyType)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(json: &str) -> Option<String> {
        Glimpse::read(json.as_bytes())?.key().map(|key| key.to_string())
    }

    #[test]
    fn a_value_of_another_type_does_not_hide_the_other_fields() {
        for odd in ["null", "7", "-7", "1.5", "true", "[1,{}]", r#"{"a":[1]}"#] {
            let json = format!(
                r#"{{"kind":{odd},"metadata":{{"annotations":{{"a":{odd},"b":"c"}},"namespace":"web","name":"a"}}}}"#
            );
            assert_eq!(key(&json).as_deref(), Some("web/a"), "{odd}");
        }
        assert_eq!(key(r#"{"metadata":{"name":7}}"#), None);
        assert_eq!(key(r#"{"metadata":{"name":"a"},"metadata":{"name":"b"}}"#).as_deref(), Some("b"));
        assert_eq!(key(r#"{"metadata":{"name":"a"}"#), None, "it is no JSON");
    }

    #[test]
    fn unreadable_owners_are_not_taken_for_no_owners() {
        let owners = |json: &str| Glimpse::read(json.as_bytes()).unwrap().metadata.owners;
        assert_eq!(owners(r#"{"metadata":{"name":"a"}}"#), Some(vec![]));
        assert_eq!(
            owners(r#"{"metadata":{"ownerReferences":[{"uid":"u"},{"uid":"v"}]}}"#),
            Some(vec!["u".into(), "v".into()])
        );
        for odd in [r#"[{"uid":7}]"#, "7", r#"[{}]"#, "[7]"] {
            assert_eq!(owners(&format!(r#"{{"metadata":{{"ownerReferences":{odd}}}}}"#)), None, "{odd}");
        }
        assert_eq!(Glimpse::read_beginning(br#"{"metadata":{"name":"a"},"#).metadata.owners, None);
    }

    #[test]
    fn the_beginning_of_an_object_yields_its_key() {
        let json = r#"{"kind":"ConfigMap","metadata":{"name":"a","namespace":"web","resourceVersion":"7","labels":{}},"data":{"k":"xxxx"#;
        let glimpse = Glimpse::read_beginning(json.as_bytes());
        assert_eq!(glimpse.key().map(|key| key.to_string()).as_deref(), Some("web/a"));
        assert_eq!(glimpse.metadata.resource_version.as_deref(), Some("7"));
        let event = Glimpse::read_event_beginning(format!(r#"{{"type":"DELETED","object":{json}"#).as_bytes());
        assert_eq!(event.event.as_deref(), Some("DELETED"));
        assert_eq!(event.key(), glimpse.key());
        assert_eq!(Glimpse::read_beginning(&json.as_bytes()[..40]).key(), None);
    }
}
