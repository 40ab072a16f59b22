//! The end of a namespace: its content goes first, then the namespace itself.

use serde_json::Value;

use crate::hub::Hub;
use crate::object::Key;
use crate::storage::State;
use crate::write::{DeleteOptions, Trust, delete_in};

/// Empties a namespace that was marked: at once if the process itself marked it, else a moment later.
///
/// The moment in between is what clients of a real cluster see too: the namespace is there, and refuses new content.
pub(crate) fn sweep_later(hub: &Hub, state: &mut State, name: &str, trust: Trust) {
    if !is_terminating(state, name) {
        return;
    }
    let delay = hub.settings.settle_delay;
    let owner = hub.me.clone();
    let swept = name.to_owned();
    let waits = trust == Trust::Client
        && hub.spawn(async move {
            tokio::time::sleep(delay).await;
            if let Some(hub) = owner.upgrade() {
                sweep(&hub, &mut hub.storage.lock(), &swept);
            }
        });
    if !waits {
        sweep(hub, state, name);
    }
}

/// Deletes everything in a namespace; what finalizers hold stays until they are gone.
fn sweep(hub: &Hub, state: &mut State, name: &str) {
    if !is_terminating(state, name) {
        return;
    }
    let options = DeleteOptions { grace_period: Some(0), trust: Trust::Host, ..DeleteOptions::default() };
    let resources: Vec<_> = state.catalog.iter().filter(|resource| resource.namespaced).cloned().collect();
    for resource in resources {
        for key in state.keys_in(&resource, name) {
            // Each key was there a moment ago, under the same lock.
            let _ = delete_in(hub, state, &resource, &key, &options);
        }
    }
    finish(hub, state, Some(name));
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
    let own_finalizers = object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    if own_finalizers {
        // The content is gone; what is left is up to whoever put these here.
        let mut released = object;
        released["spec"]["finalizers"] = Value::Array(Vec::new());
        hub.storage.commit(state, &namespaces, &key, Some(&released));
    } else {
        hub.storage.commit(state, &namespaces, &key, None);
    }
}

fn is_terminating(state: &State, name: &str) -> bool {
    let Some(namespaces) = state.catalog.named("namespaces") else { return false };
    let Some(found) = state.object(namespaces, &Key::new(None, name)) else { return false };
    found.metadata().get("deletionTimestamp").is_some()
}
