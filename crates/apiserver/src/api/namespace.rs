//! The end of a namespace: its content goes first, then the namespace itself.

use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::api::garbage;
use crate::api::write::{DeleteOptions, Trust, delete_in};
use crate::host::hub::Hub;
use crate::storage::object::{Key, StoredObject};
use crate::storage::state::{Locked, State};

/// How many objects go while nobody else is let in.
const PIECE: usize = 100;

/// Empties a namespace that was marked: at once if the process itself marked it, else a moment later.
///
/// The moment in between is what clients of a real cluster see too: the namespace is there, and refuses new content.
pub(crate) fn sweep_later(hub: &Hub, state: &mut Locked<'_>, name: &str, trust: Trust) {
    if !is_terminating(state, name) {
        return;
    }
    let (name, refused) = (name.to_owned(), Arc::new(AtomicUsize::new(0)));
    hub.soon_in_pieces(state, trust, move |hub, state| sweep(hub, state, &name, &refused));
}

/// Deletes some of what is in a namespace, and says whether there is more; what finalizers hold stays until they are gone. `refused`
/// counts those that may not go: they are not tried again.
fn sweep(hub: &Hub, state: &mut Locked<'_>, name: &str, refused: &AtomicUsize) -> bool {
    if !is_terminating(state, name) {
        return false;
    }
    let resources: Vec<_> = state.catalog.iter().filter(|resource| resource.namespaced).cloned().collect();
    let content =
        resources.iter().flat_map(|resource| state.keys_in(resource, name).into_iter().map(move |key| (resource, key)));
    let left = content.filter(|(resource, key)| state.object(resource, key).is_some_and(|object| !is_going(&object)));
    let piece: Vec<_> = left.skip(refused.load(Ordering::Relaxed)).take(PIECE).collect();
    let options = DeleteOptions { grace_period: Some(0), trust: Trust::Host, ..DeleteOptions::default() };
    for (resource, key) in &piece {
        // What is gone meanwhile need not be deleted.
        if delete_in(hub, state, resource, key, &options).is_err() && state.object(resource, key).is_some() {
            refused.fetch_add(1, Ordering::Relaxed);
        }
    }
    if piece.len() == PIECE {
        return true;
    }
    finish(hub, state, Some(name));
    garbage::follow(hub, state, Trust::Host);
    false
}

/// Whether an object is only there for its finalizers.
fn is_going(object: &StoredObject) -> bool {
    object.is_marked() && object.metadata()["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
}

/// Removes a namespace that is marked and has become empty.
pub(crate) fn finish(hub: &Hub, state: &mut State, name: Option<&str>) {
    let Some(name) = name.filter(|name| is_terminating(state, name)) else { return };
    let occupied = state.catalog.iter().filter(|resource| resource.namespaced).any(|resource| {
        // A look at one key is enough.
        state.has_key_in(resource, name)
    });
    let Some(namespaces) = state.catalog.named("namespaces").cloned() else { return };
    let key = Key::new(None, name);
    let Some(object) = state.object(&namespaces, &key).map(|stored| stored.value()).filter(|_| !occupied) else {
        return;
    };
    let mut released = object.clone();
    // What the host put there as it is may be anything.
    if let Some(held) = released.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut) {
        held.retain(|finalizer| finalizer != "kubernetes");
    }
    let is_held = |list: &Value| list.as_array().is_some_and(|finalizers| !finalizers.is_empty());
    if !is_held(&released["metadata"]["finalizers"]) && !is_held(&released["spec"]["finalizers"]) {
        hub.storage.commit(state, &namespaces, &key, None);
    } else if released != object {
        // The content is gone; what is left is up to whoever put these here.
        hub.storage.commit(state, &namespaces, &key, Some(&released));
    }
}

fn is_terminating(state: &State, name: &str) -> bool {
    let Some(namespaces) = state.catalog.named("namespaces") else { return false };
    let Some(found) = state.object(namespaces, &Key::new(None, name)) else { return false };
    found.is_marked()
}
