//! Named indexes: the objects that share a value.

use std::any::TypeId;
use std::collections::HashSet;
use std::hash::BuildHasher as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::Store;
use super::slots::{Slot, Slots};
use super::state::StoreState;
use super::table::Table;
use crate::object::{Cached, Object, ObjectKey};

/// A named index: finds the objects that share a value. A clone is another handle.
///
/// client-go's `Indexer`, one index at a time. The difference: the handle belongs to its index, so no name can be
/// wrong.
///
/// ```
/// # use k8s_openapi::api::core::v1::Pod;
/// # use kube_informer::SharedInformerFactory;
/// # doc_server::with(async |server| {
/// let factory = SharedInformerFactory::new(server.client());
/// let pods = factory.informer::<Pod>()?;
/// let by_node = pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;
/// factory.start()?;
/// factory.synced().await?;
/// assert_eq!(by_node.get("worker-7").len(), 1);
/// assert_eq!(by_node.values(), ["worker-7"]);
/// # Ok(()) });
/// ```
pub struct Index<T: ?Sized> {
    store: Store<T>,
    at: usize,
}

/// Why an index could not be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The name is used by another function.
    #[error("an index named {0:?} with another function exists already; choose another name")]
    Exists(String),
}

/// The result of an index function: one string, or any number of strings.
///
/// `M` only distinguishes the implementations. Programs do not write it.
pub trait IndexValues<M> {
    /// Calls a function with each value.
    fn each_value(self, f: &mut dyn FnMut(&str));
}

/// Marks one string.
#[derive(Debug)]
pub enum One {}

/// Marks any number of strings.
#[derive(Debug)]
pub enum Many {}

impl<S: AsRef<str>> IndexValues<One> for S {
    fn each_value(self, f: &mut dyn FnMut(&str)) {
        f(self.as_ref());
    }
}

impl<I: IntoIterator<Item: AsRef<str>>> IndexValues<Many> for I {
    fn each_value(self, f: &mut dyn FnMut(&str)) {
        for value in self {
            f(value.as_ref());
        }
    }
}

/// A function that passes the index values of an object to its second argument.
pub(crate) type IndexFunction = Arc<dyn Fn(&dyn Object, &mut dyn FnMut(&str)) + Send + Sync>;

pub(crate) fn index_function<T, F>(function: F) -> IndexFunction
where
    T: Cached + ?Sized,
    F: Fn(&T, &mut dyn FnMut(&str)) + Send + Sync + 'static,
{
    Arc::new(move |object, add| function(T::typed_ref(object), add))
}

/// The failure of an index function: it panicked on an object.
#[derive(Debug, Clone)]
pub(crate) struct IndexFailure {
    pub(crate) index: Arc<str>,
    pub(crate) key: ObjectKey,
    pub(crate) message: String,
}

impl<T: Cached + ?Sized> Index<T> {
    pub(super) fn new(store: Store<T>, at: usize) -> Self {
        Self { store, at }
    }

    /// Returns the objects with a value, in no particular order.
    pub fn get(&self, value: &str) -> Vec<Arc<T>> {
        // Cloning the state takes constant time, so the writer does not wait while many objects are collected.
        let state = self.store.read(StoreState::clone);
        state.members(&state.indexes[self.at], value).cloned().map(T::typed).collect()
    }

    /// Returns how many objects have a value.
    pub fn count(&self, value: &str) -> usize {
        self.store.read(|state| state.member_count(&state.indexes[self.at], value))
    }

    /// Returns all values that objects have, sorted.
    pub fn values(&self) -> Vec<String> {
        let state = self.store.read(StoreState::clone);
        let mut values: Vec<String> = state.indexes[self.at].values().map(ToOwned::to_owned).collect();
        values.sort_unstable();
        values
    }

    /// Returns the name of the index.
    pub fn name(&self) -> Arc<str> {
        self.store.read(|state| state.indexes[self.at].name.clone())
    }
}

impl<T: ?Sized> Clone for Index<T> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), at: self.at }
    }
}

impl<T: Cached + ?Sized> std::fmt::Debug for Index<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// One index of a state. Each value has a number, and objects refer to their values by these numbers.
#[derive(Clone)]
pub(super) struct IndexState {
    name: Arc<str>,
    /// The type of its function, if the type alone identifies the function.
    identity: Option<TypeId>,
    postings: Slots<Posting>,
    by_value: Table,
}

/// A value, and the objects with that value.
#[derive(Clone)]
struct Posting {
    value: Arc<str>,
    members: Table,
}

impl IndexState {
    pub(super) fn new(name: &str, identity: Option<TypeId>) -> Self {
        Self { name: name.into(), identity, postings: Slots::new(), by_value: Table::new() }
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        &*self.name == name
    }

    /// Returns true if its function is known to be the same.
    pub(super) fn is_of(&self, identity: Option<TypeId>) -> bool {
        self.identity.is_some() && self.identity == identity
    }

