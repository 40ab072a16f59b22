//! Metadata in as little memory as possible that can still be borrowed.

use std::fmt::Write as _;
use std::sync::Arc;

use super::super::DecodeError;
use super::super::metadata::{Fields, Listed, OwnerReference};
use super::interner::Interner;
use crate::object::{Id, KeyRef, Owner};

/// The metadata of an object. Values that many objects have in common are shared, and the rest is one string.
#[derive(Clone)]
pub(super) struct Pack {
    namespace: Arc<str>,
    /// Name, uid and version, concatenated, followed by a list of the values of annotations.
    text: Box<str>,
    name: u16,
    uid: u16,
    version: u16,
    being_deleted: bool,
    finalizer_set: u32,
    generation: Option<i64>,
    /// A list that alternates between keys and values.
    labels: Arc<str>,
    /// A list of the keys of annotations.
    annotations: Arc<str>,
    owners: Arc<[OwnerReference]>,
}

impl Pack {
    /// Packs metadata.
    pub(super) fn new(fields: &Fields<'_>, interner: &Interner) -> Result<Self, DecodeError> {
        let length = |text: &str| {
            let too_long = |_| DecodeError::Shape("name, uid or version is too long".to_owned());
            u16::try_from(text.len()).map_err(too_long)
        };
        let Fields { name, uid, resource_version: version, .. } = fields;
        let values = listed(pairs(&fields.annotations).map(|(_, value)| value));
        let text = [name, uid, version, &*values].concat().into_boxed_str();
        Ok(Self {
            namespace: interner.namespaces.share(&fields.namespace),
            text,
            name: length(name)?,
            uid: length(uid)?,
            version: length(version)?,
            being_deleted: fields.deletion_timestamp.is_some(),
            finalizer_set: fields.finalizer_set(),
            generation: fields.generation,
            labels: interner.labels.share(&listed(pairs(&fields.labels).flat_map(|(key, value)| [key, value]))),
            annotations: interner.annotations.share(&listed(pairs(&fields.annotations).map(|(key, _)| key))),
            owners: interner.owners.share(&fields.owners()),
        })
    }

    pub(super) fn id(&self) -> Id<'_> {
        let (name, rest) = self.text.split_at(self.name.into());
        let (uid, rest) = rest.split_at(self.uid.into());
        let (version, _) = rest.split_at(self.version.into());
        Id { key: KeyRef::new(&self.namespace, name), uid, version }
    }

    pub(super) fn label(&self, key: &str) -> Option<&str> {
        let mut texts = texts(&self.labels);
        while let (Some(known), Some(value)) = (texts.next(), texts.next()) {
            if known == key {
                return Some(value);
            }
        }
        None
    }

    /// Equal strings are shared, so the address identifies the set of labels.
    pub(super) fn label_set(&self) -> usize {
        self.labels.as_ptr().addr()
    }

    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        let at = texts(&self.annotations).position(|known| known == key)?;
        let values = &self.text[usize::from(self.name) + usize::from(self.uid) + usize::from(self.version)..];
        texts(values).nth(at)
    }

    pub(super) fn each_owner(&self, f: &mut dyn FnMut(Owner<'_>)) {
        self.owners.iter().for_each(|owner| f(owner.lend()));
    }

    pub(super) fn generation(&self) -> Option<i64> {
        self.generation
    }

    pub(super) fn finalizer_set(&self) -> Option<u32> {
        Some(self.finalizer_set)
    }

    pub(super) fn is_being_deleted(&self) -> bool {
        self.being_deleted
    }
}

fn pairs<'f>(pairs: &'f Listed<'_>) -> impl Iterator<Item = (&'f str, &'f str)> {
    pairs.iter().map(|(key, value)| (&**key, &**value))
}

/// Joins strings into a list, each after its length and a colon. No separator would do: the value of an annotation may
/// be any string.
fn listed<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut list = String::with_capacity(256);
    for text in texts {
        let _ = write!(list, "{}:{text}", text.len());
    }
    list
}

/// Iterates over the strings of a list.
fn texts(mut list: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (length, rest) = list.split_once(':')?;
        let (text, rest) = rest.split_at_checked(length.parse().ok()?)?;
        list = rest;
        Some(text)
    })
}
