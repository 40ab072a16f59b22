//! What the router answers, as types that can be written and read: a program that asks uses these too.
//!
//! Names of fields say their unit where there is one: `age_ms` is in milliseconds. What is not known is `null`. Fields may be
//! added; who reads should not mind those it does not know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything that runs: the answer of `api/informers`, and the data of each `health` event of `api/stream`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Overview {
    /// What the program calls itself.
    pub title: String,
    /// Within how long a server has to be heard of to be called fresh.
    pub fresh_within_ms: u64,
    /// When this was, in milliseconds since 1970, by the program's clock.
    pub at_ms: u64,
    /// The informers, by name.
    pub informers: Vec<Informer>,
    /// The queues of work.
    pub queues: Vec<Queue>,
}

/// How one informer does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Informer {
    /// What it is asked for by in paths: its name, with `~2` and so on where several have the same.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Which collection it follows, if that is known.
    pub resource: Option<Resource>,
    /// One for each namespace of a set, or one for all.
    pub parts: Vec<Part>,
    /// The version up to which the cache reflects every change.
    pub version: Option<String>,
    /// True as long as it runs.
    pub live: bool,
    /// True once the first list is in the cache.
    pub synced: bool,
    /// True if it holds everything and follows every part.
    pub watching: bool,
    /// True if the server was heard of within [`Overview::fresh_within_ms`].
    pub fresh: bool,
    /// How long ago the server was heard of, by the part that has waited longest.
    pub age_ms: Option<u64>,
    /// How many objects the cache holds.
    pub objects: u64,
    /// How many changes came and wait to be applied.
    pub queued: u64,
    /// What happened so far.
    pub counts: Counts,
    /// Objects that came but could not be read; the first hundred of them.
    pub undecodable: Vec<Undecodable>,
    /// Who is told of changes.
    pub handlers: Vec<Handler>,
    /// By what objects can be found.
    pub indexes: Vec<String>,
    /// What the representation has to say.
    pub figures: BTreeMap<String, f64>,
}

/// The collection that an informer follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version of the API.
    pub version: String,
    /// The kind of the objects.
    pub kind: String,
    /// The name in paths.
    pub plural: String,
    /// False for objects in cluster scope.
    pub namespaced: bool,
}

/// How the part of a collection does that one reflector follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Part {
    /// Which namespace; `None` for everything.
    pub namespace: Option<String>,
    /// What its reflector is doing.
    pub phase: Phase,
    /// How long ago the server was heard of.
    pub age_ms: Option<u64>,
    /// What went wrong last, until it works again.
    pub last_error: Option<String>,
    /// How often something went wrong.
    pub failures: u64,
    /// True if the last list held something that nobody could read, so that deletions may be missing.
    pub inconclusive: bool,
}

/// What a reflector is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// Nothing yet.
    New,
    /// Asks for everything by a list.
    Listing {
        /// How many objects came so far.
        received: u64,
        /// How many are to come, if the server says so.
        remaining: Option<u64>,
    },
    /// Asks for everything by a watch that begins with it.
    Streaming {
        /// How many objects came so far.
        received: u64,
    },
    /// Follows the changes.
    Watching,
    /// Waits before it asks again.
    BackingOff {
        /// For how long yet.
        left_ms: u64,
        /// What went wrong.
        why: String,
    },
    /// There is no such resource on the server; it is asked once in a while whether there is.
    Parked {
        /// When it is asked next.
        left_ms: u64,
        /// What the server said.
        why: String,
    },
    /// It is over.
    Stopped,
    /// Something that whoever reads this does not know yet.
    #[serde(other)]
    Unknown,
}

/// What happened to an informer so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counts {
    /// How often everything was asked for, by reason: `first`, `expired`, `failed`, `requested`, `restored`.
    pub lists: BTreeMap<String, u64>,
    /// How many watches were opened.
    pub watches: u64,
    /// How many events and pieces of lists came.
    pub events: u64,
    /// How much went wrong, objects that could not be read apart.
    pub failures: u64,
    /// How many objects could not be read.
    pub undecodable: u64,
    /// How many bytes came.
    pub wire_bytes: u64,
}

/// An object that came but could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Undecodable {
    /// Which one.
    pub key: String,
    /// What was wrong with it.
    pub why: String,
}

