//! The applier: pops changes from the queue, applies them to the store, and sends events to the handlers. It is the
//! only writer of the store.
//!
//! This is client-go's controller loop with `processDeltas`. The store decides the type of an event, not the verb of
//! the API server: a known key is updated, an unknown key is added. A change that leaves an object unchanged causes no
//! event.
//!
//! A batch is applied in three steps. *Prepare* decides the event of each change and runs the index functions, with no
//! lock held. *Commit* makes the prepared changes and appends the prepared events to every mailbox, under one short
//! lock. *Attend* waits until the handlers have taken their events, before the next batch.
//!
//! [`Changes`] is the loop alone, for any queue and any function that processes its batches.

mod changes;
mod departures;
mod list;
mod part;
mod waiters;
mod writing;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tracing::{debug, trace};

pub(crate) use self::changes::BYTES;
pub use self::changes::{BatchGuard, Changes, ChangesSink, OnError};
use self::departures::Departures;
use self::list::{is_news, prepare_leaving, prepare_list};
pub(crate) use self::part::Outdated;
use self::part::Parts;
pub(crate) use self::waiters::Waiters;
use self::writing::ListedNamespaces;
pub(crate) use self::writing::Writing;
use crate::health::{HealthBoard, InformerError};
use crate::object::{KeyRef, Object, ObjectKey, ResourceVersion, Scope, in_scope, is_older};
use crate::processor::{BatchReason, Event, EventBatch, Listener, Listeners, drop_in_pieces};
use crate::queue::{Batch, Deleted, Delta, Deltas, KeyDelta, ListMark, Replacement, ScopeChange, Work};
use crate::source::BadObject;
use crate::store::{IndexFunctions, IndexValuesOf, Slot, Store, StoreChange, Transaction};
use crate::time::after;

/// How many objects of a long list are prepared at a time. In between other tasks may run.
const PIECE: usize = 256;
/// How long the applier waits per batch for handlers to take their events.
const ATTENDANCE: Duration = Duration::from_millis(5);

/// How far the store has come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StoreProgress {
    /// How often the API server was restored to an older state.
    pub(crate) epoch: u64,
    pub(crate) version: Option<ResourceVersion>,
    /// True once every scope was listed. It stays true if a scope is added later.
    pub(crate) synced: bool,
    /// True while every scope is listed.
    pub(crate) all_listed: bool,
    /// The number of the last relist request that is answered.
    pub(crate) relists: u64,
    /// The number of the last change of the scope that is applied.
    pub(crate) scope_change: u64,
    /// The number of the last change of the scope after which every scope was listed.
    pub(crate) listed_scope_change: u64,
}

/// Applies changes, one batch after another.
pub(crate) struct Applier {
    writing: Arc<Writing>,
    store: Store<dyn Object>,
    parts: Parts,
    outdated: Outdated,
    progress: watch::Sender<StoreProgress>,
    waiters: Waiters,
    health: HealthBoard,
    /// How many bytes of memory one byte on the wire takes.
    memory_factor: f64,
    departures: Departures,
    /// The index functions at the last commit.
    functions: IndexFunctions,
    /// The index values of the prepared events, one entry per event, each with the slot where the object probably is.
    /// The memory is reused for each batch.
    values: Vec<(IndexValuesOf, Option<Slot>)>,
    /// The errors of the current batch.
    failed: Vec<InformerError>,
    marks: DecodeMarks,
    /// The number of the last change of the scope that is applied.
    scope_change: u64,
}

/// The objects of the current batch that cannot be decoded, and the ones that can be decoded again.
///
/// The marks are published inside the commit. Otherwise a lookup could find an object absent, because its mark is
/// removed and its good state is not in the store yet.
#[derive(Default)]
struct DecodeMarks {
    decodable: Vec<ObjectKey>,
    undecodable: Vec<BadObject>,
}

