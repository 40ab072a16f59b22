//! The actions of faults.

use std::time::Duration;

use super::list::ListFlaw;
use crate::message::verb::Verb;

/// What a fault does to a request or its response.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Breaks the connection before any response.
    ResetBeforeAnswer,
    /// Sends no response: the connection stays open and silent.
    NoAnswer,
    /// Delays the response by this time.
    Delay(Duration),
    /// Compacts the history before the request is answered.
    Compact,
    /// Responds with a `Status` of this code, and with a `Retry-After` header if `retry_after` is set.
    Status {
        /// The HTTP status code.
        code: u16,
        /// Seconds to wait before a retry.
        retry_after: Option<u32>,
    },
    /// Responds that the requested version is too large: 504 with the cause that clients check for.
    VersionTooLarge,
    /// Responds with this page, as a proxy might.
    Page {
        /// The HTTP status code.
        code: u16,
        /// The media type.
        content_type: &'static str,
        /// An additional header.
        header: Option<(&'static str, String)>,
        /// The body.
        body: String,
    },
    /// Responds with another media type, or without one.
    ContentType(Option<&'static str>),
    /// Adds this number of `Warning` headers to the response.
    Warnings(usize),
    /// Responds with the header that closes the connection afterwards.
    ConnectionClose,
    /// Responds to a list with a flaw.
    List(ListFlaw),
    /// Breaks the connection after this number of body bytes.
    ResetAfterBytes(u64),
    /// Ends the body cleanly after this number of bytes, even in the middle of an event.
    EndAfterBytes(u64),
    /// Stops the body after this number of bytes. The connection stays open and silent.
    StallAfterBytes(u64),
    /// Changes the byte at this offset of the body.
    CorruptByte(u64),
    /// Sends the body in pieces of this size, with a pause before each.
    Drip {
        /// The size of a piece, in bytes.
        bytes: usize,
        /// The pause before each piece.
        pause: Duration,
    },
    /// Compresses the body although the client did not ask for it.
    UnaskedGzip,
    /// Ends the watch after a number of events with an `ERROR` event of this code.
    ErrorEvent {
        /// The code in the event's `Status`.
        code: u16,
        /// The number of events before it.
        after_events: u64,
    },
    /// Ends the watch cleanly after this number of events.
    EndAfterEvents(u64),
    /// Breaks the connection after this number of events.
    ResetAfterEvents(u64),
    /// Withholds the bookmark that ends the initial events; the watch continues.
    WithholdEndBookmark,
    /// Drops the nth event, counted from 1.
    DropEvent(u64),
    /// Sends the nth event twice.
    DuplicateEvent(u64),
    /// Sends the nth event after the event that follows it.
    SwapEvents(u64),
    /// Delays the nth event.
    DelayEvent {
        /// The number of the event, counted from 1.
        nth: u64,
        /// The delay.
        delay: Duration,
    },
    /// Changes the type of the nth event, such as to `DELETED` for an object that was never added.
    RetypeEvent {
        /// The number of the event, counted from 1.
        nth: u64,
        /// The new type.
        to: &'static str,
    },
    /// Inserts this line, unchanged, after a number of events.
    InsertLine {
        /// The number of events before it.
        after_events: u64,
        /// The line, without its newline.
        line: String,
    },
    /// Shows this version in every bookmark.
    BookmarkVersion(String),
}

/// The part of a response that an action changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    /// The time before a response, or the whole response.
    Answer,
    /// The headers of the response.
    Headers,
    /// The objects of a list.
    Items,
    /// The events of a watch.
    Lines,
    /// The bytes of a body.
    Bytes,
}

impl Action {
    /// Returns the name of the action in the record of faults.
    ///
    /// ```
    /// use kube_embedded_apiserver::Action;
    ///
    /// assert_eq!(Action::DropEvent(3).kind(), "drop_event");
    /// ```
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ResetBeforeAnswer => "reset_before_answer",
            Self::NoAnswer => "no_answer",
            Self::Delay(_) => "delay",
            Self::Compact => "compact",
            Self::Status { .. } => "status",
            Self::VersionTooLarge => "version_too_large",
            Self::Page { .. } => "page",
            Self::ContentType(_) => "content_type",
            Self::Warnings(_) => "warnings",
            Self::ConnectionClose => "connection_close",
            Self::List(flaw) => flaw.kind(),
            Self::ResetAfterBytes(_) => "reset_after_bytes",
            Self::EndAfterBytes(_) => "end_after_bytes",
            Self::StallAfterBytes(_) => "stall_after_bytes",
            Self::CorruptByte(_) => "corrupt_byte",
            Self::Drip { .. } => "drip",
            Self::UnaskedGzip => "unasked_gzip",
            Self::ErrorEvent { .. } => "error_event",
            Self::EndAfterEvents(_) => "end_after_events",
            Self::ResetAfterEvents(_) => "reset_after_events",
            Self::WithholdEndBookmark => "withhold_end_bookmark",
            Self::DropEvent(_) => "drop_event",
            Self::DuplicateEvent(_) => "duplicate_event",
            Self::SwapEvents(_) => "swap_events",
            Self::DelayEvent { .. } => "delay_event",
            Self::RetypeEvent { .. } => "retype_event",
            Self::InsertLine { .. } => "insert_line",
            Self::BookmarkVersion(_) => "bookmark_version",
        }
    }

    pub(super) fn layer(&self) -> Layer {
        match self {
            Self::ResetBeforeAnswer
            | Self::NoAnswer
            | Self::Delay(_)
            | Self::Compact
            | Self::Status { .. }
            | Self::VersionTooLarge
            | Self::Page { .. } => Layer::Answer,
            Self::ContentType(_) | Self::Warnings(_) | Self::ConnectionClose => Layer::Headers,
            Self::List(_) => Layer::Items,
            Self::ResetAfterBytes(_)
            | Self::EndAfterBytes(_)
            | Self::StallAfterBytes(_)
            | Self::CorruptByte(_)
            | Self::Drip { .. }
            | Self::UnaskedGzip => Layer::Bytes,
            Self::ErrorEvent { .. }
            | Self::EndAfterEvents(_)
            | Self::ResetAfterEvents(_)
            | Self::WithholdEndBookmark
            | Self::DropEvent(_)
            | Self::DuplicateEvent(_)
            | Self::SwapEvents(_)
            | Self::DelayEvent { .. }
            | Self::RetypeEvent { .. }
            | Self::InsertLine { .. }
            | Self::BookmarkVersion(_) => Layer::Lines,
        }
    }

    /// Returns whether the action applies to requests with this verb.
    pub(super) fn is_for(&self, verb: Verb) -> bool {
        match self.layer() {
            Layer::Lines => verb == Verb::Watch,
            Layer::Items => verb == Verb::List,
            Layer::Answer | Layer::Headers | Layer::Bytes => true,
        }
    }
}
