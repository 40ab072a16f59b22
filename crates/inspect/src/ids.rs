//! The informers of a program with their ids.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube_informer::AnyInformer;
use parking_lot::Mutex;

/// Returns the current informers.
pub(crate) type Informers = Arc<dyn Fn() -> Vec<AnyInformer> + Send + Sync>;

/// The informers with their ids.
pub(crate) struct InformerIds {
    informers: Informers,
    /// The ids from the last call, by informer number.
    given: Mutex<BTreeMap<u64, String>>,
}

impl InformerIds {
    pub(crate) fn new(informers: Informers) -> Self {
        Self { informers, given: Mutex::default() }
    }

    /// Returns the current informers, each with its id: its name, or its name with a number. An informer keeps its id
    /// while others are added and removed.
    pub(crate) fn all(&self) -> Vec<(String, AnyInformer)> {
        let (mut informers, mut numbers) = ((self.informers)(), BTreeSet::new());
        informers.retain(|informer| numbers.insert(informer.number()));
        let mut given = self.given.lock();
        given.retain(|number, _| numbers.contains(number));
        let mut all = Vec::with_capacity(informers.len());
        for informer in informers {
            let id = match given.get(&informer.number()) {
                Some(id) => id.clone(),
                None => unused_id(informer.name(), &given),
            };
            given.insert(informer.number(), id.clone());
            all.push((id, informer));
        }
        all
    }
}

/// Returns the first unused id for a name.
fn unused_id(name: &str, given: &BTreeMap<u64, String>) -> String {
    let (mut id, mut next) = (name.to_owned(), 2);
    while given.values().any(|known| *known == id) {
        id = format!("{name}~{next}");
        next += 1;
    }
    id
}
