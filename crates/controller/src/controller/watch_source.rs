//! The informers that a controller watches, and the predicates that select their events.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use kube_informer::{Deleted, Event, HandlerGuard, Object, ObjectKey, SharedInformer};
use tracing::error;

use super::action::{catch, panic_message};
use super::status::StatusBoard;
use crate::queue::{Priority, WorkQueue};

/// An informer, with the predicates that select its events. Without a call of [`when`](Self::when) the controller acts
/// on all events.
///
/// A `&SharedInformer` converts into this type, so a program needs it only to filter events:
///
/// ```
/// use kube_controller::{Controller, WatchSource, predicate};
/// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
/// # use kube_informer::SharedInformer;
/// # fn example(deployments: &SharedInformer<Deployment>, pods: &SharedInformer<Pod>) {
/// // The controller ignores changes of the status of a deployment, and acts only on pods that have failed.
/// let controller = Controller::new(WatchSource::from(deployments).when(predicate::generation_changed))
///     .owns(WatchSource::from(pods).when(|event| {
///         event.object().status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Failed"))
///     }));
/// # }
/// ```
pub struct WatchSource<T: Object> {
    pub(super) informer: SharedInformer<T>,
    pub(super) predicates: Vec<Predicate<T>>,
}

pub(super) type Predicate<T> = Arc<dyn Fn(&Event<T>) -> bool + Send + Sync>;

impl<T: Object> WatchSource<T> {
    /// Ignores events for which the predicate is false. If this is called several times, all predicates must be true.
    #[must_use]
    pub fn when(mut self, predicate: impl Fn(&Event<T>) -> bool + Send + Sync + 'static) -> Self {
        self.predicates.push(Arc::new(predicate));
        self
    }
}

impl<T: Object> From<&SharedInformer<T>> for WatchSource<T> {
    fn from(informer: &SharedInformer<T>) -> Self {
        Self { informer: informer.clone(), predicates: Vec::new() }
    }
}

impl<T: Object> fmt::Debug for WatchSource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watched").field(&self.informer.name()).finish()
    }
}

/// The parts of a controller that a source uses.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) name: Arc<str>,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) board: Arc<StatusBoard>,
    /// The predicates of the whole controller.
    pub(super) predicates: Arc<[Predicate<dyn Object>]>,
    pub(super) debounce: Duration,
}

/// Registers a handler that adds keys to a queue, until the guard is dropped.
pub(super) type KeySource = Box<dyn Fn(Target) -> HandlerGuard + Send + Sync>;

/// Maps each object of an informer to its own key.
pub(super) fn primary_source<T: Object>(watched: WatchSource<T>) -> KeySource {
    Box::new(move |target| {
        let (predicates, name) = (watched.predicates.clone(), target.handler_name());
        let on_event = move |event: Event<T>| {
            // Both states of an update have the same key. Every object of an API server has a name.
            if target.matters(&event, &predicates)
                && let Ok(key) = ObjectKey::of(&**event.object())
            {
                target.add(key, &event);
            }
        };
        watched.informer.register().name(name).on_event(on_event).remove_on_drop()
    })
}

/// Maps the objects of an informer to keys.
pub(super) fn source<T: Object>(
    watched: WatchSource<T>,
    map: impl Fn(&T, &mut dyn FnMut(ObjectKey)) + Send + Sync + 'static,
) -> KeySource {
    let map = Arc::new(map);
    Box::new(move |target| {
        let (map, predicates, name) = (map.clone(), watched.predicates.clone(), target.handler_name());
        let on_event = move |event: Event<T>| {
            if !target.matters(&event, &predicates) {
                return;
            }
            let mut add = |key| target.add(key, &event);
            // The old state is mapped too, so that a key to which the object belonged before is also reconciled.
            let mapped = catch(|| states(&event).for_each(|state| map(state, &mut add)));
            target.check(mapped);
        };
        // This registers for every event. An object that was added and deleted before the handler was called is of no
        // use to other handlers. But a reconcile reads the cache, and may have seen the object there.
        watched.informer.register().name(name).on_event(on_event).remove_on_drop()
    })
}

