//! Named indexes: the objects that share a value.

use std::any::TypeId;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::Store;
use super::table::Table;
use crate::object::{KeyRef, Object};

/// A named index over a store: looks objects up by a value computed from each.
///
/// It changes in the same critical section as the store, so it is never out of step with it.
pub struct Index<T> {
    store: Store<T>,
    at: usize,
}

/// Why an index was not added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// Two functions cannot share a name.
    #[error("an index named {0:?} with another function exists already; choose another name")]
    Exists(String),
}

/// What an index function may return: no value, one, or many.
///
/// Text in any form, an `Option`, a list or a set of such.
pub trait IndexValues {
    /// Hands each value over.
    fn for_each(self, f: &mut dyn FnMut(&str));
}

impl IndexValues for String {
    fn for_each(self, f: &mut dyn FnMut(&str)) {
        f(&self);
    }
}

impl IndexValues for &str {
    fn for_each(self, f: &mut dyn FnMut(&str)) {
        f(self);
    }
}

impl IndexValues for Cow<'_, str> {
    fn for_each(self, f: &mut dyn FnMut(&str)) {
        f(&self);
    }
}

impl<V: IndexValues> IndexValues for Option<V> {
    fn for_each(self, f: &mut dyn FnMut(&str)) {
        if let Some(values) = self {
            values.for_each(f);
        }
    }
}

impl<V: IndexValues> IndexValues for Vec<V> {
    fn for_each(self, f: &mut dyn FnMut(&str)) {
        self.into_iter().for_each(|values| values.for_each(f));
    }
}

impl<V: IndexValues> IndexValues for BTreeSet<V> {
    fn for_each(self, f: &mut dyn FnMut(&str)) {
        self.into_iter().for_each(|values| values.for_each(f));
    }
}

impl<V: IndexValues, const N: usize> IndexValues for [V; N] {
    fn for_each(self, f: &mut dyn FnMut(&str)) {
        self.into_iter().for_each(|values| values.for_each(f));
    }
}

/// An index function, whatever it returns: hands over the values, and answers false if it failed on this object.
pub(crate) type IndexFunction<T> = Arc<dyn Fn(&T, &mut dyn FnMut(&str)) -> bool + Send + Sync>;

/// Wraps an index function so that a panic is reported and skips the object instead of ending the informer.
pub(crate) fn index_function<T: Object>(
    function: impl Fn(&T, &mut dyn FnMut(&str)) + Send + Sync + 'static,
    report: impl Fn(KeyRef<'_>, String) + Send + Sync + 'static,
) -> IndexFunction<T> {
    Arc::new(move |object, add| {
        // The function only borrows the object, so that what it leaves behind in a panic is its own affair.
        match catch_unwind(AssertUnwindSafe(|| function(object, add))) {
            Ok(()) => true,
            Err(panic) => {
                report(object.id().key, crate::panic_text(&*panic));
                false
            }
        }
    })
}

impl<T: Object> Index<T> {
    pub(super) fn new(store: Store<T>, at: usize) -> Self {
        Self { store, at }
    }

    /// The objects that have this value, in no particular order.
    pub fn get(&self, value: &str) -> Vec<Arc<T>> {
        self.store.read(|state| state.indexes[self.at].members(&state.hasher, value).cloned().collect())
    }

    /// How many objects have this value.
    pub fn count(&self, value: &str) -> usize {
        self.store.read(|state| {
            state.indexes[self.at].posting(&state.hasher, value).map_or(0, |posting| posting.members.len())
        })
    }

    /// The values that at least one object has, sorted.
    pub fn values(&self) -> Vec<String> {
        let mut values: Vec<String> = self
            .store
            .read(|state| state.indexes[self.at].postings.iter().map(|posting| posting.value.to_string()).collect());
        values.sort_unstable();
        values
    }

    /// The name it was added under.
    pub fn name(&self) -> Arc<str> {
        self.store.read(|state| state.indexes[self.at].name.clone())
    }
}

impl<T> Clone for Index<T> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), at: self.at }
    }
}

