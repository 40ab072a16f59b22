//! A small object for unit tests.

use std::sync::Arc;

use crate::object::{Id, KeyRef, Object};

/// An object `namespace/name@version`, with any number of index values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thing {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) version: String,
    pub(crate) values: Vec<String>,
}

impl Object for Thing {
    fn id(&self) -> Id<'_> {
        Id { key: KeyRef::new(&self.namespace, &self.name), uid: &self.uid, version: &self.version }
    }
}

/// Makes a thing with a key and a version.
pub(crate) fn thing(key: &str, version: u64) -> Arc<Thing> {
    let key = KeyRef::from(key);
    Arc::new(Thing {
        namespace: key.namespace().unwrap_or_default().to_owned(),
        name: key.name().to_owned(),
        uid: String::new(),
        version: version.to_string(),
        values: Vec::new(),
    })
}
