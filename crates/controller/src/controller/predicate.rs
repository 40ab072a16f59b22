//! Predicates, which select events, for [`WatchSource::when`](crate::WatchSource::when) and
//! [`Controller::when`](crate::Controller::when).
//!
//! The predicates that compare two states ignore only updates. They are true for every object that is added or deleted,
//! for every resync, for an object that was created again under its old name, and for every change of the finalizers or
//! of the deletion timestamp. So the controller still calls a reconcile that adds a finalizer and waits for the update,
//! or that cleans up when the deletion begins.
//!
//! ```
//! use kube_controller::{Controller, WatchSource, predicate};
//! # use k8s_openapi::api::apps::v1::Deployment;
//! # use kube_informer::SharedInformer;
//! # fn example(deployments: &SharedInformer<Deployment>) {
//! let spec_or_team = predicate::or(predicate::generation_changed, predicate::labels_changed(&["team"]));
//! let controller = Controller::new(WatchSource::from(deployments).when(spec_or_team));
//! # }
//! ```

use kube_informer::{Event, Object};

/// Returns true if the spec changed. The API server counts such changes in `metadata.generation` for most kinds.
/// Without a generation this is true for every update.
pub fn generation_changed<T: Object + ?Sized>(event: &Event<T>) -> bool {
    update_matters(event, |old, new| new.generation().is_none() || old.generation() != new.generation())
}

/// Returns true if the resource version changed. It is false for an update that a relist shows again.
pub fn version_changed<T: Object + ?Sized>(event: &Event<T>) -> bool {
    update_matters(event, |old, new| old.id().version != new.id().version)
}

/// Returns a predicate that is true if one of these labels was added, changed or removed.
pub fn labels_changed<T: Object + ?Sized>(labels: &'static [&'static str]) -> impl Fn(&Event<T>) -> bool + Send + Sync {
    move |event| update_matters(event, |old, new| labels.iter().any(|label| old.label(label) != new.label(label)))
}

/// Returns a predicate that is true if one of these annotations was added, changed or removed.
pub fn annotations_changed<T: Object + ?Sized>(
    names: &'static [&'static str],
) -> impl Fn(&Event<T>) -> bool + Send + Sync {
    move |event| update_matters(event, |old, new| names.iter().any(|name| old.annotation(name) != new.annotation(name)))
}

/// Returns a predicate that is true if the newest state of the object has this label with this value.
pub fn has_label<T: Object + ?Sized>(
    label: &'static str,
    value: &'static str,
) -> impl Fn(&Event<T>) -> bool + Send + Sync {
    move |event| event.object().label(label) == Some(value)
}

/// Returns a predicate that is true if one of two predicates is true. If both must be true, call `when` twice.
pub fn or<T: ?Sized>(
    one: impl Fn(&Event<T>) -> bool + Send + Sync,
    other: impl Fn(&Event<T>) -> bool + Send + Sync,
) -> impl Fn(&Event<T>) -> bool + Send + Sync {
    move |event| one(event) || other(event)
}

/// Returns a predicate that is true if another predicate is false.
///
/// `not` of a predicate that compares two states ignores all events except updates; it even ignores deletions. Use it
/// with predicates about one state, such as [`has_label`].
pub fn not<T: ?Sized>(predicate: impl Fn(&Event<T>) -> bool + Send + Sync) -> impl Fn(&Event<T>) -> bool + Send + Sync {
    move |event| !predicate(event)
}

fn update_matters<T: Object + ?Sized>(event: &Event<T>, matters: impl Fn(&T, &T) -> bool) -> bool {
    let Event::Updated { old, new } = event else { return true };
    let another = old.id().uid != new.id().uid || old.is_being_deleted() != new.is_being_deleted();
    another || old.finalizer_set() != new.finalizer_set() || matters(old, new)
}
