//! Where objects come from: the items of a list, and the events of a watch, of one collection.

#[cfg(feature = "kube")]
pub(crate) mod frames;
#[cfg(feature = "kube")]
pub(crate) mod items;
#[cfg(feature = "kube")]
pub mod kube;
mod script;
pub(crate) mod transform;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;

pub use self::script::ListWatchFns;
use crate::object::{DecodeError, Glimpse, GlimpseMetadata, Id, Object, ObjectKey, Raw, ResourceVersion};

/// Where objects come from: an API server, or a script in a test.
///
/// Over a Kubernetes API server it is `KubeSource`; two closures make one too ([`ListWatchFns`]).
///
/// Written by hand, it is a list and the changes since:
///
///
/// ```
/// use futures_util::{StreamExt as _, stream};
/// use kube_informer::SharedInformer;
/// use kube_informer::source::*;
/// # fn thing(name: &str, version: &str) -> Identity {
/// #     Identity { key: name.parse().unwrap(), uid: String::new(), version: version.to_owned() }
/// # }
///
/// struct Rooms;
///
/// impl ListWatch<Identity> for Rooms {
///     async fn list(&self, _: ListOptions) -> Result<Items<Identity>, SourceError> {
///         let end = ListEnd { version: Some("1".into()), ..ListEnd::default() };
///         Ok(Items::complete([thing("kitchen", "1")], end))
///     }
///
///     async fn watch(&self, _: WatchOptions) -> Result<Events<Identity>, SourceError> {
///         let built = WatchEvent::Added(Decoded::Object(thing("cellar", "2").into()));
///         // No more happens, and the watch stays open.
///         Ok(Events::new(stream::iter([Ok(built)]).chain(stream::pending())))
///     }
///
///     fn supports_streaming_lists(&self) -> bool { false }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let rooms = SharedInformer::builder(Rooms).build();
/// rooms.start()?;
/// rooms.wait_for("cellar", |room| room.is_some()).await?;
/// assert!(rooms.store().contains("kitchen"));
/// rooms.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub trait ListWatch<T: Object>: Send + Sync + 'static {
    /// Starts to list one page of the collection.
    fn list(&self, options: ListOptions) -> impl Future<Output = Result<Items<T>, SourceError>> + Send;

    /// Opens a watch.
    fn watch(&self, options: WatchOptions) -> impl Future<Output = Result<Events<T>, SourceError>> + Send;

    /// Starts to list one page of the collection, of which only keys and versions are of interest.
    ///
    /// A source that can ask its server for less does so.
    fn list_identities(
        &self,
        options: ListOptions,
    ) -> impl Future<Output = Result<Items<Identity>, SourceError>> + Send {
        async {
            let items = self.list(options).await?;
            Ok(Items::new(items.map(|part| part.map(|part| part.map(|object| Identity::of(&*object))))))
        }
    }

    /// False if this source cannot answer a watch with the initial state first; lists are then used instead.
    fn supports_streaming_lists(&self) -> bool {
        true
    }
}

impl<T: Object, L: ListWatch<T>> ListWatch<T> for Arc<L> {
    fn list(&self, options: ListOptions) -> impl Future<Output = Result<Items<T>, SourceError>> + Send {
        L::list(self, options)
    }

    fn watch(&self, options: WatchOptions) -> impl Future<Output = Result<Events<T>, SourceError>> + Send {
        L::watch(self, options)
    }

    fn list_identities(
        &self,
        options: ListOptions,
    ) -> impl Future<Output = Result<Items<Identity>, SourceError>> + Send {
        L::list_identities(self, options)
    }

    fn supports_streaming_lists(&self) -> bool {
        L::supports_streaming_lists(self)
    }
}

