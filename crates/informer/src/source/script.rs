//! A source made of two closures: for tests, and for things that are not Kubernetes.

use std::future::Future;

use crate::object::Object;

use super::{Events, Items, ListOptions, ListWatch, SourceError, WatchOptions};

/// A [`ListWatch`] made of two async closures.
///
/// ```
/// use kube_informer::SharedInformer;
/// use kube_informer::source::{Events, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
/// # use kube_informer::object::{DecodeError, Id, KeyRef, Object, Raw};
/// # struct Room(&'static str);
/// # impl Object for Room {
/// #     fn decode(_: Raw<'_>) -> Result<Self, DecodeError> { Err(DecodeError::NoName) }
/// #     fn id(&self) -> Id<'_> { Id { key: KeyRef::new("", self.0), uid: "", version: "1" } }
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let source = ListWatchFns::new(
///     |_: ListOptions| async {
///         let end = ListEnd { version: Some("1".into()), ..ListEnd::default() };
///         Ok(Items::complete([Room("kitchen")], end))
///     },
///     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
/// );
/// let rooms = SharedInformer::builder(source).build();
/// rooms.start()?;
/// rooms.synced().await?;
/// assert!(rooms.store().contains("kitchen"));
/// rooms.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
///
/// Such a source is asked for plain lists; see [`ListWatchFns::with_streaming_lists`].
#[derive(Debug, Clone)]
pub struct ListWatchFns<L, W> {
    list: L,
    watch: W,
    streaming_lists: bool,
}

impl<L, W> ListWatchFns<L, W> {
    /// A source that lists and watches with these.
    pub fn new<T, LF, WF>(list: L, watch: W) -> Self
    where
        L: Fn(ListOptions) -> LF,
        W: Fn(WatchOptions) -> WF,
        LF: Future<Output = Result<Items<T>, SourceError>>,
        WF: Future<Output = Result<Events<T>, SourceError>>,
    {
        Self { list, watch, streaming_lists: false }
    }

    /// Says that `watch` understands [`WatchOptions::initial_events`].
    ///
    /// ```
    /// # use futures_util::{StreamExt as _, stream};
    /// # use kube_informer::SharedInformer;
    /// # use kube_informer::source::*;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let source = ListWatchFns::new(
    ///     |_: ListOptions| async { Err(SourceError::Request("nobody lists here".to_owned())) },
    ///     |_: WatchOptions| async {
    ///         let kitchen = Identity { key: "kitchen".parse().unwrap(), uid: String::new(), version: "1".to_owned() };
    ///         let added = WatchEvent::Added(Decoded::Object(kitchen.into()));
    ///         let end = WatchEvent::Bookmark { version: "1".into(), initial_events_end: true };
    ///         Ok(Events::new(stream::iter([Ok(added), Ok(end)]).chain(stream::pending())))
    ///     },
    /// );
    /// let rooms = SharedInformer::builder(source.with_streaming_lists()).build();
    /// rooms.start()?;
    /// rooms.synced().await?;
    /// assert!(rooms.store().contains("kitchen"));
    /// rooms.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn with_streaming_lists(self) -> Self {
        Self { streaming_lists: true, ..self }
    }
}

impl<T, L, W, LF, WF> ListWatch<T> for ListWatchFns<L, W>
where
    T: Object,
    L: Fn(ListOptions) -> LF + Send + Sync + 'static,
    W: Fn(WatchOptions) -> WF + Send + Sync + 'static,
    LF: Future<Output = Result<Items<T>, SourceError>> + Send,
    WF: Future<Output = Result<Events<T>, SourceError>> + Send,
{
    fn list(&self, options: ListOptions) -> impl Future<Output = Result<Items<T>, SourceError>> + Send {
        (self.list)(options)
    }

    fn watch(&self, options: WatchOptions) -> impl Future<Output = Result<Events<T>, SourceError>> + Send {
        (self.watch)(options)
    }

    fn supports_streaming_lists(&self) -> bool {
        self.streaming_lists
    }
}
