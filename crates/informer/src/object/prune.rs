//! Skips `metadata.managedFields` while decoding, so that it never costs memory.
//!
//! A thin wrapper around a deserializer: it watches the keys of the outermost map, and of the map under `metadata`, and
//! passes everything below `spec`, `status` and the rest through untouched.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{BorrowedStrDeserializer, CowStrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

/// The whole object: looks for `metadata`.
struct Root;
/// The map under `metadata`: drops `managedFields`.
struct Metadata;

/// Reads an object as if it had no managed fields.
pub(super) fn without_managed_fields<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> impl Deserializer<'de, Error = D::Error> {
    Level::<_, Root>::new(deserializer)
}

/// A deserializer, a visitor or a map at one of the two levels.
struct Level<I, L>(I, PhantomData<L>);

impl<I, L> Level<I, L> {
    fn new(inner: I) -> Self {
        Self(inner, PhantomData)
    }
}

impl<'de, D: Deserializer<'de>, L> Deserializer<'de> for Level<D, L>
where
    Level<(), L>: Keys,
{
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(Level::<_, L>::new(visitor))
    }

    // An optional metadata is asked for as an option; what is inside must still be watched.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(Level::<_, L>::new(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_ignored_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier
    }
}

impl<'de, V: Visitor<'de>, L> Visitor<'de> for Level<V, L>
where
    Level<(), L>: Keys,
{
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(WatchedMap::<_, L> { map, below_metadata: false, level: PhantomData })
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Level::<_, L>::new(deserializer))
    }

    // Everything else is an error or a null; the visitor itself knows which.
    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<V::Value, E> {
        self.0.visit_bool(value)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<V::Value, E> {
        self.0.visit_i64(value)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<V::Value, E> {
        self.0.visit_u64(value)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<V::Value, E> {
        self.0.visit_f64(value)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<V::Value, E> {
        self.0.visit_str(value)
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, value: &'de str) -> Result<V::Value, E> {
        self.0.visit_borrowed_str(value)
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(seq)
    }
}

/// What a level does with a key it meets.
trait Keys {
    const DESCEND: Option<&'static str>;
    const DROP: Option<&'static str>;
}

impl Keys for Level<(), Root> {
    const DESCEND: Option<&'static str> = Some("metadata");
    const DROP: Option<&'static str> = None;
}

impl Keys for Level<(), Metadata> {
    const DESCEND: Option<&'static str> = None;
    const DROP: Option<&'static str> = Some("managedFields");
}

struct WatchedMap<A, L> {
    map: A,
    below_metadata: bool,
    level: PhantomData<L>,
}

impl<'de, A: MapAccess<'de>, L> MapAccess<'de> for WatchedMap<A, L>
where
    Level<(), L>: Keys,
{
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        loop {
            let Some(key) = self.map.next_key_seed(Text)? else { return Ok(None) };
            if <Level<(), L> as Keys>::DROP == Some(&*key) {
                self.map.next_value::<IgnoredAny>()?;
                continue;
            }
            self.below_metadata = <Level<(), L> as Keys>::DESCEND == Some(&*key);
            // Borrowed keys are passed on as borrowed: nothing is allocated for them.
            return match key {
                Cow::Borrowed(text) => seed.deserialize(BorrowedStrDeserializer::new(text)).map(Some),
                owned @ Cow::Owned(_) => seed.deserialize(CowStrDeserializer::new(owned)).map(Some),
            };
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        if self.below_metadata { self.map.next_value_seed(BelowMetadata(seed)) } else { self.map.next_value_seed(seed) }
    }

    fn size_hint(&self) -> Option<usize> {
        self.map.size_hint()
    }
}

struct BelowMetadata<S>(S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for BelowMetadata<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Level::<_, Metadata>::new(deserializer))
    }
}

/// A map key as text, borrowed from the input where it can be.
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
        f.write_str("a map key")
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
    use crate::object::{ManagedFields, Raw};
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
}
