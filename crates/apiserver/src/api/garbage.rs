//! Garbage collection, if it is enabled: when an owner is deleted, its dependents are deleted after it or before it, or
//! they are orphaned.

use serde_json::Value;
use std::sync::Arc;

use crate::api::write::{DeleteOptions, Propagation, Trust, delete_in, finalizers, let_go};
use crate::hub::Hub;
use crate::kinds::Resource;
use crate::storage::key::StoreKey;
use crate::storage::object::StoredObject;
use crate::storage::owners::{ObjectPlace, Trace};
use crate::storage::state::{Locked, LockedState};

/// The finalizer that keeps an owner until the dependents that it waits for are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer that keeps an owner until its dependents no longer refer to it.
pub(crate) const ORPHAN: &str = "orphan";

/// How many traces are processed while the state stays locked.
const PIECE: usize = 100;

/// Processes all traces: at once for writes from the process itself, otherwise after the settle delay.
pub(crate) fn follow(hub: &Hub, state: &mut Locked<'_>, trust: Trust) {
    if state.owners.as_ref().is_some_and(|owners| !owners.traces.is_empty()) {
        hub.soon_in_pieces(state, trust, collect);
    }
}

/// Processes some traces, and returns whether more are left. This work adds new traces.
fn collect(hub: &Hub, state: &mut Locked<'_>) -> bool {
    for _ in 0..PIECE {
        let Some(trace) = state.owners.as_mut().and_then(|owners| owners.traces.pop_front()) else { return false };
        match trace {
            Trace::Gone(uid) => stir(state, &uid, |_| true),
            Trace::Relieved(uid) => {
                if let Some(place) = state.place_of(&uid) {
                    relieve(hub, state, &place);
                }
            }
            Trace::Stirred(place) => tend(hub, state, &place),
        }
    }
    true
}

/// Adds traces for the dependents of an object.
fn stir(state: &mut LockedState, uid: &str, which: impl Fn(&StoredObject) -> bool) {
    let owned = state.owned_by(uid);
    let traces: Vec<_> =
        owned.filter(|place| found(state, place).is_some_and(|(_, object)| which(&object))).cloned().collect();
    if let Some(owners) = &mut state.owners {
        owners.traces.extend(traces.into_iter().map(Trace::Stirred));
    }
}

/// Returns the object at a place.
fn found(state: &LockedState, place: &ObjectPlace) -> Option<(Arc<Resource>, Arc<StoredObject>)> {
    let resource = state.catalog.stored_in(&place.collection)?;
    Some((resource.clone(), state.object(resource, &place.key)?))
}

/// Does the garbage collection for one object.
fn tend(hub: &Hub, state: &mut Locked<'_>, place: &ObjectPlace) {
    let Some((resource, stored)) = found(state, place) else { return };
    if !stored.is_marked() {
        weigh(hub, state, &resource, &stored);
    } else if finalizers(&stored.identity()).contains(&ORPHAN) {
        orphan(hub, state, &resource, &place.key, stored.uid());
    } else if is_waiting(&stored) {
        // Dependents that are already being deleted leave a trace when they are gone.
        stir(state, stored.uid(), |owned| !owned.is_marked());
        relieve(hub, state, place);
    }
}

/// The state of an owner, as seen by its dependent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// The owner exists and keeps the dependent.
    Solid,
    /// The owner is gone, or never existed.
    Gone,
    /// The owner waits until the dependent is gone.
    Waiting,
}