impl DecodeMarks {
    fn publish(&mut self, health: &HealthBoard) {
        if !self.decodable.is_empty() || !self.undecodable.is_empty() {
            health.mark(&std::mem::take(&mut self.decodable), &std::mem::take(&mut self.undecodable));
        }
    }
}

/// The prepared changes of one batch, in order.
#[derive(Default)]
struct Prepared {
    events: Vec<Event<dyn Object>>,
    /// The latest state of the object, if the batch holds several changes of one object.
    latest: Option<Option<Arc<dyn Object>>>,
}

impl Applier {
    pub(crate) fn new(
        writing: Arc<Writing>,
        scopes: impl IntoIterator<Item = Scope>,
        outdated: Outdated,
        (progress, waiters): (watch::Sender<StoreProgress>, Waiters),
        health: HealthBoard,
        memory_factor: f64,
    ) -> Self {
        let parts = Parts::new(scopes);
        let (store, functions) = {
            let state = writing.lock();
            (state.writer.store().clone(), state.writer.functions())
        };
        let (values, failed) = (Vec::new(), Vec::new());
        let departures = Departures::new(store.lingering_counts().is_some(), memory_factor);
        Self {
            writing,
            store,
            parts,
            outdated,
            progress,
            waiters,
            health,
            memory_factor,
            departures,
            functions,
            values,
            failed,
            marks: DecodeMarks::default(),
            scope_change: 0,
        }
    }

    /// Applies a batch, and puts the events into the mailboxes of all handlers.
    pub(crate) async fn apply(&mut self, batch: Batch<dyn Object>) -> Applied {
        let Batch { work, bytes, settled } = batch;
        let mut prepared = Prepared::default();
        match work {
            Work::Deltas(mut deltas) => match deltas.pop() {
                Some(Delta::Replaced(list)) => return self.replace(list, bytes).await,
                Some(Delta::ScopeChanged(change)) => return self.change_scope(change).await,
                last => deltas.into_iter().chain(last).for_each(|delta| self.prepare(delta, &mut prepared)),
            },
            Work::Object(_, deltas) => self.prepare_object(deltas, &mut prepared),
            Work::Gone { key, version } => {
                self.decodable((&key).into());
                self.parts.saw(key.namespace(), version);
            }
            Work::Listed(mark) => {
                self.listed(&mark);
                // The batches before this one have put the objects of the list into the store.
                self.writing.lock().listed.add(mark.scope.as_ref());
            }
            Work::Resynced => {} // A resync of an informer does not go through its queue.
        }
        if settled {
            self.parts.settle();
        }
        self.commit(prepared.events, bytes).await
    }

    /// Decides the events of one change.
    fn prepare(&mut self, delta: Delta<dyn Object>, prepared: &mut Prepared) {
        match delta {
            Delta::Added(object) | Delta::Updated(object) => self.put(object, prepared),
            Delta::Deleted(object) => self.delete(object, prepared),
            Delta::Vanished { key, version } => self.bury((&key).into(), version, prepared),
            Delta::Undecodable(bad) => {
                self.parts.saw(bad.key.as_ref().and_then(|key| key.namespace()), bad.version.clone());
                self.unread(bad);
            }
            Delta::Bookmark { scope, version } => self.parts.reached(&scope, version),
            Delta::Restarted { scope } => self.restart(&scope),
            // A list and a change of the scope are batches of their own. A resync does not go through the queue.
            Delta::Replaced(_) | Delta::ScopeChanged(_) | Delta::Resync => {}
        }
    }

    /// Decides the events of all changes of one object, oldest first.
    fn prepare_object(&mut self, deltas: Deltas<dyn Object>, prepared: &mut Prepared) {
        for delta in deltas {
            match delta {
                KeyDelta::Added(object)
                | KeyDelta::Updated(object)
                | KeyDelta::Replaced(object)
                | KeyDelta::Sync(object) => self.put(object, prepared),
                KeyDelta::Deleted(Deleted::Final(object)) => self.delete(object, prepared),
                KeyDelta::Deleted(Deleted::Unknown(object) | Deleted::OutOfScope(object)) => {
                    self.bury(object.id().key, None, prepared);
                }
            }
            // The next change of this object builds on this one, which is not in the store yet.
            prepared.latest = prepared.events.last().map(|event| match event {
                Event::Deleted(_) => None,
                event => Some(event.object().clone()),
            });
        }
    }

