//! Streams of lists and watches, and their items.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;

use super::SourceError;
use crate::object::{ObjectKey, ResourceVersion};
use crate::representation::DecodeError;

/// One page of a list: items, and then the page's end.
pub struct ListStream<T> {
    parts: BoxStream<'static, Result<ListPart<T>, SourceError>>,
    meter: ByteMeter,
}

/// An open watch. Dropping it closes the connection.
pub struct WatchStream<T> {
    events: BoxStream<'static, Result<WatchEvent<T>, SourceError>>,
    meter: ByteMeter,
}

/// An item of a list stream. [`ListPart::End`] comes last, exactly once; a list without it is not complete.
#[derive(Debug)]
pub enum ListPart<T> {
    /// One object, or one that could not be decoded.
    Item(Decoded<T>),
    /// The page is complete.
    End(ListEnd),
}

/// The metadata of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListEnd {
    /// The version of the whole list.
    pub version: Option<ResourceVersion>,
    /// The token of the next page; `None` on the last page.
    pub continue_token: Option<String>,
    /// How many items follow this page, if the API server reports it.
    pub remaining: Option<u64>,
}

/// An event of a watch.
#[derive(Debug)]
pub enum WatchEvent<T> {
    /// An object was created, or began to match the selectors.
    Added(Decoded<T>),
    /// An object changed.
    Modified(Decoded<T>),
    /// An object was deleted, or stopped matching the selectors. The event has the last state, with the version of the
    /// deletion.
    Deleted(Decoded<T>),
    /// Every event up to this version was sent.
    Bookmark {
        /// The version reached.
        version: ResourceVersion,
        /// True on the bookmark that ends the initial state.
        initial_events_end: bool,
    },
}

/// An object, or the reason why it could not be decoded.
#[derive(Debug)]
pub enum Decoded<T> {
    /// The object.
    Object(T),
    /// The object could not be decoded.
    Bad(BadObject),
}

/// An object that could not be decoded. Its last known state stays in the cache.
#[derive(Debug, Clone)]
pub struct BadObject {
    /// The key, if it could be decoded.
    pub key: Option<ObjectKey>,
    /// The version, if it could be decoded.
    pub version: Option<ResourceVersion>,
    /// The uid, if it could be decoded.
    pub uid: Option<String>,
    /// The generation, if the object has one that could be decoded.
    pub generation: Option<i64>,
    /// The uids of the owners; `None` if they could not be decoded.
    pub owners: Option<Vec<String>>,
    /// The error.
    pub error: DecodeError,
}

impl BadObject {
    /// Makes an object of which only the error is known.
    pub fn new(error: DecodeError) -> Self {
        Self { key: None, version: None, uid: None, generation: None, owners: None, error }
    }
}

/// Counts the bytes that a source received, also those of an object that has not arrived as a whole.
///
/// A clone is another handle of the same meter.
#[derive(Debug, Clone, Default)]
pub struct ByteMeter(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    received: AtomicU64,
    within: AtomicBool,
}

impl ByteMeter {
    /// Adds bytes that arrived.
    pub fn add(&self, bytes: usize) {
        self.0.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Sets whether the bytes so far end within an object.
    pub fn set_within(&self, within: bool) {
        self.0.within.store(within, Ordering::Relaxed);
    }

    /// Returns how many bytes arrived so far.
    pub fn received(&self) -> u64 {
        self.0.received.load(Ordering::Relaxed)
    }

    /// Returns true if an object has not arrived as a whole.
    pub fn is_within(&self) -> bool {
        self.0.within.load(Ordering::Relaxed)
    }
}

impl<T: Send + 'static> ListStream<T> {
    /// Makes a list from its items.
    pub fn new(parts: impl Stream<Item = Result<ListPart<T>, SourceError>> + Send + 'static) -> Self {
        Self::metered(parts, ByteMeter::default())
    }

    /// Makes a list from its items, with a meter of their bytes.
    #[doc(hidden)]
    pub fn metered(
        parts: impl Stream<Item = Result<ListPart<T>, SourceError>> + Send + 'static,
        meter: ByteMeter,
    ) -> Self {
        Self { parts: parts.boxed(), meter }
    }

