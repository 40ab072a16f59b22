//! What the cache needs to know of an object: its key, its version, its labels, and how it is decoded.

mod key;
mod prune;
mod version;

use std::borrow::Cow;

use serde::de::DeserializeOwned;

pub use self::key::{KeyError, KeyRef, ObjectKey};
pub use self::version::ResourceVersion;
pub(crate) use self::version::compare as compare_versions;

/// Something a cache can hold.
///
/// With the `kube` feature every `kube` resource type is one already: `k8s_openapi` types, derived custom resources,
/// `DynamicObject`, `PartialObjectMeta`. Implement it yourself for a projection that keeps a few fields only, or for
/// things that are not Kubernetes objects at all:
///
/// ```
/// use kube_informer::object::{DecodeError, Id, KeyRef, Object, Raw};
///
/// #[derive(serde::Deserialize)]
/// struct Metadata { namespace: String, name: String, uid: String, #[serde(rename = "resourceVersion")] version: String }
///
/// /// All this program wants to know of a pod.
/// #[derive(serde::Deserialize)]
/// struct PodView { metadata: Metadata, spec: Spec }
///
/// #[derive(serde::Deserialize)]
/// struct Spec { #[serde(rename = "nodeName")] node: Option<String> }
///
/// impl Object for PodView {
///     fn decode(raw: Raw<'_>) -> Result<Self, DecodeError> { raw.deserialize() }
///     fn id(&self) -> Id<'_> {
///         let Metadata { namespace, name, uid, version } = &self.metadata;
///         Id { key: KeyRef::new(namespace, name), uid, version }
///     }
/// }
///
/// let json = br#"{"metadata":{"namespace":"web","name":"a","uid":"1","resourceVersion":"7"},"spec":{"nodeName":"n1"}}"#;
/// let view = PodView::decode(Raw::new(json)).unwrap();
/// assert_eq!(view.id().key.to_string(), "web/a");
/// assert_eq!(view.spec.node.as_deref(), Some("n1"));
/// ```
pub trait Object: Sized + Send + Sync + 'static {
    /// Makes the object from its JSON.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the bytes are not such an object. The cache then keeps the last good copy and says so.
    fn decode(raw: Raw<'_>) -> Result<Self, DecodeError>;

    /// Which object this is, and which version of it.
    fn id(&self) -> Id<'_>;

    /// The value of one label. Objects without labels keep the default, which knows none.
    fn label(&self, key: &str) -> Option<&str> {
        let _ = key;
        None
    }
}

/// An [`Object`] whose collection is known at compile time, so that its type alone names it.
///
/// A projection names the collection whose objects it is made from:
///
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::SharedInformerFactory;
/// use kube_informer::object::{Kind, ResourceType};
/// # use kube_informer::object::{DecodeError, Id, Object, Raw};
/// # use kube_informer::source::Identity;
/// # struct Name(Identity);
/// # impl Object for Name {
/// #     fn decode(raw: Raw<'_>) -> Result<Self, DecodeError> { Identity::decode(raw).map(Name) }
/// #     fn id(&self) -> Id<'_> { self.0.id() }
/// # }
///
/// // `Name` is an `Object` that keeps a config map's name and nothing of its data.
/// impl Kind for Name {
///     fn resource_type() -> ResourceType { ConfigMap::resource_type() }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// # server.create("configmaps", Some("web"), serde_json::json!({"metadata": {"name": "a"}}))?;
/// let factory = SharedInformerFactory::new(server.client());
/// let names = factory.informer::<Name>()?;
/// factory.start()?;
/// factory.synced().await?;
/// assert!(names.store().contains("web/a"));
/// factory.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[diagnostic::on_unimplemented(
    message = "the API path of `{Self}` is not known at compile time",
    note = "for objects of a kind known at run time only, name the collection: `factory.dynamic(..)`",
    note = "for a type of your own, implement `Object` and `Kind`"
)]
pub trait Kind: Object {
    /// The collection that holds objects of this kind.
    fn resource_type() -> ResourceType;
}

/// The collection of an API server that holds objects of one kind.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kube_informer::object::Kind;
///
/// let resource = Deployment::resource_type();
/// assert_eq!((resource.group.as_str(), resource.version.as_str()), ("apps", "v1"));
/// assert_eq!(resource.to_string(), "deployments.apps");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResourceType {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The kind, such as `Pod`.
    pub kind: String,
    /// The name in paths, such as `pods`.
    pub plural: String,
}

impl ResourceType {
    /// The path of the collection, in one namespace or in all.
    #[cfg(feature = "kube")]
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let Self { group, version, plural, .. } = self;
        let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        match namespace {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
            None => format!("{root}/{plural}"),
        }
    }
}

/// `pods`, or `deployments.apps` outside the core group.
impl std::fmt::Display for ResourceType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.plural)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// Which object, and which version of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id<'a> {
    /// Namespace and name.
    pub key: KeyRef<'a>,
    /// What tells a recreated object from its namesake; empty if unknown.
    pub uid: &'a str,
    /// The version the server gave it; empty if unknown.
    pub version: &'a str,
}

impl Id<'_> {
    /// True if both are the same state of the same object, as far as can be told: an unknown version equals nothing.
    ///
    /// ```
    /// use kube_informer::object::{Id, KeyRef};
    ///
    /// let seen = Id { key: KeyRef::new("web", "a"), uid: "1", version: "7" };
    /// assert!(seen.same_state(&Id { ..seen }));
    /// assert!(!seen.same_state(&Id { uid: "2", ..seen }), "deleted and made again");
    ///
    /// let unknown = Id { version: "", ..seen };
    /// assert!(!unknown.same_state(&unknown));
    /// ```
    pub fn same_state(&self, other: &Id<'_>) -> bool {
        !self.version.is_empty() && self == other
    }
}

