//! Objects of any kind, as JSON.

use kube_informer::{Decode, DecodeError, Id, KeyRef, Object, Raw, ResourceType};
use serde_json::{Map, Value};

/// An object of any kind, as the server sent it.
pub(crate) struct Wire(pub(crate) Value);

impl Wire {
    fn text(&self, member: &str) -> &str {
        self.0["metadata"][member].as_str().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.text("name")
    }

    /// Returns the namespace; empty in cluster scope.
    pub(crate) fn namespace(&self) -> &str {
        self.text("namespace")
    }
}

impl Object for Wire {
    fn id(&self) -> Id<'_> {
        let key = KeyRef::new(self.namespace(), self.name());
        Id { key, uid: self.text("uid"), version: self.text("resourceVersion") }
    }
}

impl Decode for Wire {
    type Decoder = ();

    fn decoder(_: &ResourceType) {}

    fn decode((): &(), raw: &Raw<'_>) -> Result<Self, DecodeError> {
        raw.deserialize().map(|object: Map<String, Value>| Self(Value::Object(object)))
    }
}
