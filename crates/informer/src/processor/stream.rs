//! Events as a stream.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use futures_core::stream::FusedStream;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};

use super::Event;
use super::listener::{Listener, ListenerEndGuard};
use super::mailbox::{EventBatch, Parcel};
use crate::object::Object;
use crate::store::Snapshot;

/// A stream of the events of one informer, for programs that poll instead of being called. Dropping it ends it.
///
/// The stream ends when the informer stops. It keeps the informer running as long as it exists.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::{Event, SharedInformerFactory};
/// use futures_util::StreamExt as _;
/// # doc_server::with(async |server| {
/// let factory = SharedInformerFactory::new(server.client());
/// let mut events = factory.informer::<ConfigMap>()?.events();
/// factory.start()?;
/// assert!(matches!(events.next().await, Some(Event::Added { initial: true, .. })));
/// # Ok(()) });
/// ```
pub struct EventStream<T> {
    events: Events,
    _informer: Arc<dyn Any + Send + Sync>,
    objects: PhantomData<fn() -> T>,
}

/// An event stream without the type of its objects. It does not keep the informer running.
pub(crate) struct Events {
    /// `None` once the stream has ended.
    parcels: Option<BoxStream<'static, Parcel>>,
    /// The events that were taken out of the mailbox and are not yet returned.
    current: Current,
    listener: Arc<Listener>,
    _unlisted: Unlisted,
}

enum Current {
    Objects(std::vec::IntoIter<Arc<dyn Object>>, fn(Arc<dyn Object>) -> Event<dyn Object>),
    Batch(EventBatch, usize),
    Nothing,
}

impl Current {
    fn len(&self) -> usize {
        match self {
            Self::Objects(objects, _) => objects.len(),
            Self::Batch(events, at) => events.len() - at,
            Self::Nothing => 0,
        }
    }

    fn next(&mut self) -> Option<Event<dyn Object>> {
        match self {
            Self::Objects(objects, event) => objects.next().map(event),
            Self::Batch(events, at) => {
                let event = events.get(*at).cloned()?;
                *at += 1;
                Some(event)
            }
            Self::Nothing => None,
        }
    }
}

/// Removes the listener from the informer's list when it is dropped.
struct Unlisted {
    id: u64,
    unlist: Box<dyn Fn(u64) + Send + Sync>,
}

impl Drop for Unlisted {
    fn drop(&mut self) {
        (self.unlist)(self.id);
    }
}

impl Events {
    /// Makes a stream of the events of a listener. `unlist` removes it from the informer's list.
    pub(crate) fn new(listener: Arc<Listener>, unlist: impl Fn(u64) + Send + Sync + 'static) -> Self {
        let ended = ListenerEndGuard(listener.status.clone());
        let unlisted = Unlisted { id: listener.id, unlist: Box::new(unlist) };
        let parcels = stream::unfold((listener.clone(), ended), |(listener, ended)| async move {
            let parcel = listener.mailbox.next().await?;
            Some((parcel, (listener, ended)))
        });
        Self { parcels: Some(parcels.boxed()), current: Current::Nothing, listener, _unlisted: unlisted }
    }
}

/// Frees the waiting events at once, because the applier may hold the listener for some more milliseconds.
impl Drop for Events {
    fn drop(&mut self) {
        self.listener.mailbox.close(false);
    }
}

impl<T: Object> EventStream<T> {
    pub(crate) fn new(events: Events, informer: Arc<dyn Any + Send + Sync>) -> Self {
        Self { events, _informer: informer, objects: PhantomData }
    }

    /// Returns the name under which the stream was registered.
    pub fn name(&self) -> &str {
        self.events.listener.name()
    }

    /// Returns how many events wait.
    pub fn backlog(&self) -> usize {
        self.events.listener.backlog()
    }

    /// Returns how long the oldest event has waited; zero if none waits.
    pub fn lag(&self) -> Duration {
        if self.backlog() == 0 { Duration::ZERO } else { self.events.listener.mailbox.lag() }
    }

    /// Returns how often the mailbox was folded because the stream was polled too slowly.
    pub fn folds(&self) -> u64 {
        self.events.listener.mailbox.folds()
    }
}

impl<T: Object> Stream for EventStream<T> {
    type Item = Event<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event<T>>> {
        self.events.poll_next_unpin(context).map(|event| event.map(Event::typed))
    }
}

/// Polling the stream after its end is allowed.
impl<T: Object> FusedStream for EventStream<T> {
    fn is_terminated(&self) -> bool {
        self.events.parcels.is_none()
    }
}

impl Stream for Events {
    type Item = Event<dyn Object>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event<dyn Object>>> {
        loop {
            // Events that were discarded after their parcel was taken out must not be returned.
            if self.listener.mailbox.is_discarded() {
                self.current = Current::Nothing;
            }
            if let Some(event) = self.current.next() {
                self.listener.status.set_in_hand(self.current.len());
                return Poll::Ready(Some(event));
            }
            self.current = Current::Nothing;
            self.listener.status.set_in_hand(0);
            let Some(parcels) = &mut self.parcels else { return Poll::Ready(None) };
            let objects = |known: Snapshot<dyn Object>| known.into_iter();
            self.current = match ready!(parcels.poll_next_unpin(context)) {
                None => {
                    self.parcels = None;
                    return Poll::Ready(None);
                }
                Some(Parcel::Replay(known)) => {
                    Current::Objects(objects(known), |object| Event::Added { object, initial: true })
                }
                Some(Parcel::Resync(known)) => Current::Objects(objects(known), Event::Resynced),
                Some(Parcel::Events(events, _)) => Current::Batch(events, 0),
                Some(Parcel::Synced) => {
                    self.listener.status.synced();
                    continue;
                }
            };
        }
    }
}

impl<T: Object> fmt::Debug for EventStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("name", &self.name()).finish_non_exhaustive()
    }
}
