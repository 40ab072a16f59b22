//! The interface between a cache and its objects: key, version, labels, owners.

mod cached;
mod key;
mod resource;
mod scope;
mod selector;
mod version;

pub use self::cached::Cached;
pub use self::key::{KeyError, KeyRef, ObjectKey};
pub use self::resource::ResourceType;
pub use self::scope::Scope;
pub(crate) use self::scope::in_scope;
pub use self::selector::{Selector, SelectorError};
pub use self::version::ResourceVersion;
pub(crate) use self::version::is_older;

use std::any::Any;

/// An object that a cache can hold.
///
/// With the `kube` feature every `kube` resource type implements this trait: `k8s_openapi` types, derived custom
/// resources, `DynamicObject`, `PartialObjectMeta`. [`View`](crate::View) implements it, too. Implement it yourself for
/// objects that do not come from Kubernetes. Only [`Object::id`] is required:
///
/// ```
/// use kube_informer::{Id, KeyRef, Object};
///
/// struct Room { name: String, changes: String }
///
/// impl Object for Room {
///     fn id(&self) -> Id<'_> { Id { key: KeyRef::new("", &self.name), uid: "", version: &self.changes } }
/// }
/// ```
pub trait Object: Any + Send + Sync {
    /// Returns the key, uid and version of this object.
    fn id(&self) -> Id<'_>;

    /// Returns the value of one label.
    fn label(&self, key: &str) -> Option<&str> {
        let _ = key;
        None
    }

    /// Returns a number that stands for all labels of the object, if objects with the same labels share them in memory.
    /// While two objects with the same number exist, they have the same labels, so that a selector is evaluated only
    /// once for them.
    fn label_set(&self) -> Option<usize> {
        None
    }

    /// Returns the value of one annotation.
    fn annotation(&self, key: &str) -> Option<&str> {
        let _ = key;
        None
    }

    /// Calls a function with each owner reference of this object.
    fn each_owner(&self, f: &mut dyn FnMut(Owner<'_>)) {
        let _ = f;
    }

    /// Returns a number that stands for its finalizers: two states with the same finalizers have the same number.
    /// `None` if the representation does not know them.
    fn finalizer_set(&self) -> Option<u32> {
        None
    }

    /// Returns whether this is an object of a kind, in any version of its group. `None` if the representation does not
    /// know.
    fn is_of_kind(&self, resource: &ResourceType) -> Option<bool> {
        let _ = resource;
        None
    }

    /// Returns `metadata.generation`: how often the specification changed. `None` if the API server does not count
    /// that.
    fn generation(&self) -> Option<i64> {
        None
    }

    /// Returns true if the object was deleted and waits for its finalizers.
    fn is_being_deleted(&self) -> bool {
        false
    }

    /// Returns the object as JSON, if its representation can be written as JSON.
    fn to_json(&self) -> Option<serde_json::Value> {
        None
    }
}

/// Returns the number that stands for a list of finalizers; see [`Object::finalizer_set`].
pub(crate) fn finalizer_set<'f>(finalizers: impl IntoIterator<Item = &'f str>) -> u32 {
    use std::hash::{BuildHasher as _, Hasher as _};
    let mut hasher = foldhash::quality::FixedState::default().build_hasher();
    for finalizer in finalizers {
        hasher.write(finalizer.as_bytes());
        hasher.write_u8(0xff);
    }
    (hasher.finish() >> 32) as u32
}

/// The key, uid and version of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id<'a> {
    /// Namespace and name.
    pub key: KeyRef<'a>,
    /// The uid, which differs between an object and a later one of the same name; empty if unknown.
    pub uid: &'a str,
    /// The resource version; empty if unknown.
    pub version: &'a str,
}

impl Id<'_> {
    /// Returns true if both are the same state of the same object. An unknown version equals no other.
    pub fn same_state(&self, other: &Id<'_>) -> bool {
        !self.version.is_empty() && self == other
    }

    /// Returns true if this is an older state than the other, and false if their versions do not compare.
    pub(crate) fn is_older_than(&self, other: &Id<'_>) -> bool {
        is_older(self.version, other.version)
    }

    /// Returns the version, or `None` if it is unknown.
    pub(crate) fn known_version(&self) -> Option<ResourceVersion> {
        Some(self.version).filter(|version| !version.is_empty()).map(ResourceVersion::from)
    }
}

/// An owner reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner<'a> {
    /// Group and version, such as `apps/v1`.
    pub api_version: &'a str,
    /// The kind, such as `Deployment`.
    pub kind: &'a str,
    /// The name. The owner is in the same namespace as the object, or in cluster scope.
    pub name: &'a str,
    /// The uid.
    pub uid: &'a str,
    /// True if this owner is the controller of the object.
    pub controller: bool,
}
