//! Looks over a deserializer's shoulder at the outermost map of an object.
//!
//! It skips `metadata.managedFields`, so that it never costs memory; it checks the kind; and it fills in kind and version of
//! the API where an object does not say them. Everything below `spec`, `status` and the rest passes through untouched.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, CowStrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::ManagedFields;

/// What is looked for, and what was found.
pub(super) struct Watched<'t> {
    /// Version of the API and kind.
    types: Option<(&'t str, &'t str)>,
    managed_fields: ManagedFields,
    other_kind: RefCell<Option<String>>,
}

impl<'t> Watched<'t> {
    pub(super) fn new(types: Option<(&'t str, &'t str)>, managed_fields: ManagedFields) -> Self {
        Self { types, managed_fields, other_kind: RefCell::new(None) }
    }

    /// The kind it says it is, if that is not the one looked for.
    pub(super) fn other_kind(self) -> Option<String> {
        self.other_kind.into_inner()
    }
}

/// The same deserializer, watched.
pub(super) fn watched<'de: 'w, 'w, D: Deserializer<'de> + 'w>(
    deserializer: D,
    watched: &'w Watched<'_>,
) -> impl Deserializer<'de, Error = D::Error> + 'w {
    Level { inner: deserializer, place: Place::Root(watched) }
}

/// Where in the object.
#[derive(Clone, Copy)]
enum Place<'w> {
    Root(&'w Watched<'w>),
    Metadata,
}

/// A deserializer or a visitor in one of the two places.
struct Level<'w, I> {
    inner: I,
    place: Place<'w>,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Level<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(Level { inner: visitor, place: self.place })
    }

    // An optional metadata is asked for as an option; what is inside must still be watched.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_option(Level { inner: visitor, place: self.place })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_ignored_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Level<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        match self.place {
            Place::Root(watched) => {
                let missing = watched.types.is_some();
                let (no_kind, no_api_version) = (missing, missing);
                self.inner.visit_map(RootMap { map, watched, value: Value::Other, no_kind, no_api_version })
            }
            Place::Metadata => self.inner.visit_map(MetadataMap { map }),
        }
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Level { inner: deserializer, place: self.place })
    }

    // Everything else is an error or a null; the visitor itself knows which.
    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<V::Value, E> {
        self.inner.visit_bool(value)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<V::Value, E> {
        self.inner.visit_i64(value)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<V::Value, E> {
        self.inner.visit_u64(value)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<V::Value, E> {
        self.inner.visit_f64(value)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<V::Value, E> {
        self.inner.visit_str(value)
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, value: &'de str) -> Result<V::Value, E> {
        self.inner.visit_borrowed_str(value)
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(seq)
    }
}

/// Which value comes next.
#[derive(Clone, Copy)]
enum Value<'w> {
    Other,
    Metadata,
    Kind,
    ApiVersion,
    /// One that is not in the input.
    FilledIn(&'w str),
}

/// The outermost map: looks for `metadata`, `kind` and `apiVersion`.
struct RootMap<'w, A> {
    map: A,
    watched: &'w Watched<'w>,
    value: Value<'w>,
    /// True while they are to be filled in.
    no_kind: bool,
    no_api_version: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for RootMap<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let Some(key) = self.map.next_key_seed(Text)? else {
            let Some((api_version, kind)) = self.watched.types else { return Ok(None) };
            let name = if std::mem::take(&mut self.no_kind) {
                self.value = Value::FilledIn(kind);
                "kind"
            } else if std::mem::take(&mut self.no_api_version) {
                self.value = Value::FilledIn(api_version);
                "apiVersion"
            } else {
                return Ok(None);
            };
            return seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some);
        };
        self.value = match &*key {
            "metadata" if self.watched.managed_fields == ManagedFields::Skip => Value::Metadata,
            "kind" if self.watched.types.is_some() => {
                self.no_kind = false;
                Value::Kind
            }
            "apiVersion" if self.watched.types.is_some() => {
                self.no_api_version = false;
                Value::ApiVersion
            }
            _ => Value::Other,
        };
        pass_key(key, seed).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let (api_version, kind) = self.watched.types.unwrap_or_default();
        match self.value {
            Value::Other => self.map.next_value_seed(seed),
            Value::Metadata => self.map.next_value_seed(BelowMetadata(seed)),
            Value::FilledIn(text) => seed.deserialize(CowStrDeserializer::new(Cow::Borrowed(text))),
            Value::Kind => {
                let got = self.map.next_value_seed(Text)?;
                if !got.is_empty() && got != kind {
                    *self.watched.other_kind.borrow_mut() = Some(got.into_owned());
                    return Err(A::Error::custom("another kind"));
                }
                seed.deserialize(CowStrDeserializer::new(Cow::Borrowed(kind)))
            }
            Value::ApiVersion => {
                let got = self.map.next_value_seed(Text)?;
                let got = if got.is_empty() { Cow::Borrowed(api_version) } else { got };
                seed.deserialize(CowStrDeserializer::new(got))
            }
        }
    }
}

