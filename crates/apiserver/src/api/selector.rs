//! Which objects a request is about: namespace, labels and fields together.

mod field;
mod label;

pub(crate) use field::FieldSelector;
pub(crate) use label::{LabelSelector, is_label_key, is_label_value};

use crate::storage::object::{Key, StoredObject, namespace_end};

/// The scope and selectors of a list or watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selector {
    pub(crate) namespace: Option<String>,
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl Selector {
    pub(crate) fn matches(&self, object: &StoredObject) -> bool {
        self.in_scope(&object.key) && self.labels.matches(object) && self.fields.matches(object)
    }

    /// Whether labels or fields narrow the collection.
    pub(crate) fn is_selective(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    /// What keys of this scope begin with; a list's continue token leaves it out.
    pub(crate) fn key_prefix(&self) -> String {
        self.namespace.as_ref().map_or_else(String::new, |namespace| format!("{namespace}/"))
    }

    /// The first key behind this scope; `None` if nothing is behind it.
    pub(crate) fn key_end(&self) -> Option<String> {
        self.namespace.as_deref().map(namespace_end)
    }

    fn in_scope(&self, key: &Key) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| key.namespace() == Some(namespace))
    }
}
