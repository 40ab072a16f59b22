//! Objects as compressed JSON, with their metadata decoded.

mod body;
mod decoded;
mod dictionary;
mod interner;
mod pack;
mod pointer;

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use self::body::{Bodies, CompactBody};
use self::decoded::RecentlyDecoded;
use self::interner::Interner;
use self::pack::Pack;
use super::metadata::Fields;
use super::{Decode, DecodeError, ManagedFields, Raw, StaticResource};
use crate::object::{Id, Object, Owner, ResourceType};

/// An object as its JSON, compressed with a dictionary of its kind. The metadata is decoded at once, the rest when the
/// program reads it. A whole pod takes less than two kilobytes.
///
/// Use it for large caches of which programs read metadata, a few fields, or few objects. An event decodes only
/// metadata. The cost: reading a field takes some microseconds and reading a whole object some tens of microseconds,
/// unless it was read recently. When an object arrives, only its metadata is decoded, and in the rest only brackets and
/// quotes are checked; other errors appear when the object is read. [`Compact::validate`] checks the whole object: use
/// it as a transform to check objects on arrival. Secrets are stored uncompressed, and never train a dictionary.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_informer::{Compact, SharedInformerFactory};
/// # doc_server::with(async |server| {
/// let factory = SharedInformerFactory::new(server.client());
/// let pods = factory.informer::<Compact<Pod>>()?;
/// factory.start()?;
/// factory.synced().await?;
/// let pod = pods.store().get("web/a").expect("it was listed");
/// assert_eq!(pod.get::<String>("/spec/nodeName")?.as_deref(), Some("worker-7"));
/// assert_eq!(pod.decode()?.metadata.name.as_deref(), Some("a")); // An `Arc<Pod>`, kept for a while.
/// # Ok(()) });
/// ```
pub struct Compact<K> {
    metadata: Pack,
    body: CompactBody,
    /// The number of this state among all states of the informer.
    number: u64,
    shared: Arc<CompactShared<K>>,
}

/// The state that one informer of compact objects needs. It exists as long as one of the objects.
pub struct CompactDecoder<K> {
    shared: Arc<CompactShared<K>>,
}

type ReadWhole<K> = Box<dyn Fn(&Raw<'_>) -> Result<K, DecodeError> + Send + Sync>;

struct CompactShared<K> {
    /// Decodes a whole object from its JSON.
    read: ReadWhole<K>,
    interner: Interner,
    bodies: Bodies,
    decoded: RecentlyDecoded<K>,
}

impl<K: Decode> Compact<K> {
    /// Decodes the whole object. Recently decoded objects are kept, up to about 16 MiB per informer, and returned
    /// again.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the object does not fit its type: it was not checked on arrival.
    pub fn decode(&self) -> Result<Arc<K>, DecodeError> {
        if let Some(known) = self.shared.decoded.get(self.number) {
            return Ok(known);
        }
        let object = Arc::new(self.read()?);
        self.shared.decoded.put(self.number, object.clone(), self.body.len());
        Ok(object)
    }

    /// Returns the same object if all of it can be decoded. As a transform, it reports an undecodable object on arrival
    /// and not when it is read: `InformerRequest::new().transform("validated", Compact::validate)`.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the object cannot be decoded.
    pub fn validate(self) -> Result<Self, DecodeError> {
        self.read()?;
        Ok(self)
    }

    fn read(&self) -> Result<K, DecodeError> {
        // The stored JSON needs no other changes: managed fields were removed or kept on arrival, and the kind was
        // added.
        self.body.with(|json| (self.shared.read)(&Raw::read(json, ManagedFields::Keep, None, String::new())?))
    }
}

impl<K> Compact<K> {
    /// Reads the value at a JSON pointer such as `/spec/nodeName`, without decoding the rest; `None` if there is no
    /// value.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the value is not of this type, or if the JSON before it is not valid.
    pub fn get<V: DeserializeOwned>(&self, pointer: &str) -> Result<Option<V>, DecodeError> {
        self.body.with(|json| pointer::read(json, pointer))
    }

    /// Returns the object as JSON, as the API server sent it, without managed fields.
    pub fn json(&self) -> Vec<u8> {
        self.body.with(|json| Ok(json.to_vec())).unwrap_or_default()
    }

    /// Returns how many bytes the compressed object takes.
    pub fn stored_bytes(&self) -> usize {
        self.body.stored()
    }
}

impl<K: Send + Sync + 'static> Object for Compact<K> {
    fn id(&self) -> Id<'_> {
        self.metadata.id()
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.metadata.label(key)
    }

    fn label_set(&self) -> Option<usize> {
        Some(self.metadata.label_set())
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotation(key)
    }

    fn each_owner(&self, f: &mut dyn FnMut(Owner<'_>)) {
        self.metadata.each_owner(f);
    }

    fn generation(&self) -> Option<i64> {
        self.metadata.generation()
    }

    fn finalizer_set(&self) -> Option<u32> {
        self.metadata.finalizer_set()
    }

    fn is_being_deleted(&self) -> bool {
        self.metadata.is_being_deleted()
    }

    fn to_json(&self) -> Option<serde_json::Value> {
        self.body.with(|json| Ok(serde_json::from_slice(json)?)).ok()
    }
}

impl<K: Decode> Decode for Compact<K> {
    /// A pod of 9 KB takes 1.3 KiB.
    const MEMORY_PER_WIRE_BYTE: f64 = 0.25;

    type Decoder = CompactDecoder<K>;

    fn decoder(resource: &ResourceType) -> CompactDecoder<K> {
        let of_whole = K::decoder(resource);
        let shared = CompactShared {
            read: Box::new(move |raw| K::decode(&of_whole, raw)),
            interner: Interner::default(),
            bodies: Bodies::new(!resource.is_secret()),
            decoded: RecentlyDecoded::default(),
        };
        CompactDecoder { shared: Arc::new(shared) }
    }

    fn decode(CompactDecoder { shared }: &CompactDecoder<K>, raw: &Raw<'_>) -> Result<Self, DecodeError> {
        let metadata = Pack::new(&Fields::read(raw.metadata_json())?, &shared.interner)?;
        let body = shared.bodies.keep(raw.json());
        Ok(Self { metadata, body, number: shared.decoded.next_number(), shared: shared.clone() })
    }

    fn figures(CompactDecoder { shared }: &CompactDecoder<K>) -> Vec<(&'static str, f64)> {
        [shared.bodies.figures(), shared.decoded.figures(), shared.interner.figures()].concat()
    }
}

impl<K: StaticResource> StaticResource for Compact<K> {
    fn resource_type() -> ResourceType {
        K::resource_type()
    }
}

impl<K> Clone for Compact<K> {
    fn clone(&self) -> Self {
        let Self { metadata, body, number, shared } = self;
        Self { metadata: metadata.clone(), body: body.clone(), number: *number, shared: shared.clone() }
    }
}

impl<K> fmt::Debug for Compact<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.metadata.id();
        f.debug_struct("Compact").field("key", &id.key).field("version", &id.version).finish_non_exhaustive()
    }
}

impl<K> fmt::Debug for CompactDecoder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompactDecoder")
    }
}

#[cfg(test)]
mod tests;
