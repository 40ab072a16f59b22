//! Representations: how objects are decoded, and how much of them is kept.
//!
//! The type parameter of an informer chooses the representation. `Pod` keeps the whole object, [`View`] keeps metadata
//! and a few fields of the caller's choice, [`Compact`] keeps compressed bytes, and [`Identity`] keeps only key, uid
//! and version. All of them implement [`Decode`].

#[cfg(feature = "compact")]
mod compact;
mod cut;
mod field_path;
mod error;
mod glimpse;
mod identity;
mod metadata;
mod raw;
mod scan;
mod view;

#[cfg(feature = "compact")]
pub use self::compact::Compact;
pub use self::error::DecodeError;
#[cfg(feature = "kube")]
pub(crate) use self::error::without_values;
#[cfg(feature = "kube")]
pub(crate) use self::glimpse::{Glimpse, GlimpseMetadata};
pub use self::identity::Identity;
pub(crate) use self::metadata::LAST_APPLIED;
pub use self::metadata::Metadata;
#[cfg(feature = "kube")]
pub(crate) use self::raw::Types;
pub use self::raw::{ManagedFields, Raw};
#[cfg(feature = "kube")]
pub(crate) use self::scan::{Passing, is_blank};
pub use self::view::{Projection, View};
use crate::object::{Object, ResourceType};

/// A buffer that grew above this size is freed.
#[cfg(feature = "kube")]
pub(crate) const KEPT_BUFFER: usize = 1024 * 1024;

/// An [`Object`] that can be made from the JSON of an API server.
///
/// With the `kube` feature every `kube` resource type implements it. To keep a few fields of a kind, [`View`] needs
/// less code.
///
/// ```
/// use kube_informer::{Id, KeyRef, Object, ResourceType};
/// use kube_informer::{Decode, DecodeError, Raw};
///
/// /// An object as the server wrote it, whatever its kind.
/// struct Wire(serde_json::Value);
///
/// impl Object for Wire {
///     fn id(&self) -> Id<'_> {
///         let text = |field: &str| self.0["metadata"][field].as_str().unwrap_or_default();
///         Id { key: KeyRef::new(text("namespace"), text("name")), uid: text("uid"), version: text("resourceVersion") }
///     }
/// }
///
/// impl Decode for Wire {
///     type Decoder = ();
///     fn decoder(_: &ResourceType) {}
///     fn decode(_: &(), raw: &Raw<'_>) -> Result<Self, DecodeError> { raw.deserialize().map(Self) }
/// }
///
/// let wire = Wire::decode(&(), &Raw::new(br#"{"metadata":{"name":"a"}}"#)?)?;
/// assert_eq!(wire.id().key.name(), "a");
/// # Ok::<(), DecodeError>(())
/// ```
pub trait Decode: Object + Sized {
    /// An estimate of the bytes of memory that one byte on the wire takes. The bound of a mailbox in bytes uses it. The
    /// default is 1.
    const MEMORY_PER_WIRE_BYTE: f64 = 1.0;

    /// The state that one informer keeps to decode its objects: `()` for most types.
    type Decoder: Send + Sync + 'static;

    /// Makes the decoder of one informer, shared by all its sources.
    fn decoder(resource: &ResourceType) -> Self::Decoder;

    /// Decodes one object.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the bytes are not such an object. The cache then keeps the last known state, and
    /// [`Health`](crate::Health) names the object.
    fn decode(decoder: &Self::Decoder, raw: &Raw<'_>) -> Result<Self, DecodeError>;

    /// Returns figures of the decoder by name, for [`Health::figures`](crate::Health).
    fn figures(decoder: &Self::Decoder) -> Vec<(&'static str, f64)> {
        let _ = decoder;
        Vec::new()
    }
}

/// A type whose resource is known at compile time, such as `Pod`. The type alone selects the resource to list and
/// watch.
///
/// In kube-rs this is `Resource<DynamicType = ()>`.
#[diagnostic::on_unimplemented(
    message = "the API path of `{Self}` is not known at compile time",
    note = "for objects of a kind known at run time only, name the collection: `factory.dynamic(..)`",
    note = "for a few fields of a kind, wrap your struct: `View<{Self}>`, with `impl Projection for {Self}`"
)]
pub trait StaticResource: Decode {
    /// Returns the resource that this type stands for.
    fn resource_type() -> ResourceType;
}

/// Decodes an object, and checks that it has a name.
#[cfg(feature = "kube")]
pub(crate) fn decode<T: Decode>(decoder: &T::Decoder, raw: &Raw<'_>) -> Result<T, DecodeError> {
    let object = T::decode(decoder, raw)?;
    if object.id().key.name().is_empty() { Err(DecodeError::NoName) } else { Ok(object) }
}