    pub(super) fn slots<'s>(&'s self, hasher: &FixedState, value: &str) -> impl Iterator<Item = Slot> + use<'s> {
        let number = self.find(hasher, value);
        let posting = number.and_then(|number| self.postings.get(number));
        posting.into_iter().flat_map(|posting| posting.members.iter())
    }

    pub(super) fn count(&self, hasher: &FixedState, value: &str) -> usize {
        let number = self.find(hasher, value);
        number.and_then(|number| self.postings.get(number)).map_or(0, |posting| posting.members.len())
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.postings.iter().map(|(_, posting)| &*posting.value)
    }

    /// Returns the value with a number.
    pub(super) fn value(&self, number: Slot) -> Option<&str> {
        self.postings.get(number).map(|posting| &*posting.value)
    }

    /// Adds an object to a value, and returns the number of the value.
    pub(super) fn join(&mut self, hasher: &FixedState, value: &str, slot: Slot) -> Slot {
        let hash = hash(hasher, value);
        let number = self.number(hash, value).unwrap_or_else(|| {
            let number = self.postings.add(Posting { value: value.into(), members: Table::new() });
            self.by_value.add(hash, number);
            number
        });
        if let Some(posting) = self.postings.get_mut(number) {
            posting.members.add(scatter(slot), slot);
        }
        number
    }

    /// Removes an object from a value.
    pub(super) fn leave(&mut self, hasher: &FixedState, number: Slot, slot: Slot) {
        let Some(posting) = self.postings.get_mut(number) else { return };
        posting.members.remove(scatter(slot), |known| known == slot);
        if posting.members.is_empty()
            && let Some(posting) = self.postings.remove(number)
        {
            self.by_value.remove(hash(hasher, &posting.value), |known| known == number);
        }
    }

    /// Returns the number of a value, if any object has it.
    pub(super) fn find(&self, hasher: &FixedState, value: &str) -> Option<Slot> {
        self.number(hash(hasher, value), value)
    }

    fn number(&self, hash: u32, value: &str) -> Option<Slot> {
        self.by_value.get(hash, |number| (self.value(number) == Some(value)).then_some(number))
    }
}

fn hash(hasher: &FixedState, value: &str) -> u32 {
    hasher.hash_one(value) as u32
}

/// Spreads slots over the hash range, because slots are small consecutive numbers.
fn scatter(slot: Slot) -> u32 {
    slot.wrapping_mul(0x9E37_79B1).rotate_left(16)
}

/// Up to this many values are searched one by one; more are hashed.
pub(super) const FEW: usize = 16;

/// The values of one object in all indexes. The memory is reused for each object.
#[derive(Default)]
pub(crate) struct Values {
    text: String,
    /// The index of each value, and the end of the value in `text`.
    ends: Vec<(u32, usize)>,
    /// The values of the current index, once there are many.
    many: HashSet<Box<str>>,
}

/// A function, and the name of its index.
pub(crate) type NamedFunction = (Arc<str>, IndexFunction);

impl Values {
    /// Computes the values of an object in all indexes, and returns the failures of index functions.
    pub(crate) fn fill(&mut self, functions: &[NamedFunction], object: &dyn Object) -> Vec<IndexFailure> {
        let mut failures = Vec::new();
        self.clear();
        for (at, function) in (0..).zip(functions) {
            self.add_all(at, function, object, &mut failures);
        }
        failures
    }

    /// Adds the values of an object in one index. If the function panics, none of its values is kept.
    pub(super) fn add_all(
        &mut self,
        index: u32,
        (name, function): &NamedFunction,
        object: &dyn Object,
        failures: &mut Vec<IndexFailure>,
    ) {
        let (text, first) = (self.text.len(), self.ends.len());
        self.many = HashSet::new();
        // The function only borrows the object, so a panic cannot leave broken state in this crate.
        let outcome = catch_unwind(AssertUnwindSafe(|| function(object, &mut |value| self.add(index, first, value))));
        if let Err(panic) = outcome {
            self.text.truncate(text);
            self.ends.truncate(first);
            let (key, message) = (object.id().key.into(), crate::panic_message(&*panic));
            failures.push(IndexFailure { index: name.clone(), key, message });
        }
    }

    fn add(&mut self, index: u32, first: usize, value: &str) {
        if !self.is_known(first, value) {
            self.text.push_str(value);
            self.ends.push((index, self.text.len()));
        }
    }

    /// Returns true if the value is already among those of the current index, which begin at `first`. The caller adds
    /// it otherwise.
    fn is_known(&mut self, first: usize, value: &str) -> bool {
        if self.ends.len() - first <= FEW {
            return self.iter().skip(first).any(|(_, known)| known == value);
        }
        if self.many.is_empty() {
            self.many = self.iter().skip(first).map(|(_, known)| known.into()).collect();
        }
        !self.many.insert(value.into())
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| *end));
        starts.zip(&self.ends).map(|(start, &(index, end))| (index, &self.text[start..end]))
    }
}
