//! Takes changes out of the queue, makes them to the store, and tells the handlers: the one writer.
//!
//! client-go's controller loop and its `processDeltas`. The store decides what a change is called, not the server's verb:
//! a key that is there is updated, one that is not is added. What changes nothing is not announced.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tracing::{debug, trace};

use crate::health::HealthBoard;
use crate::object::{KeyRef, Object, ResourceVersion, compare_versions};
use crate::processor::{Deleted, Event, Processor};
use crate::queue::{Delta, OrderedQueue, Replacement, Scope};
use crate::store::StoreWriter;

/// So many changes may wait; beyond that reflectors do.
const BOUND: usize = 2000;

/// The queue between the reflectors and the applier, with the waiting that goes with it.
#[derive(Debug)]
pub(crate) struct Intake<T> {
    queue: Mutex<OrderedQueue<T>>,
    arrived: Notify,
    room: Notify,
}

impl<T: Object> Intake<T> {
    pub(crate) fn new() -> Self {
        Self { queue: Mutex::new(OrderedQueue::new()), arrived: Notify::new(), room: Notify::new() }
    }

    /// Puts a change in, once there is room for it.
    pub(crate) async fn push(&self, delta: Delta<T>) {
        loop {
            // Listened for from before the look, so that room made in between is not missed.
            let room = self.room.notified();
            let mut room = std::pin::pin!(room);
            room.as_mut().enable();
            {
                let mut queue = self.queue.lock();
                if queue.len() < BOUND {
                    queue.push(delta);
                    self.arrived.notify_one();
                    return;
                }
            }
            room.await;
        }
    }

    /// Takes the next batch out, once there is one. All of the batch before is taken for processed.
    pub(crate) async fn pop_batch(&self) -> Vec<Delta<T>> {
        loop {
            {
                let mut queue = self.queue.lock();
                queue.processed();
                let batch = queue.pop_batch();
                if !batch.is_empty() {
                    self.room.notify_waiters();
                    return batch;
                }
            }
            self.arrived.notified().await;
        }
    }

    /// How many changes wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.lock().len()
    }
}

/// How far the store has come. A new epoch begins when the server is restored to an older state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Progress {
    pub(crate) epoch: u64,
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) synced: bool,
}

