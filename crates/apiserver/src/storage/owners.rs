//! An index of objects by the uids of their owners, kept only with garbage collection.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::key::StoreKey;
use super::object::StoredObject;

/// The place of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectPlace {
    /// The name of its collection.
    pub(crate) collection: Arc<str>,
    pub(crate) key: StoreKey,
}

/// A reason to check for garbage. Processing one trace adds others, so a long chain of owners needs no recursion.
#[derive(Debug, Clone)]
pub(crate) enum Trace {
    /// The object with this uid is gone.
    Gone(Box<str>),
    /// The object with this uid may have no dependents left to wait for.
    Relieved(Box<str>),
    /// An object has new owners, has been marked as being deleted, or must be checked for another reason.
    Stirred(ObjectPlace),
}

/// Every object by its uid, its dependents, and the traces to process.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnerIndex {
    places: BTreeMap<Box<str>, ObjectPlace>,
    owned: BTreeMap<Box<str>, BTreeSet<ObjectPlace>>,
    pub(crate) traces: VecDeque<Trace>,
}

impl OwnerIndex {
    /// Records one write.
    pub(crate) fn record(&mut self, collection: &str, before: Option<&StoredObject>, after: Option<&StoredObject>) {
        let Some(shown) = after.or(before) else { return };
        let place = ObjectPlace { collection: collection.into(), key: shown.key.clone() };
        for owner in before.into_iter().flat_map(StoredObject::owners) {
            if let Some(owned) = self.owned.get_mut(owner) {
                owned.remove(&place);
                if owned.is_empty() {
                    self.owned.remove(owner);
                }
            }
        }
        for owner in after.into_iter().flat_map(StoredObject::owners) {
            self.owned.entry(owner.into()).or_default().insert(place.clone());
        }
        match (before, after) {
            (Some(before), None) => {
                self.places.remove(before.uid());
                self.traces.push_back(Trace::Gone(before.uid().into()));
                self.relieve(before);
            }
            (before, Some(after)) => {
                self.places.insert(after.uid().into(), place.clone());
                let others = references(before) != references(Some(after));
                if let Some(before) = before.filter(|_| others) {
                    self.relieve(before);
                }
                if others || after.is_marked() {
                    self.traces.push_back(Trace::Stirred(place));
                }
            }
            (None, None) => {}
        }
    }

    /// Adds traces for the owners of this object, which may have waited until it is gone.
    fn relieve(&mut self, object: &StoredObject) {
        self.traces.extend(object.owners().map(|owner| Trace::Relieved(owner.into())));
    }

    /// Returns the place of the object with this uid.
    pub(crate) fn place_of(&self, uid: &str) -> Option<ObjectPlace> {
        self.places.get(uid).cloned()
    }

    /// Returns the places of the objects with this uid as an owner.
    pub(crate) fn owned_by(&self, uid: &str) -> Option<&BTreeSet<ObjectPlace>> {
        self.owned.get(uid)
    }
}

/// Reads the owner references of an object. Most objects have none, and are not decoded.
fn references(object: Option<&StoredObject>) -> Value {
    let owned = object.filter(|object| object.owners().next().is_some());
    owned.map(|object| object.metadata()["ownerReferences"].take()).unwrap_or_default()
}
