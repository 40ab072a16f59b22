//! The deletion of a namespace: its content first, then the namespace itself.

use parking_lot::Mutex;
use serde_json::Value;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::api::garbage;
use crate::api::write::{DeleteOptions, Trust, delete_in};
use crate::hub::Hub;
use crate::kinds::Resource;
use crate::storage::key::StoreKey;
use crate::storage::state::{Locked, LockedState};

/// How many objects are processed while the state stays locked.
const PIECE: usize = 100;

/// After how long a refused delete is tried again, unless the settle delay is longer.
const AGAIN: Duration = Duration::from_secs(1);

/// The progress of a sweep.
#[derive(Debug, Default)]
struct Sweep {
    /// The last position that was processed: a collection, and a key in it.
    behind: Option<(String, StoreKey)>,
    /// Whether an object could not be deleted.
    refused: bool,
    /// Held until the sweep begins, if it is a repeated one.
    waiting: Option<Waiting>,
}

/// Marks a namespace with a scheduled repeated sweep, so that it is scheduled only once.
#[derive(Debug)]
struct Waiting {
    hub: Weak<Hub>,
    name: String,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(hub) = self.hub.upgrade() {
            hub.swept_again.lock().remove(&self.name);
        }
    }
}

/// Empties a namespace that is being deleted: at once for deletes from the process itself, otherwise after the settle
/// delay.
///
/// Until then clients see the same state as in a real cluster: the namespace exists, and refuses new content.
pub(crate) fn sweep_later(hub: &Hub, state: &mut Locked<'_>, name: &str, trust: Trust) {
    if !is_terminating(state, name) {
        return;
    }
    let (name, progress) = (name.to_owned(), Arc::new(Mutex::new(Sweep::default())));
    hub.soon_in_pieces(state, trust, move |hub, state| sweep(hub, state, &name, &progress));
}

/// Schedules another sweep for objects that could not be deleted, if there is a runtime to wait in. Only one is
/// scheduled at a time.
fn sweep_again(hub: &Hub, name: &str) {
    if !hub.swept_again.lock().insert(name.to_owned()) {
        return;
    }
    let name = name.to_owned();
    let waiting = Waiting { hub: hub.me.clone(), name: name.clone() };
    let progress = Mutex::new(Sweep { waiting: Some(waiting), ..Sweep::default() });
    let delay = hub.settings.settle_delay.max(AGAIN);
    hub.later_in_pieces(delay, move |hub, state| sweep(hub, state, &name, &progress));
}

/// Deletes some objects of a namespace, and returns whether more are left. Objects with finalizers stay until these are
/// removed.
fn sweep(hub: &Hub, state: &mut Locked<'_>, name: &str, progress: &Mutex<Sweep>) -> bool {
    // The pieces of one sweep run one after the other. The lock is not held while admission runs.
    let mut sweep = std::mem::take(&mut *progress.lock());
    sweep.waiting = None;
    if !is_terminating(state, name) {
        return false;
    }
    let piece = next_piece(state, name, sweep.behind.as_ref());
    let options = DeleteOptions { grace_period: Some(0), trust: Trust::Host, ..DeleteOptions::default() };
    for (resource, key) in &piece {
        if state.object(resource, key).is_none_or(|object| object.is_going()) {
            continue;
        }
        // The object may already be gone.
        let refused = delete_in(hub, state, resource, key, &options).is_err();
        sweep.refused |= refused && state.object(resource, key).is_some();
    }
    if let Some((resource, key)) = piece.last().filter(|_| piece.len() == PIECE) {
        sweep.behind = Some((resource.storage.clone(), key.clone()));
        *progress.lock() = sweep;
        return true;
    }
    finish(hub, state, Some(name));
    garbage::follow(hub, state, Trust::Host);
    if sweep.refused && is_terminating(state, name) {
        sweep_again(hub, name);
    }
    false
}

/// Returns the next objects of a sweep, in the order of their collections and keys.
fn next_piece(state: &LockedState, name: &str, behind: Option<&(String, StoreKey)>) -> Vec<(Arc<Resource>, StoreKey)> {
    let is_due = |resource: &&Arc<Resource>| {
        let passed = behind.is_some_and(|(collection, _)| resource.storage < *collection);
        resource.namespaced && resource.rules.view.is_none() && !passed
    };
    let mut resources: Vec<&Arc<Resource>> = state.catalog.iter().filter(is_due).collect();
    resources.sort_by(|one, other| one.storage.cmp(&other.storage));
    let keys = resources.into_iter().flat_map(|resource| {
        let last = behind.filter(|(collection, _)| *collection == resource.storage).map(|(_, key)| key);
        state.keys_after(resource, name, last).map(move |key| (resource.clone(), key.clone()))
    });
    keys.take(PIECE).collect()
}

/// Removes a namespace that is being deleted and has become empty.
pub(crate) fn finish(hub: &Hub, state: &mut LockedState, name: Option<&str>) {
    let Some(name) = name.filter(|name| is_terminating(state, name)) else { return };
    let occupied = state.catalog.iter().filter(|resource| resource.namespaced).any(|resource| {
        // One key is enough to know that the namespace is not empty.
        state.has_key_in(resource, name)
    });
    let Some(namespaces) = state.catalog.named("namespaces").cloned() else { return };
    let key = StoreKey::new(None, name);
    let Some(object) = state.object(&namespaces, &key).map(|stored| stored.value()).filter(|_| !occupied) else {
        return;
    };
    let mut released = object.clone();
    // A direct write may have stored finalizers of any type.
    if let Some(held) = released.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut) {
        held.retain(|finalizer| finalizer != "kubernetes");
    }
    let is_held = |list: &Value| list.as_array().is_some_and(|finalizers| !finalizers.is_empty());
    if !is_held(&released["metadata"]["finalizers"]) && !is_held(&released["spec"]["finalizers"]) {
        hub.storage.remove(state, &namespaces, &key);
    } else if released != object {
        // The content is gone. The owners of the other finalizers remove these.
        hub.storage.commit_namespace(state, &namespaces, &key, &released);
    }
}

fn is_terminating(state: &LockedState, name: &str) -> bool {
    let Some(namespaces) = state.catalog.named("namespaces") else { return false };
    let Some(found) = state.object(namespaces, &StoreKey::new(None, name)) else { return false };
    found.is_marked()
}
