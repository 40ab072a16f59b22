//! Compares a list with the store.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::{Outdated, PIECE};
use crate::object::{Object, in_scope};
use crate::processor::Event;
use crate::queue::{Deleted, Replacement};
use crate::store::Transaction;

/// Returns true if a state replaces the known one: it is neither equal to it nor older. No other code decides this.
pub(super) fn is_news(object: &Arc<dyn Object>, known: Option<&Arc<dyn Object>>, reuse: bool) -> bool {
    known.is_none_or(|known| {
        let (new, known) = (object.id(), known.id());
        !reuse || !(known.same_state(&new) || new.is_older_than(&known))
    })
}

/// Changes a transaction to the state of a list, and returns the events for the differences.
pub(super) async fn prepare_list(
    store: &mut Transaction<dyn Object>,
    list: &Replacement<dyn Object>,
    initial: bool,
    outdated: &Outdated,
) -> Vec<Event<dyn Object>> {
    let (mut events, mut pieces) = (Vec::new(), Pieces::default());
    if list.is_conclusive() {
        let mut listed = HashSet::with_capacity_and_hasher(list.objects.len(), RandomState::default());
        for key in list.keys() {
            listed.insert(key);
            pieces.next().await;
        }
        let mut gone = Vec::new();
        for object in store.objects() {
            let key = object.id().key;
            if in_scope(&list.mark.scope, key) && !listed.contains(&key) {
                gone.push(object.clone());
            }
            pieces.next().await;
        }
        for object in gone {
            store.delete(object.id().key);
            events.push(Event::Deleted(Deleted::Unknown(object)));
            pieces.next().await;
        }
    }
    for object in &list.objects {
        let reuse = !outdated.contains(object.id().key);
        let known = store.get(object.id().key);
        // Equal uid and version: the `Arc` that the store holds stays, its index values stay, and no event follows.
        if is_news(object, known.as_ref(), reuse) {
            store.put(object.clone());
            events.push(match known {
                Some(old) => Event::Updated { old, new: object.clone() },
                None => Event::Added { object: object.clone(), initial },
            });
        }
        pieces.next().await;
    }
    crate::yield_point::maybe_yield().await;
    events
}

/// Removes the objects of these namespaces from a transaction, and returns the events.
pub(super) async fn prepare_leaving(
    store: &mut Transaction<dyn Object>,
    left: &HashSet<Arc<str>>,
) -> Vec<Event<dyn Object>> {
    let (mut events, mut pieces) = (Vec::new(), Pieces::default());
    if left.is_empty() {
        return events; // Namespaces were only added.
    }
    for object in store.objects() {
        if object.id().key.namespace().is_some_and(|namespace| left.contains(namespace)) {
            events.push(Event::Deleted(Deleted::OutOfScope(object.clone())));
        }
        pieces.next().await;
    }
    for event in &events {
        store.remove(event.key_ref());
        pieces.next().await;
    }
    crate::yield_point::maybe_yield().await;
    events
}

/// Lets other tasks run after every piece of long work.
#[derive(Default)]
pub(super) struct Pieces(usize);

impl Pieces {
    pub(super) async fn next(&mut self) {
        self.0 += 1;
        if self.0.is_multiple_of(PIECE) {
            tokio::task::yield_now().await;
        }
    }
}
