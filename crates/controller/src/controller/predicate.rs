//! Which events matter: functions for [`Watched::when`](crate::Watched::when).
//!
//! All of them let through what appears, what goes, what is shown again by a resync, what was made anew under its old name,
//! and what begins to be deleted: they only leave out updates.

use kube_informer::{Event, Object};

/// The specification changed: the server counts such changes for most kinds. Without a count every update matters.
pub fn generation_changed<T: Object>(event: &Event<T>) -> bool {
    update_matters(event, |old, new| new.generation().is_none() || old.generation() != new.generation())
}

/// The version changed: not so for an update that a relist tells of again.
pub fn version_changed<T: Object>(event: &Event<T>) -> bool {
    update_matters(event, |old, new| old.id().version != new.id().version)
}

/// One of these labels changed, came or went.
pub fn labels_changed<T: Object>(labels: &'static [&'static str]) -> impl Fn(&Event<T>) -> bool + Send + Sync {
    move |event| update_matters(event, |old, new| labels.iter().any(|label| old.label(label) != new.label(label)))
}

/// One of these annotations changed, came or went.
pub fn annotations_changed<T: Object>(names: &'static [&'static str]) -> impl Fn(&Event<T>) -> bool + Send + Sync {
    move |event| update_matters(event, |old, new| names.iter().any(|name| old.annotation(name) != new.annotation(name)))
}

fn update_matters<T: Object>(event: &Event<T>, matters: impl Fn(&T, &T) -> bool) -> bool {
    let Event::Updated { old, new } = event else { return true };
    let another = old.id().uid != new.id().uid || old.is_being_deleted() != new.is_being_deleted();
    another || matters(old, new)
}
