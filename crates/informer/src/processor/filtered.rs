//! A handler that is told of some objects only.

use std::sync::Arc;

use super::{Deleted, Event, EventHandler};
use crate::object::Object;

/// Passes on only what matches: an object that comes to match is added, one that no longer does is deleted.
///
/// client-go's `FilteringResourceEventHandler`. What differs: the filter always gets an object; and what stops matching,
/// though it may live on, is told as [`Deleted::Unknown`] with the last state that matched.
///
/// ```
/// use kube_informer::{EventHandler as _, Filtered, Handlers};
/// # use std::sync::Arc;
/// # use kube_informer::representation::Identity;
/// # let thing = |uid: &str, version: &str| Arc::new(Identity { key: "web/a".parse().unwrap(), uid: uid.into(), version: version.into() });
///
/// let (sender, added) = std::sync::mpsc::channel();
/// let handler = Handlers::new().on_add(move |_, _| sender.send("added").unwrap());
/// let mut filtered = Filtered::new(|thing: &Identity| thing.uid == "7", handler);
/// filtered.on_add(thing("6", "1"), true);
/// assert!(added.try_recv().is_err());
/// filtered.on_update(thing("6", "1"), thing("7", "2"));
/// assert_eq!(added.try_recv()?, "added", "when it came to match, and not before");
/// # Ok::<(), std::sync::mpsc::TryRecvError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Filtered<F, H> {
    filter: F,
    handler: H,
}

impl<F, H> Filtered<F, H> {
    /// A handler that is told only of what the filter accepts. The filter depends on the object only.
    pub fn new<T: Object>(filter: F, handler: H) -> Self
    where
        F: FnMut(&T) -> bool + Send + 'static,
        H: EventHandler<T>,
    {
        Self { filter, handler }
    }
}

impl<T, F, H> EventHandler<T> for Filtered<F, H>
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
        let event = match event {
            Event::Updated { old, new } => match ((self.filter)(&old), (self.filter)(&new)) {
                (true, true) => Event::Updated { old, new },
                (false, true) => Event::Added { object: new, initial: false },
                (true, false) => Event::Deleted(Deleted::Unknown(old)),
                (false, false) => return,
            },
            event if (self.filter)(event.object()) => event,
            _ => return,
        };
        self.handler.on_event(event);
    }
}