/// The map under `metadata`: drops `managedFields`.
struct MetadataMap<A> {
    map: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for MetadataMap<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        loop {
            match self.map.next_key_seed(Text)? {
                None => return Ok(None),
                Some(key) if key == "managedFields" => {
                    self.map.next_value::<IgnoredAny>()?;
                }
                Some(key) => return pass_key(key, seed).map(Some),
            }
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Borrowed keys are passed on as borrowed: nothing is allocated for them.
fn pass_key<'de, S: DeserializeSeed<'de>, E: serde::de::Error>(key: Cow<'de, str>, seed: S) -> Result<S::Value, E> {
    match key {
        Cow::Borrowed(text) => seed.deserialize(BorrowedStrDeserializer::new(text)),
        owned @ Cow::Owned(_) => seed.deserialize(CowStrDeserializer::new(owned)),
    }
}

struct BelowMetadata<S>(S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for BelowMetadata<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Level { inner: deserializer, place: Place::Metadata })
    }
}

/// A text, borrowed from the input where it can be.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use crate::representation::{DecodeError, ManagedFields, Raw};
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    fn pod() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "a", "namespace": "web", "labels": {"managedFields": "a label, kept"},
                "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:metadata": {"f:labels": {}}}}],
                "annotations": {"note": "line\nbreak"},
            },
            "spec": {"containers": [{"name": "c", "env": [{"name": "metadata", "value": "x"}]}]},
            "status": {"phase": "Running"},
        })
    }

    #[test]
    fn typed_and_dynamic_objects_lose_managed_fields_and_nothing_else() {
        let json = serde_json::to_vec(&pod()).unwrap();
        let mut expected = pod();
        expected["metadata"].as_object_mut().unwrap().remove("managedFields");

        let value: Value = Raw::new(&json).deserialize().unwrap();
        assert_eq!(value, expected);
        let typed: Pod = Raw::new(&json).deserialize().unwrap();
        assert_eq!(typed, serde_json::from_value(expected.clone()).unwrap());
        let dynamic: kube_core::DynamicObject = Raw::new(&json).deserialize().unwrap();
        assert_eq!(serde_json::to_value(dynamic).unwrap(), expected);
    }

    #[test]
    fn managed_fields_stay_when_asked_for() {
        let json = serde_json::to_vec(&pod()).unwrap();
        let kept: Value = Raw::new(&json).managed_fields(ManagedFields::Keep).deserialize().unwrap();
        assert_eq!(kept, pod());
    }

    #[test]
    fn broken_json_is_an_error_in_both_modes() {
        for text in ["", "{", "null", "[]", r#"{"metadata":{"managedFields":[}}"#, r#"{"metadata":3}"#, "{} x"] {
            assert!(Raw::new(text.as_bytes()).deserialize::<Pod>().is_err(), "{text:?}");
        }
        assert!(Raw::new(b"{\"a\":\"\xff\"}").deserialize::<Value>().is_err());
    }

    #[test]
    fn a_null_metadata_is_as_absent() {
        let pod: Pod = Raw::new(br#"{"metadata":null,"spec":null}"#).deserialize().unwrap();
        assert_eq!(pod, Pod::default());
    }

    fn read<D: serde::de::DeserializeOwned>(json: &str) -> Result<D, DecodeError> {
        Raw::new(json.as_bytes()).of_kind("v1", "Pod").deserialize()
    }

    #[test]
    fn another_kind_is_refused_whatever_the_type() {
        let secret = r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}"#;
        let refused = DecodeError::WrongKind { expected: "Pod".to_owned(), got: "Secret".to_owned() };
        assert_eq!(read::<Pod>(secret).unwrap_err(), refused);
        assert_eq!(read::<Value>(secret).unwrap_err(), refused);
        assert_eq!(read::<kube_core::DynamicObject>(secret).unwrap_err(), refused);
        #[derive(Debug, serde::Deserialize)]
        struct Nothing {}
        assert_eq!(read::<Nothing>(secret).unwrap_err(), refused);
    }

    #[test]
    fn what_does_not_say_its_kind_is_read_as_if_it_did() {
        let typed = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
        assert_eq!(read::<Value>(r#"{"metadata":{"name":"a"}}"#).unwrap(), typed);
        assert_eq!(read::<Value>(r#"{"kind":"","metadata":{"name":"a"},"apiVersion":""}"#).unwrap(), typed);
        let dynamic: kube_core::DynamicObject = read(r#"{"metadata":{"name":"a"}}"#).unwrap();
        assert_eq!(dynamic.types.unwrap().kind, "Pod");
        assert_eq!(read::<Pod>(r#"{"metadata":{"name":"a"}}"#).unwrap().metadata.name.as_deref(), Some("a"));
    }
}
