//! Registered handlers, and the tasks and streams that deliver to them.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use metrics::Histogram;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Event;
use super::handler::AnyHandler;
use super::mailbox::{Delivery, Mailbox, Parcel};
use crate::health::{HealthBoard, InformerError};
use crate::object::Object;

tokio::task_local! {
    /// The handler whose callback is running, so that it cannot wait for itself.
    static CURRENT: u64;
}

/// The handler whose callback is running.
pub(super) fn current() -> Option<u64> {
    CURRENT.try_with(|id| *id).ok()
}

/// Runs something as part of a handler's callback, on whatever thread this is.
pub(super) fn within<R>(id: Option<u64>, run: impl FnOnce() -> R) -> R {
    match id {
        Some(id) => CURRENT.sync_scope(id, run),
        None => run(),
    }
}

/// How a handler is registered.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::{SharedInformer, source::kube::KubeSource};
/// # use serde_json::json;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
/// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
/// # maps.start()?;
/// # maps.synced().await?;
/// use kube_informer::{Delivery, HandlerOptions};
///
/// let options = HandlerOptions::new().name("audit").delivery(Delivery::Latest);
/// let handle = maps.with(options).on_event(|_| {});
/// assert_eq!(handle.name(), "audit");
/// # maps.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Default)]
pub struct HandlerOptions {
    name: Option<String>,
    delivery: Delivery,
    resync_period: Option<Duration>,
}

impl HandlerOptions {
    /// As if nothing had been said.
    pub fn new() -> Self {
        Self::default()
    }

    /// The name that logs, messages and metrics use; the type's name unless given.
    ///
    /// ```
    /// # use kube_informer::HandlerOptions;
    /// # use kube_informer::SharedInformer;
    /// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
    /// # let source = ListWatchFns::new(
    /// #     |_: ListOptions| async {
    /// #         let thing = Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "7".to_owned() };
    /// #         Ok(Items::complete([thing], ListEnd { version: Some("7".into()), ..ListEnd::default() }))
    /// #     },
    /// #     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
    /// # );
    /// # let things = SharedInformer::builder(source).build();
    /// let handle = things.with(HandlerOptions::new().name("audit")).on_event(|_| {});
    /// assert_eq!(handle.name(), "audit");
    /// ```
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How the handler is told when it is slow.
    ///
    /// A handler that wants to know how things are, not how they came to be so:
    ///
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// use kube_informer::{Delivery, Event, HandlerOptions};
    ///
    /// let mut events = maps.with(HandlerOptions::new().delivery(Delivery::Latest)).events();
    /// for color in ["red", "green", "blue"] {
    ///     server.patch("configmaps", Some("web"), "a", json!({"data": {"color": color}}))?;
    /// }
    /// maps.wait_for("web/a", |map| map.unwrap().data.as_ref().is_some_and(|data| data["color"] == "blue")).await?;
    /// assert!(matches!(events.next().await, Some(Event::Added { initial: true, .. })), "as it was at the start");
    /// let Some(Event::Updated { new, .. }) = events.next().await else { panic!() };
    /// assert_eq!(new.data.as_ref().unwrap()["color"], "blue");
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// How often the handler is shown the cache again; the informer's own period unless given, zero for never.
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// # use std::time::Duration;
    /// # use kube_informer::SharedInformer;
    /// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
    /// # let source = ListWatchFns::new(
    /// #     |_: ListOptions| async {
    /// #         let thing = Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "7".to_owned() };
    /// #         Ok(Items::complete([thing], ListEnd { version: Some("7".into()), ..ListEnd::default() }))
    /// #     },
    /// #     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
    /// # );
    /// use kube_informer::{Event, HandlerOptions};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    /// # runtime.unwrap().block_on(async {
    /// let things = SharedInformer::builder(source).resync_period(Duration::from_secs(600)).build();
    /// let mut often = things.with(HandlerOptions::new().resync_period(Duration::from_secs(60))).events();
    /// let never = things.with(HandlerOptions::new().resync_period(Duration::ZERO)).events();
    /// things.start()?;
    /// assert!(matches!(often.next().await, Some(Event::Added { .. })));
    /// assert!(matches!(often.next().await, Some(Event::Resynced(_))));
    /// assert_eq!(never.backlog(), 1, "the first object, and nothing since");
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = Some(period);
        self
    }

    pub(crate) fn name_or(&self, otherwise: impl FnOnce() -> String) -> String {
        self.name.clone().unwrap_or_else(otherwise)
    }

    pub(crate) fn requested_resync(&self) -> Option<Duration> {
        self.resync_period
    }
}

/// One registered handler: what waits for it and how far it has come.
pub(crate) struct Listener<T> {
    pub(crate) id: u64,
    pub(crate) mailbox: Mailbox<T>,
    pub(crate) resync: Mutex<Resync>,
    pub(super) status: Arc<ListenerStatus>,
}

