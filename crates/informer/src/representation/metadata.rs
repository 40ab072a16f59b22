//! Metadata in little memory: kube's own type takes kilobytes.

use serde::{Deserialize, Deserializer};

use crate::object::{Id, KeyRef, Object, Owner};

/// What a copy of the whole object is written to by a well-known tool: nobody wants to keep it twice.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The metadata of an object, without managed fields, finalizers and the copy that `kubectl apply` leaves in an annotation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    #[serde(deserialize_with = "text")]
    namespace: Box<str>,
    #[serde(deserialize_with = "text")]
    name: Box<str>,
    #[serde(deserialize_with = "text")]
    uid: Box<str>,
    #[serde(deserialize_with = "text", rename = "resourceVersion")]
    version: Box<str>,
    generation: Option<i64>,
    #[serde(deserialize_with = "is_there", rename = "deletionTimestamp")]
    being_deleted: bool,
    #[serde(deserialize_with = "pairs")]
    labels: Pairs,
    #[serde(deserialize_with = "pairs")]
    annotations: Pairs,
    #[serde(deserialize_with = "or_default", rename = "ownerReferences")]
    owners: Box<[OwnerReference]>,
}

/// Sorted by key.
type Pairs = Box<[(Box<str>, Box<str>)]>;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OwnerReference {
    api_version: Box<str>,
    kind: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    controller: Option<bool>,
}

impl Metadata {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace; `None` in cluster scope.
    pub fn namespace(&self) -> Option<&str> {
        Some(&*self.namespace).filter(|namespace| !namespace.is_empty())
    }

    /// All labels, by key.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.labels.iter().map(|(key, value)| (&**key, &**value))
    }

    /// All annotations, by key.
    pub fn annotations(&self) -> impl Iterator<Item = (&str, &str)> {
        self.annotations.iter().map(|(key, value)| (&**key, &**value))
    }
}

impl Object for Metadata {
    fn id(&self) -> Id<'_> {
        Id { key: KeyRef::new(&self.namespace, &self.name), uid: &self.uid, version: &self.version }
    }

    fn label(&self, key: &str) -> Option<&str> {
        find(&self.labels, key)
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        find(&self.annotations, key)
    }

    fn each_owner(&self, f: &mut dyn FnMut(Owner<'_>)) {
        for OwnerReference { api_version, kind, name, uid, controller } in &self.owners {
            f(Owner { api_version, kind, name, uid, controller: controller.unwrap_or_default() });
        }
    }

    fn generation(&self) -> Option<i64> {
        self.generation
    }

    fn is_being_deleted(&self) -> bool {
        self.being_deleted
    }
}

fn find<'p>(pairs: &'p Pairs, key: &str) -> Option<&'p str> {
    let at = pairs.binary_search_by(|(known, _)| (**known).cmp(key)).ok()?;
    Some(&pairs[at].1)
}

fn or_default<'de, D: Deserializer<'de>, V: Deserialize<'de> + Default>(deserializer: D) -> Result<V, D::Error> {
    Ok(Option::<V>::deserialize(deserializer)?.unwrap_or_default())
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<str>, D::Error> {
    or_default(deserializer)
}

fn is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Option::<serde::de::IgnoredAny>::deserialize(deserializer)?.is_some())
}

fn pairs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pairs, D::Error> {
    let map: std::collections::BTreeMap<Box<str>, Box<str>> = or_default(deserializer)?;
    Ok(map.into_iter().filter(|(key, _)| &**key != LAST_APPLIED).collect())
}
