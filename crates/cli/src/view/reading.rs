//! The state of an informer at one time.

use std::collections::BTreeMap;
use std::time::Duration;

use kube_informer::{AnyInformer, Health, Phase, QueueHealth};

/// The state of an informer at one time, in this process or in another.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) name: String,
    pub(crate) state: State,
    /// The error, if there is one.
    pub(crate) why: Option<String>,
    pub(crate) synced: bool,
    pub(crate) objects: u64,
    /// How many changes wait to be applied.
    pub(crate) queued: u64,
    pub(crate) events: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) watches: u64,
    pub(crate) failures: u64,
    /// The number of lists for each reason.
    pub(crate) lists: BTreeMap<String, u64>,
    /// The time since the last message of the server.
    pub(crate) contact: Option<Duration>,
    pub(crate) handlers: Vec<Handler>,
    pub(crate) indexes: Vec<String>,
    /// The progress of the current list.
    pub(crate) progress: Option<Progress>,
}

/// What an informer is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    New,
    Listing,
    Watching,
    /// The server does not serve the resource, which is optional.
    Absent,
    BackingOff,
    Parked,
    Stopped,
    /// The program does not answer.
    Unknown,
}

/// The state of a handler.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Handler {
    pub(crate) name: String,
    pub(crate) backlog: u64,
    pub(crate) lag: Duration,
    pub(crate) folds: u64,
}

/// The progress of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) received: u64,
    pub(crate) remaining: Option<u64>,
}

/// The state of a work queue.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Work {
    pub(crate) name: String,
    pub(crate) waiting: u64,
    pub(crate) processing: u64,
    pub(crate) delayed: u64,
    pub(crate) parked: u64,
    pub(crate) worked: u64,
    pub(crate) failures: u64,
}

impl Reading {
    pub(crate) fn of(informer: &AnyInformer) -> Self {
        let health = informer.health();
        let (state, why, progress) = condition(&health);
        Self {
            name: informer.name().to_owned(),
            state,
            why,
            synced: health.synced,
            objects: health.objects as u64,
            queued: health.queued as u64,
            events: health.counts.events,
            wire_bytes: health.counts.wire_bytes,
            watches: health.counts.watches,
            failures: health.counts.failures + health.counts.undecodable,
            lists: health.counts.lists.iter().map(|(reason, count)| (reason.as_str().to_owned(), *count)).collect(),
            contact: health.age(),
            handlers: health.handlers.iter().map(handler).collect(),
            indexes: informer.index_names().iter().map(ToString::to_string).collect(),
            progress,
        }
    }

    /// Returns how long the oldest event has waited for its handler, or has been handled.
    pub(crate) fn lag(&self) -> Duration {
        self.handlers.iter().map(|handler| handler.lag).max().unwrap_or_default()
    }

    /// Returns the handler with the longest backlog.
    pub(crate) fn slowest(&self) -> Option<&Handler> {
        self.handlers.iter().max_by_key(|handler| (handler.backlog, handler.lag))
    }

    /// Returns the number of relists for each reason.
    pub(crate) fn relists(&self) -> impl Iterator<Item = (&str, u64)> {
        self.lists.iter().filter(|(reason, _)| *reason != "first").map(|(reason, count)| (reason.as_str(), *count))
    }
}

fn handler(health: &kube_informer::HandlerHealth) -> Handler {
    Handler { name: health.name.clone(), backlog: health.backlog as u64, lag: health.lag, folds: health.folds }
}

/// Returns the state of the part in the worst state, its error and its progress.
fn condition(health: &Health) -> (State, Option<String>, Option<Progress>) {
    if health.stopped {
        return (State::Stopped, None, None);
    }
    let worst =
        health.parts.iter().map(|part| (condition_of(&part.phase), part)).max_by_key(|(found, _)| found.0.rank());
    let Some(((state, why, progress), part)) = worst else { return (State::New, None, None) };
    let why = why.or_else(|| part.last_error.as_ref().map(ToString::to_string));
    (state, why, progress)
}

fn condition_of(phase: &Phase) -> (State, Option<String>, Option<Progress>) {
    match phase {
        Phase::New => (State::New, None, None),
        Phase::Listing { received, remaining } => {
            (State::Listing, None, Some(Progress { received: *received, remaining: *remaining }))
        }
        Phase::Streaming { received } => {
            (State::Listing, None, Some(Progress { received: *received, remaining: None }))
        }
        Phase::Watching => (State::Watching, None, None),
        Phase::Absent { .. } => (State::Absent, None, None),
        Phase::BackingOff { why, .. } => (State::BackingOff, Some(why.clone()), None),
        Phase::Parked { why, .. } => (State::Parked, Some(why.clone()), None),
        Phase::Stopped => (State::Stopped, None, None),
        _ => (State::Unknown, None, None),
    }
}

impl State {
    /// Returns the severity of a state: the higher, the worse.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Self::Watching | Self::Absent => 0,
            Self::Listing => 1,
            Self::New => 2,
            Self::BackingOff => 3,
            Self::Parked => 4,
            Self::Stopped => 5,
            Self::Unknown => 6,
        }
    }

    /// Returns true if the informer is retrying, parked, stopped or unknown.
    pub(crate) fn is_failing(self) -> bool {
        self.rank() >= Self::BackingOff.rank()
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::New => "not started",
            Self::Listing => "listing",
            Self::Watching => "watching",
            Self::Absent => "absent",
            Self::BackingOff => "backing off",
            Self::Parked => "parked",
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
        }
    }
}

impl From<QueueHealth> for Work {
    fn from(health: QueueHealth) -> Self {
        Self {
            name: health.name,
            waiting: health.waiting as u64,
            processing: health.processing as u64,
            delayed: health.delayed as u64,
            parked: health.parked as u64,
            worked: health.worked,
            failures: health.failures,
        }
    }
}
