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

/// A named index: finds the objects that share a value. Cloning gives another handle.
///
/// client-go's `Indexer`, one index at a time. What differs: the handle knows its index, so that there is no name to get wrong.
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
    /// The name is taken.
    #[error("an index named {0:?} with another function exists already; choose another name")]
    Exists(String),
}

/// What an index function may give: one text, or any number of them.
///
/// `M` only tells the two apart, and is never written.
pub trait IndexValues<M> {
    /// Calls a function with each value.
    fn each_value(self, f: &mut dyn FnMut(&str));
}

/// Marks one text.
#[derive(Debug)]
pub enum One {}

/// Marks any number of texts.
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

/// Gives the values of an object.
pub(crate) type IndexFunction = Arc<dyn Fn(&dyn Object, &mut dyn FnMut(&str)) + Send + Sync>;

pub(crate) fn index_function<T, F>(function: F) -> IndexFunction
where
    T: Cached + ?Sized,
    F: Fn(&T, &mut dyn FnMut(&str)) + Send + Sync + 'static,
{
    Arc::new(move |object, add| function(T::typed_ref(object), add))
}

/// An object that an index function panicked on.
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

    /// The objects that have a value, in no particular order.
    pub fn get(&self, value: &str) -> Vec<Arc<T>> {
        // Of a copy, which takes constant time: the writer does not wait while many objects are collected.
        let state = self.store.read(StoreState::clone);
        state.members(&state.indexes[self.at], value).cloned().map(T::typed).collect()
    }

    /// How many objects have a value.
    pub fn count(&self, value: &str) -> usize {
        self.store.read(|state| state.member_count(&state.indexes[self.at], value))
    }

    /// Every value that some object has, sorted.
    pub fn values(&self) -> Vec<String> {
        let state = self.store.read(StoreState::clone);
        let mut values: Vec<String> = state.indexes[self.at].values().map(ToOwned::to_owned).collect();
        values.sort_unstable();
        values
    }

    /// The name it was added under.
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

/// One index of a state. Values have numbers, by which the objects that have them remember them.
#[derive(Clone)]
pub(super) struct IndexState {
    name: Arc<str>,
    /// The type of its function, if that tells functions apart.
    identity: Option<TypeId>,
    postings: Slots<Posting>,
    by_value: Table,
}

/// A value, and the objects that have it.
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

    /// True if its function is known to be the same.
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

    /// The value of a number.
    pub(super) fn value(&self, number: Slot) -> Option<&str> {
        self.postings.get(number).map(|posting| &*posting.value)
    }

    /// Adds an object to those that have a value, and gives the value's number.
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

    /// Takes an object away from those that have a value.
    pub(super) fn leave(&mut self, hasher: &FixedState, number: Slot, slot: Slot) {
        let Some(posting) = self.postings.get_mut(number) else { return };
        posting.members.remove(scatter(slot), |known| known == slot);
        if posting.members.is_empty()
            && let Some(posting) = self.postings.remove(number)
        {
            self.by_value.remove(hash(hasher, &posting.value), |known| known == number);
        }
    }

    /// The number of a value, if any object has it.
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

/// Slots are small numbers in a row; a table wants them spread.
fn scatter(slot: Slot) -> u32 {
    slot.wrapping_mul(0x9E37_79B1).rotate_left(16)
}

/// So many values, or fewer, are looked through one by one; more are hashed.
pub(super) const FEW: usize = 16;

/// The values of one object in all indexes, in one piece of memory that is filled again and again.
#[derive(Default)]
pub(crate) struct Values {
    text: String,
    /// The index, and where in the text the value ends.
    ends: Vec<(u32, usize)>,
    /// Those of the index at hand, once they are many.
    many: HashSet<Box<str>>,
}

/// A function, and the name of its index.
pub(crate) type NamedFunction = (Arc<str>, IndexFunction);

impl Values {
    /// Becomes the values of an object in all indexes, and returns the failures of index functions.
    pub(crate) fn fill(&mut self, functions: &[NamedFunction], object: &dyn Object) -> Vec<IndexFailure> {
        let mut failures = Vec::new();
        self.clear();
        for (at, function) in (0..).zip(functions) {
            self.add_all(at, function, object, &mut failures);
        }
        failures
    }

    /// The values of an object in one index. Nothing of a call that panics is kept.
    pub(super) fn add_all(
        &mut self,
        index: u32,
        (name, function): &NamedFunction,
        object: &dyn Object,
        failures: &mut Vec<IndexFailure>,
    ) {
        let (text, first) = (self.text.len(), self.ends.len());
        self.many = HashSet::new();
        // The function only borrows the object, so that what it leaves behind in a panic is its own affair.
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

    /// Whether a value is among those from the first of its index on. One that is not is about to be.
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
