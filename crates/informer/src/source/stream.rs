//! Lists and watches under way, and what they are made of.

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

/// What a list is made of. [`ListPart::End`] comes last, exactly once; a list without it is not complete.
#[derive(Debug)]
pub enum ListPart<T> {
    /// One object, or one that could not be made.
    Item(Decoded<T>),
    /// The page is complete.
    End(ListEnd),
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

/// An object, or why there is none.
#[derive(Debug)]
pub enum Decoded<T> {
    /// The object.
    Object(T),
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
    /// The uids of its owners; `None` if they could not be read.
    pub owners: Option<Vec<String>>,
    /// What is wrong with it.
    pub error: DecodeError,
}

/// How many bytes came, counted by a source as they come: also within an object of which not all is there yet.
///
/// Cloning gives another handle to the same.
#[derive(Debug, Clone, Default)]
pub struct ByteMeter(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    received: AtomicU64,
    within: AtomicBool,
}

impl ByteMeter {
    /// So many bytes more have come.
    pub fn add(&self, bytes: usize) {
        self.0.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Says whether what came ends within an object.
    pub fn set_within(&self, within: bool) {
        self.0.within.store(within, Ordering::Relaxed);
    }

    /// How many bytes came so far.
    pub fn received(&self) -> u64 {
        self.0.received.load(Ordering::Relaxed)
    }

    /// True if more of an object has yet to come.
    pub fn is_within(&self) -> bool {
        self.0.within.load(Ordering::Relaxed)
    }
}

impl<T: Send + 'static> ListStream<T> {
    /// A list from its parts, whose bytes nobody counts.
    pub fn new(parts: impl Stream<Item = Result<ListPart<T>, SourceError>> + Send + 'static) -> Self {
        Self::metered(parts, ByteMeter::default())
    }

    /// A list from its parts, and what counts their bytes.
    #[doc(hidden)]
    pub fn metered(
        parts: impl Stream<Item = Result<ListPart<T>, SourceError>> + Send + 'static,
        meter: ByteMeter,
    ) -> Self {
        Self { parts: parts.boxed(), meter }
    }

    /// A whole page.
    pub fn complete(objects: impl IntoIterator<Item = T>, end: ListEnd) -> Self {
        let objects: Vec<T> = objects.into_iter().collect();
        let parts = objects.into_iter().map(|object| ListPart::Item(Decoded::Object(object)));
        Self::new(futures_util::stream::iter(parts.chain([ListPart::End(end)]).map(Ok)))
    }

    /// The version of the list; its items are of no interest.
    pub(crate) async fn version(mut self) -> Result<Option<ResourceVersion>, SourceError> {
        while let Some(part) = self.next().await {
            if let ListPart::End(end) = part? {
                return Ok(end.version);
            }
        }
        Err(SourceError::CutOff)
    }

    /// The same list with other objects.
    pub(crate) fn map_objects<U: Send + 'static>(self, change: impl Fn(T) -> U + Send + 'static) -> ListStream<U> {
        self.map_items(move |item| match item {
            Decoded::Object(object) => Decoded::Object(change(object)),
            Decoded::Bad(bad) => Decoded::Bad(bad),
        })
    }

    /// The same list with other items.
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

    /// What counts its bytes.
    #[doc(hidden)]
    pub fn meter(&self) -> &ByteMeter {
        &self.meter
    }
}

impl<T: Send + 'static> WatchStream<T> {
    /// A watch from its events, whose bytes nobody counts.
    pub fn new(events: impl Stream<Item = Result<WatchEvent<T>, SourceError>> + Send + 'static) -> Self {
        Self::metered(events, ByteMeter::default())
    }

    /// A watch from its events, and what counts their bytes.
    #[doc(hidden)]
    pub fn metered(
        events: impl Stream<Item = Result<WatchEvent<T>, SourceError>> + Send + 'static,
        meter: ByteMeter,
    ) -> Self {
        Self { events: events.boxed(), meter }
    }

    /// The same watch with other items.
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

    /// What counts its bytes.
    #[doc(hidden)]
    pub fn meter(&self) -> &ByteMeter {
        &self.meter
    }
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
