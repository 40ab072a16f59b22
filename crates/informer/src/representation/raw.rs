//! The JSON of one object, ready to be decoded.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::cut::{Parts, parts};
use super::scan::is_blank;
use super::{DecodeError, Metadata};

/// The JSON of one object as the API server sent it, without managed fields, with `apiVersion` and `kind`.
///
/// ```
/// use kube_informer::Raw;
/// use serde_json::{Value, json};
///
/// let raw = Raw::new(br#"{"metadata": {"name": "a", "managedFields": [{"manager": "kubectl"}]}}"#)?;
/// assert_eq!(raw.deserialize::<Value>()?, json!({"metadata": {"name": "a"}}));
/// assert_eq!(raw.metadata()?.name(), "a");
/// # Ok::<(), kube_informer::DecodeError>(())
/// ```
#[derive(Clone)]
pub struct Raw<'a> {
    json: Cow<'a, str>,
    metadata: Range<usize>,
}

/// Whether `metadata.managedFields` is decoded. It takes half of a Pod's memory, and few programs read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ManagedFields {
    /// Removes the managed fields before decoding.
    #[default]
    Skip,
    /// Decodes and keeps the managed fields.
    Keep,
}

/// The expected `apiVersion` and `kind` of a collection. An object of another kind is refused. An object without a
/// kind, such as an item of a list, is decoded as if it had this one.
#[derive(Debug, Clone)]
pub(crate) struct Types {
    api_version: String,
    pub(crate) kind: String,
    /// Both fields as JSON, to be inserted as the first members of an object.
    members: String,
}

impl<'a> Raw<'a> {
    /// Reads an object of any kind, without managed fields.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the bytes are not UTF-8, or not an object. In most of the object only brackets and quotes are
    /// checked: other errors appear when it is decoded.
    pub fn new(json: &'a [u8]) -> Result<Self, DecodeError> {
        Self::read(json, ManagedFields::Skip, None, String::new())
    }

    /// Reads an object of a collection. JSON that must be rewritten goes into the buffer, which
    /// [`into_buffer`](Self::into_buffer) returns. The buffer is reused because allocating and freeing one this large
    /// for each object would fragment the memory.
    pub(crate) fn read(
        json: &'a [u8],
        managed_fields: ManagedFields,
        types: Option<&Types>,
        buffer: String,
    ) -> Result<Self, DecodeError> {
        // One check of all bytes is cheaper than one per string.
        let json = std::str::from_utf8(json).map_err(|_| DecodeError::NotUtf8)?;
        let found = if has_control_characters(json) { None } else { parts(json) };
        let Some(mut found) = found else { return Self::read_slowly(json, managed_fields, types) };
        found.managed_fields = found.managed_fields.filter(|_| managed_fields == ManagedFields::Skip);
        let Some(types) = types else { return Ok(Self::spliced(json, found, "", buffer)) };
        if found.kind.as_ref().is_some_and(|kind| !types.is_kind(&json[kind.clone()])) {
            return Self::read_slowly(json, managed_fields, Some(types));
        }
        let is_text = |json: &str| json.starts_with('"') && json != r#""""#;
        let says_its_api = found.api_version.as_ref().is_some_and(|at| is_text(&json[at.clone()]));
        match (says_its_api, found.kind.is_some()) {
            (true, true) => Ok(Self::spliced(json, found, "", buffer)),
            (false, false) if found.api_version.is_none() && !found.is_empty(json) => {
                Ok(Self::spliced(json, found, &types.members, buffer))
            }
            _ => Self::read_slowly(json, managed_fields, Some(types)),
        }
    }

    /// Copies the JSON without managed fields, and inserts `more` before its first member.
    fn spliced(json: &'a str, parts: Parts, more: &str, mut text: String) -> Self {
        let Parts { members, metadata, managed_fields, .. } = parts;
        let metadata = metadata.unwrap_or_default();
        if more.is_empty() && managed_fields.is_none() {
            return Self { json: Cow::Borrowed(json), metadata };
        }
        let cut = managed_fields.unwrap_or(members..members);
        text.clear();
        text.reserve(json.len() + more.len() - cut.len());
        for part in [&json[..members], more, &json[members..cut.start], &json[cut.end..]] {
            text.push_str(part);
        }
        let metadata = match metadata.is_empty() {
            true => 0..0,
            false => metadata.start + more.len()..metadata.end + more.len() - cut.len(),
        };
        Self { json: Cow::Owned(text), metadata }
    }

