//! The objects that a request selects: by namespace, labels and fields.

mod field;
mod label;

pub(crate) use field::FieldSelector;
pub(crate) use label::{LabelSelector, is_label_key, is_label_value};

use crate::storage::key::{StoreKey, namespace_end};
use crate::storage::object::StoredObject;

/// The scope and selectors of a list or watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectSelector {
    pub(crate) namespace: Option<String>,
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl ObjectSelector {
    pub(crate) fn matches(&self, object: &StoredObject) -> bool {
        self.in_scope(&object.key) && self.labels.matches(object) && self.fields.matches(object)
    }

    /// Returns whether there is a label or field selector.
    pub(crate) fn is_selective(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    /// Returns the prefix of the keys in this scope. A continue token leaves it out.
    pub(crate) fn key_prefix(&self) -> String {
        self.namespace.as_ref().map_or_else(String::new, |namespace| format!("{namespace}/"))
    }

    /// Returns the first key after this scope, or `None` if the scope has no end.
    pub(crate) fn key_end(&self) -> Option<String> {
        self.namespace.as_deref().map(namespace_end)
    }

    fn in_scope(&self, key: &StoreKey) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| key.namespace() == Some(namespace))
    }
}
