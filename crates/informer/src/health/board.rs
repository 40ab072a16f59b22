//! Where all parts of an informer say how they do.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{error, warn};

use super::{Counts, Health, InformerError, Metrics, PartHealth};
use crate::object::{KeyRef, ObjectKey, ResourceType, ResourceVersion, Scope, in_scope};
use crate::queue::ListMark;
use crate::reflector::{ListReason, Phase};
use crate::source::BadObject;

/// The same reason is warned of once in this time.
const WARNED: Duration = Duration::from_secs(60);
/// So many reasons are told apart.
const REASONS: usize = 64;

/// Where all parts of an informer say how they do. Cloning gives another handle.
#[derive(Clone)]
pub(crate) struct HealthBoard {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    sender: watch::Sender<Health>,
    error_hook: Mutex<Option<ErrorHook>>,
    /// When what was last warned of.
    warned: Mutex<HashMap<String, Instant>>,
    metrics: OnceLock<Metrics>,
}

pub(crate) type ErrorHook = Arc<dyn Fn(&InformerError) + Send + Sync>;

impl HealthBoard {
    pub(crate) fn new(name: String, scopes: impl IntoIterator<Item = Scope>) -> Self {
        let parts = scopes.into_iter().map(|scope| PartHealth {
            scope,
            phase: Phase::New,
            last_contact: None,
            last_error: None,
            failures: 0,
            inconclusive: false,
        });
        let health = Health {
            parts: parts.collect(),
            synced: false,
            undecodable: BTreeMap::new(),
            stopped: false,
            counts: Counts::default(),
            objects: 0,
            queued: 0,
            handlers: Vec::new(),
            figures: Vec::new(),
        };
        let shared = Shared {
            name,
            sender: watch::Sender::new(health),
            error_hook: Mutex::default(),
            warned: Mutex::default(),
            metrics: OnceLock::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn health(&self) -> Health {
        self.shared.sender.borrow().clone()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Health> {
        self.shared.sender.subscribe()
    }

    pub(crate) fn set_error_hook(&self, hook: ErrorHook) {
        *self.shared.error_hook.lock() = Some(hook);
    }

    pub(crate) fn take_metrics(&self, resource: Option<&ResourceType>) {
        let _ = self.shared.metrics.set(Metrics::new(&self.shared.name, resource));
    }

    /// The handles to the metrics facade, once started.
    pub(crate) fn metrics(&self) -> Option<&Metrics> {
        self.shared.metrics.get()
    }

    pub(crate) fn store_version(&self, version: Option<&ResourceVersion>) {
        if let Some((metrics, version)) = self.metrics().zip(version) {
            metrics.store_version(version);
        }
    }

    pub(crate) fn listing(&self, reason: ListReason) {
        if let Some(metrics) = self.metrics() {
            metrics.listing(reason);
        }
        self.shared.sender.send_modify(|health| *health.counts.lists.entry(reason).or_default() += 1);
    }

    /// Tells the hook, counts, and warns if there is no hook.
    pub(crate) fn report(&self, error: &InformerError) {
        // The hook runs outside the lock: it may take as long as it likes, and may call back.
        let hook = self.shared.error_hook.lock().clone();
        match hook {
            Some(hook) => {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| hook(error))) {
                    // Whoever reports has more to do than to report.
                    error!(%error, panic = crate::panic_text(&*panic), "error hook panicked");
                }
            }
            None => self.warn(error),
        }
        let undecodable = matches!(error, InformerError::Undecodable { .. });
        match self.metrics() {
            Some(metrics) if undecodable => metrics.undecodable(),
            Some(metrics) => metrics.failed(),
            None => {}
        }
        self.shared.sender.send_modify(|health| {
            health.counts.undecodable += u64::from(undecodable);
            health.counts.failures += u64::from(!undecodable);
            if let InformerError::Reflector { scope, error } = error
                && let Some(part) = health.parts.iter_mut().find(|part| part.scope == *scope)
            {
                part.failures += 1;
                part.last_error = Some(error.clone());
            }
        });
    }

    /// Nobody else hears of it; but the log is not to be flooded.
    fn warn(&self, error: &InformerError) {
        let (reason, now) = (error.to_string(), Instant::now());
        let mut warned = self.shared.warned.lock();
        if warned.len() >= REASONS {
            warned.retain(|_, last| now - *last < WARNED);
        }
        let due = warned.get(&reason).is_none_or(|last| now - *last >= WARNED);
        if due && warned.len() < REASONS {
            warned.insert(reason, now);
            warn!(name = %self.shared.name, %error, "informer has a problem, and goes on");
        }
    }

    pub(crate) fn phase(&self, scope: &Scope, phase: Phase) {
        let watching = phase == Phase::Watching;
        if let Some(metrics) = self.metrics().filter(|_| watching) {
            metrics.watching();
        }
        self.shared.sender.send_modify(|health| {
            health.counts.watches += u64::from(watching);
            if let Some(part) = health.parts.iter_mut().find(|part| part.scope == *scope) {
                part.phase = phase;
                if watching {
                    part.last_error = None; // It works again.
                }
            }
        });
    }

    /// A list is in the cache. What could not be read before, and is not in it, is gone.
    pub(crate) fn listed(&self, mark: &ListMark) {
        self.shared.sender.send_modify(|health| {
            if let Some(part) = health.parts.iter_mut().find(|part| part.scope == mark.scope) {
                part.inconclusive = mark.inconclusive;
            }
            if !mark.inconclusive && !health.undecodable.is_empty() {
                let unread: HashSet<&ObjectKey> = mark.unread.iter().collect();
                health.undecodable.retain(|key, _| !in_scope(&mark.scope, key.into()) || unread.contains(key));
            }
        });
    }

    pub(crate) fn contact(&self, scope: &Scope, bytes: u64) {
        // Contact is noted with each event; nobody is woken for it.
        self.shared.sender.send_if_modified(|health| {
            health.counts.events += 1;
            health.counts.wire_bytes += bytes;
            if let Some(part) = health.parts.iter_mut().find(|part| part.scope == *scope) {
                part.last_contact = Some(Instant::now());
            }
            false
        });
    }

    pub(crate) fn synced(&self) {
        self.shared.sender.send_modify(|health| health.synced = true);
    }

    /// Nothing of the informer runs any more.
    pub(crate) fn stopped(&self) {
        if let Some(metrics) = self.metrics() {
            metrics.zero();
        }
        self.shared.sender.send_modify(|health| {
            health.stopped = true;
            health.parts.iter_mut().for_each(|part| part.phase = Phase::Stopped);
        });
    }

    /// An object came that could not be read.
    pub(crate) fn undecodable(&self, bad: &BadObject) {
        if let Some(key) = bad.key.clone() {
            self.shared.sender.send_modify(|health| {
                health.undecodable.insert(key, bad.error.to_string());
            });
        }
    }

    /// A good copy came, or the object is gone.
    pub(crate) fn decodable(&self, key: KeyRef<'_>) {
        if !self.shared.sender.borrow().undecodable.is_empty() {
            self.shared.sender.send_if_modified(|health| health.undecodable.remove(&ObjectKey::from(key)).is_some());
        }
    }
}

impl fmt::Debug for HealthBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HealthBoard")
    }
}
