//! The board: all parts of an informer report their state to it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{error, info, warn};

use super::error::decode_error_without_user_text;
use super::{Counts, Health, InformerError, Metrics, PartHealth, RecentFailure, Undecodable};
use crate::lock::Mutex;
use crate::object::{KeyRef, ObjectKey, ResourceType, ResourceVersion, Scope, in_scope};
use crate::queue::ListMark;
use crate::reflector::{ListReason, Phase};
use crate::source::BadObject;
use crate::time::after;

/// The same reason is logged at most once in this time.
const WARNED: Duration = Duration::from_secs(60);
/// How many failures are remembered.
const RECENT: usize = 20;
/// How many different reasons are remembered.
const REASONS: usize = 64;

/// The board to which all parts of an informer report their state. A clone is another handle.
#[derive(Clone)]
pub(crate) struct HealthBoard {
    shared: Arc<BoardShared>,
}

struct BoardShared {
    name: String,
    /// True if the objects are Secrets: messages of user code are not shown.
    secret: bool,
    sender: watch::Sender<Health>,
    /// The counters that change with each event, and therefore have no lock: one entry for each reflector.
    contacts: Vec<Contact>,
    /// The instant from which contacts are counted.
    began: Instant,
    /// True if any object is undecodable. It is read with each event.
    any_undecodable: AtomicBool,
    error_hook: Mutex<Option<ErrorHook>>,
    /// When each reason was last logged.
    warned: Mutex<HashMap<String, Instant>>,
    metrics: OnceLock<Metrics>,
}

/// The data that arrived from the API server for one reflector.
#[derive(Default)]
struct Contact {
    /// Nanoseconds since the board was made, plus one; 0 for never.
    last: AtomicU64,
    events: AtomicU64,
    bytes: AtomicU64,
}

pub(crate) type ErrorHook = Arc<dyn Fn(&InformerError) + Send + Sync>;

impl HealthBoard {
    pub(crate) fn new(name: String, secret: bool, scopes: impl IntoIterator<Item = Scope>) -> Self {
        let parts = scopes.into_iter().map(|scope| PartHealth {
            scope,
            phase: Phase::New,
            last_contact: None,
            last_error: None,
            failures: 0,
            inconclusive: false,
        });
        let parts: Vec<PartHealth> = parts.collect();
        let contacts = parts.iter().map(|_| Contact::default()).collect();
        let health = Health {
            parts,
            synced: false,
            undecodable: BTreeMap::new(),
            stopped: false,
            counts: Counts::default(),
            recent_failures: Vec::new(),
            objects: 0,
            queued: 0,
            handlers: Vec::new(),
            figures: Vec::new(),
        };
        let shared = BoardShared {
            name,
            secret,
            sender: watch::Sender::new(health),
            contacts,
            began: Instant::now(),
            any_undecodable: AtomicBool::new(false),
            error_hook: Mutex::default(),
            warned: Mutex::default(),
            metrics: OnceLock::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn health(&self) -> Health {
        let health = self.shared.sender.borrow().clone();
        self.shared.with_contacts(health)
    }

    pub(crate) fn changes(&self) -> HealthChanges {
        HealthChanges { health: self.shared.sender.subscribe(), board: self.clone() }
    }

    pub(crate) fn set_error_hook(&self, hook: ErrorHook) {
        *self.shared.error_hook.lock() = Some(hook);
    }

    pub(crate) fn take_metrics(&self, resource: Option<&ResourceType>) {
        self.shared.metrics.get_or_init(|| Metrics::new(&self.shared.name, resource));
    }

    /// Returns the handles to the metrics facade, once the informer has started.
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

    /// Counts an error and calls the hook with it, or logs a warning if there is no hook.
    pub(crate) fn report(&self, error: &InformerError) {
        let withheld = self.shared.secret.then(|| error.without_user_text());
        let error = withheld.as_ref().unwrap_or(error);
        // The hook runs outside the lock: it may take any time, and may call the informer.
        let hook = self.shared.error_hook.lock().clone();
        match hook {
            Some(hook) => {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| hook(error))) {
                    // The caller must be able to continue.
                    error!(%error, panic = crate::panic_message(&*panic), "error hook panicked");
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
            if !undecodable {
                health.counts.failures += 1;
                let surplus = (health.recent_failures.len() + 1).saturating_sub(RECENT);
                health.recent_failures.drain(..surplus);
                health.recent_failures.push(RecentFailure { at: Instant::now(), error: error.to_string().into() });
            }
            if let InformerError::Reflector { scope, error } = error
                && let Some(part) = health.parts.iter_mut().find(|part| part.scope == *scope)
            {
                part.failures += 1;
                part.last_error = Some(error.clone());
            }
        });
    }

    /// Logs an error that no hook receives. The same reason is logged at most once a minute.
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
            // A reflector that is being stopped may still report a phase, but the informer has stopped.
            let stopped = health.stopped;
            if let Some(part) = health.parts.iter_mut().find(|part| part.scope == *scope && !stopped) {
                part.phase = phase;
                if watching {
                    part.last_error = None; // The reflector works again.
                }
            }
        });
    }

    /// Records that a list is in the cache. Marked objects that are not in the list were deleted.
    pub(crate) fn listed(&self, mark: &ListMark) {
        self.shared.sender.send_modify(|health| {
            if let Some(part) = health.parts.iter_mut().find(|part| part.scope == mark.scope) {
                part.inconclusive = mark.inconclusive;
            }
            if !mark.inconclusive && !health.undecodable.is_empty() {
                let unread: HashSet<&ObjectKey> = mark.unread.iter().collect();
                health.undecodable.retain(|key, _| !in_scope(&mark.scope, key.into()) || unread.contains(key));
                self.shared.any_undecodable.store(!health.undecodable.is_empty(), Ordering::Release);
            }
        });
    }

    /// Records that bytes arrived from the API server for the reflector with this number. It wakes no task.
    pub(crate) fn contact(&self, part: usize, bytes: u64) {
        if let Some(contact) = self.shared.contacts.get(part) {
            contact.events.fetch_add(1, Ordering::Relaxed);
            contact.bytes.fetch_add(bytes, Ordering::Relaxed);
            let since = self.shared.began.elapsed().as_nanos();
            contact.last.store(u64::try_from(since).unwrap_or(u64::MAX - 1) + 1, Ordering::Relaxed);
        }
    }

    /// Records that the first list is in the cache.
    pub(crate) fn synced(&self, objects: usize) {
        info!(name = %self.shared.name, objects, "informer synced");
        self.shared.sender.send_modify(|health| health.synced = true);
    }

    /// Records that all parts of the informer have stopped.
    pub(crate) fn stopped(&self) {
        if let Some(metrics) = self.metrics() {
            metrics.zero();
        }
        self.shared.sender.send_modify(|health| {
            health.stopped = true;
            health.parts.iter_mut().for_each(|part| part.phase = Phase::Stopped);
        });
    }

    /// Returns true if the last state of the object could not be decoded.
    pub(crate) fn is_undecodable(&self, key: KeyRef<'_>) -> bool {
        self.shared.any_undecodable.load(Ordering::Acquire)
            && self.shared.sender.borrow().undecodable.contains_key(&ObjectKey::from(key))
    }

    /// Returns the mark of an undecodable object.
    pub(crate) fn undecodable(&self, key: KeyRef<'_>) -> Option<Undecodable> {
        self.shared.sender.borrow().undecodable.get(&ObjectKey::from(key)).cloned()
    }

    /// Returns true if any object is marked as undecodable.
    pub(crate) fn any_undecodable(&self) -> bool {
        self.shared.any_undecodable.load(Ordering::Acquire)
    }

    pub(crate) fn undecodable_keys(&self) -> BTreeSet<ObjectKey> {
        match self.any_undecodable() {
            true => self.shared.sender.borrow().undecodable.keys().cloned().collect(),
            false => BTreeSet::new(),
        }
    }

    /// Returns the keys of the undecodable objects for which a predicate is true.
    pub(crate) fn undecodable_where(&self, wanted: impl Fn(&ObjectKey, &Undecodable) -> bool) -> Vec<ObjectKey> {
        if !self.any_undecodable() {
            return Vec::new();
        }
        let health = self.shared.sender.borrow();
        health.undecodable.iter().filter(|(key, mark)| wanted(key, mark)).map(|(key, _)| key.clone()).collect()
    }

    /// Removes the marks of objects that were decoded or deleted, then marks the ones that could not be decoded.
    pub(crate) fn mark(&self, decodable: &[ObjectKey], undecodable: &[BadObject]) {
        self.shared.sender.send_modify(|health| {
            for key in decodable {
                health.undecodable.remove(key);
            }
            for bad in undecodable {
                let Some(key) = bad.key.clone() else { continue };
                let error = match self.shared.secret {
                    true => decode_error_without_user_text(&bad.error),
                    false => bad.error.clone(),
                };
                health.undecodable.insert(key, Undecodable { error: error.to_string(), owners: bad.owners.clone() });
            }
            self.shared.any_undecodable.store(!health.undecodable.is_empty(), Ordering::Release);
        });
    }
}