/// When a listener is shown the cache again.
#[derive(Debug, Default)]
pub(crate) struct Resync {
    /// What was asked for; `None` for never.
    pub(crate) requested: Option<Duration>,
    /// What it gets.
    pub(crate) period: Option<Duration>,
    pub(crate) next: Option<Instant>,
    /// True from the moment it is due until it has been shown the cache.
    pub(crate) due: bool,
}

/// The part of a listener that a handle reads.
#[derive(Debug)]
pub(super) struct ListenerStatus {
    pub(super) name: String,
    /// Events of the parcel in hand that are still to be delivered.
    in_hand: AtomicUsize,
    pub(super) phase: watch::Sender<ListenerPhase>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListenerPhase {
    /// Its informer has not been started, and neither has its task.
    New,
    Starting,
    Synced,
    /// Its task has ended, or never started and never will.
    Ended {
        synced: bool,
    },
}

impl ListenerPhase {
    pub(super) fn is_synced(self) -> bool {
        matches!(self, Self::Synced | Self::Ended { synced: true })
    }

    pub(super) fn is_ended(self) -> bool {
        matches!(self, Self::Ended { .. })
    }
}

impl ListenerStatus {
    fn ends(&self) {
        self.phase.send_modify(|phase| *phase = ListenerPhase::Ended { synced: phase.is_synced() });
    }

    /// Moves from one phase to the next; false if it is in another.
    pub(super) fn moves(&self, from: ListenerPhase, to: ListenerPhase) -> bool {
        self.phase.send_if_modified(|phase| {
            let moves = *phase == from;
            if moves {
                *phase = to;
            }
            moves
        })
    }

    fn synced(&self) {
        self.moves(ListenerPhase::Starting, ListenerPhase::Synced);
    }
}

impl<T: Object> Listener<T> {
    pub(crate) fn new(name: String, options: &HandlerOptions, resync: Option<Duration>) -> Self {
        // Unique among all informers, so that a callback knows whether it is one of theirs.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let phase = watch::Sender::new(ListenerPhase::New);
        let status = Arc::new(ListenerStatus { name, in_hand: AtomicUsize::new(0), phase });
        let resync = Mutex::new(Resync { requested: resync, ..Resync::default() });
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { id, mailbox: Mailbox::new(options.delivery), resync, status }
    }

    pub(crate) fn name(&self) -> &str {
        &self.status.name
    }

    /// How many events wait to be delivered, the parcel in hand included.
    pub(crate) fn backlog(&self) -> usize {
        self.mailbox.len() + self.status.in_hand.load(Ordering::Relaxed)
    }

    /// It was added to an informer that has ended.
    pub(crate) fn never_runs(&self) {
        self.status.ends();
    }

    /// Says that its task is about to start; false if it was removed before.
    pub(crate) fn starts(&self) -> bool {
        self.status.moves(ListenerPhase::New, ListenerPhase::Starting)
    }

    /// Delivers what comes, one at a time, until the mailbox is closed and empty.
    pub(crate) fn run(
        self: Arc<Self>,
        mut handler: AnyHandler<T>,
        health: HealthBoard,
    ) -> impl Future<Output = ()> + Send + 'static {
        // Also if this is dropped half way, or before it began: whoever waits for its end must not wait for ever.
        let ended = EndsOnDrop(self.status.clone());
        async move {
            let _ended = ended;
            CURRENT.scope(self.id, self.deliver_all(&mut handler, &health)).await;
        }
    }

    async fn deliver_all(&self, handler: &mut AnyHandler<T>, health: &HealthBoard) {
        let latency = health.metrics().map(|metrics| metrics.handler_latency(&self.status.name));
        let latency = latency.as_ref();
        while let Some(parcel) = self.mailbox.next().await {
            match parcel {
                Parcel::Replay(known) => {
                    self.status.in_hand.store(known.len(), Ordering::Relaxed);
                    for object in known.iter() {
                        let event = Event::Added { object: object.clone(), initial: true };
                        self.deliver(handler, event, health, latency).await;
                    }
                }
                Parcel::Events(events) => {
                    self.status.in_hand.store(events.len(), Ordering::Relaxed);
                    for event in events.iter() {
                        self.deliver(handler, event.clone(), health, latency).await;
                    }
                }
                Parcel::Synced => self.status.synced(),
            }
            self.status.in_hand.store(0, Ordering::Relaxed);
        }
    }

    async fn deliver(
        &self,
        handler: &mut AnyHandler<T>,
        event: Event<T>,
        health: &HealthBoard,
        latency: Option<&Histogram>,
    ) {
        // What was discarded while a parcel was in hand is not delivered any more.
        if self.mailbox.is_discarded() {
            return;
        }
        let start = Instant::now();
        if let Err(message) = handler.call(event).await {
            health.report(&InformerError::HandlerPanicked { handler: self.status.name.clone(), message });
        }
        if let Some(latency) = latency {
            latency.record(start.elapsed());
        }
        self.status.in_hand.fetch_sub(1, Ordering::Relaxed);
        // A handler with much to do leaves room for others.
        tokio::task::coop::consume_budget().await;
    }