/// Which part of a collection to list, and how fresh it must be.
///
/// A list in pages, by hand:
///
///
/// ```
/// # use futures_util::StreamExt as _;
/// use kube_informer::source::{ListOptions, ListPart, ListWatch as _};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::source::kube::KubeSource;
/// # use serde_json::json;
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
/// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "b"}}))?;
/// let source = KubeSource::<ConfigMap>::new(server.client());
/// let first = ListOptions { limit: 1, ..ListOptions::default() };
/// let parts: Vec<_> = source.list(first).await?.collect().await;
/// let Some(Ok(ListPart::End(end))) = parts.last() else { panic!("a complete page ends so") };
/// assert_eq!((parts.len(), end.remaining), (2, Some(1)));
///
/// let next = ListOptions { limit: 1, continue_token: end.continue_token.clone(), ..ListOptions::default() };
/// assert_eq!(source.list(next).await?.count().await, 2, "the other object, and the end");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// The version asked for: `None` for the most recent, `"0"` for whatever the server has at hand.
    pub version: Option<ResourceVersion>,
    /// True if any state not older than `version` will do, even together with a limit.
    pub not_older_than: bool,
    /// At most this many items; 0 for all.
    pub limit: usize,
    /// Where the page before this one ended.
    pub continue_token: Option<String>,
}

/// From where to watch, and for how long.
///
/// A watch that starts with the present state, by hand:
///
///
/// ```
/// # use futures_util::StreamExt as _;
/// # use std::time::Duration;
/// use kube_informer::source::{ListWatch as _, WatchEvent, WatchOptions};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::source::kube::KubeSource;
/// # use serde_json::json;
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// # server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}}))?;
/// let source = KubeSource::<ConfigMap>::new(server.client());
/// let options = WatchOptions { initial_events: true, timeout: Duration::from_secs(300), version: None };
/// let mut events = source.watch(options).await?;
/// assert!(matches!(events.next().await, Some(Ok(WatchEvent::Added(_)))));
/// assert!(matches!(events.next().await, Some(Ok(WatchEvent::Bookmark { initial_events_end: true, .. }))));
///
/// server.delete("configmaps", Some("web"), "a")?;
/// assert!(matches!(events.next().await, Some(Ok(WatchEvent::Deleted(_)))));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchOptions {
    /// Changes after this version; with `initial_events`, a state not older than it.
    pub version: Option<ResourceVersion>,
    /// True to get the present state first, as added objects and a bookmark that ends them.
    pub initial_events: bool,
    /// When the server is to end the watch.
    pub timeout: Duration,
}

/// One page of a list: items, and then the page's end.
///
/// A page of which one object could not be read:
///
///
/// ```
/// use futures_util::{StreamExt as _, stream};
/// use kube_informer::object::DecodeError;
/// use kube_informer::source::{BadObject, Decoded, Identity, Items, ListEnd, ListPart};
///
/// let bad = BadObject { key: Some("web/a".parse()?), version: None, error: DecodeError::NotUtf8 };
/// let end = ListEnd { version: Some("7".into()), ..ListEnd::default() };
/// let parts = [ListPart::Item(Decoded::Bad(bad)), ListPart::End(end)];
/// let items = Items::<Identity>::new(stream::iter(parts.map(Ok)));
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// assert_eq!(items.count().await, 2);
/// # });
/// # Ok::<(), kube_informer::object::KeyError>(())
/// ```
pub struct Items<T>(BoxStream<'static, Result<ListPart<T>, SourceError>>);

/// What a list is made of. [`ListPart::End`] comes last, exactly once; a list without it is not complete.
#[derive(Debug)]
pub enum ListPart<T> {
    /// One object, or one that could not be made.
    Item(Decoded<T>),
    /// The page is complete.
    End(ListEnd),
}

impl<T> ListPart<T> {
    /// The same with other objects.
    fn map<U>(self, change: impl FnOnce(Arc<T>) -> U) -> ListPart<U> {
        match self {
            Self::Item(Decoded::Object(object)) => ListPart::Item(Decoded::Object(Arc::new(change(object)))),
            Self::Item(Decoded::Bad(bad)) => ListPart::Item(Decoded::Bad(bad)),
            Self::End(end) => ListPart::End(end),
        }
    }
}

/// Which object, and which version of it: an object of which nothing else is kept.
///
/// It is what a cache keeps that only wants to know what is there:
///
///
/// ```
/// # use kube_informer::SharedInformer;
/// # use kube_informer::object::Kind as _;
/// # use kube_informer::source::{Identity, kube::KubeSource};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use serde_json::json;
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let server = kube_embedded_apiserver::ApiServer::new();
/// server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}, "data": {"k": "v"}}))?;
/// let source = KubeSource::<Identity>::of(server.client(), ConfigMap::resource_type()).metadata_only();
/// let maps = SharedInformer::builder(source).build();
/// maps.start()?;
/// maps.synced().await?;
/// assert_eq!(maps.store().get("web/a").unwrap().key.name(), "a");
/// maps.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Namespace and name.
    pub key: ObjectKey,
    /// What tells a recreated object from its namesake; empty if unknown.
    pub uid: String,
    /// The version the server gave it; empty if unknown.
    pub version: String,
}

