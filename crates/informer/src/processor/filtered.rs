//! A handler that receives the events of some objects only.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Deleted, Event, EventHandler};
use crate::object::{Object, ObjectKey};

/// Passes on the events of objects that match a filter. An object that begins to match is added, and one that stops
/// matching is deleted.
///
/// client-go's `FilteringResourceEventHandler`. The difference: the filter always receives an object. An object that
/// stops matching may still exist, and is delivered as [`Deleted::Unknown`] with the last state that matched.
///
/// ```
/// use kube_informer::{EventHandler as _, FilteringEventHandler, EventHandlerFuncs};
/// # use std::sync::Arc;
/// # use kube_informer::Identity;
/// # let thing = |uid: &str, version: &str| Arc::new(Identity { key: "web/a".parse().unwrap(), uid: uid.into(), version: version.into() });
///
/// let (sender, added) = std::sync::mpsc::channel();
/// let handler = EventHandlerFuncs::new().on_add(move |_, _| sender.send("added").unwrap());
/// let mut filtered = FilteringEventHandler::new(|thing: &Identity| thing.uid == "7", handler);
/// filtered.on_add(thing("6", "1"), true);
/// assert!(added.try_recv().is_err());
/// filtered.on_update(thing("6", "1"), thing("7", "2"));
/// assert_eq!(added.try_recv()?, "added", "when it began to match");
/// # Ok::<(), std::sync::mpsc::TryRecvError>(())
/// ```
#[derive(Debug, Clone)]
pub struct FilteringEventHandler<F, H> {
    filter: F,
    handler: H,
    /// The keys of the objects that the handler knows. A folded mailbox may leave out the event in which an object
    /// began or stopped to match.
    told: HashSet<ObjectKey>,
}

impl<F, H> FilteringEventHandler<F, H> {
    /// Makes a handler that receives the events of objects for which the filter returns true. The filter must depend on
    /// the object only.
    pub fn new<T: Object>(filter: F, handler: H) -> Self
    where
        F: FnMut(&T) -> bool + Send + 'static,
        H: EventHandler<T>,
    {
        Self { filter, handler, told: HashSet::new() }
    }
}

impl<T, F, H> EventHandler<T> for FilteringEventHandler<F, H>
where
    T: Object,
    F: FnMut(&T) -> bool + Send + 'static,
    H: EventHandler<T>,
{
    fn on_add(&mut self, object: Arc<T>, initial: bool) {
        self.on_event(Event::Added { object, initial });
    }

    fn on_update(&mut self, old: Arc<T>, new: Arc<T>) {
        self.on_event(Event::Updated { old, new });
    }

    fn on_delete(&mut self, gone: Deleted<T>) {
        self.on_event(Event::Deleted(gone));
    }

    fn on_resync(&mut self, object: Arc<T>) {
        self.on_event(Event::Resynced(object));
    }

    fn on_event(&mut self, event: Event<T>) {
        let key = event.key();
        let matches = !matches!(event, Event::Deleted(_)) && (self.filter)(event.object());
        let told = if matches { !self.told.insert(key) } else { self.told.remove(&key) };
        let event = match (told, matches, event) {
            (false, false, _) => return,
            (false, true, Event::Updated { new: object, .. } | Event::Resynced(object)) => {
                Event::Added { object, initial: false }
            }
            (true, false, Event::Updated { old, .. } | Event::Resynced(old)) => Event::Deleted(Deleted::Unknown(old)),
            (_, _, event) => event,
        };
        self.handler.on_event(event);
    }
}
