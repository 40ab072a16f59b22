//! Events as a stream.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};

use super::Event;
use super::listener::{EndsOnDrop, Listener};
use super::mailbox::Parcel;
use crate::object::Object;

/// The events of one informer, for those who would rather ask than be called. Dropping it ends it.
///
/// It ends when the informer does, and keeps the informer running as long as it is held.
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
    parcels: BoxStream<'static, Parcel<T>>,
    /// What was taken out of the mailbox and is not yet handed over.
    current: std::vec::IntoIter<Event<T>>,
    listener: Arc<Listener<T>>,
    _unlisted: Unlisted,
    _informer: Arc<dyn Any + Send + Sync>,
}

/// Takes the listener off the informer's list when it is dropped.
struct Unlisted {
    id: u64,
    unlist: Box<dyn Fn(u64) + Send + Sync>,
}

impl Drop for Unlisted {
    fn drop(&mut self) {
        (self.unlist)(self.id);
    }
}

impl<T: Object> EventStream<T> {
    /// A stream of what a listener of an informer is told; `unlist` takes it off the informer's list.
    pub(crate) fn new(
        listener: Arc<Listener<T>>,
        unlist: impl Fn(u64) + Send + Sync + 'static,
        informer: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        let ended = EndsOnDrop(listener.status.clone());
        let unlisted = Unlisted { id: listener.id, unlist: Box::new(unlist) };
        let parcels = stream::unfold((listener.clone(), ended), |(listener, ended)| async move {
            let parcel = listener.mailbox.next().await?;
            Some((parcel, (listener, ended)))
        });
        let current = Vec::new().into_iter();
        Self { parcels: parcels.boxed(), current, listener, _unlisted: unlisted, _informer: informer }
    }

    /// The name it was registered under.
    pub fn name(&self) -> &str {
        self.listener.name()
    }

    /// How many events wait.
    pub fn backlog(&self) -> usize {
        self.listener.backlog()
    }

    /// How long the oldest event has waited; zero if none waits.
    pub fn lag(&self) -> Duration {
        if self.backlog() == 0 { Duration::ZERO } else { self.listener.mailbox.lag() }
    }

    /// How often it was so slow that only the latest of each object was kept for it.
    pub fn folds(&self) -> u64 {
        self.listener.mailbox.folds()
    }
}

impl<T: Object> Stream for EventStream<T> {
    type Item = Event<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event<T>>> {
        loop {
            // What was discarded while it was in hand is not handed over any more.
            if self.listener.mailbox.is_discarded() {
                self.current = Vec::new().into_iter();
            }
            if let Some(event) = self.current.next() {
                self.listener.status.set_in_hand(self.current.len());
                return Poll::Ready(Some(event));
            }
            self.listener.status.set_in_hand(0);
            let events: Vec<Event<T>> = match ready!(self.parcels.as_mut().poll_next(context)) {
                None => return Poll::Ready(None),
                Some(Parcel::Replay(known)) => {
                    known.into_iter().map(|object| Event::Added { object, initial: true }).collect()
                }
                Some(Parcel::Events(events)) => events.to_vec(),
                Some(Parcel::Synced) => {
                    self.listener.status.synced();
                    continue;
                }
            };
            self.current = events.into_iter();
        }
    }
}

impl<T: Object> fmt::Debug for EventStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("name", &self.listener.name()).finish_non_exhaustive()
    }
}
