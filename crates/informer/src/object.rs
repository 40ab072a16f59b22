//! What a cache asks of an object: which one it is, which version of it, its labels, its owners.

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

/// Something a cache can hold.
///
/// With the `kube` feature every `kube` resource type is one already: `k8s_openapi` types, derived custom resources,
/// `DynamicObject`, `PartialObjectMeta`; so is [`View`](crate::View). Implement it yourself for things that are not
/// Kubernetes objects. Only [`Object::id`] must be written:
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
    /// Which object this is, and which version of it.
    fn id(&self) -> Id<'_>;

    /// The value of one label.
    fn label(&self, key: &str) -> Option<&str> {
        let _ = key;
        None
    }

    /// A number that stands for all its labels, where objects that have the same share them: while both exist, two objects with
    /// the same number have the same labels. A selector is then worked out once for all of them.
    fn label_set(&self) -> Option<usize> {
        None
    }

    /// The value of one annotation.
    fn annotation(&self, key: &str) -> Option<&str> {
        let _ = key;
        None
    }

    /// Calls a function with each object that owns this one.
    fn each_owner(&self, f: &mut dyn FnMut(Owner<'_>)) {
        let _ = f;
    }

    /// Returns a number that stands for its finalizers: two states with the same finalizers have the same number. `None` if the
    /// representation does not know them.
    fn finalizer_set(&self) -> Option<u32> {
        None
    }

    /// Returns whether this is an object of a kind, in any version of its group. `None` if the representation does not know.
    fn is_of_kind(&self, resource: &ResourceType) -> Option<bool> {
        let _ = resource;
        None
    }

    /// How often its specification changed, if the server counts that.
    fn generation(&self) -> Option<i64> {
        None
    }

    /// True if its deletion was asked for and waits for finalizers.
    fn is_being_deleted(&self) -> bool {
        false
    }

    /// The object as JSON, if it can be written so.
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

/// One object that owns another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner<'a> {
    /// Group and version, such as `apps/v1`.
    pub api_version: &'a str,
    /// The kind, such as `Deployment`.
    pub kind: &'a str,
    /// Its name, in the namespace of what it owns or in none.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
    /// True if it is the one that manages the object.
    pub controller: bool,
}
