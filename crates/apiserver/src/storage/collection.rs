//! The objects of one resource, and the history of its events.

use imbl::OrdMap;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::kinds::Resource;
use crate::storage::event::StoredEvent;
use crate::storage::key::StoreKey;
use crate::storage::object::{Draft, StoredObject, WriteKind};

/// The objects of a collection at one revision; a clone is O(1) and never changes.
pub(crate) type Objects = OrdMap<StoreKey, Arc<StoredObject>>;

/// Returns the objects with keys between two bounds, in order. Without an upper bound, all following objects.
pub(crate) fn between<'a>(
    objects: &'a Objects,
    first: Bound<&str>,
    end: Option<&str>,
) -> impl Iterator<Item = (&'a StoreKey, &'a Arc<StoredObject>)> + use<'a> {
    objects.range::<_, str>((first, end.map_or(Bound::Unbounded, Bound::Excluded)))
}

/// After how many events a checkpoint is kept, so that an older state is restored in few steps.
const CHECKPOINT: usize = 256;

/// The limits of a collection's history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistoryLimits {
    pub(crate) max_events: usize,
    /// The size of all events together. The newest one is kept whatever its size.
    pub(crate) max_bytes: usize,
    pub(crate) max_age: Option<Duration>,
}

/// The requested revision is no longer in the history. `oldest` is the oldest revision that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Forgotten {
    pub(crate) oldest: u64,
}

/// The events of a collection that are still kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    /// Events in order of their revisions.
    events: VecDeque<Arc<StoredEvent>>,
    /// The revision of the last dropped event: a watch that has seen it has missed nothing.
    last_forgotten: u64,
}

impl Log {
    /// Returns up to `max` events after `revision`, in order.
    pub(crate) fn unseen(&self, revision: u64, max: usize) -> Vec<Arc<StoredEvent>> {
        self.events.range(self.first_after(revision)..).take(max).cloned().collect()
    }

    /// Iterates over all events that are still kept, in order.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Arc<StoredEvent>> {
        self.events.iter()
    }

    /// Returns whether an event after `revision` has been dropped.
    pub(crate) fn has_lost(&self, revision: u64) -> bool {
        revision < self.last_forgotten
    }

    /// Returns how many events follow `revision`.
    pub(crate) fn count_after(&self, revision: u64) -> usize {
        self.events.len() - self.first_after(revision)
    }

    fn first_after(&self, revision: u64) -> usize {
        self.events.partition_point(|event| event.revision <= revision)
    }
}

/// The log of a closed collection, for its watches to read to the end. It is kept as long as one of them exists.
pub(crate) type Legacy = Arc<Mutex<Option<Arc<Log>>>>;

/// Objects, and the same objects encoded for the changed rules of their resource.
#[derive(Debug, Default)]
pub(crate) struct Recoding {
    from: Objects,
    to: Objects,
}

impl Recoding {
    /// Encodes the objects that have changed since the last call; the first call encodes all.
    pub(crate) fn follow(&mut self, resource: &Resource, now: &Objects) {
        for key in self.from.keys().filter(|key| !now.contains_key(*key)) {
            self.to.remove(key);
        }
        for (key, object) in now {
            if self.from.get(key).is_some_and(|known| Arc::ptr_eq(known, object)) {
                continue;
            }
            let (mut value, revision) = (object.value(), object.revision);
            value["apiVersion"] = resource.api_version().into();
            let encoded = Draft::encode(resource, key.clone(), &value, WriteKind::Modified, revision);
            self.to.insert(key.clone(), Arc::new(encoded.at(revision, WriteKind::Modified)));
        }
        self.from = now.clone();
    }

    /// Returns whether all these objects have been encoded.
    pub(crate) fn is_of(&self, now: &Objects) -> bool {
        self.from.ptr_eq(now)
    }

    pub(crate) fn into_objects(self) -> Objects {
        self.to
    }
}

/// One resource's objects and events.
#[derive(Debug, Clone)]
pub(crate) struct Collection {
    /// The id that distinguishes it from earlier and later collections of the same name.
    pub(crate) id: u64,
    objects: Objects,
    /// The log. All its events are newer than `horizon`.
    log: Log,
    /// The size of all events together, in bytes.
    bytes: usize,
    /// The states right after some of the events, oldest first.
    checkpoints: VecDeque<(u64, Objects)>,
    since_checkpoint: usize,
    /// The oldest revision that can be listed exactly or watched from.
    horizon: u64,
    /// Notified after each event, and when watches must check for another reason.
    changed: Arc<Notify>,
    legacy: Legacy,
}

