//! Handles to registered handlers.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::listener::{Listener, ListenerPhase, ListenerStatus, current};
use crate::object::Object;

/// What becomes of events that wait when a handler is removed.
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
/// use kube_informer::Removal;
///
/// let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
/// let handle = maps.on_event(move |event| { let _ = sender.send(event.key().to_string()); });
/// assert_eq!(handle.backlog(), 1);
/// handle.remove(Removal::Drain).await?;
/// assert_eq!(told.recv().await.as_deref(), Some("web/a"), "what waited was still delivered");
/// assert_eq!(told.recv().await, None, "the handler is gone");
/// # maps.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Removal {
    /// They are still delivered.
    Drain,
    /// They are thrown away.
    Discard,
}

/// Why a handler could not be removed.
///
/// ```
/// # use std::sync::{Arc, Mutex};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::{SharedInformer, source::kube::KubeSource};
/// # use serde_json::json;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
/// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
/// # maps.start()?;
/// # maps.synced().await?;
/// use kube_informer::{HandlerHandle, Removal, processor::RemoveError};
///
/// let own: Arc<Mutex<Option<HandlerHandle>>> = Arc::default();
/// let (sender, mut outcome) = tokio::sync::mpsc::unbounded_channel();
/// let handle = maps.on_event_async({
///     let own = own.clone();
///     async move |_| {
///         let handle = own.lock().unwrap().take();
///         let _ = sender.send(handle.unwrap().remove(Removal::Discard).await);
///     }
/// });
/// *own.lock().unwrap() = Some(handle);
/// assert!(matches!(outcome.recv().await, Some(Err(RemoveError::FromItself(_)))));
/// # maps.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// A handler cannot wait for its own callback to end.
    #[error("handler {0:?} cannot be removed from inside its own callback; do it from another task")]
    FromItself(String),
}

/// A registered handler. Dropping it leaves the handler in place; see [`HandlerHandle::remove_on_drop`].
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
/// use kube_informer::{HandlerOptions, Removal};
///
/// let handle = maps.with(HandlerOptions::new().name("audit")).on_event(|_| {});
/// assert!(handle.synced().await, "everything there is has been delivered");
/// assert_eq!((handle.name(), handle.backlog(), handle.folds()), ("audit", 0, 0));
/// handle.remove(Removal::Discard).await?;
/// # maps.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct HandlerHandle {
    id: u64,
    status: Arc<ListenerStatus>,
    control: Arc<dyn Control>,
    informer: Weak<dyn Any + Send + Sync>,
}

/// What a handle does with its listener and its informer, whatever their type.
trait Control: Send + Sync {
    fn close(&self, removal: Removal);
    fn backlog(&self) -> usize;
    fn lag(&self) -> Duration;
    fn folds(&self) -> u64;
}

struct ListenerControl<T, F> {
    listener: Arc<Listener<T>>,
    unlist: F,
}

impl<T: Object, F: Fn(u64) + Send + Sync> Control for ListenerControl<T, F> {
    fn close(&self, removal: Removal) {
        (self.unlist)(self.listener.id);
        self.listener.mailbox.close(removal == Removal::Drain);
    }

    fn backlog(&self) -> usize {
        self.listener.backlog()
    }

    fn lag(&self) -> Duration {
        self.listener.mailbox.lag()
    }

    fn folds(&self) -> u64 {
        self.listener.mailbox.folds()
    }
}

impl HandlerHandle {
    /// A handle to a listener of an informer; `unlist` takes it off the informer's list.
    pub(crate) fn new<T: Object>(
        listener: Arc<Listener<T>>,
        unlist: impl Fn(u64) + Send + Sync + 'static,
        informer: Weak<dyn Any + Send + Sync>,
    ) -> Self {
        Self {
            id: listener.id,
            status: listener.status.clone(),
            control: Arc::new(ListenerControl { listener, unlist }),
            informer,
        }
    }

    /// The name it was registered under.
    pub fn name(&self) -> &str {
        &self.status.name
    }

    /// True once everything that was there at the start has been delivered. It stays true.
    ///
    /// ```
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
    /// let handle = things.on_event(|_| {});
    /// things.start()?;
    /// assert!(!handle.is_synced());
    /// handle.synced().await;
    /// assert!(handle.is_synced());
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn is_synced(&self) -> bool {
        self.status.phase.borrow().is_synced()
    }