    /// Returns the state of the object before the next change of the batch, and its slot.
    fn known(&self, key: KeyRef<'_>, prepared: &Prepared) -> (Option<Arc<dyn Object>>, Option<Slot>) {
        match &prepared.latest {
            Some(latest) => (latest.clone(), None),
            None => self.store.find(key).map(|(slot, object)| (object, slot)).unzip(),
        }
    }

    fn put(&mut self, object: Arc<dyn Object>, prepared: &mut Prepared) {
        let id = object.id();
        // No list would ever remove an object of a namespace that is not selected.
        let Some(listed) = self.parts.is_listed(id.key.namespace()) else { return };
        self.parts.saw(id.key.namespace(), id.known_version());
        let (initial, reuse) = (!listed && self.is_beginning(), !self.outdated.remove(id.key));
        self.decodable(id.key);
        let (known, slot) = self.known(id.key, prepared);
        if !is_news(&object, known.as_ref(), reuse) {
            trace!(key = %id.key, "nothing new");
            return;
        }
        let at = prepared.events.len();
        self.index(at, &*object, slot);
        prepared.events.push(match known {
            Some(old) => Event::Updated { old, new: object },
            None => Event::Added { object, initial },
        });
    }

    /// Returns true before the first sync. The list of a namespace that is added later is not an initial state.
    fn is_beginning(&self) -> bool {
        !self.progress.borrow().synced
    }

    /// Computes the index values of an object, for the event with this number.
    fn index(&mut self, at: usize, object: &dyn Object, slot: Option<Slot>) {
        if self.values.len() <= at {
            self.values.resize_with(at + 1, Default::default);
        }
        let (values, likely) = &mut self.values[at];
        *likely = slot;
        let failures = values.fill(&self.functions, object);
        self.failed.extend(failures.into_iter().map(InformerError::from));
    }

    /// Computes the index values of a deleted object, if it will linger.
    fn index_deleted(&mut self, at: usize, object: &dyn Object) {
        if self.departures.linger() {
            self.index(at, object, None);
        }
    }

    fn delete(&mut self, object: Arc<dyn Object>, prepared: &mut Prepared) {
        let id = object.id();
        self.parts.saw(id.key.namespace(), id.known_version());
        let reuse = !self.outdated.remove(id.key);
        match self.known(id.key, prepared).0 {
            Some(known) if reuse && id.is_older_than(&known.id()) => trace!(key = %id.key, "made since"),
            Some(_) => {
                self.decodable(id.key);
                self.index_deleted(prepared.events.len(), &*object);
                prepared.events.push(Event::Deleted(Deleted::Final(object)));
            }
            None => self.decodable(id.key),
        }
    }

    /// Prepares the deletion of an object of which only the key could be decoded.
    fn bury(&mut self, key: KeyRef<'_>, version: Option<ResourceVersion>, prepared: &mut Prepared) {
        let reuse = !self.outdated.remove(key);
        let made_since = |known: &Arc<dyn Object>| {
            reuse && version.as_ref().is_some_and(|gone| is_older(gone.as_str(), known.id().version))
        };
        match self.known(key, prepared).0 {
            Some(known) if made_since(&known) => debug!(%key, "ignoring the deletion of an older state"),
            Some(last) => {
                self.decodable(key);
                self.index_deleted(prepared.events.len(), &*last);
                prepared.events.push(Event::Deleted(Deleted::Unknown(last)));
            }
            None => self.decodable(key),
        }
        self.parts.saw(key.namespace(), version);
    }