impl Identity {
    /// That of another object.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::source::Identity;
    /// # let mut map = ConfigMap::default();
    /// # map.metadata.name = Some("a".to_owned());
    /// # map.metadata.resource_version = Some("7".to_owned());
    /// let identity = Identity::of(&map);
    /// assert_eq!((identity.key.as_str(), identity.version.as_str()), ("a", "7"));
    /// ```
    pub fn of(object: &impl Object) -> Self {
        let Id { key, uid, version } = object.id();
        Self { key: key.into(), uid: uid.to_owned(), version: version.to_owned() }
    }
}

impl Object for Identity {
    fn decode(raw: Raw<'_>) -> Result<Self, DecodeError> {
        let glimpse: Glimpse = raw.deserialize()?;
        let key = glimpse.key().ok_or(DecodeError::NoName)?;
        let GlimpseMetadata { uid, resource_version, .. } = glimpse.metadata;
        Ok(Self { key, uid: uid.unwrap_or_default(), version: resource_version.unwrap_or_default() })
    }

    fn id(&self) -> Id<'_> {
        Id { key: (&self.key).into(), uid: &self.uid, version: &self.version }
    }
}

/// What is known at the end of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListEnd {
    /// The version of the whole list.
    pub version: Option<ResourceVersion>,
    /// Where the next page starts; `None` on the last one.
    pub continue_token: Option<String>,
    /// How many items follow this page, if the server says so.
    pub remaining: Option<u64>,
}

/// An object, or why there is none.
#[derive(Debug)]
pub enum Decoded<T> {
    /// The object.
    Object(Arc<T>),
    /// It came, but could not be read.
    Bad(BadObject),
}

/// An object that came but could not be read. The last good copy of it stays in the cache.
#[derive(Debug, Clone)]
pub struct BadObject {
    /// Which one it is, if at least that could be read.
    pub key: Option<ObjectKey>,
    /// Its version, if that could be read.
    pub version: Option<ResourceVersion>,
    /// What is wrong with it.
    pub error: DecodeError,
}