impl BoardShared {
    /// Adds the counters that change with each event.
    fn with_contacts(&self, mut health: Health) -> Health {
        for (part, contact) in health.parts.iter_mut().zip(&self.contacts) {
            let last = contact.last.load(Ordering::Relaxed).checked_sub(1);
            part.last_contact = last.map(|last| after(self.began, Duration::from_nanos(last)));
            health.counts.events += contact.events.load(Ordering::Relaxed);
            health.counts.wire_bytes += contact.bytes.load(Ordering::Relaxed);
        }
        health
    }
}

/// The health of an informer as it changes; see
/// [`SharedInformer::health_changes`](crate::SharedInformer::health_changes).
///
/// It returns copies and holds no lock, so a slow reader does not delay the informer.
#[derive(Clone)]
pub struct HealthChanges {
    health: watch::Receiver<Health>,
    board: HealthBoard,
}

impl HealthChanges {
    /// Returns the current health.
    pub fn latest(&mut self) -> Health {
        let health = self.health.borrow_and_update().clone();
        self.board.shared.with_contacts(health)
    }

    /// Waits until the health has changed since it was last returned, and returns it. `None` once the informer has
    /// stopped and its last health was returned.
    ///
    /// # Cancel safety
    ///
    /// No change is lost: the next call returns the newest health.
    pub async fn changed(&mut self) -> Option<Health> {
        if self.health.borrow().stopped && !self.health.has_changed().unwrap_or(false) {
            return None;
        }
        self.health.changed().await.ok()?;
        Some(self.latest())
    }

    /// Waits until the predicate is true of the health, and returns it; `None` if the informer stopped before.
    ///
    /// # Cancel safety
    ///
    /// It may be called again.
    pub async fn wait_for(&mut self, mut predicate: impl FnMut(&Health) -> bool) -> Option<Health> {
        let mut health = self.latest();
        while !predicate(&health) {
            health = self.changed().await?;
        }
        Some(health)
    }
}

impl fmt::Debug for HealthChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HealthChanges")
    }
}

impl fmt::Debug for HealthBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HealthBoard")
    }
}
