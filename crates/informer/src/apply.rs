//! Takes changes out of the queue, makes them to the store, and tells the handlers: the one writer.
//!
//! client-go's controller loop and its `processDeltas`. The store decides what a change is called, not the server's verb:
//! a key that is there is updated, one that is not is added. What changes nothing is not announced.
//!
//! [`Changes`] is the loop by itself, for any queue and any function that processes what comes out of it.

mod changes;
mod part;

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::{debug, trace};

pub(crate) use self::changes::BYTES;
pub use self::changes::{Changes, ChangesSink, InHand, OnError};
pub(crate) use self::part::Outdated;
use self::part::{Part, advance, lowest_version, part_of};
use crate::health::{HealthBoard, InformerError};
use crate::object::{KeyRef, Object, ObjectKey, ResourceVersion, Scope, in_scope};
use crate::processor::{Event, Processor};
use crate::queue::{Batch, Deleted, Delta, Deltas, KeyDelta, ListMark, Replacement, Work};
use crate::source::BadObject;
use crate::store::{Put, StoreWriter, Transaction};

/// A long list is prepared so many objects at a time; in between others may run.
const PIECE: usize = 256;

/// How far the store has come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Progress {
    /// How often the server was restored to an older state.
    pub(crate) epoch: u64,
    pub(crate) version: Option<ResourceVersion>,
    pub(crate) synced: bool,
    /// The last request for a relist that has been answered.
    pub(crate) relists: u64,
    pub(crate) batches: u64,
}

/// Who may change the store, and who is then told: both under one lock, which is never held for long. Whoever joins under it
/// is told of everything that is not in the store yet, and of nothing that is.
pub(crate) struct Writing<T> {
    pub(crate) writer: StoreWriter<T>,
    pub(crate) processor: Processor<T>,
}

/// Makes changes, one batch after the other.
pub(crate) struct Applier<T> {
    writing: Arc<Mutex<Writing<T>>>,
    parts: Vec<Part>,
    outdated: Outdated,
    progress: watch::Sender<Progress>,
    health: HealthBoard,
    /// What went wrong in the batch at hand.
    failed: Vec<InformerError>,
}

impl<T: Object> Applier<T> {
    pub(crate) fn new(
        writing: Arc<Mutex<Writing<T>>>,
        scopes: impl IntoIterator<Item = Scope>,
        outdated: Outdated,
        progress: watch::Sender<Progress>,
        health: HealthBoard,
    ) -> Self {
        let parts = scopes.into_iter().map(|scope| Part { scope, ..Part::default() }).collect();
        Self { writing, parts, outdated, progress, health, failed: Vec::new() }
    }

    /// Makes the changes of a batch, tells everybody, and gives back what went wrong.
    pub(crate) async fn apply(&mut self, batch: Batch<T>) -> Vec<InformerError> {
        let Batch { work, bytes, settled } = batch;
        match work {
            Work::Deltas(mut deltas) => match deltas.pop() {
                Some(Delta::Replaced(list)) => self.replace(list, bytes).await,
                last => self.change(deltas.into_iter().chain(last), bytes),
            },
            Work::Object(_, deltas) => self.change_object(deltas, bytes),
            Work::Gone { key, version } => {
                self.health.decodable((&key).into());
                self.saw(key.namespace(), version);
            }
            Work::Listed(mark) => self.listed(&mark, &mut self.writing.clone().lock()),
            Work::Resynced => self.writing.lock().processor.resync_done(),
        }
        if settled {
            for part in &mut self.parts {
                advance(&mut part.version, part.seen.clone());
            }
        }
        self.publish();
        std::mem::take(&mut self.failed)
    }