    /// Commits the prepared changes: objects, version and events together, under one lock.
    async fn commit(&mut self, events: Vec<Event<dyn Object>>, bytes: u64) -> Applied {
        let version = self.parts.lowest_version();
        if events.is_empty() && self.progress.borrow().version == version {
            self.marks.publish(&self.health);
            self.publish(version, &events);
            return Applied { failed: std::mem::take(&mut self.failed), ..Applied::default() };
        }
        self.departures.received(events.len(), bytes);
        let departure = self.departures.of(&events, bytes);
        let bytes = kept_bytes(&events, bytes, self.memory_factor);
        let events = Arc::new(events);
        let writing = self.writing.clone();
        let (listeners, freed) = loop {
            let mut state = writing.lock_to_commit().await;
            if state.writer.has_functions(&self.functions) {
                let changes = changes(&events, &self.values, self.departures.linger());
                let freed = state.writer.make(changes, version.clone(), departure);
                self.marks.publish(&self.health);
                state.processor.distribute(&events, BatchReason::Live, bytes, self.store.len());
                break (state.processor.listeners(), freed);
            }
            self.functions = state.writer.functions();
            drop(state);
            // An index was added after the changes were prepared.
            for (at, event) in events.iter().enumerate() {
                match event {
                    Event::Deleted(_) => self.index_deleted(at, &**event.object()),
                    _ => self.index(at, &**event.object(), None),
                }
            }
        };
        drop(freed); // Outside the lock.
        self.publish(version, &events);
        Applied { failed: std::mem::take(&mut self.failed), events, listeners }
    }

    /// Replaces the content of the store by a list, in one step.
    async fn replace(&mut self, mut list: Replacement<dyn Object>, bytes: u64) -> Applied {
        let mark = list.full_mark();
        // As in a watch: no list would ever remove an object of a namespace that is not selected.
        if mark.scope.is_some() {
            list.objects.retain(|object| in_scope(&mark.scope, object.id().key));
        }
        let Some(is_first) = self.parts.begin_list(&mark) else { return Applied::default() };
        let reason = if is_first { BatchReason::FirstList } else { BatchReason::Relist };
        let initial = is_first && self.is_beginning();
        self.decodable_in(&list);
        // After the good states: a list may hold a good state of an object and a later one that cannot be decoded.
        list.undecodable.iter().cloned().for_each(|bad| self.unread(bad));
        // An old state is assumed to be as large as the average listed object.
        let average = bytes / list.objects.len().max(1) as u64;
        self.departures.received(list.objects.len(), bytes);
        let change = LongChange::List { list: &list, initial, outdated: self.outdated.clone() };
        let (events, listeners) = self.commit_long(change, reason, average).await;
        for object in &list.objects {
            self.outdated.remove(object.id().key);
        }
        let store = &self.store;
        self.outdated.retain(|key| store.contains(key));
        self.listed(&mark);
        let version = self.parts.lowest_version();
        self.publish(version, &events);
        Applied { failed: std::mem::take(&mut self.failed), events, listeners }
    }

    /// Adds namespaces, and removes the objects of namespaces that the informer does not follow any more.
    async fn change_scope(&mut self, change: ScopeChange) -> Applied {
        let ScopeChange { added, left, number } = change;
        // A scope that was removed and added again is in both.
        left.iter().for_each(|scope| self.parts.remove(scope));
        added.into_iter().for_each(|scope| self.parts.add(scope));
        let left: HashSet<Arc<str>> = left.into_iter().flatten().collect();
        let (events, listeners) = self.commit_long(LongChange::Leaving(&left), BatchReason::ScopeChange, 0).await;
        let has_left = |key: KeyRef<'_>| key.namespace().is_some_and(|namespace| left.contains(namespace));
        self.outdated.retain(|key| !has_left(key.into()));
        self.health.forget_where(has_left);
        self.scope_change = number;
        let version = self.parts.lowest_version();
        self.publish(version, &events);
        Applied { failed: std::mem::take(&mut self.failed), events, listeners }
    }