/// An open watch. Dropping it closes the connection.
///
/// ```
/// use futures_util::{StreamExt as _, stream};
/// use kube_informer::source::{Events, Identity, SourceError, WatchEvent};
///
/// let bookmark = WatchEvent::Bookmark { version: "7".into(), initial_events_end: false };
/// let mut events = Events::<Identity>::new(stream::iter([Ok(bookmark), Err(SourceError::CutOff)]));
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// assert!(matches!(events.next().await, Some(Ok(WatchEvent::Bookmark { .. }))));
/// assert!(events.next().await.unwrap().unwrap_err().is_interruption());
/// # });
/// ```
pub struct Events<T>(BoxStream<'static, Result<WatchEvent<T>, SourceError>>);

/// What a watch sends.
#[derive(Debug)]
pub enum WatchEvent<T> {
    /// An object appeared, or came to match the selectors.
    Added(Decoded<T>),
    /// An object changed.
    Modified(Decoded<T>),
    /// An object is gone, or stopped matching. It carries the last state, with the version of the deletion.
    Deleted(Decoded<T>),
    /// Nothing up to this version is missing.
    Bookmark {
        /// The version reached.
        version: ResourceVersion,
        /// True on the bookmark that ends the initial state.
        initial_events_end: bool,
    },
}

impl<T> WatchEvent<T> {
    /// True if something happened to some object, and that is all that could be read.
    pub(crate) fn is_of_nobody_knows_what(&self) -> bool {
        match self {
            Self::Added(Decoded::Bad(bad)) | Self::Modified(Decoded::Bad(bad)) | Self::Deleted(Decoded::Bad(bad)) => {
                bad.key.is_none()
            }
            _ => false,
        }
    }
}

/// Why a list or watch failed.
///
/// What the predicates are for, is to tell what to do next:
///
///
/// ```
/// use std::time::Duration;
/// use kube_informer::source::{SourceError, Status};
///
/// let status = |code| Status { code, retry_after: Some(Duration::from_secs(2)), ..Status::default() };
/// let gone = SourceError::Status(status(410));
/// assert!(gone.is_expired() && gone.is_version_unavailable(), "list again");
/// let busy = SourceError::Status(status(429));
/// assert!(busy.is_overload() && busy.retry_after() == Some(Duration::from_secs(2)), "wait, then ask the same");
/// assert!(SourceError::CutOff.is_interruption(), "ask for the rest");
/// assert!(!SourceError::CutOff.is_unreachable() && SourceError::CutOff.status().is_none());
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The server answered with an error, or sent one within the stream.
    #[error("{0}")]
    Status(Status),
    /// The server could not be reached.
    #[error("cannot reach the server: {0}")]
    Unreachable(Arc<dyn std::error::Error + Send + Sync>),
    /// The connection was lost in the middle of an answer.
    #[error("connection lost: {0}")]
    Interrupted(Arc<dyn std::error::Error + Send + Sync>),
    /// The answer ended in the middle of a frame.
    #[error("answer was cut off")]
    CutOff,
    /// A line of a watch is not an event.
    #[error("not a watch event: {0:?}")]
    NotAnEvent(String),
    /// The answer to a list is not a list.
    #[error("not a list: {0}")]
    NotAList(String),
    /// The server answered with a table, which is made for people.
    #[error("the server sent a Table instead of objects")]
    Table,
    /// The list is one of another kind.
    #[error("expected a {expected}, got a {got}")]
    WrongKind {
        /// What was asked for.
        expected: String,
        /// What came.
        got: String,
    },
    /// The answer is a page for a browser, most likely from a proxy on the way.
    #[error("the server sent {content_type} instead of JSON; is a proxy in the way?")]
    NotJson {
        /// What it says it is.
        content_type: String,
    },
    /// One object or frame is larger than this source accepts.
    #[error("object is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit in force.
        limit: usize,
    },
    /// The request could not be made.
    #[error("cannot make the request: {0}")]
    Request(String),
}

/// An error as an API server words it.
///
/// ```
/// use kube_informer::source::Status;
///
/// let status = Status { code: 403, reason: "Forbidden".into(), message: "not yours".into(), ..Status::default() };
/// assert_eq!(status.to_string(), "server answered 403 Forbidden: not yours");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// The HTTP code.
    pub code: u16,
    /// A word for programs, such as `Expired`; may be empty.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// How long the server asks to be left alone.
    pub retry_after: Option<Duration>,
    /// True if the server has not reached the version asked for.
    pub version_too_large: bool,
}

impl SourceError {
    /// The server's own words, if it answered.
    ///
    /// ```
    /// use kube_informer::source::{SourceError, Status};
    ///
    /// let refused = SourceError::Status(Status { code: 403, ..Status::default() });
    /// assert_eq!(refused.status().map(|status| status.code), Some(403));
    /// assert!(SourceError::CutOff.status().is_none());
    /// ```
    pub fn status(&self) -> Option<&Status> {
        if let Self::Status(status) = self { Some(status) } else { None }
    }

    /// True if the version asked for is no longer, or not yet, known to the server.
    ///
    /// ```
    /// use kube_informer::source::{SourceError, Status};
    ///
    /// // A server that has not caught up with the others yet.
    /// let status = Status { code: 504, version_too_large: true, ..Status::default() };
    /// let behind = SourceError::Status(status);
    /// assert!(behind.is_version_unavailable() && !behind.is_expired());
    /// ```
    pub fn is_version_unavailable(&self) -> bool {
        self.is_expired() || self.status().is_some_and(|status| status.version_too_large)
    }

    /// True if another version may well be answered: this one is not available, or not even understood.
    pub(crate) fn is_about_version(&self) -> bool {
        self.is_version_unavailable() || self.status().is_some_and(|status| matches!(status.code, 400 | 422))
    }