    /// Makes changes in their order.
    fn change(&mut self, deltas: impl Iterator<Item = Delta<T>>, bytes: u64) {
        let writing = self.writing.clone();
        let mut writing = writing.lock();
        let mut events = Vec::with_capacity(deltas.size_hint().0);
        for delta in deltas {
            match delta {
                Delta::Added(object) | Delta::Updated(object) => self.put(object, &mut writing.writer, &mut events),
                Delta::Deleted(object) => self.delete(object, &mut writing.writer, &mut events),
                Delta::Vanished { key, version } => {
                    self.bury((&key).into(), version, &mut writing.writer, &mut events);
                }
                Delta::Undecodable(bad) => {
                    self.saw(bad.key.as_ref().and_then(|key| key.namespace()), bad.version.clone());
                    self.unread(bad);
                }
                Delta::Bookmark { scope, version } => {
                    if let Some(part) = self.parts.iter_mut().find(|part| part.scope == scope) {
                        advance(&mut part.version, Some(version));
                    }
                }
                Delta::Resync => {
                    // In order: what was changed before is told before.
                    writing.distribute(std::mem::take(&mut events), 0);
                    let known = writing.writer.store().snapshot();
                    writing.processor.resync(known.iter(), known.len());
                    writing.processor.resync_done();
                }
                Delta::Restarted { scope } => self.restart(&scope, &mut writing.writer),
                // A list comes alone.
                Delta::Replaced(_) => {}
            }
        }
        writing.distribute(events, bytes);
        self.take_failures(&mut writing.writer);
    }

    /// Makes the changes of one object, oldest first.
    fn change_object(&mut self, deltas: Deltas<T>, bytes: u64) {
        let writing = self.writing.clone();
        let mut writing = writing.lock();
        let mut events = Vec::with_capacity(deltas.len());
        for delta in deltas {
            match delta {
                KeyDelta::Added(object) | KeyDelta::Updated(object) | KeyDelta::Replaced(object) => {
                    self.put(object, &mut writing.writer, &mut events);
                }
                KeyDelta::Sync(object) => {
                    let known = writing.writer.store().get(object.id().key);
                    match known.filter(|known| known.id().same_state(&object.id())) {
                        Some(known) => {
                            writing.distribute(std::mem::take(&mut events), 0);
                            let live = writing.writer.store().len();
                            writing.processor.resync(std::iter::once(&known), live);
                        }
                        None => self.put(object, &mut writing.writer, &mut events),
                    }
                }
                KeyDelta::Deleted(Deleted::Final(object)) => self.delete(object, &mut writing.writer, &mut events),
                KeyDelta::Deleted(Deleted::Unknown(object)) => {
                    self.bury(object.id().key, None, &mut writing.writer, &mut events);
                }
            }
        }
        writing.distribute(events, bytes);
        self.take_failures(&mut writing.writer);
    }

    fn put(&mut self, object: Arc<T>, writer: &mut StoreWriter<T>, events: &mut Vec<Event<T>>) {
        let id = object.id();
        // What belongs to none of the namespaces that were asked for, nobody would ever take away again.
        let Some(part) = part_of(&mut self.parts, id.key.namespace()) else { return };
        advance(&mut part.seen, id.known_version());
        let (initial, reuse) = (!part.listed, !self.outdated.remove(id.key));
        self.health.decodable(id.key);
        match writer.put_if(object.clone(), |known| is_news(&object, known, reuse)) {
            Put::Kept => trace!(key = %id.key, "nothing new"),
            Put::Added => events.push(Event::Added { object, initial }),
            Put::Replaced(old) => events.push(Event::Updated { old, new: object }),
        }
    }

    fn delete(&mut self, object: Arc<T>, writer: &mut StoreWriter<T>, events: &mut Vec<Event<T>>) {
        let id = object.id();
        self.saw(id.key.namespace(), id.known_version());
        let reuse = !self.outdated.remove(id.key);
        let is_older = |known: &Arc<T>| reuse && id.is_older_than(&known.id());
        match writer.remove_if(id.key, |known| !is_older(known)) {
            Some(_) => {
                self.health.decodable(id.key);
                events.push(Event::Deleted(Deleted::Final(object)));
            }
            None if writer.store().contains(id.key) => trace!(key = %id.key, "made since"),
            None => self.health.decodable(id.key),
        }
    }

