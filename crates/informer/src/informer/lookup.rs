//! Lookups that distinguish an absent object from one that cannot be decoded, and from one that is not followed.

use std::sync::Arc;

use super::SharedInformer;
use crate::health::Undecodable;
use crate::object::{KeyRef, Object, ObjectKey};

/// The result of a lookup of one key.
///
/// A program that deletes or creates something because an object is absent needs this result, and not that of
/// [`Store::get`](crate::Store::get): an object that cannot be decoded exists, although the store does not hold it.
#[derive(Debug)]
pub enum Lookup<T> {
    /// The cache holds the object in the last state that the API server sent.
    Present(Arc<T>),
    /// The API server has no such object, as far as the cache knows.
    Absent,
    /// The object exists, and its last state could not be decoded.
    Undecodable {
        /// The error.
        why: Undecodable,
        /// The last state that could be decoded, which is out of date.
        last_good: Option<Arc<T>>,
    },
    /// The informer does not follow the namespace of the key, or its first list of that namespace is not in the cache
    /// yet. The object may or may not exist.
    OutOfScope,
}

impl<T> Lookup<T> {
    /// Returns the object if the cache holds its last state.
    pub fn present(self) -> Option<Arc<T>> {
        match self {
            Self::Present(object) => Some(object),
            Self::Absent | Self::Undecodable { .. } | Self::OutOfScope => None,
        }
    }

    /// Returns true if the API server has no such object, as far as the cache knows.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

impl<T: Object> SharedInformer<T> {
    /// Looks a key up: the cache holds the object, or the object is absent, or it cannot be decoded, or the informer does
    /// not follow its namespace.
    ///
    /// ```
    /// use kube_informer::Lookup;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::SharedInformerFactory;
    /// # doc_server::with(async |server| {
    /// # let factory = SharedInformerFactory::new(server.client());
    /// # let maps = factory.informer::<ConfigMap>()?;
    /// # factory.start()?;
    /// # factory.synced().await?;
    /// match maps.lookup("web/a") {
    ///     Lookup::Present(map) => println!("{:?}", map.data),
    ///     Lookup::Absent => println!("it does not exist: creating it is right"),
    ///     Lookup::Undecodable { why, .. } => println!("it exists, but: {why}"),
    ///     Lookup::OutOfScope => println!("the informer does not follow its namespace"),
    /// }
    /// # Ok(()) });
    /// ```
    pub fn lookup<'k>(&self, key: impl Into<KeyRef<'k>>) -> Lookup<T> {
        let (core, key) = (&self.shared.core, key.into());
        // The marks are read before the store. A mark is removed after the good state is in the store, so that one of
        // the two reads always finds the object.
        let marked = core.health.any_undecodable();
        // The lock of a commit is held, so that the mark, the namespaces and the store are consistent.
        let no_commit = (marked || core.by_namespace).then(|| core.writing.lock());
        if core.by_namespace
            && let (Some(state), Some(namespace)) = (&no_commit, key.namespace())
            && !state.listed.contains(namespace)
        {
            return Lookup::OutOfScope;
        }
        let why = if marked { core.health.undecodable(key) } else { None };
        match (why, self.store().get(key)) {
            (Some(why), last_good) => Lookup::Undecodable { why, last_good },
            (None, Some(object)) => Lookup::Present(object),
            (None, None) => Lookup::Absent,
        }
    }

    /// Returns the keys of undecodable objects that may belong to an owner: those with its uid in an owner reference,
    /// and those in its namespace whose owners could not be decoded.
    pub fn undecodable_owned_by(&self, owner: &impl Object) -> Vec<ObjectKey> {
        let id = owner.id();
        self.shared.core.health.undecodable_where(|key, mark| match &mark.owners {
            Some(owners) => owners.iter().any(|uid| uid == id.uid),
            None => id.key.namespace().is_none_or(|namespace| key.namespace() == Some(namespace)),
        })
    }
}
