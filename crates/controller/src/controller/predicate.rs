//! Which events matter: functions for [`Watched::when`](crate::Watched::when) and [`Controller::when`](crate::Controller::when).
//!
//! The functions that look at changes only leave out updates. They pass every object that appears or goes, every resync, an object that
//! was made anew under its old name, and every change of finalizers or of the deletion timestamp: a reconcile that adds a finalizer
//! and waits for the update, or that cleans up when the deletion begins, is called.
//!
//! ```
//! use kube_controller::{Controller, Watched, predicate};
//! # use k8s_openapi::api::apps::v1::Deployment;
//! # use kube_informer::SharedInformer;
//! # fn example(deployments: &SharedInformer<Deployment>) {
//! let spec_or_team = predicate::or(predicate::generation_changed, predicate::labels_changed(&["team"]));
//! let controller = Controller::new(Watched::from(deployments).when(spec_or_team));
//! # }
//! ```

use kube_informer::{Event, Object};

/// The specification changed. The API server counts such changes for most kinds; without a count every update passes.
pub fn generation_changed<T: Object + ?Sized>(event: &Event<T>) -> bool {
    update_matters(event, |old, new| new.generation().is_none() || old.generation() != new.generation())
}

/// The version changed. It does not change with an update that a relist shows again.
pub fn version_changed<T: Object + ?Sized>(event: &Event<T>) -> bool {
    update_matters(event, |old, new| old.id().version != new.id().version)
}

/// One of these labels changed, came or went.
pub fn labels_changed<T: Object + ?Sized>(labels: &'static [&'static str]) -> impl Fn(&Event<T>) -> bool + Send + Sync {
    move |event| update_matters(event, |old, new| labels.iter().any(|label| old.label(label) != new.label(label)))
}

/// One of these annotations changed, came or went.
pub fn annotations_changed<T: Object + ?Sized>(
    names: &'static [&'static str],
) -> impl Fn(&Event<T>) -> bool + Send + Sync {
    move |event| update_matters(event, |old, new| names.iter().any(|name| old.annotation(name) != new.annotation(name)))
}

/// The newest state of the object has this label with this value.
pub fn has_label<T: Object + ?Sized>(
    label: &'static str,
    value: &'static str,
) -> impl Fn(&Event<T>) -> bool + Send + Sync {
    move |event| event.object().label(label) == Some(value)
}

/// One of two predicates is true. For two that must both be true, call `when` twice.
pub fn or<T: ?Sized>(
    one: impl Fn(&Event<T>) -> bool + Send + Sync,
    other: impl Fn(&Event<T>) -> bool + Send + Sync,
) -> impl Fn(&Event<T>) -> bool + Send + Sync {
    move |event| one(event) || other(event)
}

/// A predicate is false.
///
/// `not` of a predicate that looks at changes leaves out everything but updates, deletions included. Use it with predicates about one
/// state, such as [`has_label`].
pub fn not<T: ?Sized>(predicate: impl Fn(&Event<T>) -> bool + Send + Sync) -> impl Fn(&Event<T>) -> bool + Send + Sync {
    move |event| !predicate(event)
}

fn update_matters<T: Object + ?Sized>(event: &Event<T>, matters: impl Fn(&T, &T) -> bool) -> bool {
    let Event::Updated { old, new } = event else { return true };
    let another = old.id().uid != new.id().uid || old.is_being_deleted() != new.is_being_deleted();
    another || old.finalizer_set() != new.finalizer_set() || matters(old, new)
}
