//! The types of responses. They can be serialised and deserialised, so that a client can use them too.
//!
//! Field names contain the unit: `age_ms` is in milliseconds. Unknown values are `null`. Fields may be added; a client
//! should ignore those it does not know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All informers and queues: the response of `api/informers`, and the data of each `health` event of `api/stream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Overview {
    /// The title that the program has set.
    pub title: String,
    /// How long ago the last message of the server may be for an informer to count as fresh.
    pub fresh_within_ms: u64,
    /// The time of this overview, in milliseconds since 1970, by the program's clock.
    pub at_ms: u64,
    /// The informers.
    pub informers: Vec<Informer>,
    /// The work queues.
    pub queues: Vec<Queue>,
    /// The elections of the program's probes.
    #[serde(default)]
    pub elections: Vec<Election>,
}

/// The state of an election, as this program knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Election {
    /// The lease, as `namespace/name`.
    pub lease: String,
    /// The identity of this program.
    pub identity: String,
    /// The identity of the leader as last seen.
    pub leader: Option<String>,
    /// True while this program leads.
    pub leads: bool,
    /// How long the term of this program is still valid if the lease is not renewed; `None` if it does not lead.
    pub term_left_ms: Option<u64>,
}

/// The state of an informer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Informer {
    /// The id in paths: the name, with `~2` and so on if several informers have the same name.
    pub id: String,
    /// The name.
    pub name: String,
    /// The collection that the informer watches, if it is known.
    pub resource: Option<Resource>,
    /// A part for each selected namespace, or one part for all namespaces.
    pub parts: Vec<Part>,
    /// The resource version of the cache: it contains all changes up to this version.
    pub version: Option<String>,
    /// True while the informer runs.
    pub live: bool,
    /// True once the first list is in the cache.
    pub synced: bool,
    /// True if the informer is synced and every part has an open watch.
    pub watching: bool,
    /// True if the last message of the server is not older than [`Overview::fresh_within_ms`].
    pub fresh: bool,
    /// The time since the last message of the server, for the part with the longest silence.
    pub age_ms: Option<u64>,
    /// The number of objects in the cache.
    pub objects: u64,
    /// The number of changes that wait to be applied.
    pub queued: u64,
    /// Counters since the start.
    pub counts: Counts,
    /// The last 20 failures, oldest first.
    #[serde(default)]
    pub recent_failures: Vec<RecentFailure>,
    /// Objects that could not be decoded; at most a hundred.
    pub undecodable: Vec<Undecodable>,
    /// The handlers.
    pub handlers: Vec<Handler>,
    /// The names of the indexes.
    pub indexes: Vec<String>,
    /// Figures of the representation.
    pub figures: BTreeMap<String, f64>,
}

/// The collection that an informer watches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version of the API.
    pub version: String,
    /// The kind of the objects.
    pub kind: String,
    /// The plural name in paths.
    pub plural: String,
    /// False in cluster scope.
    pub namespaced: bool,
}

/// The state of one reflector, which watches a part of the collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Part {
    /// The namespace; `None` for all namespaces.
    pub namespace: Option<String>,
    /// The phase of the reflector.
    pub phase: Phase,
    /// The time since the last message of the server.
    pub age_ms: Option<u64>,
    /// The last error; `None` after the next success.
    pub last_error: Option<String>,
    /// The number of failures.
    pub failures: u64,
    /// True if an object in the last list could not be identified, so that deletes may be missing.
    pub inconclusive: bool,
}

/// The phase of a reflector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// Not started.
    New,
    /// Lists the collection.
    Listing {
        /// The number of objects received so far.
        received: u64,
        /// The number of remaining objects, if the server reports it.
        remaining: Option<u64>,
    },
    /// Receives the initial state through a watch (streaming list).
    Streaming {
        /// The number of objects received so far.
        received: u64,
    },
    /// Watches.
    Watching,
    /// Waits before the next attempt.
    BackingOff {
        /// The remaining time.
        left_ms: u64,
        /// The error.
        why: String,
    },
    /// The server does not have the resource. The reflector checks again from time to time.
    Parked {
        /// The time until the next check.
        left_ms: u64,
        /// The error of the server.
        why: String,
    },
    /// The server does not serve the resource, which is optional.
    Absent {
        /// For how long.
        for_ms: u64,
    },
    /// Stopped.
    Stopped,
    /// A phase that this version of the crate does not know.
    #[serde(other)]
    Unknown,
}

/// Counters of an informer since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counts {
    /// The number of lists by reason: `first`, `expired`, `failed`, `requested`, `restored`.
    pub lists: BTreeMap<String, u64>,
    /// The number of watches that were opened.
    pub watches: u64,
    /// The number of events and pages of lists.
    pub events: u64,
    /// The number of failures, without undecodable objects.
    pub failures: u64,
    /// The number of objects that could not be decoded.
    pub undecodable: u64,
    /// The number of bytes received.
    pub wire_bytes: u64,
}

/// A failure of an informer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecentFailure {
    /// The time, in milliseconds since 1970.
    pub at_ms: u64,
    /// The error.
    pub why: String,
}

/// An object that could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Undecodable {
    /// The key.
    pub key: String,
    /// The error.
    pub why: String,
}

