//! A source made of two closures: for tests, and for things that are not Kubernetes.

use std::future::Future;

use crate::object::Object;

use super::{Events, Items, ListOptions, ListWatch, SourceError, WatchOptions};

/// A [`ListWatch`] made of two async closures.
///
/// ```
/// use kube_informer::source::{Events, Items, ListEnd, ListOptions, ListWatchFns, WatchOptions};
/// # use kube_informer::object::{DecodeError, Id, KeyRef, Object, Raw};
/// # struct Room(&'static str);
/// # impl Object for Room {
/// #     fn decode(_: Raw<'_>) -> Result<Self, DecodeError> { Err(DecodeError::NoName) }
/// #     fn id(&self) -> Id<'_> { Id { key: KeyRef::new("", self.0), uid: "", version: "1" } }
/// # }
/// let rooms = ListWatchFns::new(
///     |_: ListOptions| async { Ok(Items::complete([Room("kitchen")], ListEnd { version: Some("1".into()), ..ListEnd::default() })) },
///     |_: WatchOptions| async { Ok(Events::new(futures_util::stream::pending())) },
/// );
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