    /// The events of this listener as a stream, in place of a handler.
    pub(crate) fn into_stream(
        self: Arc<Self>,
        unlist: impl Fn(u64) + Send + Sync + 'static,
        informer: Arc<dyn Any + Send + Sync>,
    ) -> EventStream<T> {
        let ended = EndsOnDrop(self.status.clone());
        let unlisted = Unlisted { id: self.id, unlist: Box::new(unlist) };
        let listener = self.clone();
        let parcels = stream::unfold((self, ended), |(listener, ended)| async move {
            let parcel = listener.mailbox.next().await?;
            let events: Vec<Event<T>> = match parcel {
                Parcel::Replay(known) => {
                    known.iter().map(|object| Event::Added { object: object.clone(), initial: true }).collect()
                }
                Parcel::Events(events) => events.to_vec(),
                Parcel::Synced => {
                    listener.status.synced();
                    Vec::new()
                }
            };
            Some((stream::iter(events), (listener, ended)))
        });
        EventStream { events: parcels.flatten().boxed(), listener, _unlisted: unlisted, _informer: informer }
    }
}

struct EndsOnDrop(Arc<ListenerStatus>);

impl Drop for EndsOnDrop {
    fn drop(&mut self) {
        self.0.ends();
    }
}

struct Unlisted {
    id: u64,
    unlist: Box<dyn Fn(u64) + Send + Sync>,
}

impl Drop for Unlisted {
    fn drop(&mut self) {
        (self.unlist)(self.id);
    }
}

/// The events of an informer as a stream. It ends when the informer is stopped, and keeps it alive until then; dropping
/// it takes it off the informer's list.
///
/// It is slow if it is not polled: what waits then is folded as for any other handler.
///
/// ```
/// # use futures_util::StreamExt as _;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::{SharedInformer, source::kube::KubeSource};
/// # use serde_json::json;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
/// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
/// # maps.start()?;
/// # maps.synced().await?;
/// use kube_informer::Event;
///
/// let mut events = maps.events();
/// assert!(matches!(events.next().await, Some(Event::Added { initial: true, .. })));
/// server.create("configmaps", Some("web"), json!({"metadata": {"name": "b"}}))?;
/// maps.wait_for("web/b", |map| map.is_some()).await?;
/// assert_eq!(events.backlog(), 1);
/// assert!(matches!(events.next().await, Some(Event::Added { initial: false, .. })));
/// maps.stop().await;
/// assert!(events.next().await.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct EventStream<T> {
    events: BoxStream<'static, Event<T>>,
    listener: Arc<Listener<T>>,
    _unlisted: Unlisted,
    _informer: Arc<dyn Any + Send + Sync>,
}

impl<T: Object> EventStream<T> {
    /// How many events wait.
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// # use kube_informer::SharedInformer;
    /// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
    /// # let source = ListWatchFns::new(
    /// #     |_: ListOptions| async {
    /// #         let thing = Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "7".to_owned() };
    /// #         Ok(Items::complete([thing], ListEnd { version: Some("7".into()), ..ListEnd::default() }))
    /// #     },
    /// #     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
    /// # );
    /// # let things = SharedInformer::builder(source).build();
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// let mut events = things.events();
    /// things.start()?;
    /// things.synced().await?;
    /// assert_eq!(events.backlog(), 1);
    /// events.next().await;
    /// assert_eq!(events.backlog(), 0);
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn backlog(&self) -> usize {
        self.listener.backlog()
    }

    /// How long the oldest event has waited that is not dealt with: the stream has not been asked for the next one since.
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// # use std::time::Duration;
    /// # use kube_informer::SharedInformer;
    /// # use kube_informer::source::{Events, Identity, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
    /// # let source = ListWatchFns::new(
    /// #     |_: ListOptions| async {
    /// #         let thing = Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "7".to_owned() };
    /// #         Ok(Items::complete([thing], ListEnd { version: Some("7".into()), ..ListEnd::default() }))
    /// #     },
    /// #     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
    /// # );
    /// # let things = SharedInformer::builder(source).build();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    /// # runtime.unwrap().block_on(async {
    /// let mut events = things.events();
    /// things.start()?;
    /// things.synced().await?;
    /// tokio::time::sleep(Duration::from_secs(10)).await;
    /// assert_eq!(events.lag().as_secs(), 10, "nobody has asked for the first event yet");
    /// # assert!(events.next().await.is_some());
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn lag(&self) -> Duration {
        self.listener.mailbox.lag()
    }
}

impl<T> Stream for EventStream<T> {
    type Item = Event<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event<T>>> {
        self.events.as_mut().poll_next(context)
    }
}

impl<T: Object> fmt::Debug for EventStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("name", &self.listener.name()).finish_non_exhaustive()
    }
}
