//! Selects the objects of one page.

use std::ops::Bound;
use std::sync::Arc;

use crate::api::selector::ObjectSelector;
use crate::storage::collection::{Objects, between};
use crate::storage::key::StoreKey;
use crate::storage::object::StoredObject;

/// The objects of one answer, in order of their keys.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) items: Vec<Arc<StoredObject>>,
    /// The start of the next page, relative to the scope of the list; `None` on the last page.
    pub(crate) next: Option<String>,
    /// The number of remaining objects, if the server reports it.
    pub(crate) remaining: Option<usize>,
}

/// Selects up to `limit` matching objects, from the key `start` on.
pub(crate) fn page(objects: &Objects, selector: &ObjectSelector, start: Option<&str>, limit: Option<usize>) -> Page {
    if let Some(found) = point_lookup(objects, selector, start) {
        return found;
    }
    let prefix = selector.key_prefix();
    let first = format!("{prefix}{}", start.unwrap_or_default());
    let end = selector.key_end();
    let in_scope = between(objects, Bound::Included(first.as_str()), end.as_deref());
    let mut in_scope = in_scope.map(|(_, object)| object);
    let mut items = Vec::new();
    if let Some(limit) = limit {
        items.extend(in_scope.by_ref().filter(|object| selector.matches(object)).take(limit).cloned());
    } else {
        items.extend(in_scope.by_ref().filter(|object| selector.matches(object)).cloned());
    }
    let left = if limit.is_none() { 0 } else { in_scope.count() };
    let next = items.last().filter(|_| left > 0).map(|last| format!("{}\0", &last.key.as_str()[prefix.len()..]));
    let remaining = Some(left).filter(|_| next.is_some() && !selector.is_selective());
    Page { items, next, remaining }
}

/// Looks up a single name in a single scope, without a walk.
fn point_lookup(objects: &Objects, selector: &ObjectSelector, start: Option<&str>) -> Option<Page> {
    let name = selector.fields.name().filter(|_| start.is_none())?;
    let key = match (&selector.namespace, objects.get_min()) {
        (Some(namespace), _) => StoreKey::new(Some(namespace), name),
        (None, Some((first, _))) if first.namespace().is_none() => StoreKey::new(None, name),
        _ => return None,
    };
    let items = objects.get(&key).filter(|object| selector.matches(object)).cloned().into_iter().collect();
    Some(Page { items, ..Page::default() })
}
