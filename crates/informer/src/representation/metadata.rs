//! Metadata in little memory: kube's own type takes kilobytes.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::DecodeError;
use crate::object::{Id, KeyRef, Object, Owner, finalizer_set};

/// kubectl's last-applied annotation: a full copy of the object. Dropped to save memory.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The metadata of an object, without managed fields, finalizers and kubectl's last-applied annotation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    version: Box<str>,
    generation: Option<i64>,
    being_deleted: bool,
    finalizer_set: u32,
    labels: Pairs,
    annotations: Pairs,
    owners: Box<[OwnerReference]>,
}

/// Pairs of key and value, sorted by key.
type Pairs = Box<[(Box<str>, Box<str>)]>;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct OwnerReference {
    api_version: Box<str>,
    kind: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    controller: bool,
}

impl Metadata {
    /// Parses JSON. An empty string and null yield the default.
    pub(super) fn read(json: &str) -> Result<Self, DecodeError> {
        let owned = |pairs: &Listed<'_>| pairs.iter().map(|(key, value)| (key.boxed(), value.boxed())).collect();
        let fields = Fields::read(json)?;
        Ok(Self {
            namespace: fields.namespace.boxed(),
            name: fields.name.boxed(),
            uid: fields.uid.boxed(),
            version: fields.resource_version.boxed(),
            generation: fields.generation,
            being_deleted: fields.deletion_timestamp.is_some(),
            finalizer_set: fields.finalizer_set(),
            labels: owned(&fields.labels),
            annotations: owned(&fields.annotations),
            owners: fields.owners(),
        })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the namespace; `None` in cluster scope.
    pub fn namespace(&self) -> Option<&str> {
        Some(&*self.namespace).filter(|namespace| !namespace.is_empty())
    }

    /// Iterates over all labels, by key.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.labels.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Iterates over all annotations, by key.
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
        self.owners.iter().for_each(|owner| f(owner.lend()));
    }

    fn generation(&self) -> Option<i64> {
        self.generation
    }

    fn finalizer_set(&self) -> Option<u32> {
        Some(self.finalizer_set)
    }

    fn is_being_deleted(&self) -> bool {
        self.being_deleted
    }
}

fn find<'p>(pairs: &'p Pairs, key: &str) -> Option<&'p str> {
    let at = pairs.binary_search_by(|(known, _)| (**known).cmp(key)).ok()?;
    Some(&pairs[at].1)
}

/// Metadata that borrows from its JSON where possible. If a key occurs twice, the last one counts, as in all JSON that
/// this crate reads.
#[derive(Default)]
pub(super) struct Fields<'a> {
    pub(super) namespace: Text<'a>,
    pub(super) name: Text<'a>,
    pub(super) uid: Text<'a>,
    pub(super) resource_version: Text<'a>,
    pub(super) generation: Option<i64>,
    pub(super) deletion_timestamp: Option<IgnoredAny>,
    pub(super) labels: Listed<'a>,
    pub(super) annotations: Listed<'a>,
    owner_references: Option<Vec<OwnerFields<'a>>>,
    finalizers: Option<Vec<Text<'a>>>,
}

#[derive(Default)]
struct OwnerFields<'a> {
    api_version: Text<'a>,
    kind: Text<'a>,
    name: Text<'a>,
    uid: Text<'a>,
    controller: Option<bool>,
}

impl<'a> Members<'a> for Fields<'a> {
    fn member<A: MapAccess<'a>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "namespace" => self.namespace = map.next_value()?,
            "name" => self.name = map.next_value()?,
            "uid" => self.uid = map.next_value()?,
            "resourceVersion" => self.resource_version = map.next_value()?,
            "generation" => self.generation = map.next_value()?,
            "deletionTimestamp" => self.deletion_timestamp = map.next_value()?,
            "finalizers" => self.finalizers = map.next_value()?,
            "labels" => self.labels = map.next_value()?,
            "annotations" => self.annotations = map.next_value()?,
            "ownerReferences" => {
                self.owner_references = map
                    .next_value::<Option<Vec<Read<OwnerFields<'a>>>>>()?
                    .map(|owners| owners.into_iter().map(|Read(owner)| owner).collect());
            }
            _ => _ = map.next_value::<IgnoredAny>()?,
        }
        Ok(())
    }
}