impl<T: Object> std::fmt::Debug for Index<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// One index inside a store.
pub(super) struct IndexState<T> {
    name: Arc<str>,
    kind: TypeId,
    function: IndexFunction<T>,
    /// No posting is empty: the last member takes its posting along.
    postings: Table<Posting<T>>,
}

/// A value and the objects that have it.
struct Posting<T> {
    value: Arc<str>,
    members: Table<Arc<T>>,
}

impl<T: Object> IndexState<T> {
    pub(super) fn new(name: &str, kind: TypeId, function: IndexFunction<T>) -> Self {
        Self { name: name.into(), kind, function, postings: Table::new() }
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        &*self.name == name
    }

    pub(super) fn is_of(&self, kind: TypeId) -> bool {
        self.kind == kind
    }

    pub(super) fn members<'s>(
        &'s self,
        hasher: &FixedState,
        value: &str,
    ) -> impl Iterator<Item = &'s Arc<T>> + use<'s, T> {
        self.posting(hasher, value).into_iter().flat_map(|posting| posting.members.iter())
    }

    fn posting(&self, hasher: &FixedState, value: &str) -> Option<&Posting<T>> {
        self.postings.get(hasher.hash_one(value), |posting| &*posting.value == value)
    }

    /// Follows one object from its old state to its new one.
    pub(super) fn update(
        &mut self,
        hasher: &FixedState,
        old: Option<&Arc<T>>,
        new: Option<&Arc<T>>,
        [before, after]: &mut [Values; 2],
    ) {
        before.fill(&self.function, old);
        after.fill(&self.function, new);
        if let Some(old) = old {
            for value in before.iter().filter(|value| !after.contains(value)) {
                self.leave(hasher, value, old.id().key);
            }
        }
        if let Some(new) = new {
            for value in after.iter() {
                self.join(hasher, value, new);
            }
        }
    }

    fn join(&mut self, hasher: &FixedState, value: &str, object: &Arc<T>) {
        let hash = hasher.hash_one(value);
        let key = object.id().key;
        let (member, same) = (hasher.hash_one(key), |known: &Arc<T>| known.id().key == key);
        if let Some(posting) = self.postings.get_mut(hash, |posting| &*posting.value == value) {
            posting.members.insert(member, same, object.clone());
            return;
        }
        let mut posting = Posting { value: value.into(), members: Table::new() };
        posting.members.insert(member, same, object.clone());
        self.postings.insert(hash, |_| false, posting);
    }

    fn leave(&mut self, hasher: &FixedState, value: &str, key: KeyRef<'_>) {
        let hash = hasher.hash_one(value);
        let same = |posting: &Posting<T>| &*posting.value == value;
        let Some(posting) = self.postings.get_mut(hash, same) else { return };
        posting.members.remove(hasher.hash_one(key), |known| known.id().key == key);
        if posting.members.is_empty() {
            self.postings.remove(hash, same);
        }
    }
}

impl<T> Clone for IndexState<T> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            kind: self.kind,
            function: self.function.clone(),
            postings: self.postings.clone(),
        }
    }
}

impl<T> Clone for Posting<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), members: self.members.clone() }
    }
}

/// The distinct values of one object, in one buffer that is filled again and again.
#[derive(Default)]
pub(super) struct Values {
    text: String,
    ends: Vec<usize>,
}

impl Values {
    fn fill<T: Object>(&mut self, function: &IndexFunction<T>, object: Option<&Arc<T>>) {
        self.clear();
        if let Some(object) = object
            && !function(object, &mut |value| self.add(value))
        {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn add(&mut self, value: &str) {
        if !self.contains(value) {
            self.text.push_str(value);
            self.ends.push(self.text.len());
        }
    }

    fn contains(&self, value: &str) -> bool {
        self.iter().any(|known| known == value)
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.text[start..end])
    }
}
