//! As much of an object as tells which one it is: read when the whole cannot be.

#![cfg(feature = "kube")]

use std::collections::BTreeMap;

use crate::object::{KeyRef, ObjectKey};

#[derive(Debug, Default, serde::Deserialize)]
pub(crate) struct Glimpse {
    #[serde(default)]
    pub(crate) kind: Option<String>,
    #[serde(default)]
    pub(crate) metadata: GlimpseMetadata,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GlimpseMetadata {
    #[serde(default)]
    pub(crate) namespace: Option<String>,
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) resource_version: Option<String>,
    #[serde(default)]
    pub(crate) annotations: Option<BTreeMap<String, String>>,
}

impl Glimpse {
    /// Reads JSON. Of a key that comes twice, the last counts, as everywhere.
    pub(crate) fn read(json: &[u8]) -> Option<Self> {
        let properly = |_| serde_json::from_value(serde_json::from_slice(json)?);
        serde_json::from_slice(json).or_else(properly).ok()
    }

    /// The key, if at least a name could be read.
    pub(crate) fn key(&self) -> Option<ObjectKey> {
        let name = self.metadata.name.as_deref().filter(|name| !name.is_empty())?;
        Some(ObjectKey::from(KeyRef::new(self.metadata.namespace.as_deref().unwrap_or_default(), name)))
    }
}