    /// An object is gone, of which nothing but the key is known.
    fn bury(
        &mut self,
        key: KeyRef<'_>,
        version: Option<ResourceVersion>,
        writer: &mut StoreWriter<T>,
        events: &mut Vec<Event<T>>,
    ) {
        let reuse = !self.outdated.remove(key);
        let made_since = |known: &Arc<T>| {
            let known = known.id().known_version();
            reuse && known.zip(version.as_ref()).is_some_and(|(known, gone)| gone.is_older_than(&known))
        };
        match writer.remove_if(key, |known| !made_since(known)) {
            Some(last) => {
                self.health.decodable(key);
                events.push(Event::Deleted(Deleted::Unknown(last)));
            }
            None if writer.store().contains(key) => debug!(%key, "ignoring the deletion of an older state"),
            None => self.health.decodable(key),
        }
        self.saw(key.namespace(), version);
    }

    /// Everything was asked for again: the store becomes what the list says, all at once. It is prepared on a copy, a piece
    /// at a time, with nobody held off.
    async fn replace(&mut self, mut list: Replacement<T>, bytes: u64) {
        let mark = list.full_mark();
        // As in a watch: what was not asked for, nobody would ever take away again. A list of everything is not walked for it.
        if mark.scope.is_some() {
            list.objects.retain(|object| in_scope(&mark.scope, object.id().key));
        }
        let Some(part) = self.parts.iter_mut().find(|part| part.scope == mark.scope) else { return };
        let initial = !part.listed;
        part.version = mark.version.clone();
        part.seen = None;
        let version = lowest_version(&self.parts);
        let writing = self.writing.clone();
        loop {
            let mut transaction = writing.lock().writer.begin();
            let events = prepare(&mut transaction, &list, initial, &self.outdated).await;
            transaction.set_version(version.clone());
            let mut writing = writing.lock();
            // Somebody may have added an index meanwhile; then it is all done once more, with that index.
            if writing.writer.commit(transaction) {
                // Each old state is about as large as those that came are on average.
                let old = events.iter().filter(|event| !matches!(event, Event::Added { .. })).count() as u64;
                writing.distribute(events, bytes / list.objects.len().max(1) as u64 * old);
                self.listed(&mark, &mut writing);
                self.take_failures(&mut writing.writer);
                break;
            }
        }
        let store = writing.lock().writer.store().clone();
        for object in &list.objects {
            self.outdated.remove(object.id().key);
            self.health.decodable(object.id().key);
        }
        self.outdated.retain(|key| store.contains(key));
        // Last: a list may hold a good state of an object and a later one that could not be read.
        list.undecodable.into_iter().for_each(|bad| self.unread(bad));
    }

    /// An object came that could not be read. One of a namespace that was not asked for is of no interest.
    fn unread(&mut self, bad: BadObject) {
        let namespace = bad.key.as_ref().map(|key| key.namespace());
        if namespace.is_none_or(|namespace| part_of(&mut self.parts, namespace).is_some()) {
            self.health.undecodable(&bad);
        }
        self.failed.push(InformerError::Undecodable { bad });
    }

    /// A list is complete.
    fn listed(&mut self, mark: &ListMark, writing: &mut Writing<T>) {
        self.health.listed(mark);
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
        if self.parts.iter().all(|part| part.listed) {
            writing.processor.synced();
        }
    }

    /// The server was restored to an older state: nothing known of versions holds any longer.
    fn restart(&mut self, scope: &Scope, writer: &mut StoreWriter<T>) {
        let known = writer.store().snapshot();
        for part in self.parts.iter_mut().filter(|part| part.scope == *scope) {
            part.version = None;
            part.seen = None;
        }
        let keys = known.iter().map(|object| object.id().key).filter(|key| in_scope(scope, *key));
        self.outdated.extend(keys.map(ObjectKey::from));
        self.progress.send_modify(|progress| {
            progress.epoch += 1;
            progress.version = None;
        });
        writer.set_version(None);
    }