/// One part of the collection, and how far it has come.
#[derive(Debug)]
struct Part {
    scope: Scope,
    version: Option<ResourceVersion>,
    /// True once its first list is applied.
    listed: bool,
    /// True from a restart to the list that follows it: what is known may differ even where versions are equal.
    restarted: bool,
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
    pub(crate) fn new(writer: StoreWriter<T>, scopes: impl IntoIterator<Item = Scope>, health: HealthBoard) -> Self {
        let parts = scopes.into_iter().map(|scope| Part { scope, version: None, listed: false, restarted: false });
        Self {
            writer,
            processor: Processor::new(),
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

    /// Applies a batch and announces it.
    pub(crate) fn apply(&mut self, batch: Vec<Delta<T>>) {
        let mut events = Vec::with_capacity(batch.len());
        for delta in batch {
            match delta {
                Delta::Added(object) | Delta::Updated(object) => self.put(object, &mut events),
                Delta::Deleted(object) => self.delete(object, &mut events),
                Delta::Vanished { key, version } => {
                    self.health.decodable((&key).into());
                    events.extend(self.writer.remove(&key).map(Deleted::Unknown).map(Event::Deleted));
                    self.reached(key.namespace(), version);
                }
                Delta::Undecodable(bad) => {
                    self.health.undecodable(&bad);
                    let namespace = bad.key.as_ref().and_then(|key| key.namespace());
                    self.reached(namespace, bad.version.clone());
                }
                Delta::Replaced(replacement) => self.replace(replacement, &mut events),
                Delta::Bookmark { scope, version } => self.reached(scope.as_deref(), Some(version)),
                Delta::Resync => {
                    // In order: what was changed before is told before.
                    self.processor.distribute(std::mem::take(&mut events));
                    self.processor.resync(&self.writer.store().snapshot());
                }
                Delta::Restarted { scope } => self.restart(&scope),
            }
        }
        self.processor.distribute(events);
        self.publish();
    }

    fn put(&mut self, object: Arc<T>, events: &mut Vec<Event<T>>) {
        let id = object.id();
        let version = Some(id.version).filter(|version| !version.is_empty()).map(ResourceVersion::from);
        self.reached(id.key.namespace(), version);
        self.health.decodable(id.key);
        match self.writer.store().get(id.key) {
            Some(known) if known.id().same_state(&id) => trace!(key = %id.key, "nothing new"),
            Some(known) if is_stale(&*object, &known) => debug!(key = %id.key, "ignoring an older state"),
            _ => match self.writer.put(object.clone()) {
                Some(old) => events.push(Event::Updated { old, new: object }),
                None => events.push(Event::Added { object, initial: false }),
            },
        }
    }

    fn delete(&mut self, object: Arc<T>, events: &mut Vec<Event<T>>) {
        let id = object.id();
        let version = Some(id.version).filter(|version| !version.is_empty()).map(ResourceVersion::from);
        self.reached(id.key.namespace(), version);
        self.health.decodable(id.key);
        match self.writer.store().get(id.key) {
            None => trace!(key = %id.key, "not known"),
            Some(known) if is_stale(&*object, &known) => {
                debug!(key = %id.key, "ignoring the deletion of an older state")
            }
            Some(_) => {
                self.writer.remove(id.key);
                events.push(Event::Deleted(Deleted::Final(object)));
            }
        }
    }

    /// Makes one scope what the server says it is, all at once, and announces the difference.
    fn replace(&mut self, replacement: Replacement<T>, events: &mut Vec<Event<T>>) {
        for bad in &replacement.undecodable {
            self.health.undecodable(bad);
        }
        let Some(part) = self.parts.iter_mut().find(|part| part.scope == replacement.scope) else { return };
        let (initial, reuse) = (!part.listed, !std::mem::take(&mut part.restarted));
        part.listed = true;
        part.version = replacement.version.clone();
        let version = lowest_version(&self.parts);
        self.writer.transaction(|store| {
            if replacement.is_conclusive() {
                let listed = replacement.objects.iter().map(|object| object.id().key);
                let unread = replacement.undecodable.iter().filter_map(|bad| bad.key.as_ref()).map(KeyRef::from);
                let present: HashSet<KeyRef<'_>, RandomState> = listed.chain(unread).collect();
                let in_scope =
                    |key: &KeyRef<'_>| replacement.scope.is_none() || key.namespace() == replacement.scope.as_deref();
                let gone = |object: &&Arc<T>| in_scope(&object.id().key) && !present.contains(&object.id().key);
                let gone: Vec<Arc<T>> = store.iter().filter(gone).cloned().collect();
                for object in gone {
                    store.remove(object.id().key);
                    events.push(Event::Deleted(Deleted::Unknown(object)));
                }
            }
            for object in replacement.objects {
                let id = object.id();
                self.health.decodable(id.key);
                match store.get(id.key) {
                    // Equal uid and version: the `Arc` that everybody already holds stays, and nobody is told.
                    Some(known) if reuse && (known.id().same_state(&id) || is_stale(&*object, known)) => {}
                    _ => match store.put(object.clone()) {
                        Some(old) => events.push(Event::Updated { old, new: object }),
                        None => events.push(Event::Added { object, initial }),
                    },
                }
            }
            store.set_version(version);
        });
        if self.parts.iter().all(|part| part.listed) && !self.is_synced() {
            self.processor.distribute(std::mem::take(events));
            self.processor.synced();
        }
    }

    fn restart(&mut self, scope: &Scope) {
        for part in self.parts.iter_mut().filter(|part| part.scope == *scope) {
            part.version = None;
            part.restarted = true;
        }
        self.progress.send_modify(|progress| {
            progress.epoch += 1;
            progress.version = None;
        });
    }

    /// Moves a part's version on; it never goes back.
    fn reached(&mut self, namespace: Option<&str>, version: Option<ResourceVersion>) {
        let Some(version) = version else { return };
        let part = self.parts.iter_mut().find(|part| part.scope.is_none() || part.scope.as_deref() == namespace);
        if let Some(part) = part
            && !part.version.as_ref().is_some_and(|known| version.is_older_than(known))
        {
            part.version = Some(version);
        }
    }

    /// Says how far the store has come, to readers and to those who wait.
    fn publish(&mut self) {
        let version = lowest_version(&self.parts);
        if self.progress.borrow().version != version {
            self.writer.set_version(version.clone());
        }
        let synced = self.parts.iter().all(|part| part.listed);
        let newly_synced = synced && !self.is_synced();
        self.progress.send_if_modified(|progress| {
            let changed = progress.version != version || progress.synced != synced;
            progress.version = version;
            progress.synced = synced;
            changed
        });
        if newly_synced {
            self.health.synced();
        }
    }
}

/// True if `new` is a state from before `known`, as far as can be told.
fn is_stale<T: Object>(new: &T, known: &T) -> bool {
    compare_versions(new.id().version, known.id().version) == Some(Ordering::Less)
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
