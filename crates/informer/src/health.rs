//! What an informer is doing, how well, and since when.

mod board;
mod error;
mod metrics;
mod probe;
mod work;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

pub(crate) use self::board::HealthBoard;
pub use self::board::HealthChanges;
pub use self::error::InformerError;
pub(crate) use self::metrics::Metrics;
pub use self::probe::{AnyProbe, Problem};
pub use self::work::{AnyQueue, QueueHealth};
use crate::object::{ObjectKey, Scope};
use crate::processor::HandlerHealth;
use crate::reflector::{ListReason, Phase, ReflectorError};

/// How an informer does. Three questions have three answers: whether it is live, ready, and fresh.
///
/// ```
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_informer::SharedInformerFactory;
/// # doc_server::with(async |server| {
/// let factory = SharedInformerFactory::new(server.client());
/// let maps = factory.informer::<ConfigMap>()?;
/// factory.start()?;
/// factory.synced().await?;
/// let health = maps.health();
/// assert!(health.is_live() && health.is_ready() && health.is_fresh(Duration::from_secs(300)));
/// assert_eq!(health.counts.lists.values().sum::<u64>(), 1);
/// # Ok(()) });
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Health {
    /// One for each namespace of a set, or one for all.
    pub parts: Vec<PartHealth>,
    /// True once the first list is in the cache. It stays true.
    pub synced: bool,
    /// Objects that came but could not be read, and why. What the cache holds of them is older, or nothing at all. They stay
    /// here until they are read, deleted, or missing from a list.
    pub undecodable: BTreeMap<ObjectKey, Undecodable>,
    /// True once nothing of it runs any more.
    pub stopped: bool,
    /// What happened so far.
    pub counts: Counts,
    /// How many objects the cache holds.
    pub objects: usize,
    /// How many changes came and wait to be applied.
    pub queued: usize,
    /// Its handlers, and what waits for each.
    pub handlers: Vec<HandlerHealth>,
    /// What the representation has to say; see [`Decode::figures`](crate::representation::Decode::figures).
    pub figures: Vec<(&'static str, f64)>,
}

/// Why an object could not be read. Displays the error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undecodable {
    /// What is wrong with it.
    pub error: String,
    /// The uids of its owners; `None` if they could not be read either.
    pub owners: Option<Vec<String>>,
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

/// What happened so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// How often everything was asked for, by reason.
    pub lists: BTreeMap<ListReason, u64>,
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

/// How the part of a collection does that one reflector follows.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PartHealth {
    /// Which part.
    pub scope: Scope,
    /// What its reflector is doing.
    pub phase: Phase,
    /// When the server was last heard of; `None` if never.
    pub last_contact: Option<Instant>,
    /// What went wrong last, until it works again.
    pub last_error: Option<ReflectorError>,
    /// How often something went wrong.
    pub failures: u64,
    /// True if the last list held something of which not even the key could be read, so that deletions may be missing.
    pub inconclusive: bool,
}

impl Health {
    /// How long ago the server was heard of, by the part that has waited longest; `None` if that is not known of each.
    pub fn age(&self) -> Option<Duration> {
        let ages = self.parts.iter().map(|part| part.last_contact.map(|contact| contact.elapsed()));
        ages.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// True as long as it runs.
    pub fn is_live(&self) -> bool {
        !self.stopped && self.parts.iter().all(|part| part.phase != Phase::New)
    }

    /// True once the cache held everything for the first time.
    pub fn is_ready(&self) -> bool {
        self.synced
    }

    /// True if every part has heard from the server within this time. Not known is not fresh.
    pub fn is_fresh(&self, within: Duration) -> bool {
        self.is_live() && self.age().is_some_and(|age| age <= within)
    }

    /// Returns why a restart of the program would help, or `None` if it would not: an informer that was started has stopped. One that
    /// was not started yet is not ready, but a restart does not help it.
    pub fn why_not_live(&self) -> Option<String> {
        self.stopped.then(|| "it has stopped".to_owned())
    }

    /// Returns why the cache cannot be relied on, or `None` if it can: the informer has stopped or not synced yet, or, with a limit, has
    /// not heard from the API server for longer than that.
    pub fn why_not_ready(&self, fresh_within: Option<Duration>) -> Option<String> {
        if self.stopped {
            return self.why_not_live();
        }
        if !self.synced {
            return Some(format!("not synced: {self}"));
        }
        let limit = fresh_within.filter(|limit| !self.is_fresh(*limit))?;
        Some(match self.age() {
            Some(age) => {
                let (age, limit) = (age.as_secs_f64(), limit.as_secs_f64());
                format!("nothing heard from the API server for {age:.1} s, the limit is {limit:.1} s: {self}")
            }
            None => format!("nothing heard from the API server yet: {self}"),
        })
    }

    /// True if it holds everything and follows every part.
    pub fn is_watching(&self) -> bool {
        self.synced && !self.stopped && self.parts.iter().all(|part| part.phase == Phase::Watching)
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.parts.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            if let Some(namespace) = &part.scope {
                write!(f, "namespace {namespace}: ")?;
            }
            write!(f, "{}", part.phase)?;
            let said = matches!(part.phase, Phase::BackingOff { .. } | Phase::Parked { .. });
            if let Some(error) = part.last_error.as_ref().filter(|_| !said) {
                write!(f, ", last error: {error}")?;
            }
        }
        Ok(())
    }
}