    /// A change of that version came out of the queue.
    fn saw(&mut self, namespace: Option<&str>, version: Option<ResourceVersion>) {
        if let Some(part) = part_of(&mut self.parts, namespace) {
            advance(&mut part.seen, version);
        }
    }

    fn take_failures(&mut self, writer: &mut StoreWriter<T>) {
        let failures = writer.take_failures().into_iter();
        self.failed.extend(failures.map(InformerError::from));
    }

    /// Says how far the store has come, to readers and to those who wait.
    fn publish(&mut self) {
        let version = lowest_version(&self.parts);
        let before = self.progress.borrow().clone();
        if before.version != version {
            self.writing.lock().writer.set_version(version.clone());
            self.health.store_version(version.as_ref());
        }
        let now = Progress {
            epoch: before.epoch,
            version,
            synced: self.parts.iter().all(|part| part.listed),
            relists: self.parts.iter().map(|part| part.relists).min().unwrap_or_default(),
            batches: before.batches + 1,
        };
        let newly_synced = now.synced && !before.synced;
        // Before those who wait hear of it: what they then read must agree.
        if newly_synced {
            self.health.synced();
        }
        self.progress.send_replace(now);
    }
}

impl<T: Object> Writing<T> {
    /// Tells everybody what changed; it took so many bytes on the wire.
    fn distribute(&self, events: Vec<Event<T>>, bytes: u64) {
        self.processor.distribute(events, bytes, self.writer.store().len());
    }
}

/// True if a state is worth storing beside what is known.
fn is_news<T: Object>(object: &Arc<T>, known: Option<&Arc<T>>, reuse: bool) -> bool {
    known.is_none_or(|known| {
        let (new, known) = (object.id(), known.id());
        !reuse || !(known.same_state(&new) || new.is_older_than(&known))
    })
}

/// Makes a store's next state what a list says, and gives what handlers are to be told of it.
async fn prepare<T: Object>(
    store: &mut Transaction<T>,
    list: &Replacement<T>,
    initial: bool,
    outdated: &Outdated,
) -> Vec<Event<T>> {
    let (mut events, mut pieces) = (Vec::new(), Pieces::default());
    if list.is_conclusive() {
        let mut listed = HashSet::with_capacity_and_hasher(list.objects.len(), RandomState::default());
        for key in list.keys() {
            listed.insert(key);
            pieces.next().await;
        }
        let mut gone = Vec::new();
        for object in store.iter() {
            let key = object.id().key;
            if in_scope(&list.mark.scope, key) && !listed.contains(&key) {
                gone.push(object.clone());
            }
            pieces.next().await;
        }
        for object in gone {
            store.remove(object.id().key);
            events.push(Event::Deleted(Deleted::Unknown(object)));
            pieces.next().await;
        }
    }
    for object in &list.objects {
        let reuse = !outdated.contains(object.id().key);
        // Equal uid and version: the `Arc` that everybody already holds stays, and nobody is told.
        match store.put_if(object.clone(), |known| is_news(object, known, reuse)) {
            Put::Kept => {}
            Put::Added => events.push(Event::Added { object: object.clone(), initial }),
            Put::Replaced(old) => events.push(Event::Updated { old, new: object.clone() }),
        }
        pieces.next().await;
    }
    crate::seam::give_way().await;
    events
}

/// Gives way between pieces of long work.
#[derive(Default)]
struct Pieces(usize);

impl Pieces {
    async fn next(&mut self) {
        self.0 += 1;
        if self.0.is_multiple_of(PIECE) {
            tokio::task::yield_now().await;
        }
    }
}