    /// Prepares a long change on a copy of the store, a piece at a time, while readers and handlers continue. Then
    /// commits it in one step.
    ///
    /// `old_bytes` is the estimated size of each state that the change replaces or removes.
    async fn commit_long(
        &mut self,
        change: LongChange<'_>,
        reason: BatchReason,
        old_bytes: u64,
    ) -> (EventBatch, Listeners) {
        let (writing, version) = (self.writing.clone(), self.parts.lowest_version());
        loop {
            let mut transaction = writing.lock().writer.begin();
            if let Some(departure) = self.departures.now(old_bytes) {
                transaction.departs(departure);
            }
            let events = change.prepare(&mut transaction).await;
            transaction.set_version(version.clone());
            let old = events.iter().filter(|event| !matches!(event, Event::Added { .. })).count() as u64;
            let kept_bytes = kept_bytes(&events, old_bytes * old, self.memory_factor);
            let events = Arc::new(events);
            let mut state = writing.lock_to_commit().await;
            // If an index was added meanwhile, the change is prepared again, with that index.
            if let Ok((replaced, failures)) = state.writer.commit(transaction) {
                self.marks.publish(&self.health);
                change.publish(&mut state.listed);
                state.processor.distribute(&events, reason, kept_bytes, self.store.len());
                let listeners = state.processor.listeners();
                drop(state);
                drop(replaced); // Outside the lock: it may hold the last references to many objects.
                self.failed.extend(failures.into_iter().map(InformerError::from));
                return (events, listeners);
            }
        }
    }

    /// Records that an object was decoded or deleted. The next commit removes its mark.
    fn decodable(&mut self, key: KeyRef<'_>) {
        if self.health.is_undecodable(key) {
            self.marks.decodable.push(key.into());
        }
    }

    /// Records which marked objects a list holds in a good state.
    fn decodable_in(&mut self, list: &Replacement<dyn Object>) {
        let marked = self.health.undecodable_keys();
        if !marked.is_empty() {
            let good =
                list.objects.iter().map(|object| object.id().key).filter(|key| marked.contains(&ObjectKey::from(*key)));
            self.marks.decodable.extend(good.map(ObjectKey::from));
        }
    }

    /// Records an object that cannot be decoded. An object of a namespace that is not selected gets no mark.
    fn unread(&mut self, bad: BadObject) {
        let namespace = bad.key.as_ref().map(|key| key.namespace());
        if namespace.is_none_or(|namespace| self.parts.selects(namespace)) {
            self.marks.undecodable.push(bad.clone());
        }
        self.failed.push(InformerError::Undecodable { bad });
    }

    /// Records that a list is complete.
    fn listed(&mut self, mark: &ListMark) {
        self.health.listed(mark);
        self.parts.listed(mark);
    }

    /// Handles a restore of the API server to an older state: all known versions become invalid.
    fn restart(&mut self, scope: &Scope) {
        self.parts.restart(scope);
        let known = self.store.snapshot();
        let keys = known.objects().map(|object| object.id().key).filter(|key| in_scope(scope, *key));
        self.outdated.extend(keys.map(ObjectKey::from).collect());
        self.progress.send_modify(|progress| {
            progress.epoch += 1;
            progress.version = None;
        });
        self.waiters.wake_for_restart();
        self.writing.lock().writer.set_version(None);
    }

    /// Publishes how far the store has come, after the commit: first to health, then to waiting tasks, then to
    /// handlers.
    fn publish(&mut self, version: Option<ResourceVersion>, events: &[Event<dyn Object>]) {
        let before = self.progress.borrow().clone();
        if before.version != version {
            self.health.store_version(version.as_ref());
        }
        let now = StoreProgress {
            epoch: before.epoch,
            version: version.clone(),
            synced: before.synced || self.parts.all_listed(),
            all_listed: self.parts.all_listed(),
            relists: self.parts.relists(),
            scope_change: self.scope_change,
            listed_scope_change: match self.parts.all_listed() {
                true => self.scope_change,
                false => before.listed_scope_change,
            },
        };
        let newly_synced = now.synced && !before.synced;
        if newly_synced {
            self.health.synced(self.store.len());
        }
        self.progress.send_replace(now);
        self.waiters.wake(events, version.as_ref());
        if newly_synced {
            self.writing.lock().processor.synced();
        }
    }
}