/// The version the server gave an object, if it is known.
pub(crate) fn version_of(object: &impl Object) -> Option<ResourceVersion> {
    Some(object.id().version).filter(|version| !version.is_empty()).map(ResourceVersion::from)
}

/// The JSON of one object, and how to read it.
///
/// ```
/// use kube_informer::object::{ManagedFields, Raw};
/// use serde_json::Value;
///
/// let raw = Raw::new(br#"{"metadata": {"name": "a", "managedFields": [{"manager": "kubectl"}]}}"#);
/// let object: Value = raw.deserialize()?;
/// assert_eq!(object["metadata"]["name"], "a");
/// assert!(object["metadata"]["managedFields"].is_null());
///
/// let whole: Value = raw.managed_fields(ManagedFields::Keep).deserialize()?;
/// assert_eq!(whole["metadata"]["managedFields"][0]["manager"], "kubectl");
/// # Ok::<(), kube_informer::object::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Raw<'a> {
    json: &'a [u8],
    managed_fields: ManagedFields,
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

impl<'a> Raw<'a> {
    /// The object in `json`, its managed fields to be skipped.
    pub fn new(json: &'a [u8]) -> Self {
        Self { json, managed_fields: ManagedFields::Skip }
    }

    /// The same bytes, read with or without managed fields.
    #[must_use]
    pub fn managed_fields(self, managed_fields: ManagedFields) -> Self {
        Self { managed_fields, ..self }
    }

    /// The bytes as the server sent them.
    pub fn json(&self) -> &'a [u8] {
        self.json
    }

    /// Reads any type that serde can read.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the bytes are no UTF-8, no JSON, or not of this shape.
    ///
    /// ```
    /// use kube_informer::object::{DecodeError, Raw};
    ///
    /// let list: Vec<u8> = Raw::new(b"[1, 2]").deserialize()?;
    /// assert_eq!(list, [1, 2]);
    /// assert!(matches!(Raw::new(b"{}").deserialize::<Vec<u8>>(), Err(DecodeError::Shape(_))));
    /// assert!(matches!(Raw::new(b"[\xff]").deserialize::<Vec<u8>>(), Err(DecodeError::NotUtf8)));
    /// # Ok::<(), DecodeError>(())
    /// ```
    pub fn deserialize<D: DeserializeOwned>(self) -> Result<D, DecodeError> {
        // One UTF-8 check up front is cheaper than one for every string.
        let text = std::str::from_utf8(self.json).map_err(|_| DecodeError::NotUtf8)?;
        let mut json = serde_json::Deserializer::from_str(text);
        let value = match self.managed_fields {
            ManagedFields::Keep => D::deserialize(&mut json)?,
            ManagedFields::Skip => D::deserialize(prune::without_managed_fields(&mut json))?,
        };
        json.end()?;
        Ok(value)
    }
}

/// Why an object could not be made from its JSON.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are not UTF-8.
    #[error("object is not valid UTF-8")]
    NotUtf8,
    /// The JSON is broken or has another shape.
    #[error("object does not fit its type: {0}")]
    Shape(String),
    /// Every object of a collection has a name.
    #[error("object has no metadata.name")]
    NoName,
    /// The collection holds objects of one kind.
    #[error("expected an object of kind {expected}, got {got}")]
    WrongKind {
        /// The kind of the collection.
        expected: String,
        /// What came.
        got: Cow<'static, str>,
    },
    /// The caller's transform refused the object.
    #[error("transform failed: {0}")]
    Transform(String),
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        Self::Shape(error.to_string())
    }
}

/// As much of an object's metadata as tells which one it is: read when the whole cannot be.
#[derive(Debug, Default, serde::Deserialize)]
#[cfg_attr(not(feature = "kube"), allow(dead_code, reason = "some of it is of interest to servers only"))]
pub(crate) struct Glimpse {
    #[serde(default)]
    pub(crate) kind: Option<String>,
    #[serde(default)]
    pub(crate) metadata: GlimpseMetadata,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "kube"), allow(dead_code, reason = "some of it is of interest to servers only"))]
pub(crate) struct GlimpseMetadata {
    #[serde(default)]
    pub(crate) namespace: Option<String>,
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) uid: Option<String>,
    #[serde(default)]
    pub(crate) resource_version: Option<String>,
    #[serde(default)]
    pub(crate) annotations: Option<std::collections::BTreeMap<String, String>>,
}

impl Glimpse {
    /// The key, if at least a name could be read.
    pub(crate) fn key(&self) -> Option<ObjectKey> {
        let name = self.metadata.name.as_deref().filter(|name| !name.is_empty())?;
        Some(ObjectKey::from(KeyRef::new(self.metadata.namespace.as_deref().unwrap_or_default(), name)))
    }
}

/// Decodes and checks once what everything behind relies on: that the object has a name.
#[cfg(feature = "kube")]
pub(crate) fn decode<T: Object>(raw: Raw<'_>) -> Result<T, DecodeError> {
    let object = T::decode(raw)?;
    if object.id().key.name().is_empty() { Err(DecodeError::NoName) } else { Ok(object) }
}
