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
    /// The counters that change with each event, one entry for each scope.
    contacts: Mutex<BTreeMap<Scope, Contact>>,
    /// True if any object is undecodable. It is read with each event.
    any_undecodable: AtomicBool,
    error_hook: Mutex<Option<ErrorHook>>,
    /// When each reason was last logged.
    warned: Mutex<HashMap<String, Instant>>,
    metrics: OnceLock<Metrics>,
}

/// Records the data that arrived from the API server for one reflector. It has no lock and wakes no task. A clone is
/// another handle.
#[derive(Clone)]
pub(crate) struct Contact {
    counts: Arc<ContactCounts>,
    /// The instant from which `last` is counted.
    began: Instant,
}

#[derive(Default)]
struct ContactCounts {
    /// Nanoseconds since `began`, plus one; 0 for never.
    last: AtomicU64,
    events: AtomicU64,
    bytes: AtomicU64,
}

impl Contact {
    fn new() -> Self {
        Self { counts: Arc::default(), began: Instant::now() }
    }

    /// Records that bytes arrived.
    pub(crate) fn record(&self, bytes: u64) {
        self.counts.events.fetch_add(1, Ordering::Relaxed);
        self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
        let since = self.began.elapsed().as_nanos();
        self.counts.last.store(u64::try_from(since).unwrap_or(u64::MAX - 1) + 1, Ordering::Relaxed);
    }

    /// Adds the counts to those of the informer.
    fn add_to(&self, counts: &mut Counts) {
        counts.events += self.counts.events.load(Ordering::Relaxed);
        counts.wire_bytes += self.counts.bytes.load(Ordering::Relaxed);
    }

    fn last(&self) -> Option<Instant> {
        let last = self.counts.last.load(Ordering::Relaxed).checked_sub(1);
        last.map(|last| after(self.began, Duration::from_nanos(last)))
    }
}

pub(crate) type ErrorHook = Arc<dyn Fn(&InformerError) + Send + Sync>;

impl HealthBoard {
    pub(crate) fn new(name: String, secret: bool, scopes: impl IntoIterator<Item = Scope>) -> Self {
        let parts: Vec<PartHealth> = scopes.into_iter().map(PartHealth::new).collect();
        let contacts = parts.iter().map(|part| (part.scope.clone(), Contact::new())).collect();
        let health = Health {
            parts,
            synced: false,
            undecodable: BTreeMap::new(),
            started: false,
            stopped: false,
            counts: Counts::default(),
            recent_failures: Vec::new(),
            objects: 0,
            lingering: None,
            queued: 0,
            handlers: Vec::new(),
            figures: Vec::new(),
        };
        let shared = BoardShared {
            name,
            secret,
            sender: watch::Sender::new(health),
            contacts: Mutex::new(contacts),
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
        HealthChanges { health: self.subscribe(), board: self.clone() }
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
        let works = watching || matches!(phase, Phase::Absent { .. });
        if let Some(metrics) = self.metrics().filter(|_| watching) {
            metrics.watching();
        }
        self.shared.sender.send_modify(|health| {
            health.counts.watches += u64::from(watching);
            // A reflector that is being stopped may still report a phase, but the informer has stopped.
            let stopped = health.stopped;
            if let Some(part) = health.parts.iter_mut().find(|part| part.scope == *scope && !stopped) {
                part.phase = phase;
                if works {
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

    /// Returns the counters of a scope.
    pub(crate) fn contact_of(&self, scope: &Scope) -> Contact {
        self.shared.contacts.lock().entry(scope.clone()).or_insert_with(Contact::new).clone()
    }

    /// Sets the scopes. The counts of those that are not followed any more stay in the sums.
    pub(crate) fn set_scopes(&self, scopes: Vec<Scope>) {
        let wanted: BTreeSet<Scope> = scopes.into_iter().collect();
        let mut contacts = self.shared.contacts.lock();
        self.shared.sender.send_modify(|health| {
            contacts.retain(|scope, contact| {
                let stays = wanted.contains(scope);
                if !stays {
                    contact.add_to(&mut health.counts);
                }
                stays
            });
            health.parts.retain(|part| wanted.contains(&part.scope));
            let known: BTreeSet<Scope> = health.parts.iter().map(|part| part.scope.clone()).collect();
            let phase = if health.stopped { Phase::Stopped } else { Phase::New };
            let added = wanted.difference(&known).cloned().map(PartHealth::new);
            health.parts.extend(added.map(|part| PartHealth { phase: phase.clone(), ..part }));
            health.parts.sort_by(|one, other| one.scope.cmp(&other.scope));
        });
    }

    /// Removes the marks of undecodable objects that the informer does not follow any more.
    pub(crate) fn forget_where(&self, left: impl Fn(KeyRef<'_>) -> bool) {
        if self.any_undecodable() {
            self.shared.sender.send_modify(|health| {
                health.undecodable.retain(|key, _| !left(key.into()));
                self.shared.any_undecodable.store(!health.undecodable.is_empty(), Ordering::Release);
            });
        }
    }

    /// Records that the first list is in the cache.
    pub(crate) fn synced(&self, objects: usize) {
        info!(name = %self.shared.name, objects, "informer synced");
        self.shared.sender.send_modify(|health| health.synced = true);
    }

    /// Records that the informer was started.
    pub(crate) fn started(&self) {
        self.shared.sender.send_modify(|health| health.started = true);
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

    /// Returns the health as it changes, without the counters that change with each event.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Health> {
        self.shared.sender.subscribe()
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
                let (uid, version, owners) = (bad.uid.clone(), bad.version.clone(), bad.owners.clone());
                let (error, generation) = (error.to_string(), bad.generation);
                health.undecodable.insert(key, Undecodable { error, uid, version, generation, owners });
            }
            self.shared.any_undecodable.store(!health.undecodable.is_empty(), Ordering::Release);
        });
    }
}

impl BoardShared {
    /// Adds the counters that change with each event.
    fn with_contacts(&self, mut health: Health) -> Health {
        let contacts = self.contacts.lock();
        for part in &mut health.parts {
            if let Some(contact) = contacts.get(&part.scope) {
                part.last_contact = contact.last();
                contact.add_to(&mut health.counts);
            }
        }
        drop(contacts);
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
