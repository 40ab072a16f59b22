//! What a controller looks at, and which of its events matter.

use std::fmt;
use std::sync::Arc;

use kube_informer::processor::HandlerGuard;
use kube_informer::{Event, Object, ObjectKey, SharedInformer};

use crate::queue::{Priority, WorkQueue};

/// An informer, and which of its events a controller acts on: all of them, unless [`when`](Self::when) says otherwise.
///
/// A `&SharedInformer` is one already, so that this type is only met where events are filtered:
///
/// ```
/// use kube_controller::{Controller, Watched, predicate};
/// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
/// # use kube_informer::SharedInformer;
/// # fn example(deployments: &SharedInformer<Deployment>, pods: &SharedInformer<Pod>) {
/// // Changes of a status do not matter, but for those of pods that fail.
/// let controller = Controller::new(Watched::from(deployments).when(predicate::generation_changed))
///     .owns(Watched::from(pods).when(|event| {
///         event.object().status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Failed"))
///     }));
/// # }
/// ```
pub struct Watched<T: Object> {
    pub(super) informer: SharedInformer<T>,
    pub(super) predicates: Vec<Predicate<T>>,
}

type Predicate<T> = Arc<dyn Fn(&Event<T>) -> bool + Send + Sync>;

impl<T: Object> Watched<T> {
    /// Only events that this is true of matter. Said again, both must be true.
    #[must_use]
    pub fn when(mut self, predicate: impl Fn(&Event<T>) -> bool + Send + Sync + 'static) -> Self {
        self.predicates.push(Arc::new(predicate));
        self
    }
}

impl<T: Object> From<&SharedInformer<T>> for Watched<T> {
    fn from(informer: &SharedInformer<T>) -> Self {
        Self { informer: informer.clone(), predicates: Vec::new() }
    }
}

impl<T: Object> fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watched").field(&self.informer.name()).finish()
    }
}

/// Puts keys into a queue as long as the guard lives.
pub(super) type Source = Box<dyn Fn(&str, &WorkQueue<ObjectKey>) -> HandlerGuard + Send + Sync>;

/// Maps the objects of an informer to keys.
pub(super) fn source<T: Object>(
    watched: Watched<T>,
    map: impl Fn(&T, &mut dyn FnMut(ObjectKey)) + Send + Sync + 'static,
) -> Source {
    let map = Arc::new(map);
    Box::new(move |name, queue| {
        let (queue, map, predicates) = (queue.clone(), map.clone(), watched.predicates.clone());
        let on_event = move |event: Event<T>| {
            if predicates.iter().all(|predicate| predicate(&event)) {
                let priority = priority_of(&event);
                let mut add = |key| _ = queue.add_with(key, priority);
                // Who had it before learns that it has it no longer.
                if let Event::Updated { old, .. } = &event {
                    map(old, &mut add);
                }
                map(event.object(), &mut add);
            }
        };
        // Every event: what came and went before it was told of is nothing to who follows events, but reconciles read the cache,
        // and may have seen it there.
        watched.informer.register().name(format!("controller {name}")).on_event(on_event).remove_on_drop()
    })
}

/// Today's changes go before what was there all along.
fn priority_of<T: Object>(event: &Event<T>) -> Priority {
    match event {
        Event::Added { initial: true, .. } | Event::Resynced(_) => Priority::LOW,
        Event::Added { .. } | Event::Updated { .. } | Event::Deleted(_) => Priority::NORMAL,
    }
}