/// A change of many objects, which is prepared on a copy of the store.
enum LongChange<'c> {
    List {
        list: &'c Replacement<dyn Object>,
        initial: bool,
        outdated: Outdated,
    },
    /// The informer does not follow these namespaces any more.
    Leaving(&'c HashSet<Arc<str>>),
}

impl LongChange<'_> {
    /// Makes the change in a transaction, and returns its events.
    async fn prepare(&self, transaction: &mut Transaction<dyn Object>) -> Vec<Event<dyn Object>> {
        match self {
            Self::List { list, initial, outdated } => prepare_list(transaction, list, *initial, outdated).await,
            Self::Leaving(namespaces) => prepare_leaving(transaction, namespaces).await,
        }
    }

    /// Records which namespaces are listed, together with the commit.
    fn publish(&self, listed: &mut ListedNamespaces) {
        match self {
            Self::List { list, .. } => listed.add(list.mark.scope.as_ref()),
            Self::Leaving(namespaces) => listed.remove(namespaces),
        }
    }
}

/// Returns the store changes of these events, with their index values. Deleted objects have them if they linger.
fn changes<'c>(
    events: &'c [Event<dyn Object>],
    values: &'c [(IndexValuesOf, Option<Slot>)],
    lingers: bool,
) -> impl Iterator<Item = StoreChange<'c>> {
    events.iter().enumerate().map(move |(at, event)| match event {
        Event::Deleted(gone) => StoreChange::Delete(gone.object(), lingers.then(|| &values[at].0)),
        event => StoreChange::Put(event.object().clone(), &values[at].0, values[at].1),
    })
}

/// A committed batch: it is in the store, and its events are in the mailboxes.
#[derive(Default)]
pub(crate) struct Applied {
    /// The errors of the batch.
    pub(crate) failed: Vec<InformerError>,
    events: EventBatch,
    listeners: Listeners,
}

impl Applied {
    /// Waits until the handlers have taken out their events, or await inside a call.
    ///
    /// So a handler that keeps up receives every event, however fast events arrive and whichever task the scheduler
    /// runs first. If a handler is still busy after 5 ms, the applier does not wait for it again until its mailbox has
    /// been empty. Such a handler delays neither the cache nor other handlers, and its mailbox folds beyond its bound.
    pub(crate) async fn attend(self) {
        let Self { events, listeners, .. } = self;
        let any = !events.is_empty();
        drop_in_pieces(events).await;
        if any && !listeners.is_empty() {
            attend(&listeners).await;
        }
    }
}

async fn attend(listeners: &[Arc<Listener>]) {
    // Tasks that were woken earlier run before this one continues. Usually all handlers have taken their events then.
    tokio::task::yield_now().await;
    if listeners.iter().all(|listener| listener.mailbox.is_attended()) {
        return;
    }
    for listener in listeners {
        while listener.mailbox.fold_piece().await {
            tokio::task::yield_now().await;
        }
    }
    for listener in listeners.iter().filter(|listener| listener.has_task()) {
        listener.mailbox.polled().await;
    }
    if listeners.iter().all(|listener| listener.mailbox.is_attended()) {
        return;
    }
    let until = after(Instant::now(), ATTENDANCE);
    for listener in listeners {
        if timeout_at(until, listener.mailbox.attended()).await.is_err() {
            listener.mailbox.leave_out();
        }
    }
}

/// Estimates the memory of states that only these events keep alive. The old state of an update or a deletion is about
/// as large as the change was on the wire, times the memory factor.
fn kept_bytes(events: &[Event<dyn Object>], bytes: u64, memory_factor: f64) -> u64 {
    let keeps = events.iter().any(|event| !matches!(event, Event::Added { .. }));
    if keeps { (bytes as f64 * memory_factor) as u64 } else { 0 }
}
