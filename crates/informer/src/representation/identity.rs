//! Objects of which only key, uid and version are kept.

use super::{Decode, DecodeError, Raw};
use crate::object::{Id, Object, ObjectKey, ResourceType};

/// The key, uid and version of an object. Nothing else of the object is kept.
///
/// Use it for a cache that only needs to know which objects exist. [`verify`](crate::SharedInformer::verify) lists
/// identities from the API server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The uid, which differs between an object and a later one of the same name; empty if unknown.
    pub uid: String,
    /// The resource version; empty if unknown.
    pub version: String,
}

impl Identity {
    /// Returns the identity of another object.
    pub fn of(object: &impl Object) -> Self {
        let Id { key, uid, version } = object.id();
        Self { key: key.into(), uid: uid.to_owned(), version: version.to_owned() }
    }
}

impl Object for Identity {
    fn id(&self) -> Id<'_> {
        Id { key: (&self.key).into(), uid: &self.uid, version: &self.version }
    }
}

impl Decode for Identity {
    /// Only key, uid and version are kept.
    const MEMORY_PER_WIRE_BYTE: f64 = 0.25;

    type Decoder = ();

    fn decoder(_: &ResourceType) {}

    fn decode((): &(), raw: &Raw<'_>) -> Result<Self, DecodeError> {
        let metadata = raw.metadata()?;
        if metadata.name().is_empty() { Err(DecodeError::NoName) } else { Ok(Self::of(&metadata)) }
    }
}