    /// Waits until everything that was there at the start has been delivered: true then, false if the handler ended
    /// before.
    ///
    /// # Cancel safety
    ///
    /// Waiting again is fine.
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
    /// # use std::sync::atomic::{AtomicUsize, Ordering};
    /// # use std::sync::Arc;
    /// let told = Arc::new(AtomicUsize::new(0));
    /// let handle = maps.on_event({
    ///     let told = told.clone();
    ///     move |_| { told.fetch_add(1, Ordering::Relaxed); }
    /// });
    /// assert!(handle.synced().await);
    /// assert_eq!(told.load(Ordering::Relaxed), maps.store().len());
    ///
    /// maps.stop().await;
    /// assert!(!maps.on_event(|_| {}).synced().await, "too late");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn synced(&self) -> bool {
        let mut phase = self.status.phase.subscribe();
        let reached = phase.wait_for(|phase| phase.is_synced() || phase.is_ended()).await;
        reached.is_ok_and(|phase| phase.is_synced())
    }

    /// How many events wait to be delivered.
    ///
    /// ```
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
    /// # use std::time::Duration;
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    /// # runtime.unwrap().block_on(async {
    /// things.start()?;
    /// things.synced().await?;
    /// let slow = things.on_event_async(async |_| tokio::time::sleep(Duration::from_secs(60)).await);
    /// tokio::time::sleep(Duration::from_secs(10)).await;
    /// assert_eq!(slow.backlog(), 1, "the call has not returned");
    /// slow.synced().await;
    /// assert_eq!(slow.backlog(), 0);
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn backlog(&self) -> usize {
        self.control.backlog()
    }

    /// How long the oldest event has waited whose call has not returned yet; zero if none waits.
    ///
    /// ```
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
    /// # use std::time::Duration;
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    /// # runtime.unwrap().block_on(async {
    /// things.start()?;
    /// things.synced().await?;
    /// let slow = things.on_event_async(async |_| tokio::time::sleep(Duration::from_secs(60)).await);
    /// tokio::time::sleep(Duration::from_secs(10)).await;
    /// assert_eq!(slow.lag().as_secs(), 10);
    /// slow.synced().await;
    /// assert!(slow.lag().is_zero());
    /// things.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn lag(&self) -> Duration {
        self.control.lag()
    }

    /// How often the handler was so slow that only the latest of each object was kept for it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{SharedInformer, source::kube::KubeSource};
    /// # use serde_json::json;
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    /// # runtime.unwrap().block_on(async {
    /// # let server = kube_embedded_apiserver::ApiServer::new();
    /// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
    /// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
    /// # maps.start()?;
    /// # maps.synced().await?;
    /// use kube_informer::{Delivery, HandlerOptions};
    ///
    /// let options = HandlerOptions::new().delivery(Delivery::Every { max_backlog: 1 });
    /// let slow = maps.with(options).on_event_async(async |_| tokio::time::sleep(Duration::from_secs(60)).await);
    /// tokio::time::sleep(Duration::from_secs(1)).await; // It is told of the first object, and does not return.
    /// for name in ["b", "c", "d"] {
    ///     server.create("configmaps", Some("web"), json!({"metadata": {"name": name}}))?;
    /// }
    /// maps.wait_for("web/d", |map| map.is_some()).await?;
    /// assert_eq!(slow.folds(), 1);
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn folds(&self) -> u64 {
        self.control.folds()
    }

    /// Takes the handler away, and waits until its last call has returned.
    ///
    /// # Errors
    ///
    /// [`RemoveError::FromItself`] inside the handler's own callback: it would wait for itself.
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
    /// use kube_informer::Removal;
    ///
    /// let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    /// let handle = maps.on_event(move |event| { let _ = sender.send(event.key().to_string()); });
    /// handle.synced().await;
    /// handle.remove(Removal::Discard).await?;
    ///
    /// server.create("configmaps", Some("web"), json!({"metadata": {"name": "b"}}))?;
    /// maps.wait_for("web/b", |map| map.is_some()).await?;
    /// assert_eq!(told.recv().await.as_deref(), Some("web/a"));
    /// assert_eq!(told.recv().await, None, "nobody tells it of b");
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn remove(self, removal: Removal) -> Result<(), RemoveError> {
        if current() == Some(self.id) {
            return Err(RemoveError::FromItself(self.status.name.clone()));
        }
        self.control.close(removal);
        self.status.moves(ListenerPhase::New, ListenerPhase::Ended { synced: false });
        let mut phase = self.status.phase.subscribe();
        // An error means that all is gone, which is as good as ended.
        let _ = phase.wait_for(|phase| phase.is_ended()).await;
        Ok(())
    }

    /// A guard that takes the handler away when it is dropped, without waiting for a call that is under way. Until then
    /// it keeps the informer alive.
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
    /// let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    /// let guard = maps.on_event(move |event| { let _ = sender.send(event); }).remove_on_drop();
    /// assert!(guard.synced().await, "a guard is a handle too");
    /// drop(guard);
    /// assert!(seen.recv().await.is_some());
    /// assert!(seen.recv().await.is_none(), "the handler is gone");
    /// # maps.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use = "dropping the guard removes the handler"]
    pub fn remove_on_drop(self) -> HandlerGuard {
        HandlerGuard { _informer: self.informer.upgrade(), handle: self }
    }
}

/// Takes its handler away when it is dropped. Events that wait are thrown away.
///
/// A part of a program that listens for as long as it lives:
///
///
/// ```
/// # use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
/// use kube_informer::processor::HandlerGuard;
///
/// struct Page { _listens: HandlerGuard }
///
/// impl Page {
///     fn open(maps: &SharedInformer<ConfigMap>, told: UnboundedSender<String>) -> Self {
///         let handle = maps.on_event(move |event| { let _ = told.send(event.key().to_string()); });
///         Page { _listens: handle.remove_on_drop() }
///     }
/// }
///
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::{SharedInformer, source::kube::KubeSource};
/// # use serde_json::json;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
/// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
/// # maps.start()?;
/// # maps.synced().await?;
/// let (sender, mut told) = unbounded_channel();
/// let page = Page::open(&maps, sender);
/// assert_eq!(told.recv().await.as_deref(), Some("web/a"));
/// drop(page);
/// assert_eq!(told.recv().await, None);
/// # maps.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct HandlerGuard {
    handle: HandlerHandle,
    _informer: Option<Arc<dyn Any + Send + Sync>>,
}

impl std::ops::Deref for HandlerGuard {
    type Target = HandlerHandle;

    fn deref(&self) -> &HandlerHandle {
        &self.handle
    }
}

impl Drop for HandlerGuard {
    fn drop(&mut self) {
        self.handle.control.close(Removal::Discard);
    }
}

impl fmt::Debug for HandlerGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HandlerGuard").field(&self.handle).finish()
    }
}

impl fmt::Debug for HandlerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("HandlerHandle");
        debug
            .field("name", &self.status.name)
            .field("backlog", &self.backlog())
            .field("lag", &self.lag())
            .finish_non_exhaustive()
    }
}
