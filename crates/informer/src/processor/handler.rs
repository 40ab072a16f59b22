//! What programs write to be told of changes: callbacks in whatever form suits them.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::{Deleted, Event};
use crate::object::Object;

/// Told of changes by callbacks. Each may be left out.
///
/// Calls to one handler never overlap, and come in order. They run on the runtime and must be brief; see
/// [`AsyncEventHandler`] for one that may wait.
///
/// client-go's `ResourceEventHandler`. What differs: a resync is told apart from an update.
///
/// ```
/// # use std::sync::Arc;
/// use kube_informer::{Deleted, EventHandler};
/// # use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
///
/// struct Audit(UnboundedSender<String>);
///
/// impl EventHandler<ConfigMap> for Audit {
///     fn on_add(&mut self, map: Arc<ConfigMap>, initial: bool) {
///         let _ = self.0.send(format!("{:?} is there, initial: {initial}", map.metadata.name));
///     }
///
///     fn on_delete(&mut self, gone: Deleted<ConfigMap>) {
///         let _ = self.0.send(format!("{} is gone", gone.key()));
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
/// let (sender, mut lines) = unbounded_channel();
/// maps.add_handler(Audit(sender));
/// assert_eq!(lines.recv().await.unwrap(), r#"Some("a") is there, initial: true"#);
/// server.delete("configmaps", Some("web"), "a")?;
/// assert_eq!(lines.recv().await.unwrap(), "web/a is gone");
/// # maps.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub trait EventHandler<T>: Send + 'static {
    /// An object appeared. `initial`: it was there already when the informer, or this handler, started.
    fn on_add(&mut self, object: Arc<T>, initial: bool) {
        let _ = (object, initial);
    }

    /// An object changed. With another uid it was deleted and made again in between.
    fn on_update(&mut self, old: Arc<T>, new: Arc<T>) {
        let _ = (old, new);
    }

    /// An object is gone.
    fn on_delete(&mut self, gone: Deleted<T>) {
        let _ = gone;
    }

    /// The cache is shown again. Taken for an update unless said otherwise, as in client-go.
    fn on_resync(&mut self, object: Arc<T>) {
        self.on_update(object.clone(), object);
    }

    /// All of the above: calls one of them.
    fn on_event(&mut self, event: Event<T>) {
        match event {
            Event::Added { object, initial } => self.on_add(object, initial),
            Event::Updated { old, new } => self.on_update(old, new),
            Event::Resynced(object) => self.on_resync(object),
            Event::Deleted(gone) => self.on_delete(gone),
        }
    }
}

/// An [`EventHandler`] whose callbacks may wait. The next event comes when the call before has ended.
///
/// ```
/// use std::sync::Arc;
/// use kube_informer::AsyncEventHandler;
/// use tokio::sync::mpsc;
///
/// /// Passes on names, to somebody who may be slow.
/// struct Names { to: mpsc::Sender<Option<String>> }
///
/// impl AsyncEventHandler<ConfigMap> for Names {
///     async fn on_add(&mut self, map: Arc<ConfigMap>, _initial: bool) {
///         let _ = self.to.send(map.metadata.name.clone()).await;
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
/// let (to, mut names) = mpsc::channel(1);
/// maps.add_async_handler(Names { to });
/// assert_eq!(names.recv().await.unwrap().as_deref(), Some("a"));
/// # maps.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub trait AsyncEventHandler<T: Object>: Send + 'static {
    /// An object appeared. `initial`: it was there already when the informer, or this handler, started.
    fn on_add(&mut self, object: Arc<T>, initial: bool) -> impl Future<Output = ()> + Send {
        let _ = (object, initial);
        async {}
    }

    /// An object changed. With another uid it was deleted and made again in between.
    fn on_update(&mut self, old: Arc<T>, new: Arc<T>) -> impl Future<Output = ()> + Send {
        let _ = (old, new);
        async {}
    }

    /// An object is gone.
    fn on_delete(&mut self, gone: Deleted<T>) -> impl Future<Output = ()> + Send {
        let _ = gone;
        async {}
    }

    /// The cache is shown again. Taken for an update unless said otherwise, as in client-go.
    fn on_resync(&mut self, object: Arc<T>) -> impl Future<Output = ()> + Send {
        self.on_update(object.clone(), object)
    }
}

/// An [`EventHandler`] put together from closures, each of them optional.
///
/// ```
/// use kube_informer::Handlers;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::{SharedInformer, source::kube::KubeSource};
/// # use serde_json::json;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
/// # let maps = SharedInformer::builder(KubeSource::<ConfigMap>::new(server.client())).build();
/// # maps.start()?;
/// # maps.synced().await?;
/// let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
/// let gone = sender.clone();
/// maps.add_handler(
///     Handlers::<ConfigMap>::new()
///         .on_add(move |map, _initial| sender.send(format!("+ {}", map.metadata.name.as_deref().unwrap())).unwrap())
///         .on_delete(move |deleted| gone.send(format!("- {}", deleted.key())).unwrap()),
/// );
/// assert_eq!(lines.recv().await.unwrap(), "+ a");
/// server.delete("configmaps", Some("web"), "a")?;
/// assert_eq!(lines.recv().await.unwrap(), "- web/a");
/// # maps.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct Handlers<T> {
    add: Option<BoxedCallback<(Arc<T>, bool)>>,
    update: Option<BoxedCallback<(Arc<T>, Arc<T>)>>,
    delete: Option<BoxedCallback<Deleted<T>>>,
    resync: Option<BoxedCallback<Arc<T>>>,
}