impl<'a> Members<'a> for OwnerFields<'a> {
    fn member<A: MapAccess<'a>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "apiVersion" => self.api_version = map.next_value()?,
            "kind" => self.kind = map.next_value()?,
            "name" => self.name = map.next_value()?,
            "uid" => self.uid = map.next_value()?,
            "controller" => self.controller = map.next_value()?,
            _ => _ = map.next_value::<IgnoredAny>()?,
        }
        Ok(())
    }
}

/// A type with members that is parsed by hand: a derived `Deserialize` refuses duplicate keys.
trait Members<'a>: Default {
    /// Parses the value of a key.
    fn member<A: MapAccess<'a>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error>;
}

/// Parses an object member by member.
struct Read<M>(M);

impl<'de, M: Members<'de>> Deserialize<'de> for Read<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<M>(M);
        impl<'de, M: Members<'de>> Visitor<'de> for Reader<M> {
            type Value = Read<M>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Read<M>, A::Error> {
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    self.0.member(&key, &mut map)?;
                }
                Ok(Read(self.0))
            }
        }
        deserializer.deserialize_map(Reader(M::default()))
    }
}

impl<'a> Fields<'a> {
    /// Parses JSON. An empty string and null yield the default.
    pub(super) fn read(json: &'a str) -> Result<Self, DecodeError> {
        if json.is_empty() {
            return Ok(Self::default());
        }
        let read = serde_json::from_str::<Option<Read<Self>>>(json);
        let read = read.map_err(|error| DecodeError::of(&error, "metadata", json))?;
        let mut fields = read.map(|Read(fields)| fields).unwrap_or_default();
        fields.annotations.0.retain(|(key, _)| &**key != LAST_APPLIED);
        Ok(fields)
    }

    pub(super) fn finalizer_set(&self) -> u32 {
        finalizer_set(self.finalizers.iter().flatten().map(|finalizer| &**finalizer))
    }

    pub(super) fn owners(&self) -> Box<[OwnerReference]> {
        let owned = |owner: &OwnerFields<'_>| OwnerReference {
            api_version: owner.api_version.boxed(),
            kind: owner.kind.boxed(),
            name: owner.name.boxed(),
            uid: owner.uid.boxed(),
            controller: owner.controller.unwrap_or_default(),
        };
        self.owner_references.iter().flatten().map(owned).collect()
    }
}

impl OwnerReference {
    pub(super) fn lend(&self) -> Owner<'_> {
        let Self { api_version, kind, name, uid, controller } = self;
        Owner { api_version, kind, name, uid, controller: *controller }
    }
}

/// A string. Null counts as absent, as in every field of Kubernetes.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    fn boxed(&self) -> Box<str> {
        Box::from(&*self.0)
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            fn visit_unit<E>(self) -> Result<Text<'de>, E> {
                Ok(Text::default())
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// Labels or annotations, sorted by key. If a key occurs twice, the last one counts.
#[derive(Default)]
pub(super) struct Listed<'a>(Vec<(Text<'a>, Text<'a>)>);

impl<'a> Deref for Listed<'a> {
    type Target = [(Text<'a>, Text<'a>)];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Listed<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Listed<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Listed<'de>, A::Error> {
                let mut pairs: Vec<(Text<'de>, Text<'de>)> = Vec::with_capacity(8);
                while let Some((key, value)) = map.next_entry::<Text<'de>, Text<'de>>()? {
                    pairs.push((key, value));
                }
                if !pairs.is_sorted_by(|(one, _), (next, _)| one < next) {
                    // The last of several equal keys comes first now, and is the one that `dedup_by` keeps.
                    pairs.reverse();
                    pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
                    pairs.dedup_by(|(later, _), (kept, _)| later == kept);
                }
                Ok(Listed(pairs))
            }

            fn visit_unit<E>(self) -> Result<Listed<'de>, E> {
                Ok(Listed::default())
            }
        }
        deserializer.deserialize_any(Reader)
    }
}
