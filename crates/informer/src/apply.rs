//! Takes changes out of the queue, makes them to the store, and tells the handlers: the one writer.
//!
//! client-go's controller loop and its `processDeltas`. The store decides what a change is called, not the server's verb:
//! a key that is there is updated, one that is not is added. What changes nothing is not announced.
//!
//! [`Changes`] is the loop by itself, for any queue and any function that processes what comes out of it.

mod changes;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use tokio::sync::watch;
use tracing::{debug, trace, warn};

pub use self::changes::{Changes, ChangesSink, OnError};
use crate::health::HealthBoard;
use crate::object::{KeyRef, Object, ObjectKey, ResourceVersion, version_of};
use crate::processor::{Deleted, Event, Processor};
use crate::queue::{Delta, ListMark, Replacement, Scope, in_scope, is_older};
use crate::store::StoreWriter;

/// How far the store has come. A new epoch begins when the server is restored to an older state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Progress {
    pub(crate) epoch: u64,
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) synced: bool,
    /// Every request for a relist up to this one has been answered.
    pub(crate) relists: u64,
    /// How many batches have been applied.
    pub(crate) batches: u64,
}

/// One part of the collection, and how far it has come.
#[derive(Debug, Default)]
struct Part {
    scope: Scope,
    /// Everything up to it is in the store.
    version: Option<ResourceVersion>,
    /// The highest version seen. It is ahead of `version` while the queue holds back older changes.
    seen: Option<ResourceVersion>,
    /// True once its first list is applied.
    listed: bool,
    /// Objects of which the store holds a state from before the server was restored to an older one: their versions say
    /// nothing, and they are replaced by whatever comes.
    outdated: HashSet<ObjectKey>,
    /// The last request for a relist that has been answered.
    relists: u64,
}

impl Part {
    /// True if what comes for this key replaces a state from before a restart. It is the last time for this key.
    fn replaces_outdated(&mut self, key: KeyRef<'_>) -> bool {
        !self.outdated.is_empty() && self.outdated.remove(&ObjectKey::from(key))
    }
}

/// Makes changes to the store and tells the processor.
pub(crate) struct Applier<T> {
    writer: StoreWriter<T>,
    pub(crate) processor: Processor<T>,
    parts: Vec<Part>,
    progress: watch::Sender<Progress>,
    health: HealthBoard,
}

impl<T: Object> Applier<T> {
    pub(crate) fn new(
        writer: StoreWriter<T>,
        scopes: impl IntoIterator<Item = Scope>,
        health: HealthBoard,
        resync_period: Option<Duration>,
    ) -> Self {
        let parts = scopes.into_iter().map(|scope| Part { scope, ..Part::default() });
        Self {
            writer,
            processor: Processor::new(resync_period),
            parts: parts.collect(),
            progress: watch::Sender::new(Progress::default()),
            health,
        }
    }

    pub(crate) fn writer(&mut self) -> &mut StoreWriter<T> {
        &mut self.writer
    }

