//! Reads of the cache by namespace and labels.
//!
//! | to read | use |
//! |---|---|
//! | one object by key | [`Store::get`] or [`Lister::get`]: one short lock |
//! | many objects, or several consistent reads | [`Snapshot`](crate::Snapshot): all objects of one instant |
//! | the objects that share a value | [`Index`](crate::Index) |
//! | by namespace or by labels | [`Lister`] |

use std::sync::Arc;

use crate::object::{Cached, KeyRef, Object, Selector};
use crate::store::Store;

/// The index that every informer has: objects by namespace.
pub(crate) const NAMESPACE_INDEX: &str = "namespace";

/// A reader of a cache by namespace and labels. A clone is another handle.
///
/// client-go's `GenericLister`. The difference: an absent object is `None`, not an error.
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::{Identity, Lister, Selector, Store};
/// # let (store, mut writer) = Store::new(0);
/// # writer.put(Arc::new(Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "1".to_owned() }));
/// let lister = Lister::new(store);
/// assert!(lister.get("web/a").is_some());
/// assert!(lister.namespace("web").get("b").is_none());
/// assert_eq!(lister.namespace("web").list(&Selector::everything()).len(), 1);
/// ```
pub struct Lister<T> {
    store: Store<T>,
}

/// A [`Lister`] within one namespace.
///
/// ```
/// # use std::sync::Arc;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{Lister, Selector, Store};
/// # let map = |json| Arc::new(serde_json::from_value::<ConfigMap>(json).unwrap());
///
/// let (store, mut writer) = Store::new(0);
/// writer.put(map(serde_json::json!({"metadata": {"namespace": "web", "name": "a", "labels": {"app": "shop"}}})));
/// writer.put(map(serde_json::json!({"metadata": {"namespace": "web", "name": "b"}})));
///
/// let lister = Lister::new(store);
/// let web = lister.namespace("web");
/// assert!(web.get("b").is_some());
/// assert_eq!(web.list(&"app=shop".parse()?).len(), 1);
/// assert_eq!(web.list(&Selector::everything()).len(), 2);
/// # Ok::<(), kube_informer::SelectorError>(())
/// ```
pub struct NamespaceLister<'n, T> {
    store: Store<T>,
    namespace: &'n str,
}

impl<T: Object> Lister<T> {
    /// Makes a lister over any store.
    pub fn new(store: Store<T>) -> Self {
        Self { store }
    }

    /// Returns one object by key, or by name in cluster scope. The lookup allocates nothing.
    pub fn get<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<Arc<T>> {
        self.store.get(key)
    }

    /// Returns every object that matches, in no particular order.
    pub fn list(&self, selector: &Selector) -> Vec<Arc<T>> {
        let (snapshot, mut matching) = (self.store.snapshot(), selector.matching());
        snapshot.objects().filter(|object| matching(&***object)).cloned().map(T::typed).collect()
    }

    /// Returns every object with the value in the named index, in no particular order; none if no index has this name.
    ///
    /// Every informer has an index by namespace, under the name `namespace`. [`Lister::namespace`] uses it.
    pub fn by_index(&self, index: &str, value: &str) -> Vec<Arc<T>> {
        self.store.snapshot().members(index, value).cloned().map(T::typed).collect()
    }

    /// Returns a lister of one namespace.
    pub fn namespace<'n>(&self, namespace: &'n str) -> NamespaceLister<'n, T> {
        NamespaceLister { store: self.store.clone(), namespace }
    }
}

impl<T: Object> NamespaceLister<'_, T> {
    /// Returns one object by name. The lookup allocates nothing.
    pub fn get(&self, name: &str) -> Option<Arc<T>> {
        self.store.get((self.namespace, name))
    }

    /// Returns every object of the namespace that matches, in no particular order.
    pub fn list(&self, selector: &Selector) -> Vec<Arc<T>> {
        let (snapshot, mut matching) = (self.store.snapshot(), selector.matching());
        let matching = |object: &&Arc<dyn Object>| matching(&***object);
        if snapshot.has_index(NAMESPACE_INDEX) {
            let members = snapshot.members(NAMESPACE_INDEX, self.namespace);
            return members.filter(matching).cloned().map(T::typed).collect();
        }
        let within = |object: &&Arc<dyn Object>| object.id().key.namespace() == Some(self.namespace);
        snapshot.objects().filter(within).filter(matching).cloned().map(T::typed).collect()
    }
}

impl<T> Clone for Lister<T> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone() }
    }
}

impl<T: Object> std::fmt::Debug for Lister<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lister").field("store", &self.store).finish()
    }
}

impl<T: Object> std::fmt::Debug for NamespaceLister<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NamespaceLister").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}