/// The state of a handler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Handler {
    /// The name.
    pub name: String,
    /// The number of events that wait for the handler.
    pub backlog: u64,
    /// How long the oldest of them has waited.
    pub lag_ms: f64,
    /// How often the handler was so slow that only the latest event of each object was kept.
    pub folds: u64,
    /// True once the handler has received the first list.
    pub synced: bool,
}

/// The state of a work queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Queue {
    /// The name of the queue or of its controller.
    pub name: String,
    /// The number of items that a worker can take.
    pub waiting: u64,
    /// The number of items in progress.
    pub processing: u64,
    /// The number of items with a delay.
    pub delayed: u64,
    /// The number of items that wait until the cache contains the controller's last write.
    pub parked: u64,
    /// The longest time that an item has been in progress.
    pub longest_running_ms: u64,
    /// The number of processed items.
    pub worked: u64,
    /// The number of failed items.
    pub failures: u64,
    /// The last error; `None` after the next success.
    pub last_error: Option<String>,
    /// The items whose last attempt failed: at most 20, those with the most attempts first.
    #[serde(default)]
    pub failing: Vec<FailingItem>,
    /// The number of items whose last attempt failed.
    #[serde(default)]
    pub failing_items: u64,
    /// How long the last 100 attempts took; `None` before the first.
    #[serde(default)]
    pub times: Option<WorkTimes>,
}

/// An item of a work queue whose last attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailingItem {
    /// The item.
    pub item: String,
    /// The number of attempts that have failed since its last success.
    pub attempts: u32,
    /// The time until the next attempt; `None` if the item is not tried again by itself.
    pub next_try_ms: Option<u64>,
    /// The last error.
    pub why: String,
}

/// How long the last 100 attempts of a work queue took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkTimes {
    /// Half of the attempts took at most this long.
    pub median_ms: f64,
    /// The longest of them.
    pub longest_ms: f64,
}

/// Sorted keys of objects: the response of `api/informers/{id}/keys`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Keys {
    /// The keys of this page.
    pub keys: Vec<String>,
    /// The number of keys on all pages.
    pub total: u64,
    /// The parameter `after` for the next page; `None` on the last page.
    pub next: Option<String>,
}

/// Sorted values of an index: the response of `api/informers/{id}/values`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Values {
    /// The index.
    pub index: String,
    /// The values of this page.
    pub values: Vec<String>,
    /// The number of values on all pages.
    pub total: u64,
    /// The parameter `after` for the next page; `None` on the last page.
    pub next: Option<String>,
}

/// An object: the response of `api/informers/{id}/object`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Object {
    /// The key.
    pub key: String,
    /// The object in the cache; Secrets are without data.
    pub object: Value,
}

/// The last changes of an object: the response of `api/informers/{id}/history`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct History {
    /// The key.
    pub key: String,
    /// How long changes have been recorded; earlier ones are unknown.
    pub recorded_ms: u64,
    /// The states, oldest first.
    pub states: Vec<State>,
    /// The number of older states that were dropped.
    pub forgotten: u64,
}

/// A state of an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct State {
    /// The change that led to this state.
    pub kind: ChangeKind,
    /// The time of the event, in milliseconds since 1970. For a `Known` state, the time when it ended.
    pub at_ms: u64,
    /// The resource version.
    pub version: String,
    /// The differences from the previous state.
    pub changes: Vec<FieldChange>,
    /// The number of further differences.
    pub more: u64,
    /// False if the states cannot be compared: one of them is not kept, has no JSON, or is too large.
    pub compared: bool,
}

/// A kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// The object existed before the recording.
    Known,
    /// The object was added.
    Added,
    /// The object was updated.
    Updated,
    /// The object was resynced.
    Resynced,
    /// The object was deleted.
    Deleted,
    /// A kind that this version of the crate does not know.
    #[serde(other)]
    Unknown,
}

/// A field that has changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FieldChange {
    /// The path, such as `spec.containers[0].image` or `metadata.labels["app.kubernetes.io/name"]`.
    pub path: String,
    /// The old value; `None` if the field was added.
    pub old: Option<Value>,
    /// The new value; `None` if the field was removed.
    pub new: Option<Value>,
}

/// The latest changes: the data of each `changes` event of `api/stream`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Changes {
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// The number of changes before these that were dropped because they arrived too fast.
    pub dropped: u64,
}

/// A change of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Change {
    /// The id of the informer that reported the change.
    pub informer: String,
    /// The kind of change.
    pub kind: ChangeKind,
    /// The key of the object.
    pub key: String,
    /// The last known resource version.
    pub version: String,
    /// The time, in milliseconds since 1970.
    pub at_ms: u64,
    /// The first few changed fields.
    pub fields: Vec<String>,
    /// The number of further changed fields.
    pub more: u64,
}

/// The response of `livez` and `readyz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Probe {
    /// True if there is no problem.
    pub ok: bool,
    /// The number of informers.
    pub informers: u64,
    /// The problems.
    pub problems: Vec<Problem>,
}

/// A problem of one part of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// The part: the id of an informer, or a name from a probe, such as an election or a controller.
    pub part: String,
    /// The problem and its cause.
    pub why: String,
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// The error.
    pub error: String,
    /// What the client can do.
    pub hint: String,
}
