//! Objects of which nothing is kept but which they are.

use super::{Decode, DecodeError, Raw};
use crate::object::{Id, Object, ObjectKey, ResourceType};

/// Which object, and which version of it: an object of which nothing else is kept.
///
/// It is what a cache keeps that only wants to know what is there, and what [`verify`](crate::SharedInformer::verify) asks
/// a server for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Namespace and name.
    pub key: ObjectKey,
    /// What tells a recreated object from its namesake; empty if unknown.
    pub uid: String,
    /// The version the server gave it; empty if unknown.
    pub version: String,
}

impl Identity {
    /// That of another object.
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
    /// Nothing is kept but key, uid and version.
    const MEMORY_PER_WIRE_BYTE: f64 = 0.25;

    type Decoder = ();

    fn decoder(_: &ResourceType) {}

    fn decode((): &(), raw: &Raw<'_>) -> Result<Self, DecodeError> {
        let metadata = raw.metadata()?;
        if metadata.name().is_empty() { Err(DecodeError::NoName) } else { Ok(Self::of(&metadata)) }
    }
}