/// Deletes an object if none of its owners keeps it. If an owner keeps it, removes the references to the others.
fn weigh(hub: &Hub, state: &mut Locked<'_>, resource: &Arc<Resource>, stored: &StoredObject) {
    let (key, object) = (&stored.key, stored.identity());
    let Some(owners) = object["metadata"]["ownerReferences"].as_array().filter(|owners| !owners.is_empty()) else {
        return;
    };
    // If the state of one owner is unknown, the object stays as it is.
    let standings: Option<Vec<Standing>> = owners.iter().map(|owner| standing(state, key, owner)).collect();
    let Some(standings) = standings else { return };
    let has = |standing: Standing| standings.contains(&standing);
    if has(Standing::Solid) {
        if has(Standing::Gone) || has(Standing::Waiting) {
            let solid = owners.iter().zip(&standings).filter(|(_, standing)| **standing == Standing::Solid);
            let mut kept = object.clone();
            kept["metadata"]["ownerReferences"] = solid.map(|(owner, _)| owner.clone()).collect();
            hub.storage.commit(state, resource, stored.with_metadata(&kept["metadata"]));
        }
        return;
    }
    let owned: Vec<_> = state.owned_by(stored.uid()).filter_map(|place| found(state, place)).collect();
    let waits = has(Standing::Waiting) && !owned.is_empty();
    if waits && owned.iter().any(|(_, owned)| is_waiting(owned)) {
        // The owners may wait for each other in a cycle. This breaks the cycle.
        let mut open = object.clone();
        let owners = open["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten();
        owners
            .filter(|owner| owner["blockOwnerDeletion"] == true)
            .for_each(|owner| owner["blockOwnerDeletion"] = false.into());
        if open != object {
            hub.storage.commit(state, resource, stored.with_metadata(&open["metadata"]));
        }
    }
    let propagation = waits.then_some(Propagation::Foreground);
    let options = DeleteOptions { trust: Trust::Host, propagation, ..DeleteOptions::default() };
    // Admission may refuse the delete; the object stays then.
    let _ = delete_in(hub, state, resource, key, &options);
}

/// Returns the state of the referenced owner of the object at `key`. Returns `None` if it is unknown: the kind does not
/// exist, or the owner is namespaced and the object is not.
fn standing(state: &LockedState, key: &StoreKey, reference: &Value) -> Option<Standing> {
    let (owners, place) = named(state, key, reference)?;
    let Some(owner) = state.object(owners, &place).filter(|owner| reference["uid"] == owner.uid()) else {
        return Some(Standing::Gone);
    };
    Some(if is_waiting(&owner) { Standing::Waiting } else { Standing::Solid })
}

/// Returns the resource and key that a reference in the object at `key` names.
fn named<'a>(state: &'a LockedState, key: &StoreKey, reference: &Value) -> Option<(&'a Arc<Resource>, StoreKey)> {
    let (version, kind) = (reference["apiVersion"].as_str()?, reference["kind"].as_str()?);
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let is_named = |known: &&Arc<Resource>| known.kind == kind && known.group == group && known.version == version;
    let owners = state.catalog.served().find(is_named)?;
    let namespace = if owners.namespaced { Some(key.namespace()?) } else { None };
    Some((owners, StoreKey::new(namespace, reference["name"].as_str()?)))
}

/// Returns whether an object is to be deleted after its dependents.
fn is_waiting(object: &StoredObject) -> bool {
    let holds = |metadata: Value| {
        metadata["finalizers"].as_array().is_some_and(|held| held.iter().any(|name| name == FOREGROUND))
    };
    object.is_marked() && holds(object.metadata())
}

/// Removes the owner references from the dependents of an object, and then its finalizer.
fn orphan(hub: &Hub, state: &mut Locked<'_>, resource: &Arc<Resource>, key: &StoreKey, uid: &str) {
    let owned: Vec<ObjectPlace> = state.owned_by(uid).cloned().collect();
    for place in owned {
        let Some((owned, stored)) = found(state, &place) else { continue };
        let mut free = stored.identity();
        if let Some(owners) = free["metadata"]["ownerReferences"].as_array_mut() {
            owners.retain(|owner| owner["uid"] != uid);
            if owners.is_empty()
                && let Some(metadata) = free["metadata"].as_object_mut()
            {
                metadata.remove("ownerReferences");
            }
        }
        hub.storage.commit(state, &owned, stored.with_metadata(&free["metadata"]));
        Locked::bump(state);
    }
    let_go(hub, state, resource, key, ORPHAN);
}

/// Removes the finalizer of an object that waits for its dependents, when none is left that it waits for.
fn relieve(hub: &Hub, state: &mut Locked<'_>, place: &ObjectPlace) {
    let Some((resource, object)) = found(state, place).filter(|(_, object)| is_waiting(object)) else { return };
    let blocks = |owned: &ObjectPlace| {
        let metadata = found(state, owned).map(|(_, stored)| stored.metadata()).unwrap_or_default();
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        owners.into_iter().any(|owner| {
            let is_meant = || {
                named(state, &owned.key, owner)
                    .is_some_and(|(owners, key)| owners.storage == resource.storage && key == place.key)
            };
            owner["uid"] == object.uid() && owner["blockOwnerDeletion"] == true && is_meant()
        })
    };
    // An object that owns itself does not wait for itself.
    if !state.owned_by(object.uid()).any(|owned| owned != place && blocks(owned)) {
        let_go(hub, state, &resource, &place.key, FOREGROUND);
    }
}