    pub(crate) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.progress.borrow().synced
    }

    /// Applies a batch and announces it. `settled`: nothing older than what is in it still waits.
    pub(crate) fn apply(&mut self, batch: Vec<Delta<T>>, settled: bool) {
        let mut events = Vec::with_capacity(batch.len());
        for delta in batch {
            match delta {
                Delta::Added(object) | Delta::Updated(object) => self.put(object, &mut events),
                Delta::Deleted(object) => self.delete(object, &mut events),
                Delta::Tombstone(object) => self.bury(object.id().key, None, &mut events),
                Delta::Vanished { key, version } => self.bury((&key).into(), version, &mut events),
                Delta::Undecodable(bad) => {
                    self.saw(bad.key.as_ref().and_then(|key| key.namespace()), bad.version.clone());
                    self.health.undecodable(&bad);
                }
                Delta::Replaced(replacement) => self.replace(replacement, &mut events),
                Delta::Listed(mark) => {
                    self.processor.distribute(std::mem::take(&mut events));
                    self.health.listed(&mark.scope, !mark.inconclusive);
                    self.listed(&mark);
                }
                Delta::Bookmark { scope, version } => {
                    if let Some(part) = self.parts.iter_mut().find(|part| part.scope == scope) {
                        advance(&mut part.version, Some(version));
                    }
                }
                Delta::Resync => {
                    // In order: what was changed before is told before.
                    self.processor.distribute(std::mem::take(&mut events));
                    self.processor.resync(self.writer.store().snapshot().iter());
                    self.processor.resync_done();
                }
                Delta::Resynced(object) => self.show_again(object, &mut events),
                Delta::ResyncDone => self.processor.resync_done(),
                Delta::Restarted { scope } => self.restart(&scope),
            }
        }
        self.processor.distribute(events);
        if settled {
            for part in &mut self.parts {
                advance(&mut part.version, part.seen.clone());
            }
        }
        self.publish();
    }

    fn put(&mut self, object: Arc<T>, events: &mut Vec<Event<T>>) {
        let id = object.id();
        self.saw(id.key.namespace(), version_of(&*object));
        self.health.decodable(id.key);
        let (initial, reuse) = match part_of(&mut self.parts, id.key.namespace()) {
            Some(part) => (!part.listed, !part.replaces_outdated(id.key)),
            None => (false, true),
        };
        match self.writer.store().get(id.key) {
            Some(known) if reuse && known.id().same_state(&id) => trace!(key = %id.key, "nothing new"),
            Some(known) if reuse && is_older(&*object, &*known) => debug!(key = %id.key, "ignoring an older state"),
            _ => match self.writer.put(object.clone()) {
                Some(old) => events.push(Event::Updated { old, new: object }),
                None => events.push(Event::Added { object, initial }),
            },
        }
    }

    fn delete(&mut self, object: Arc<T>, events: &mut Vec<Event<T>>) {
        let id = object.id();
        self.saw(id.key.namespace(), version_of(&*object));
        self.health.decodable(id.key);
        let reuse = !part_of(&mut self.parts, id.key.namespace()).is_some_and(|part| part.replaces_outdated(id.key));
        match self.writer.store().get(id.key) {
            None => trace!(key = %id.key, "not known"),
            Some(known) if reuse && is_older(&*object, &*known) => {
                debug!(key = %id.key, "ignoring the deletion of an older state")
            }
            Some(_) => {
                self.writer.remove(id.key);
                events.push(Event::Deleted(Deleted::Final(object)));
            }
        }
    }

    /// Removes what is known to be gone, but not in which state.
    fn bury(&mut self, key: KeyRef<'_>, version: Option<ResourceVersion>, events: &mut Vec<Event<T>>) {
        let reuse = !part_of(&mut self.parts, key.namespace()).is_some_and(|part| part.replaces_outdated(key));
        let since = |known: Arc<T>| {
            version_of(&*known).zip(version.as_ref()).is_some_and(|(known, gone)| gone.is_older_than(&known))
        };
        let made_since = reuse && self.writer.store().get(key).is_some_and(since);
        self.saw(key.namespace(), version);
        if made_since {
            debug!(%key, "ignoring the deletion of an older state");
            return;
        }
        self.health.decodable(key);
        events.extend(self.writer.remove(key).map(Deleted::Unknown).map(Event::Deleted));
    }

    /// Shows one object to those who are due, unless it turns out to be news.
    fn show_again(&mut self, object: Arc<T>, events: &mut Vec<Event<T>>) {
        let known = self.writer.store().get(object.id().key);
        match known {
            Some(known) if known.id().same_state(&object.id()) => {
                self.processor.distribute(std::mem::take(events));
                self.processor.resync(std::iter::once(&known));
            }
            _ => self.put(object, events),
        }
    }

    /// Makes one scope what the server says it is, all at once, and announces the difference.
    fn replace(&mut self, replacement: Replacement<T>, events: &mut Vec<Event<T>>) {
        let mark = replacement.mark.clone();
        if replacement.contradicts(|key| self.writer.store().get(key)) {
            warn!(scope = mark.scope.as_deref(), "the list is older than what is known; the server was restored");
            self.restart(&mark.scope);
        }
        self.health.listed(&mark.scope, replacement.is_conclusive());
        let Some(part) = self.parts.iter_mut().find(|part| part.scope == mark.scope) else { return };
        let undecodable = replacement.undecodable.clone();
        let (initial, mut outdated) = (!part.listed, std::mem::take(&mut part.outdated));
        part.version = mark.version.clone();
        part.seen = None;
        let version = lowest_version(&self.parts);
        self.writer.transaction(|store| {
            if replacement.is_conclusive() {
                let listed: HashSet<KeyRef<'_>, RandomState> = replacement.keys().collect();
                let gone =
                    |object: &&Arc<T>| in_scope(&mark.scope, object.id().key) && !listed.contains(&object.id().key);
                let gone: Vec<Arc<T>> = store.iter().filter(gone).cloned().collect();
                for object in gone {
                    store.remove(object.id().key);
                    events.push(Event::Deleted(Deleted::Unknown(object)));
                }
            }
            for object in replacement.objects {
                let id = object.id();
                self.health.decodable(id.key);
                let reuse = outdated.is_empty() || !outdated.remove(&ObjectKey::from(id.key));
                match store.get(id.key) {
                    // Equal uid and version: the `Arc` that everybody already holds stays, and nobody is told.
                    Some(known) if reuse && (known.id().same_state(&id) || is_older(&*object, &**known)) => {}
                    _ => match store.put(object.clone()) {
                        Some(old) => events.push(Event::Updated { old, new: object }),
                        None => events.push(Event::Added { object, initial }),
                    },
                }
            }
            store.set_version(version);
            outdated.retain(|key| store.get(key).is_some());
        });
        if let Some(part) = self.parts.iter_mut().find(|part| part.scope == mark.scope) {
            part.outdated = outdated;
        }
        // Last: a list may hold a good state of an object and a later one that could not be read.
        undecodable.iter().for_each(|bad| self.health.undecodable(bad));
        self.processor.distribute(std::mem::take(events));
        self.listed(&mark);
    }

    /// One scope is complete, and everybody has been told.
    fn listed(&mut self, mark: &ListMark) {
        if let Some(part) = self.parts.iter_mut().find(|part| part.scope == mark.scope) {
            part.listed = true;
            part.version = mark.version.clone();
            match mark.version.clone() {
                // Changes since the list may have come out of the queue before its end did.
                Some(version) => advance(&mut part.seen, Some(version)),
                None => part.seen = None,
            }
            part.relists = part.relists.max(mark.request);
        }
        if self.parts.iter().all(|part| part.listed) && !self.is_synced() {
            self.processor.synced();
        }
    }

    fn restart(&mut self, scope: &Scope) {
        let known = self.writer.store().snapshot();
        for part in self.parts.iter_mut().filter(|part| part.scope == *scope) {
            part.version = None;
            part.seen = None;
            let keys = known.iter().map(|object| object.id().key).filter(|key| in_scope(scope, *key));
            part.outdated = keys.map(ObjectKey::from).collect();
        }
        self.writer.set_version(None);
        self.progress.send_modify(|progress| {
            progress.epoch += 1;
            progress.version = None;
        });
    }

    /// A change of that version came out of the queue.
    fn saw(&mut self, namespace: Option<&str>, version: Option<ResourceVersion>) {
        if let Some(part) = part_of(&mut self.parts, namespace) {
            advance(&mut part.seen, version);
        }
    }

    /// Says how far the store has come, to readers and to those who wait.
    fn publish(&mut self) {
        let version = lowest_version(&self.parts);
        if self.writer.store().version() != version {
            self.writer.set_version(version.clone());
        }
        // Not by what the store says: a list has set its version together with its objects.
        if self.progress.borrow().version != version {
            self.health.store_version(version.as_ref());
        }
        let now = Progress {
            epoch: self.progress.borrow().epoch,
            version,
            synced: self.parts.iter().all(|part| part.listed),
            relists: self.parts.iter().map(|part| part.relists).min().unwrap_or_default(),
            batches: self.progress.borrow().batches + 1,
        };
        let newly_synced = now.synced && !self.is_synced();
        self.progress.send_replace(now);
        if newly_synced {
            self.health.synced();
        }
    }
}

/// The part that objects of a namespace belong to.
fn part_of<'p>(parts: &'p mut [Part], namespace: Option<&str>) -> Option<&'p mut Part> {
    parts.iter_mut().find(|part| part.scope.is_none() || part.scope.as_deref() == namespace)
}

/// Moves a version on; it never goes back.
fn advance(version: &mut Option<ResourceVersion>, to: Option<ResourceVersion>) {
    let Some(to) = to else { return };
    if !version.as_ref().is_some_and(|known| to.is_older_than(known)) {
        *version = Some(to);
    }
}

/// The store reflects everything up to the lowest version of its parts.
fn lowest_version(parts: &[Part]) -> Option<ResourceVersion> {
    let mut versions = parts.iter().map(|part| part.version.as_ref());
    let first = versions.next()??;
    let lowest = versions.try_fold(first, |lowest, version| {
        let version = version?;
        Some(if version.is_older_than(lowest) { version } else { lowest })
    });
    lowest.cloned()
}