type BoxedCallback<A> = Box<dyn FnMut(A) + Send>;

impl<T: Object> Handlers<T> {
    /// Handlers of nothing yet.
    pub fn new() -> Self {
        Self { add: None, update: None, delete: None, resync: None }
    }

    /// Called with objects that appear, and whether they were there from the start.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// use kube_informer::{Event, EventHandler as _, Handlers};
    ///
    /// let (sender, added) = std::sync::mpsc::channel();
    /// let mut handlers = Handlers::<Identity>::new().on_add(move |object, initial| {
    ///     sender.send((object.version.clone(), initial)).unwrap();
    /// });
    /// handlers.on_event(Event::Added { object: thing("web/a", "1"), initial: true });
    /// assert_eq!(added.try_recv()?, ("1".to_owned(), true));
    /// # Ok::<(), std::sync::mpsc::TryRecvError>(())
    /// ```
    #[must_use]
    pub fn on_add(mut self, mut f: impl FnMut(Arc<T>, bool) + Send + 'static) -> Self {
        self.add = Some(Box::new(move |(object, initial)| f(object, initial)));
        self
    }

    /// Called with the old and the new state of objects that change.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// use kube_informer::{Event, EventHandler as _, Handlers};
    ///
    /// let (sender, versions) = std::sync::mpsc::channel();
    /// let mut handlers = Handlers::<Identity>::new().on_update(move |old, new| {
    ///     sender.send((old.version.clone(), new.version.clone())).unwrap();
    /// });
    /// handlers.on_event(Event::Updated { old: thing("web/a", "1"), new: thing("web/a", "2") });
    /// assert_eq!(versions.try_recv()?, ("1".to_owned(), "2".to_owned()));
    /// handlers.on_event(Event::Resynced(thing("web/a", "2")));
    /// assert_eq!(versions.try_recv()?, ("2".to_owned(), "2".to_owned()), "shown again");
    /// # Ok::<(), std::sync::mpsc::TryRecvError>(())
    /// ```
    #[must_use]
    pub fn on_update(mut self, mut f: impl FnMut(Arc<T>, Arc<T>) + Send + 'static) -> Self {
        self.update = Some(Box::new(move |(old, new)| f(old, new)));
        self
    }

    /// Called with objects that are gone.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// use kube_informer::{Deleted, Event, EventHandler as _, Handlers};
    ///
    /// let (sender, keys) = std::sync::mpsc::channel();
    /// let mut handlers = Handlers::<Identity>::new().on_delete(move |gone| sender.send(gone.key()).unwrap());
    /// handlers.on_event(Event::Added { object: thing("web/a", "1"), initial: true }); // Nobody asked for that.
    /// handlers.on_event(Event::Deleted(Deleted::Final(thing("web/a", "2"))));
    /// assert_eq!(keys.try_recv()?.as_str(), "web/a");
    /// # Ok::<(), std::sync::mpsc::TryRecvError>(())
    /// ```
    #[must_use]
    pub fn on_delete(mut self, f: impl FnMut(Deleted<T>) + Send + 'static) -> Self {
        self.delete = Some(Box::new(f));
        self
    }

    /// Called with objects that are shown again; without it, the one for updates is called.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// use kube_informer::{Event, EventHandler as _, Handlers};
    ///
    /// let (sender, shown) = std::sync::mpsc::channel();
    /// let mut handlers = Handlers::<Identity>::new()
    ///     .on_update(|_, _| unreachable!("told apart"))
    ///     .on_resync(move |object| sender.send(object.version.clone()).unwrap());
    /// handlers.on_event(Event::Resynced(thing("web/a", "1")));
    /// assert_eq!(shown.try_recv()?, "1");
    /// # Ok::<(), std::sync::mpsc::TryRecvError>(())
    /// ```
    #[must_use]
    pub fn on_resync(mut self, f: impl FnMut(Arc<T>) + Send + 'static) -> Self {
        self.resync = Some(Box::new(f));
        self
    }
}

impl<T: Object> Default for Handlers<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Object> EventHandler<T> for Handlers<T> {
    fn on_add(&mut self, object: Arc<T>, initial: bool) {
        if let Some(add) = &mut self.add {
            add((object, initial));
        }
    }

    fn on_update(&mut self, old: Arc<T>, new: Arc<T>) {
        if let Some(update) = &mut self.update {
            update((old, new));
        }
    }

    fn on_delete(&mut self, gone: Deleted<T>) {
        if let Some(delete) = &mut self.delete {
            delete(gone);
        }
    }

