//! Metadata in as little memory as can still be lent.

use std::sync::Arc;

use super::super::{DecodeError, Metadata};
use super::interner::Interner;
use crate::object::{Id, KeyRef, Object as _, Owner};

/// The metadata of an object. What many have in common is shared, the rest is one text.
#[derive(Clone)]
pub(super) struct Pack {
    namespace: Arc<str>,
    /// Name, uid and version, one behind the other; behind them annotations, each key and each value ended by a zero.
    text: Box<str>,
    name: u16,
    uid: u16,
    version: u16,
    being_deleted: bool,
    generation: Option<i64>,
    labels: Arc<str>,
    owners: Arc<[OwnerReference]>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct OwnerReference {
    api_version: Box<str>,
    kind: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    controller: bool,
}

/// Ends each text of a list. No name and no label has one.
const END: char = '\0';

impl Pack {
    /// Reads metadata; an object without any has none.
    pub(super) fn new(json: &[u8], interner: &Interner) -> Result<Self, DecodeError> {
        let metadata: Metadata = if json.is_empty() { Metadata::default() } else { serde_json::from_slice(json)? };
        let id = metadata.id();
        let length = |text: &str| {
            let too_long = |_| DecodeError::Shape("name, uid or version is too long".to_owned());
            u16::try_from(text.len()).map_err(too_long)
        };
        let (name, uid, version) = (length(id.key.name())?, length(id.uid)?, length(id.version)?);
        let annotations = listed(metadata.annotations());
        let text = [id.key.name(), id.uid, id.version, &annotations].concat().into_boxed_str();
        let mut owners = Vec::new();
        metadata.each_owner(&mut |Owner { api_version, kind, name, uid, controller }| {
            let [api_version, kind, name, uid] = [api_version, kind, name, uid].map(Box::from);
            owners.push(OwnerReference { api_version, kind, name, uid, controller });
        });
        Ok(Self {
            namespace: interner.namespaces.share(id.key.namespace().unwrap_or_default()),
            text,
            name,
            uid,
            version,
            being_deleted: metadata.is_being_deleted(),
            generation: metadata.generation(),
            labels: interner.labels.share(&listed(metadata.labels())),
            owners: interner.owners.share(&owners),
        })
    }

    pub(super) fn id(&self) -> Id<'_> {
        let (name, rest) = self.text.split_at(self.name.into());
        let (uid, rest) = rest.split_at(self.uid.into());
        let (version, _) = rest.split_at(self.version.into());
        Id { key: KeyRef::new(&self.namespace, name), uid, version }
    }

    pub(super) fn label(&self, key: &str) -> Option<&str> {
        find(&self.labels, key)
    }

    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        find(&self.text[usize::from(self.name) + usize::from(self.uid) + usize::from(self.version)..], key)
    }

    pub(super) fn each_owner(&self, f: &mut dyn FnMut(Owner<'_>)) {
        for OwnerReference { api_version, kind, name, uid, controller } in &*self.owners {
            f(Owner { api_version, kind, name, uid, controller: *controller });
        }
    }

    pub(super) fn generation(&self) -> Option<i64> {
        self.generation
    }

    pub(super) fn is_being_deleted(&self) -> bool {
        self.being_deleted
    }
}

/// Keys and values one behind the other. A text with a zero in it, which no server takes, is left out.
fn listed<'p>(pairs: impl Iterator<Item = (&'p str, &'p str)>) -> String {
    let mut text = String::new();
    for (key, value) in pairs.filter(|(key, value)| !key.contains(END) && !value.contains(END)) {
        [key, value].iter().for_each(|part| {
            text.push_str(part);
            text.push(END);
        });
    }
    text
}

fn find<'t>(listed: &'t str, key: &str) -> Option<&'t str> {
    let mut texts = listed.split_terminator(END);
    while let (Some(known), Some(value)) = (texts.next(), texts.next()) {
        if known == key {
            return Some(value);
        }
    }
    None
}