/// How a handler does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Handler {
    /// Its name.
    pub name: String,
    /// How many events wait to be delivered.
    pub backlog: u64,
    /// How long the oldest of them has waited.
    pub lag_ms: f64,
    /// How often it was so slow that only the latest of each object was kept for it.
    pub folds: u64,
    /// True once everything that was there at the start has been delivered.
    pub synced: bool,
}

/// How a queue of work does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Queue {
    /// Its name, or that of who works on it.
    pub name: String,
    /// How many items can be taken.
    pub waiting: u64,
    /// How many items workers have.
    pub processing: u64,
    /// How many items are to come later.
    pub delayed: u64,
    /// How many items wait until a cache has seen what was written for them.
    pub parked: u64,
    /// How long a worker has had the item that it has had for longest.
    pub longest_running_ms: u64,
    /// How many items were worked on.
    pub worked: u64,
    /// How many of them failed.
    pub failures: u64,
    /// What went wrong last, until it goes well.
    pub last_error: Option<String>,
}

/// Keys of objects, sorted: the answer of `api/informers/{id}/keys`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Keys {
    /// The keys of this page.
    pub keys: Vec<String>,
    /// How many there are on all pages.
    pub total: u64,
    /// What to ask for as `after` to get the next page; `None` on the last.
    pub next: Option<String>,
}

/// Values of an index, sorted: the answer of `api/informers/{id}/values`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Values {
    /// The index.
    pub index: String,
    /// The values of this page.
    pub values: Vec<String>,
    /// How many there are on all pages.
    pub total: u64,
    /// What to ask for as `after` to get the next page; `None` on the last.
    pub next: Option<String>,
}

/// One object: the answer of `api/informers/{id}/object`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Object {
    /// Its key.
    pub key: String,
    /// The object, as the cache has it; of Secrets without data.
    pub object: Value,
}

/// The last changes of one object: the answer of `api/informers/{id}/history`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct History {
    /// Its key.
    pub key: String,
    /// For how long changes have been recorded: what happened before is not known.
    pub recorded_ms: u64,
    /// Its states, oldest first.
    pub states: Vec<State>,
    /// How many older states were recorded and had to be forgotten.
    pub forgotten: u64,
}

/// What an object was like for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct State {
    /// What happened to it.
    pub kind: ChangeKind,
    /// When this was told, in milliseconds since 1970; of a state that was there before, when it ended.
    pub at_ms: u64,
    /// Its version.
    pub version: String,
    /// What is different from the state before.
    pub changes: Vec<FieldChange>,
    /// How many differences there are beside those in `changes`.
    pub more: u64,
    /// False if nobody can tell what is different: one of the two states is not kept, has no JSON, or is too large.
    pub compared: bool,
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// It was there before anybody looked.
    Known,
    /// It appeared.
    Added,
    /// It changed.
    Updated,
    /// It was shown again.
    Resynced,
    /// It is gone.
    Deleted,
    /// Something that whoever reads this does not know yet.
    #[serde(other)]
    Unknown,
}

/// A field that is different.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FieldChange {
    /// Where it is, such as `spec.containers[0].image` or `metadata.labels["app.kubernetes.io/name"]`.
    pub path: String,
    /// What was there; `None` if nothing was.
    pub old: Option<Value>,
    /// What is there; `None` if nothing is.
    pub new: Option<Value>,
}

/// What happened lately: the data of each `changes` event of `api/stream`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Changes {
    /// What happened, in order.
    pub changes: Vec<Change>,
    /// How many changes came too fast to be sent, and are left out before these.
    pub dropped: u64,
}

/// Something that happened to an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Change {
    /// The id of the informer that told of it.
    pub informer: String,
    /// What happened.
    pub kind: ChangeKind,
    /// To which object.
    pub key: String,
    /// The version it has now, or had last.
    pub version: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Which fields are different, the first few of them.
    pub fields: Vec<String>,
    /// How many more fields are different.
    pub more: u64,
}

/// The answer of `livez` and `readyz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Probe {
    /// True if nothing is wrong.
    pub ok: bool,
    /// How many informers were asked.
    pub informers: u64,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// What is wrong with one part of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// The part: an informer by its id, or what a probe names, such as an election or a controller.
    pub part: String,
    /// What is missing, and why.
    pub why: String,
}

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// What was wrong with it.
    pub error: String,
    /// What to do.
    pub hint: String,
}