    /// True if the server has forgotten the version asked for: list again.
    ///
    /// ```
    /// use kube_informer::source::{SourceError, Status};
    ///
    /// let gone = SourceError::Status(Status { code: 410, reason: "Expired".to_owned(), ..Status::default() });
    /// assert!(gone.is_expired());
    /// ```
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(|status| status.code == 410 || status.reason == "Expired" || status.reason == "Gone")
    }

    /// True if the server is busy: the same request may be made again later.
    ///
    /// ```
    /// use kube_informer::source::{SourceError, Status};
    ///
    /// assert!(SourceError::Status(Status { code: 429, ..Status::default() }).is_overload());
    /// assert!(!SourceError::Status(Status { code: 403, ..Status::default() }).is_overload());
    /// ```
    pub fn is_overload(&self) -> bool {
        self.status().is_some_and(|status| status.code == 429)
    }

    /// True if nobody answered at all.
    ///
    /// ```
    /// use std::io::{Error, ErrorKind};
    /// use kube_informer::source::SourceError;
    ///
    /// let refused = SourceError::Unreachable(std::sync::Arc::new(Error::from(ErrorKind::ConnectionRefused)));
    /// assert!(refused.is_unreachable() && !refused.is_interruption());
    /// ```
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable(_))
    }

    /// True if the connection broke while an answer was under way.
    ///
    /// ```
    /// use std::io::{Error, ErrorKind};
    /// use kube_informer::source::SourceError;
    ///
    /// let reset = SourceError::Interrupted(std::sync::Arc::new(Error::from(ErrorKind::ConnectionReset)));
    /// assert!(reset.is_interruption() && SourceError::CutOff.is_interruption());
    /// ```
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Interrupted(_) | Self::CutOff)
    }

    /// How long the server asks to be left alone.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::source::{SourceError, Status};
    ///
    /// let status = Status { code: 429, retry_after: Some(Duration::from_secs(2)), ..Status::default() };
    /// assert_eq!(SourceError::Status(status).retry_after(), Some(Duration::from_secs(2)));
    /// ```
    pub fn retry_after(&self) -> Option<Duration> {
        self.status().and_then(|status| status.retry_after)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server answered {}", self.code)?;
        if !self.reason.is_empty() {
            write!(f, " {}", self.reason)?;
        }
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

impl<T: Send + Sync + 'static> Items<T> {
    /// A page from a stream of its parts.
    pub fn new(parts: impl Stream<Item = Result<ListPart<T>, SourceError>> + Send + 'static) -> Self {
        Self(parts.boxed())
    }

    /// A page that is at hand in full.
    ///
    /// ```
    /// # use futures_util::StreamExt as _;
    /// use kube_informer::source::{Identity, Items, ListEnd, ListPart};
    ///
    /// let kitchen = Identity { key: "kitchen".parse()?, uid: String::new(), version: "7".to_owned() };
    /// let mut items = Items::complete([kitchen], ListEnd { version: Some("7".into()), ..ListEnd::default() });
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// assert!(matches!(items.next().await, Some(Ok(ListPart::Item(_)))));
    /// assert!(matches!(items.next().await, Some(Ok(ListPart::End(_)))));
    /// assert!(items.next().await.is_none());
    /// # });
    /// # Ok::<(), kube_informer::object::KeyError>(())
    /// ```
    pub fn complete(objects: impl IntoIterator<Item = T>, end: ListEnd) -> Self {
        let objects: Vec<_> = objects.into_iter().map(|object| Decoded::Object(Arc::new(object))).collect();
        let parts = objects.into_iter().map(ListPart::Item).chain([ListPart::End(end)]);
        Self(futures_util::stream::iter(parts.map(Ok)).boxed())
    }
}

impl<T: Send + Sync + 'static> Events<T> {
    /// A watch from a stream of its events.
    pub fn new(events: impl Stream<Item = Result<WatchEvent<T>, SourceError>> + Send + 'static) -> Self {
        Self(events.boxed())
    }
}

impl<T> Stream for Items<T> {
    type Item = Result<ListPart<T>, SourceError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl<T> Stream for Events<T> {
    type Item = Result<WatchEvent<T>, SourceError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl<T> fmt::Debug for Items<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Items")
    }
}

impl<T> fmt::Debug for Events<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}
