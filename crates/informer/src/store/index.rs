//! Named indexes: the objects that share a value.

use std::any::TypeId;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::Store;
use super::slots::Slot;
use super::table::Table;
use crate::object::{KeyRef, Object};

/// A named index over a store: looks objects up by a value computed from each.
///
/// It changes in the same critical section as the store, so it is never out of step with it.
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::source::Identity;
/// # let thing = |key: &str, version: &str| {
/// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
/// # };
/// use kube_informer::Store;
///
/// let (_store, mut writer) = Store::new(0);
/// let by_name = writer.add_index_with("name", |object: &Identity, add| add(object.key.name()))?;
/// writer.put(thing("web/a", "1"));
/// writer.put(thing("shop/a", "2"));
/// writer.put(thing("shop/b", "3"));
/// assert_eq!(by_name.get("a").len(), 2);
/// assert_eq!((by_name.count("b"), by_name.count("c")), (1, 0));
/// assert_eq!(by_name.values(), ["a", "b"]);
/// # Ok::<(), kube_informer::store::IndexError>(())
/// ```
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
///
/// ```
/// use kube_informer::store::IndexValues;
///
/// fn collect(values: impl IndexValues) -> Vec<String> {
///     let mut all = Vec::new();
///     values.for_each(&mut |value| all.push(value.to_owned()));
///     all
/// }
/// assert_eq!(collect("a"), ["a"]);
/// assert_eq!(collect(vec![Some("a"), None, Some("b")]), ["a", "b"]);
/// assert!(collect(None::<String>).is_empty());
/// ```
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
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::Store;
    /// # let (_store, mut writer) = Store::new(0);
    /// let by_namespace = writer.add_index_with("namespace", |object: &Identity, add| {
    ///     object.key.namespace().into_iter().for_each(add);
    /// })?;
    /// writer.put(thing("web/a", "1"));
    /// assert_eq!(by_namespace.get("web")[0].key.name(), "a");
    /// assert!(by_namespace.get("shop").is_empty());
    /// # Ok::<(), kube_informer::store::IndexError>(())
    /// ```
    pub fn get(&self, value: &str) -> Vec<Arc<T>> {
        self.store.read(|state| {
            let slots = state.indexes[self.at].slots(&state.hasher, value);
            slots.filter_map(|slot| state.objects.get(slot)).cloned().collect()
        })
    }

    /// How many objects have this value.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::Store;
    /// # let (_store, mut writer) = Store::new(0);
    /// let by_name = writer.add_index_with("name", |object: &Identity, add| add(object.key.name()))?;
    /// writer.put(thing("web/a", "1"));
    /// writer.put(thing("shop/a", "2"));
    /// assert_eq!((by_name.count("a"), by_name.count("b")), (2, 0));
    /// # Ok::<(), kube_informer::store::IndexError>(())
    /// ```
    pub fn count(&self, value: &str) -> usize {
        self.store.read(|state| {
            state.indexes[self.at].posting(&state.hasher, value).map_or(0, |posting| posting.members.len())
        })
    }

    /// The values that at least one object has, sorted.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::Store;
    /// # let (_store, mut writer) = Store::new(0);
    /// let by_name = writer.add_index_with("name", |object: &Identity, add| add(object.key.name()))?;
    /// writer.put(thing("web/b", "1"));
    /// writer.put(thing("web/a", "2"));
    /// assert_eq!(by_name.values(), ["a", "b"]);
    /// writer.remove("web/b");
    /// assert_eq!(by_name.values(), ["a"]);
    /// # Ok::<(), kube_informer::store::IndexError>(())
    /// ```
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
    postings: Table<Posting>,
}

/// A value and where the objects are that have it.
#[derive(Clone)]
struct Posting {
    value: Arc<str>,
    members: Table<Slot>,
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

    pub(super) fn slots<'s>(&'s self, hasher: &FixedState, value: &str) -> impl Iterator<Item = Slot> + use<'s, T> {
        self.posting(hasher, value).into_iter().flat_map(|posting| posting.members.iter().copied())
    }

    fn posting(&self, hasher: &FixedState, value: &str) -> Option<&Posting> {
        self.postings.get(hash(hasher, value), |posting| &*posting.value == value)
    }

    /// Works out the values before and after a change, and says whether they differ.
    pub(super) fn changes(&self, old: Option<&T>, new: Option<&T>, [before, after]: &mut [Values; 2]) -> bool {
        before.fill(&self.function, old);
        after.fill(&self.function, new);
        before != after
    }

    /// Follows the object in a slot from the values before to those after.
    pub(super) fn update(&mut self, hasher: &FixedState, slot: Slot, [before, after]: &[Values; 2]) {
        for value in before.iter().filter(|value| !after.contains(value)) {
            self.leave(hasher, value, slot);
        }
        for value in after.iter().filter(|value| !before.contains(value)) {
            self.join(hasher, value, slot);
        }
    }

    fn join(&mut self, hasher: &FixedState, value: &str, slot: Slot) {
        let hash = hash(hasher, value);
        if let Some(posting) = self.postings.get_mut(hash, |posting| &*posting.value == value) {
            posting.members.add(scatter(slot), slot);
            return;
        }
        let mut members = Table::new();
        members.add(scatter(slot), slot);
        self.postings.add(hash, Posting { value: value.into(), members });
    }

    fn leave(&mut self, hasher: &FixedState, value: &str, slot: Slot) {
        let hash = hash(hasher, value);
        let same = |posting: &Posting| &*posting.value == value;
        let Some(posting) = self.postings.get_mut(hash, same) else { return };
        posting.members.remove(scatter(slot), |&known| known == slot);
        if posting.members.is_empty() {
            self.postings.remove(hash, same);
        }
    }
}

fn hash(hasher: &FixedState, value: &str) -> u32 {
    hasher.hash_one(value) as u32
}

/// Deals slots evenly over the leaves of a table.
fn scatter(slot: Slot) -> u32 {
    slot.wrapping_mul(0x9E37_79B1).rotate_left(16)
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

/// The distinct values of one object, in one buffer that is filled again and again.
#[derive(Default, PartialEq)]
pub(super) struct Values {
    text: String,
    ends: Vec<usize>,
}

impl Values {
    fn fill<T: Object>(&mut self, function: &IndexFunction<T>, object: Option<&T>) {
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
