//! A source made of two closures: for tests, and for objects that do not come from Kubernetes.

use std::future::Future;

use super::{ListOptions, ListStream, ListWatch, SourceError, WatchOptions, WatchStream};
use crate::object::Object;

/// A [`ListWatch`] made of two async closures.
///
/// ```
/// use kube_informer::{Identity, SharedInformer, SourceError};
/// use kube_informer::parts::{Decoded, ListEnd, ListOptions, ListPart, ListStream, ListWatch, ListWatchFns, WatchEvent, WatchOptions, WatchStream};
///
/// let thing = || Identity { key: "web/a".parse().unwrap(), uid: String::new(), version: "7".to_owned() };
/// let source = ListWatchFns::new(
///     move |_: ListOptions| async move {
///         Ok(ListStream::complete([thing()], ListEnd { version: Some("7".into()), ..ListEnd::default() }))
///     },
///     |_: WatchOptions| async { Ok(WatchStream::new(futures_util::stream::pending())) },
/// );
/// let things = SharedInformer::builder(source).build();
/// ```
///
/// The reflector uses plain lists for such a source; see [`ListWatchFns::with_streaming_lists`].
#[derive(Debug, Clone)]
pub struct ListWatchFns<L, W> {
    list: L,
    watch: W,
    streaming_lists: bool,
}

impl<L, W> ListWatchFns<L, W> {
    /// Makes a source from a function that lists and a function that watches.
    pub fn new<T, LF, WF>(list: L, watch: W) -> Self
    where
        L: Fn(ListOptions) -> LF,
        W: Fn(WatchOptions) -> WF,
        LF: Future<Output = Result<ListStream<T>, SourceError>>,
        WF: Future<Output = Result<WatchStream<T>, SourceError>>,
    {
        Self { list, watch, streaming_lists: false }
    }

    /// Declares that `watch` supports [`WatchOptions::initial_events`].
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
    LF: Future<Output = Result<ListStream<T>, SourceError>> + Send,
    WF: Future<Output = Result<WatchStream<T>, SourceError>> + Send,
{
    fn list(&self, options: ListOptions) -> impl Future<Output = Result<ListStream<T>, SourceError>> + Send {
        (self.list)(options)
    }

    fn watch(&self, options: WatchOptions) -> impl Future<Output = Result<WatchStream<T>, SourceError>> + Send {
        (self.watch)(options)
    }

    fn supports_streaming_lists(&self) -> bool {
        self.streaming_lists
    }
}
