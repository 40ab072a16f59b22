//! The health of an informer.

mod board;
mod error;
mod metrics;
mod probe;
mod work;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

pub use self::board::HealthChanges;
pub(crate) use self::board::{Contact, HealthBoard};
pub use self::error::InformerError;
pub(crate) use self::metrics::Metrics;
pub use self::probe::{AnyProbe, ElectionHealth, Problem};
pub use self::work::{AnyQueue, FailingItem, QueueHealth, WorkTimes};
use crate::object::{ObjectKey, ResourceVersion, Scope};
use crate::reflector::{ListReason, Phase, ReflectorError};
use crate::store::LingeringCounts;

/// The health of an informer: whether it is live, ready and fresh, and why not.
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
    /// One entry for each selected namespace, or one for all.
    pub parts: Vec<PartHealth>,
    /// True once the first list is in the cache. It stays true.
    pub synced: bool,
    /// Objects whose latest state could not be decoded, and why. The cache holds an older state, or none. An entry
    /// stays until the object is decoded, deleted, or missing from a list.
    pub undecodable: BTreeMap<ObjectKey, Undecodable>,
    /// True once the informer was started.
    pub started: bool,
    /// True once the informer has stopped.
    pub stopped: bool,
    /// Counters.
    pub counts: Counts,
    /// The last 20 failures, oldest first. [`Counts::failures`] counts all of them.
    pub recent_failures: Vec<RecentFailure>,
    /// How many objects the cache holds.
    pub objects: usize,
    /// The deleted objects that linger; `None` if [`InformerOptions::linger`](crate::InformerOptions::linger) is not
    /// set.
    pub lingering: Option<LingeringHealth>,
    /// How many changes wait to be applied.
    pub queued: usize,
    /// The handlers, and how many events wait for each.
    pub handlers: Vec<HandlerHealth>,
    /// The figures of the representation; see [`Decode::figures`](crate::representation::Decode::figures).
    pub figures: Vec<(&'static str, f64)>,
}

/// A failure of an informer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecentFailure {
    /// When it happened.
    pub at: Instant,
    /// The error.
    pub error: Arc<str>,
}

/// The health of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerHealth {
    /// The name of the handler, with a number if several handlers have the same name.
    pub name: String,
    /// How many events wait to be delivered.
    pub backlog: usize,
    /// How long the oldest undelivered event has waited; zero if no event waits.
    pub lag: Duration,
    /// How often the mailbox was folded, because the handler was slow.
    pub folds: u64,
    /// True once all objects of the initial state are delivered.
    pub synced: bool,
}

/// The deleted objects that linger; see [`Lingering`](crate::Lingering).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LingeringHealth {
    /// How many objects linger.
    pub objects: usize,
    /// How many bytes of memory they take, estimated from the bytes on the wire.
    pub bytes: u64,
    /// How many objects were dropped before their time was over, because of
    /// [`InformerOptions::linger_at_most`](crate::InformerOptions::linger_at_most).
    pub dropped: u64,
}

impl From<LingeringCounts> for LingeringHealth {
    fn from(LingeringCounts { objects, bytes, dropped }: LingeringCounts) -> Self {
        Self { objects, bytes, dropped }
    }
}

/// An object that could not be decoded. Displays the error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undecodable {
    /// The error. It names the field, and has no value of a field.
    pub error: String,
    /// The uid, if it could be decoded.
    pub uid: Option<String>,
    /// The version, if it could be decoded.
    pub version: Option<ResourceVersion>,
    /// The generation, if the object has one that could be decoded.
    pub generation: Option<i64>,
    /// The uids of its owners; `None` if they could not be decoded either.
    pub owners: Option<Vec<String>>,
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

/// Counters of an informer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// The number of lists, by reason.
    pub lists: BTreeMap<ListReason, u64>,
    /// The number of watches.
    pub watches: u64,
    /// The number of received events and pieces of lists.
    pub events: u64,
    /// The number of errors, without objects that could not be decoded.
    pub failures: u64,
    /// How often an object could not be decoded.
    pub undecodable: u64,
    /// The number of received bytes.
    pub wire_bytes: u64,
}

/// The health of one reflector, which follows one namespace or all.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PartHealth {
    /// The namespace, or `None` for all.
    pub scope: Scope,
    /// The phase of the reflector.
    pub phase: Phase,
    /// When the API server last sent something; `None` if never.
    pub last_contact: Option<Instant>,
    /// The last error, until the reflector watches again.
    pub last_error: Option<ReflectorError>,
    /// The number of errors.
    pub failures: u64,
    /// True if the key of an object in the last list could not be decoded, so that deletions may be missing.
    pub inconclusive: bool,
}

impl PartHealth {
    fn new(scope: Scope) -> Self {
        let (phase, last_contact, last_error) = (Phase::New, None, None);
        Self { scope, phase, last_contact, last_error, failures: 0, inconclusive: false }
    }
}

impl Health {
    /// Returns how long ago the API server last sent something, for the reflector that has waited longest; `None` if
    /// one has never received anything. Zero if the informer follows no namespace at all.
    pub fn age(&self) -> Option<Duration> {
        let ages = self.parts.iter().map(|part| part.last_contact.map(|contact| contact.elapsed()));
        Some(ages.collect::<Option<Vec<_>>>()?.into_iter().max().unwrap_or_default())
    }

    /// Returns true while the informer runs.
    pub fn is_live(&self) -> bool {
        self.started && !self.stopped
    }

    /// Returns true once the first list is in the cache.
    pub fn is_ready(&self) -> bool {
        self.synced
    }

    /// Returns true if each reflector has received something from the API server within this time.
    pub fn is_fresh(&self, within: Duration) -> bool {
        self.is_live() && self.age().is_some_and(|age| age <= within)
    }

    /// Returns why a restart of the program would help, or `None` if it would not: an informer that was started has
    /// stopped. One that was not started yet is not ready, but a restart does not help it.
    pub fn why_not_live(&self) -> Option<String> {
        self.stopped.then(|| "it has stopped".to_owned())
    }

    /// Returns why the cache cannot be relied on, or `None` if it can: the informer has stopped or not synced yet, or,
    /// with a limit, has not heard from the API server for longer than that.
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

    /// Returns true if the first list is in the cache and every reflector watches, or waits for an optional resource.
    pub fn is_watching(&self) -> bool {
        let works = |part: &PartHealth| matches!(part.phase, Phase::Watching | Phase::Absent { .. });
        self.synced && !self.stopped && self.parts.iter().all(works)
    }

    /// Returns since when the API server does not serve the resource of this informer, which is
    /// [optional](crate::InformerOptions::optional); `None` if it does, or if that is unknown.
    pub fn absent_since(&self) -> Option<Instant> {
        let since = self.parts.iter().map(|part| match part.phase {
            Phase::Absent { since } => Some(since),
            _ => None,
        });
        since.collect::<Option<Vec<_>>>()?.into_iter().min()
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
