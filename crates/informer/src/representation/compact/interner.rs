//! Strings and lists that many objects share.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::super::metadata::OwnerReference;
use crate::lock::Mutex;

/// After this many new values, the interner looks for values that are unused.
const SWEEP: usize = 4096;

/// Shares equal values among many objects: each is stored once. An unused value is removed after some thousands of new
/// ones.
#[derive(Default)]
pub(super) struct Interner {
    pub(super) namespaces: InternedShared<str>,
    pub(super) labels: InternedShared<str>,
    pub(super) annotations: InternedShared<str>,
    pub(super) owners: InternedShared<[OwnerReference]>,
}

pub(super) struct InternedShared<V: ?Sized>(Mutex<InternedSets<V>>);

struct InternedSets<V: ?Sized> {
    all: HashSet<Arc<V>, RandomState>,
    /// The number of values at which the next search for unused ones happens.
    sweep_at: usize,
}

impl<V: ?Sized> Default for InternedShared<V> {
    fn default() -> Self {
        Self(Mutex::new(InternedSets { all: HashSet::default(), sweep_at: SWEEP }))
    }
}

impl<V: ?Sized + Eq + Hash> InternedShared<V> {
    /// Returns the stored value that is equal to this one. The first of its kind is stored.
    pub(super) fn share<'v>(&self, value: &'v V) -> Arc<V>
    where
        Arc<V>: From<&'v V>,
    {
        let mut known = self.0.lock();
        if let Some(known) = known.all.get(value) {
            return known.clone();
        }
        if known.all.len() >= known.sweep_at {
            known.all.retain(|value| Arc::strong_count(value) > 1);
            known.sweep_at = known.all.len() + known.all.len() / 4 + SWEEP;
            let room = known.sweep_at;
            known.all.shrink_to(room);
        }
        let value = Arc::from(value);
        known.all.insert(Arc::clone(&value));
        value
    }

    fn len(&self) -> usize {
        self.0.lock().all.len()
    }
}

impl Interner {
    pub(super) fn figures(&self) -> Vec<(&'static str, f64)> {
        vec![("label_sets", self.labels.len() as f64), ("owner_sets", self.owners.len() as f64)]
    }
}
