//! What goes wrong.

use std::time::Duration;

use crate::verb::Verb;

/// What happens to a request or its answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// The connection breaks before any answer.
    ResetBeforeAnswer,
    /// The answer comes so much later.
    Delay(Duration),
    /// The answer is a `Status` of this code, with a `Retry-After` header if there are seconds.
    Status {
        /// The HTTP status code.
        code: u16,
        /// Seconds to wait before another try.
        retry_after: Option<u32>,
    },
    /// The connection breaks after so many bytes of the body.
    ResetAfterBytes(u64),
    /// The watch ends after so many events with an `ERROR` event of this code.
    ErrorEvent {
        /// The code in the event's `Status`.
        code: u16,
        /// How many events come before it.
        after_events: u64,
    },
    /// The watch ends cleanly after so many events.
    EndAfterEvents(u64),
    /// The bookmark that ends the initial events is not sent; the watch goes on.
    WithholdEndBookmark,
}

/// The part of an answer that an action works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    /// The answer as a whole, or the time before it.
    Answer,
    /// The events of a watch.
    Lines,
    /// The bytes of a body.
    Bytes,
}

impl Action {
    /// The name of the action in the record of faults.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ResetBeforeAnswer => "reset_before_answer",
            Self::Delay(_) => "delay",
            Self::Status { .. } => "status",
            Self::ResetAfterBytes(_) => "reset_after_bytes",
            Self::ErrorEvent { .. } => "error_event",
            Self::EndAfterEvents(_) => "end_after_events",
            Self::WithholdEndBookmark => "withhold_end_bookmark",
        }
    }

    pub(super) fn layer(&self) -> Layer {
        match self {
            Self::ResetBeforeAnswer | Self::Delay(_) | Self::Status { .. } => Layer::Answer,
            Self::ErrorEvent { .. } | Self::EndAfterEvents(_) | Self::WithholdEndBookmark => Layer::Lines,
            Self::ResetAfterBytes(_) => Layer::Bytes,
        }
    }

    /// Whether the action makes sense for requests with this verb.
    pub(super) fn is_for(&self, verb: Verb) -> bool {
        self.layer() != Layer::Lines || verb == Verb::Watch
    }
}