    /// Makes a list of one complete page.
    pub fn complete(objects: impl IntoIterator<Item = T>, end: ListEnd) -> Self {
        let objects: Vec<T> = objects.into_iter().collect();
        let parts = objects.into_iter().map(|object| ListPart::Item(Decoded::Object(object)));
        Self::new(futures_util::stream::iter(parts.chain([ListPart::End(end)]).map(Ok)))
    }

    /// Reads the list to its end, and returns its version.
    pub(crate) async fn version(mut self) -> Result<Option<ResourceVersion>, SourceError> {
        while let Some(part) = self.next().await {
            if let ListPart::End(end) = part? {
                return Ok(end.version);
            }
        }
        Err(SourceError::CutOff)
    }

    /// Changes the objects of the list.
    pub(crate) fn map_objects<U: Send + 'static>(self, change: impl Fn(T) -> U + Send + 'static) -> ListStream<U> {
        self.map_items(move |item| match item {
            Decoded::Object(object) => Decoded::Object(change(object)),
            Decoded::Bad(bad) => Decoded::Bad(bad),
        })
    }

    /// Changes the items of the list.
    pub(crate) fn map_items<U: Send + 'static>(
        self,
        change: impl Fn(Decoded<T>) -> Decoded<U> + Send + 'static,
    ) -> ListStream<U> {
        let parts = self.parts.map(move |part| {
            Ok(match part? {
                ListPart::Item(item) => ListPart::Item(change(item)),
                ListPart::End(end) => ListPart::End(end),
            })
        });
        ListStream::metered(parts, self.meter)
    }

    /// Returns the meter of its bytes.
    #[doc(hidden)]
    pub fn meter(&self) -> &ByteMeter {
        &self.meter
    }
}

impl<T: Send + 'static> WatchStream<T> {
    /// Makes a watch from its events.
    pub fn new(events: impl Stream<Item = Result<WatchEvent<T>, SourceError>> + Send + 'static) -> Self {
        Self::metered(events, ByteMeter::default())
    }

    /// Makes a watch from its events, with a meter of their bytes.
    #[doc(hidden)]
    pub fn metered(
        events: impl Stream<Item = Result<WatchEvent<T>, SourceError>> + Send + 'static,
        meter: ByteMeter,
    ) -> Self {
        Self { events: events.boxed(), meter }
    }

    /// Changes the objects of the events.
    pub(crate) fn map_items<U: Send + 'static>(
        self,
        change: impl Fn(Decoded<T>) -> Decoded<U> + Send + 'static,
    ) -> WatchStream<U> {
        let events = self.events.map(move |event| {
            Ok(match event? {
                WatchEvent::Added(item) => WatchEvent::Added(change(item)),
                WatchEvent::Modified(item) => WatchEvent::Modified(change(item)),
                WatchEvent::Deleted(item) => WatchEvent::Deleted(change(item)),
                WatchEvent::Bookmark { version, initial_events_end } => {
                    WatchEvent::Bookmark { version, initial_events_end }
                }
            })
        });
        WatchStream::metered(events, self.meter)
    }

    /// Returns the meter of its bytes.
    #[doc(hidden)]
    pub fn meter(&self) -> &ByteMeter {
        &self.meter
    }
}

impl<T> WatchEvent<T> {
    /// Returns true if the key in the event could not be decoded.
    pub(crate) fn has_unknown_key(&self) -> bool {
        match self {
            Self::Added(Decoded::Bad(bad)) | Self::Modified(Decoded::Bad(bad)) | Self::Deleted(Decoded::Bad(bad)) => {
                bad.key.is_none()
            }
            _ => false,
        }
    }
}

impl<T> Stream for ListStream<T> {
    type Item = Result<ListPart<T>, SourceError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.parts.as_mut().poll_next(context)
    }
}

impl<T> Stream for WatchStream<T> {
    type Item = Result<WatchEvent<T>, SourceError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.as_mut().poll_next(context)
    }
}

impl<T> fmt::Debug for ListStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListStream").field("meter", &self.meter).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for WatchStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchStream").field("meter", &self.meter).finish_non_exhaustive()
    }
}