impl Collection {
    /// Returns an empty collection without history before `horizon`.
    pub(crate) fn new(id: u64, horizon: u64) -> Self {
        Self {
            id,
            objects: Objects::new(),
            log: Log::default(),
            bytes: 0,
            checkpoints: VecDeque::new(),
            since_checkpoint: 0,
            horizon,
            changed: Arc::default(),
            legacy: Legacy::default(),
        }
    }

    pub(crate) fn objects(&self) -> &Objects {
        &self.objects
    }

    pub(crate) fn horizon(&self) -> u64 {
        self.horizon
    }

    pub(crate) fn changed(&self) -> &Arc<Notify> {
        &self.changed
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    pub(crate) fn legacy(&self) -> &Legacy {
        &self.legacy
    }

    /// Closes the collection: its watches read the rest of the log, and end.
    pub(crate) fn close(self) {
        *self.legacy.lock() = Some(Arc::new(self.log));
        self.changed.notify_waiters();
    }

    /// Detaches all watches. Their end is reported elsewhere.
    pub(crate) fn part_from_watches(&mut self) {
        (self.changed, self.legacy) = (Arc::default(), Legacy::default());
    }

    /// Applies one write and records its event.
    pub(crate) fn record(&mut self, key: &StoreKey, event: StoredEvent, limits: HistoryLimits) -> Arc<StoredEvent> {
        let event = Arc::new(event);
        match &event.after {
            Some(after) => self.objects.insert(key.clone(), after.clone()),
            None => self.objects.remove(key),
        };
        self.bytes += event.size();
        self.log.events.push_back(event.clone());
        self.since_checkpoint += 1;
        if self.since_checkpoint >= CHECKPOINT {
            self.since_checkpoint = 0;
            self.checkpoints.push_back((event.revision, self.objects.clone()));
        }
        self.trim(limits, event.at);
        self.changed.notify_waiters();
        event
    }

    /// Returns the objects right after `revision`.
    pub(crate) fn at(&self, revision: u64) -> Result<Objects, Forgotten> {
        if revision < self.horizon {
            return Err(Forgotten { oldest: self.horizon });
        }
        let later = self.checkpoints.partition_point(|(checkpoint, _)| *checkpoint < revision);
        let (from, mut objects) = match self.checkpoints.get(later) {
            Some((checkpoint, objects)) => (*checkpoint, objects.clone()),
            None => (u64::MAX, self.objects.clone()),
        };
        let undone = self.log.events.iter().rev().skip_while(|event| event.revision > from);
        for event in undone.take_while(|event| event.revision > revision) {
            let Some(key) = event.after.as_ref().or(event.before.as_ref()).map(|object| &object.key) else { continue };
            match &event.before {
                Some(before) => objects.insert(key.clone(), before.clone()),
                None => objects.remove(key),
            };
        }
        Ok(objects)
    }

    /// Drops the history up to and including `revision`.
    pub(crate) fn compact(&mut self, revision: u64) {
        self.horizon = self.horizon.max(revision);
        while self.log.events.front().is_some_and(|event| event.revision <= self.horizon)
            && let Some(event) = self.log.events.pop_front()
        {
            self.bytes -= event.size();
            self.log.last_forgotten = event.revision;
        }
        while self.checkpoints.front().is_some_and(|(checkpoint, _)| *checkpoint < self.horizon) {
            self.checkpoints.pop_front();
        }
    }

    /// Drops the events that exceed the limits.
    pub(crate) fn trim(&mut self, limits: HistoryLimits, now: Instant) {
        let too_many = self.log.events.len().saturating_sub(limits.max_events);
        let too_old = limits
            .max_age
            .map_or(0, |age| self.log.events.partition_point(|event| now.saturating_duration_since(event.at) > age));
        let dropped = too_many.max(too_old).max(self.too_large(limits.max_bytes));
        if dropped == 0 {
            return;
        }
        // The next kept event can still be watched from the revision just before it.
        let last_dropped = self.log.events[dropped - 1].revision;
        let horizon = self.log.events.get(dropped).map_or(last_dropped, |kept| kept.revision - 1);
        self.compact(horizon);
    }

    /// Returns how many events must be dropped for the others to fit; never the newest one.
    fn too_large(&self, max_bytes: usize) -> usize {
        let (mut bytes, mut dropped) = (self.bytes, 0);
        for event in self.log.events.iter().take(self.log.events.len().saturating_sub(1)) {
            if bytes <= max_bytes {
                break;
            }
            bytes -= event.size();
            dropped += 1;
        }
        dropped
    }

    /// Drops all history, and continues with these objects. Returns the previous collection.
    pub(crate) fn reopen(&mut self, id: u64, objects: Objects, revision: u64) -> Self {
        let closed = std::mem::replace(self, Self::new(id, revision));
        self.objects = objects;
        closed
    }

    /// Notifies every watch of this collection.
    pub(crate) fn wake(&self) {
        self.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
