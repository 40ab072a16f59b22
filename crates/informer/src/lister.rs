//! The cache by namespace and labels.
//!
//! | to read | use |
//! |---|---|
//! | one object by key | [`Store::get`] or [`Lister::get`]: one short lock |
//! | many objects, or several reads that must fit together | [`Snapshot`](crate::Snapshot): everything of one instant |
//! | the objects that share a value | [`Index`](crate::Index) |
//! | by namespace or by labels | [`Lister`] |

mod selector;

use std::sync::Arc;

pub use self::selector::{Selector, SelectorError};
use crate::object::{KeyRef, Object};
use crate::store::Store;

/// The index that every informer has: objects by namespace.
pub(crate) const NAMESPACE_INDEX: &str = "namespace";

/// Reads a cache by namespace and labels. Cloning gives another handle.
///
/// client-go's `GenericLister`. What differs: what is not there is `None`, not an error.
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::{Lister, Selector, Store, source::Identity};
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
/// # Ok::<(), kube_informer::lister::SelectorError>(())
/// ```
pub struct NamespaceLister<'n, T> {
    store: Store<T>,
    namespace: &'n str,
}

impl<T: Object> Lister<T> {
    /// A lister over any store.
    pub fn new(store: Store<T>) -> Self {
        Self { store }
    }

    /// One object by key, or by name in cluster scope. Nothing is allocated to ask.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{Lister, Store};
    /// # let (store, mut writer) = Store::new(0);
    /// # writer.put(thing("web/a", "1"));
    /// # writer.put(thing("node-1", "2"));
    /// let lister = Lister::new(store);
    /// assert!(lister.get("web/a").is_some() && lister.get(("web", "a")).is_some());
    /// assert!(lister.get("node-1").is_some(), "in cluster scope");
    /// assert!(lister.get("web/b").is_none());
    /// ```
    pub fn get<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<Arc<T>> {
        self.store.get(key)
    }

    /// Every object that matches, in no particular order.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{Lister, Selector, Store};
    /// # let map = |json| Arc::new(serde_json::from_value::<ConfigMap>(json).unwrap());
    /// # let (store, mut writer) = Store::new(0);
    /// writer.put(map(serde_json::json!({"metadata": {"namespace": "web", "name": "a", "labels": {"app": "shop"}}})));
    /// writer.put(map(serde_json::json!({"metadata": {"namespace": "db", "name": "b", "labels": {"app": "ledger"}}})));
    ///
    /// let lister = Lister::new(store);
    /// assert_eq!(lister.list(&Selector::everything().equal("app", "shop")).len(), 1);
    /// assert_eq!(lister.list(&Selector::everything().exists("app")).len(), 2);
    /// ```
    pub fn list(&self, selector: &Selector) -> Vec<Arc<T>> {
        self.store.snapshot().iter().filter(|object| selector.matches(&***object)).cloned().collect()
    }

    /// Every object that has the value in the named index, in no particular order; none if there is no such index.
    ///
    /// Every informer has an index by namespace:
    ///
    ///
    /// ```
    /// # use kube_informer::SharedInformer;
    /// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
    /// # let source = ListWatchFns::new(
    /// #     |_: ListOptions| async {
    /// #         let thing = Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "7".to_owned() };
    /// #         Ok(Items::complete([thing], ListEnd { version: Some("7".into()), ..ListEnd::default() }))
    /// #     },
    /// #     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
    /// # );
    /// # let things = SharedInformer::builder(source).build();
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// things.start()?;
    /// things.synced().await?;
    /// assert_eq!(things.lister().by_index("namespace", "web").len(), 1);
    /// assert!(things.lister().by_index("color", "red").is_empty());
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn by_index(&self, index: &str, value: &str) -> Vec<Arc<T>> {
        self.store.snapshot().by_index(index, value).cloned().collect()
    }

    /// The same within one namespace.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{Lister, Selector, Store};
    /// # let (store, mut writer) = Store::new(0);
    /// writer.put(thing("web/a", "1"));
    /// writer.put(thing("shop/a", "2"));
    /// let lister = Lister::new(store);
    /// assert_eq!(lister.namespace("shop").get("a").unwrap().version, "2");
    /// assert_eq!(lister.namespace("web").list(&Selector::everything()).len(), 1);
    /// ```
    pub fn namespace<'n>(&self, namespace: &'n str) -> NamespaceLister<'n, T> {
        NamespaceLister { store: self.store.clone(), namespace }
    }
}

impl<T: Object> NamespaceLister<'_, T> {
    /// One object by name. Nothing is allocated to ask.
    pub fn get(&self, name: &str) -> Option<Arc<T>> {
        self.store.get((self.namespace, name))
    }

    /// Every object of the namespace that matches, in no particular order.
    pub fn list(&self, selector: &Selector) -> Vec<Arc<T>> {
        let snapshot = self.store.snapshot();
        let matching = |object: &&Arc<T>| selector.matches(&***object);
        if snapshot.has_index(NAMESPACE_INDEX) {
            return snapshot.by_index(NAMESPACE_INDEX, self.namespace).filter(matching).cloned().collect();
        }
        let within = |object: &&Arc<T>| object.id().key.namespace() == Some(self.namespace);
        snapshot.iter().filter(within).filter(matching).cloned().collect()
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
