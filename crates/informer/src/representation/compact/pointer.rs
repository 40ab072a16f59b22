//! Reads one value of an object by JSON pointer.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::super::DecodeError;

/// Returns the value at a pointer such as `/spec/nodeName`; `None` if it is absent or null.
pub(super) fn read<V: DeserializeOwned>(json: &[u8], pointer: &str) -> Result<Option<V>, DecodeError> {
    let parts: Vec<Cow<'_, str>> = match pointer {
        "" => Vec::new(),
        pointer => pointer.strip_prefix('/').unwrap_or(pointer).split('/').map(unescaped).collect(),
    };
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    Ok(PointerStep { parts: &parts, value: PhantomData }.deserialize(&mut deserializer)?)
}

/// Decodes the escapes of a JSON pointer: `~1` is a slash, and `~0` a tilde.
fn unescaped(part: &str) -> Cow<'_, str> {
    if part.contains('~') { part.replace("~1", "/").replace("~0", "~").into() } else { part.into() }
}

/// The rest of the pointer.
struct PointerStep<'p, V> {
    parts: &'p [Cow<'p, str>],
    value: PhantomData<V>,
}

impl<'de, V: DeserializeOwned> DeserializeSeed<'de> for PointerStep<'_, V> {
    type Value = Option<V>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<V>, D::Error> {
        if self.parts.is_empty() { Option::deserialize(deserializer) } else { deserializer.deserialize_any(self) }
    }
}

impl<'de, V: DeserializeOwned> Visitor<'de> for PointerStep<'_, V> {
    type Value = Option<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<V>, A::Error> {
        let Some((part, rest)) = self.parts.split_first() else { return Ok(None) };
        let mut found = None;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if key == *part {
                found = map.next_value_seed(PointerStep { parts: rest, value: PhantomData })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Option<V>, A::Error> {
        let Some((part, rest)) = self.parts.split_first() else { return Ok(None) };
        let (at, mut found) = (part.parse::<usize>().ok(), None);
        for number in 0.. {
            if Some(number) == at {
                match seq.next_element_seed(PointerStep { parts: rest, value: PhantomData })? {
                    Some(value) => found = value,
                    None => break,
                }
            } else if seq.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(found)
    }

    // These values have no members.
    fn visit_unit<E>(self) -> Result<Option<V>, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Option<V>, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Option<V>, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Option<V>, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Option<V>, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Option<V>, E> {
        Ok(None)
    }
}