/// Maps the objects of an informer to keys by an async function.
pub(super) fn async_source<T, F, R, I>(watched: WatchSource<T>, map: F) -> KeySource
where
    T: Object,
    F: Fn(Arc<T>) -> R + Send + Sync + 'static,
    R: Future<Output = I> + Send + 'static,
    I: IntoIterator<Item = ObjectKey>,
{
    let map = Arc::new(map);
    Box::new(move |target| {
        let (map, predicates, name) = (map.clone(), watched.predicates.clone(), target.handler_name());
        let on_event = move |event: Event<T>| {
            let (target, map, predicates) = (target.clone(), map.clone(), predicates.clone());
            async move {
                if !target.matters(&event, &predicates) {
                    return;
                }
                for state in states(&event) {
                    let mapping = async { map(state.clone()).await.into_iter().collect::<Vec<_>>() };
                    let mapped = AssertUnwindSafe(mapping).catch_unwind().await.map_err(|panic| panic_message(&*panic));
                    target.check(mapped.map(|keys| keys.into_iter().for_each(|key| target.add(key, &event))));
                }
            }
        };
        watched.informer.register().name(name).on_event_async(on_event).remove_on_drop()
    })
}

/// Returns the states of the object in an event: for an update the old one and the new one.
fn states<T: Object>(event: &Event<T>) -> impl Iterator<Item = &Arc<T>> {
    let old = if let Event::Updated { old, .. } = event { Some(old) } else { None };
    old.into_iter().chain([event.object()])
}

impl Target {
    fn handler_name(&self) -> String {
        format!("controller {}", self.name)
    }

    /// Returns true if all predicates are true for the event. A predicate that panics counts as true.
    ///
    /// An object that is not followed any more has not changed, so it is no reason to reconcile anything.
    fn matters<T: Object>(&self, event: &Event<T>, predicates: &[Predicate<T>]) -> bool {
        if matches!(event, Event::Deleted(Deleted::OutOfScope(_))) {
            return false;
        }
        let pass = |result: Result<bool, String>| {
            let passes = *result.as_ref().unwrap_or(&true);
            self.check(result.map(drop));
            passes
        };
        if !self.predicates.is_empty() {
            let event = erased(event);
            if !self.predicates.iter().all(|predicate| pass(catch(|| predicate(&event)))) {
                return false;
            }
        }
        predicates.iter().all(|predicate| pass(catch(|| predicate(event))))
    }

    fn add<T: Object>(&self, key: ObjectKey, event: &Event<T>) {
        let priority = priority_of(event);
        if self.debounce.is_zero() {
            self.queue.add_with(key, priority);
        } else {
            self.queue.add_after_with(key, self.debounce, priority);
        }
    }

    /// Counts a panic. The controller then reconciles everything, since it is not known which keys are missing.
    fn check(&self, mapped: Result<(), String>) {
        if let Err(message) = mapped {
            self.board.mapping_panicked();
            crate::metrics::mapping_panicked(&self.name);
            error!(controller = &*self.name, %message, "a mapping or predicate panicked; everything is reconciled");
        }
    }
}

/// Returns the same event without the type of its objects.
fn erased<T: Object>(event: &Event<T>) -> Event<dyn Object> {
    match event {
        Event::Added { object, initial } => Event::Added { object: object.clone(), initial: *initial },
        Event::Updated { old, new } => Event::Updated { old: old.clone(), new: new.clone() },
        Event::Resynced(object) => Event::Resynced(object.clone()),
        Event::Deleted(Deleted::Final(object)) => Event::Deleted(Deleted::Final(object.clone())),
        Event::Deleted(Deleted::Unknown(object)) => Event::Deleted(Deleted::Unknown(object.clone())),
        Event::Deleted(Deleted::OutOfScope(object)) => Event::Deleted(Deleted::OutOfScope(object.clone())),
    }
}

/// Returns the priority of an event: new changes come before objects that existed before.
fn priority_of<T: Object>(event: &Event<T>) -> Priority {
    match event {
        Event::Added { initial: true, .. } | Event::Resynced(_) => Priority::LOW,
        Event::Added { .. } | Event::Updated { .. } | Event::Deleted(_) => Priority::NORMAL,
    }
}
