//! What goes wrong.

use std::time::Duration;

use super::list::ListFlaw;
use crate::message::verb::Verb;

/// What happens to a request or its answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// The connection breaks before any answer.
    ResetBeforeAnswer,
    /// There is never an answer: the connection stays open and silent.
    NoAnswer,
    /// The answer comes so much later.
    Delay(Duration),
    /// All history is forgotten before the request is answered.
    Compact,
    /// The answer is a `Status` of this code, with a `Retry-After` header if there are seconds.
    Status {
        /// The HTTP status code.
        code: u16,
        /// Seconds to wait before another try.
        retry_after: Option<u32>,
    },
    /// The answer says that the version asked for is too large: 504 with the cause that clients look for.
    VersionTooLarge,
    /// The answer is this page, as a proxy in between might send it.
    Page {
        /// The HTTP status code.
        code: u16,
        /// The media type.
        content_type: &'static str,
        /// One more header.
        header: Option<(&'static str, String)>,
        /// The body.
        body: String,
    },
    /// The answer has another media type, or none.
    ContentType(Option<&'static str>),
    /// The answer carries so many `Warning` headers.
    Warnings(usize),
    /// The answer says that the connection closes after it.
    ConnectionClose,
    /// A list has a flaw.
    List(ListFlaw),
    /// The connection breaks after so many bytes of the body.
    ResetAfterBytes(u64),
    /// The body ends cleanly after so many bytes, be it within an event.
    EndAfterBytes(u64),
    /// The body stops after so many bytes, and the connection stays open and silent.
    StallAfterBytes(u64),
    /// The byte at this place of the body is another one.
    CorruptByte(u64),
    /// The body comes in pieces of so many bytes, each after a pause.
    Drip {
        /// The size of a piece.
        bytes: usize,
        /// The pause before each piece.
        pause: Duration,
    },
    /// The body is compressed although the client did not ask for it.
    UnaskedGzip,
    /// The watch ends after so many events with an `ERROR` event of this code.
    ErrorEvent {
        /// The code in the event's `Status`.
        code: u16,
        /// How many events come before it.
        after_events: u64,
    },
    /// The watch ends cleanly after so many events.
    EndAfterEvents(u64),
    /// The connection breaks after so many events.
    ResetAfterEvents(u64),
    /// The bookmark that ends the initial events is not sent; the watch goes on.
    WithholdEndBookmark,
    /// The nth event, counted from 1, is not sent.
    DropEvent(u64),
    /// The nth event is sent twice.
    DuplicateEvent(u64),
    /// The nth event is sent after the one that follows it.
    SwapEvents(u64),
    /// The nth event comes so much later.
    DelayEvent {
        /// Which event, counted from 1.
        nth: u64,
        /// How much later.
        delay: Duration,
    },
    /// The nth event says something else happened, such as `DELETED` for an object that was never added.
    RetypeEvent {
        /// Which event, counted from 1.
        nth: u64,
        /// The type it shows.
        to: &'static str,
    },
    /// Once so many events were sent, this line is sent too, as it is.
    InsertLine {
        /// How many events come before it.
        after_events: u64,
        /// The line, without its newline.
        line: String,
    },
    /// Every bookmark shows this version.
    BookmarkVersion(String),
}

/// The part of an answer that an action works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    /// The time before an answer, or one in its place.
    Answer,
    /// The headers.
    Headers,
    /// The objects of a list.
    Items,
    /// The events of a watch.
    Lines,
    /// The bytes of a body.
    Bytes,
}

impl Action {
    /// The name of the action in the record of faults.
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

    /// Whether the action makes sense for requests with this verb.
    pub(super) fn is_for(&self, verb: Verb) -> bool {
        match self.layer() {
            Layer::Lines => verb == Verb::Watch,
            Layer::Items => verb == Verb::List,
            Layer::Answer | Layer::Headers | Layer::Bytes => true,
        }
    }
}
