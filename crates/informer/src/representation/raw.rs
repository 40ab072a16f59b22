//! The JSON of one object, and how it is read.

use std::cell::Cell;

use serde::de::DeserializeOwned;

use super::DecodeError;
use super::watched::{Watched, watched};

/// The JSON of one object, and how to read it.
///
/// ```
/// use kube_informer::representation::{ManagedFields, Raw};
/// use serde_json::Value;
///
/// let json = br#"{"metadata": {"name": "a", "managedFields": [{"manager": "kubectl"}]}}"#;
/// let object: Value = Raw::new(json).deserialize()?;
/// assert!(object["metadata"]["managedFields"].is_null());
///
/// let whole: Value = Raw::new(json).managed_fields(ManagedFields::Keep).deserialize()?;
/// assert_eq!(whole["metadata"]["managedFields"][0]["manager"], "kubectl");
/// # Ok::<(), kube_informer::representation::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Raw<'a> {
    json: &'a [u8],
    managed_fields: ManagedFields,
    types: Option<Types<'a>>,
}

/// Whether `metadata.managedFields` is read at all. It is half of a Pod's memory and few programs look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ManagedFields {
    /// Skipped while decoding.
    #[default]
    Skip,
    /// Decoded and kept.
    Keep,
}

/// What kind of object it must be, and whether that has been looked at.
#[derive(Debug, Clone, Copy)]
struct Types<'a> {
    api_version: &'a str,
    kind: &'a str,
    checked: Option<&'a Cell<bool>>,
}

impl<'a> Raw<'a> {
    /// The object in `json`, its managed fields to be skipped.
    pub fn new(json: &'a [u8]) -> Self {
        Self { json, managed_fields: ManagedFields::Skip, types: None }
    }

    /// The same bytes, read with or without managed fields.
    #[must_use]
    pub fn managed_fields(self, managed_fields: ManagedFields) -> Self {
        Self { managed_fields, ..self }
    }

    /// The same bytes, of which it is known what kind of object they are: another kind is refused, and an object that does
    /// not say what it is, as items of a list do not, is read as if it did.
    #[must_use]
    pub fn of_kind(self, api_version: &'a str, kind: &'a str) -> Self {
        Self { types: Some(Types { api_version, kind, checked: None }), ..self }
    }

    /// The bytes as the server sent them.
    pub fn json(&self) -> &'a [u8] {
        self.json
    }

    /// True if managed fields are wanted.
    #[cfg(feature = "compact")]
    pub(super) fn keeps_managed_fields(&self) -> bool {
        self.managed_fields == ManagedFields::Keep
    }

    /// For who has looked at the kind without [`deserialize`](Self::deserialize): refuses another one. None is fine.
    #[cfg(feature = "compact")]
    pub(super) fn check_kind(&self, got: Option<&str>) -> Result<(), DecodeError> {
        let Some(types) = self.types else { return Ok(()) };
        if let Some(checked) = types.checked {
            checked.set(true);
        }
        match got.filter(|got| !got.is_empty() && *got != types.kind) {
            Some(got) => Err(DecodeError::WrongKind { expected: types.kind.to_owned(), got: got.to_owned() }),
            None => Ok(()),
        }
    }

    /// Reads any type that serde can read.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the bytes are no UTF-8, no JSON, of another kind, or not of this shape.
    pub fn deserialize<D: DeserializeOwned>(self) -> Result<D, DecodeError> {
        // One UTF-8 check up front is cheaper than one for every string.
        let text = std::str::from_utf8(self.json).map_err(|_| DecodeError::NotUtf8)?;
        let mut json = serde_json::Deserializer::from_str(text);
        let looked = Watched::new(self.types.map(|types| (types.api_version, types.kind)), self.managed_fields);
        let value = D::deserialize(watched(&mut json, &looked)).and_then(|value| {
            json.end()?;
            Ok(value)
        });
        if let Some(types) = self.types {
            if let Some(got) = looked.other_kind() {
                return Err(DecodeError::WrongKind { expected: types.kind.to_owned(), got });
            }
            if let Some(checked) = types.checked {
                checked.set(true);
            }
        }
        Ok(value?)
    }
}

/// The bytes, and whether whoever decodes them has looked at their kind.
#[cfg(feature = "kube")]
pub(super) struct Checking<'a> {
    raw: Raw<'a>,
    checked: Cell<bool>,
}

#[cfg(feature = "kube")]
impl<'a> Checking<'a> {
    pub(super) fn new(raw: Raw<'a>) -> Self {
        Self { raw, checked: Cell::new(raw.types.is_none()) }
    }

    pub(super) fn raw(&self) -> Raw<'_> {
        Raw { types: self.raw.types.map(|types| Types { checked: Some(&self.checked), ..types }), ..self.raw }
    }

    /// Looks at the kind if nobody did.
    pub(super) fn finish(&self) -> Result<(), DecodeError> {
        #[derive(serde::Deserialize)]
        struct Anything {}
        if self.checked.get() { Ok(()) } else { self.raw.deserialize::<Anything>().map(drop) }
    }
}