    fn on_resync(&mut self, object: Arc<T>) {
        match &mut self.resync {
            Some(resync) => resync(object),
            None => self.on_update(object.clone(), object),
        }
    }
}

/// Passes on only what matches: an object that comes to match is added, one that no longer does is deleted.
///
/// client-go's `FilteringResourceEventHandler`. What differs: the filter always gets an object.
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::source::Identity;
/// # let thing = |key: &str, version: &str| {
/// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
/// # };
/// use kube_informer::{Event, EventHandler as _, Filtered, Handlers};
///
/// let (sender, events) = std::sync::mpsc::channel();
/// let gone = sender.clone();
/// let handler = Handlers::new()
///     .on_add(move |_, _| sender.send("added").unwrap())
///     .on_delete(move |_| gone.send("deleted").unwrap());
/// let mut filtered = Filtered::new(|thing: &Identity| thing.uid == "7", handler);
///
/// let other = thing("web/a", "1");
/// let seven = Arc::new(Identity { uid: "7".to_owned(), version: "2".to_owned(), key: other.key.clone() });
/// filtered.on_event(Event::Added { object: other.clone(), initial: true });
/// filtered.on_event(Event::Updated { old: other.clone(), new: seven.clone() });
/// assert_eq!(events.try_recv()?, "added", "when it came to match, and not before");
/// filtered.on_event(Event::Updated { old: seven, new: other });
/// assert_eq!(events.try_recv()?, "deleted");
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
    fn on_event(&mut self, event: Event<T>) {
        let event = match event {
            Event::Updated { old, new } => match ((self.filter)(&old), (self.filter)(&new)) {
                (true, true) => Event::Updated { old, new },
                (false, true) => Event::Added { object: new, initial: false },
                (true, false) => Event::Deleted(Deleted::Final(old)),
                (false, false) => return,
            },
            event if (self.filter)(event.object()) => event,
            _ => return,
        };
        self.handler.on_event(event);
    }
}

/// A handler in whatever form it came.
pub(crate) enum AnyHandler<T> {
    Sync(BoxedHandler<T>),
    Async(Box<dyn DynAsyncHandler<T>>),
    /// Called on a thread where it may block; `None` while it is there.
    Blocking(Option<BoxedHandler<T>>),
}

pub(crate) type BoxedHandler<T> = Box<dyn FnMut(Event<T>) + Send>;

/// [`AsyncEventHandler`] and async closures, behind one pointer.
pub(crate) trait DynAsyncHandler<T>: Send {
    fn call(&mut self, event: Event<T>) -> BoxFuture<'_, ()>;
}

/// The callbacks of an [`AsyncEventHandler`].
pub(crate) struct AsyncCalls<H>(pub(crate) H);

impl<T: Object, H: AsyncEventHandler<T>> DynAsyncHandler<T> for AsyncCalls<H> {
    fn call(&mut self, event: Event<T>) -> BoxFuture<'_, ()> {
        match event {
            Event::Added { object, initial } => self.0.on_add(object, initial).boxed(),
            Event::Updated { old, new } => self.0.on_update(old, new).boxed(),
            Event::Resynced(object) => self.0.on_resync(object).boxed(),
            Event::Deleted(gone) => self.0.on_delete(gone).boxed(),
        }
    }
}

/// An async closure, called on a clone for each event.
pub(crate) struct AsyncClosure<F>(pub(crate) F);

impl<T, F, R> DynAsyncHandler<T> for AsyncClosure<F>
where
    F: FnOnce(Event<T>) -> R + Clone + Send,
    R: Future<Output = ()> + Send + 'static,
{
    fn call(&mut self, event: Event<T>) -> BoxFuture<'_, ()> {
        (self.0.clone())(event).boxed()
    }
}

impl<T: Object> AnyHandler<T> {
    /// Calls it with one event. A panic is caught and handed back as text.
    pub(super) async fn call(&mut self, event: Event<T>) -> Result<(), String> {
        match self {
            Self::Sync(handler) => call_caught(handler, event),
            Self::Async(handler) => match catch_unwind(AssertUnwindSafe(|| handler.call(event))) {
                Ok(future) => AssertUnwindSafe(future).catch_unwind().await.map_err(|panic| crate::panic_text(&*panic)),
                Err(panic) => Err(crate::panic_text(&*panic)),
            },
            Self::Blocking(slot) => {
                let Some(mut handler) = slot.take() else { return Err("handler is gone".to_owned()) };
                let current = super::listener::current();
                let call = move || {
                    let outcome = super::listener::within(current, || call_caught(&mut handler, event));
                    (handler, outcome)
                };
                let (handler, outcome) = tokio::task::spawn_blocking(call).await.map_err(|error| error.to_string())?;
                *slot = Some(handler);
                outcome
            }
        }
    }
}

fn call_caught<T>(handler: &mut BoxedHandler<T>, event: Event<T>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| handler(event))).map_err(|panic| crate::panic_text(&*panic))
}

impl<T> fmt::Debug for Handlers<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handlers")
    }
}
