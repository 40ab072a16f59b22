//! An object as the bytes it came in, compressed, with its metadata at hand.

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

/// An object as the bytes it came in, compressed against a dictionary of its own kind: metadata ready, the rest decoded when
/// somebody reads it. A whole pod takes less than two kilobytes.
///
/// What it is good for: large caches of which programs read metadata, a few fields, or few objects. An event decodes nothing
/// that nobody reads. What it costs: a field is read in some microseconds and a whole object in some tens, unless it was read
/// lately. When an object comes its metadata is read, and of the rest that brackets and quotes fit together; whether it is what it
/// should be turns out when it is read. [`Compact::validate`] looks at all of it, as a transform if that is to be done when objects come. Bodies of Secrets are kept as they are, and never train a dictionary.
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
    /// Counts the objects of one informer: what tells one state from all others.
    number: u64,
    shared: Arc<CompactShared<K>>,
}

/// What one informer of compact objects needs, as long as one of them lives.
pub struct CompactDecoder<K> {
    shared: Arc<CompactShared<K>>,
}

type ReadWhole<K> = Box<dyn Fn(&Raw<'_>) -> Result<K, DecodeError> + Send + Sync>;

struct CompactShared<K> {
    /// Makes a whole object of its JSON.
    read: ReadWhole<K>,
    interner: Interner,
    bodies: Bodies,
    decoded: RecentlyDecoded<K>,
}

impl<K: Decode> Compact<K> {
    /// The whole object. What was read lately is kept, up to about 16 MiB for an informer: reading it again costs nothing.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is not what it should be: nobody has looked before.
    pub fn decode(&self) -> Result<Arc<K>, DecodeError> {
        if let Some(known) = self.shared.decoded.get(self.number) {
            return Ok(known);
        }
        let object = Arc::new(self.read()?);
        self.shared.decoded.put(self.number, object.clone(), self.body.len());
        Ok(object)
    }

    /// The same object, if all of it is what it should be; as a transform, an object that is not counts as one that cannot be
    /// read, and is told of when it comes and not when it is read:
    /// `InformerRequest::new().transform("validated", Compact::validate)`.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is not.
    pub fn validate(self) -> Result<Self, DecodeError> {
        self.read()?;
        Ok(self)
    }

    fn read(&self) -> Result<K, DecodeError> {
        // What is kept is kept on purpose, and says its kind.
        self.body.with(|json| (self.shared.read)(&Raw::read(json, ManagedFields::Keep, None, String::new())?))
    }
}

impl<K> Compact<K> {
    /// The value at a JSON pointer such as `/spec/nodeName`, read without the rest; `None` if there is nothing.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if what is there is not of this type, or the object is no JSON up to there.
    pub fn get<V: DeserializeOwned>(&self, pointer: &str) -> Result<Option<V>, DecodeError> {
        self.body.with(|json| pointer::read(json, pointer))
    }

    /// The object as JSON, as the server sent it but for managed fields.
    pub fn json(&self) -> Vec<u8> {
        self.body.with(|json| Ok(json.to_vec())).unwrap_or_default()
    }

    /// How many bytes its body takes.
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