    /// Parses and rewrites an unusual object: control characters, duplicate keys or keys with escapes, another kind, or
    /// no object at all.
    fn read_slowly(json: &str, managed_fields: ManagedFields, types: Option<&Types>) -> Result<Self, DecodeError> {
        let mut object: Map<String, Value> = serde_json::from_str(json)?;
        if let (ManagedFields::Skip, Some(Value::Object(metadata))) = (managed_fields, object.get_mut("metadata")) {
            metadata.remove("managedFields");
        }
        if let Some(Types { api_version, kind, .. }) = types {
            for (name, expected) in [("apiVersion", api_version), ("kind", kind)] {
                match object.get(name) {
                    Some(Value::String(said)) if name == "kind" && !said.is_empty() && said != expected => {
                        return Err(DecodeError::WrongKind { expected: expected.clone(), got: said.clone() });
                    }
                    Some(Value::String(said)) if !said.is_empty() => {}
                    None | Some(Value::Null | Value::String(_)) => {
                        object.insert(name.to_owned(), expected.clone().into());
                    }
                    Some(_) => return Err(DecodeError::Shape(format!("its {name} is no text"))),
                }
            }
        }
        // Metadata comes first, so that its position is known.
        let start = r#"{"metadata":"#;
        let Some(metadata) = object.remove("metadata") else {
            return Ok(Self { json: Cow::Owned(serde_json::to_string(&object)?), metadata: 0..0 });
        };
        let (metadata, rest) = (serde_json::to_string(&metadata)?, serde_json::to_string(&object)?);
        let comma = if object.is_empty() { "" } else { "," };
        let json = Cow::Owned([start, &metadata, comma, &rest[1..]].concat());
        Ok(Self { json, metadata: start.len()..start.len() + metadata.len() })
    }

    /// Returns the buffer, for the next object.
    #[cfg(feature = "kube")]
    pub(crate) fn into_buffer(self) -> String {
        match self.json {
            Cow::Owned(buffer) if buffer.capacity() <= super::KEPT_BUFFER => buffer,
            _ => String::new(),
        }
    }

    /// Returns the JSON of the object.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Decodes the metadata. An object without metadata has the default.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the metadata is not valid JSON, or does not fit.
    pub fn metadata(&self) -> Result<Metadata, DecodeError> {
        Metadata::read(self.metadata_json())
    }

    /// Returns the metadata as JSON; empty if there is none.
    pub(super) fn metadata_json(&self) -> &str {
        &self.json[self.metadata.clone()]
    }

    /// Decodes the object into any type that implements `Deserialize`.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the object is not valid JSON, or does not fit the type.
    pub fn deserialize<D: DeserializeOwned>(&self) -> Result<D, DecodeError> {
        serde_json::from_str(&self.json).map_err(|error| DecodeError::of(&error, "", &self.json))
    }
}

/// Shows no content, because the object may be a Secret.
impl std::fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Raw").field("bytes", &self.json.len()).finish_non_exhaustive()
    }
}

impl Types {
    #[cfg(feature = "kube")]
    pub(crate) fn new(api_version: String, kind: String) -> Self {
        let [as_api_version, as_kind] = [&api_version, &kind].map(|text| Value::from(text.as_str()));
        let members = format!(r#""apiVersion":{as_api_version},"kind":{as_kind},"#);
        Self { api_version, kind, members }
    }

    /// Returns true if a JSON string without escapes equals this kind.
    fn is_kind(&self, json: &str) -> bool {
        json.strip_prefix('"').and_then(|kind| kind.strip_suffix('"')) == Some(&self.kind)
    }
}

/// Returns true if any byte is a control character that JSON does not allow. This check is cheap, and corrupted lines
/// often have such bytes.
fn has_control_characters(json: &str) -> bool {
    // Without an early exit, so that the compiler can check many bytes in one instruction.
    json.bytes().fold(false, |found, byte| found | (byte < b' ' && !is_blank(byte)))
}

#[cfg(test)]
mod tests;
