//! All objects of one resource, and the history by which older states and missed events are found again.

use imbl::OrdMap;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::kinds::Resource;
use crate::storage::event::Event;
use crate::storage::object::{Change, Draft, Key, StoredObject};

/// The objects of a collection at one instant; a clone is O(1) and never changes.
pub(crate) type Objects = OrdMap<Key, Arc<StoredObject>>;

/// The objects whose keys lie between two bounds, in order; no upper bound means all that follow.
pub(crate) fn between<'a>(
    objects: &'a Objects,
    first: Bound<&str>,
    end: Option<&str>,
) -> impl Iterator<Item = (&'a Key, &'a Arc<StoredObject>)> + use<'a> {
    objects.range::<_, str>((first, end.map_or(Bound::Unbounded, Bound::Excluded)))
}

/// After how many events a snapshot is kept, so that an older state is found in few steps.
const CHECKPOINT: usize = 256;

/// How much history a collection keeps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistoryLimits {
    pub(crate) max_events: usize,
    /// Of all events together; the newest one is kept whatever its size.
    pub(crate) max_bytes: usize,
    pub(crate) max_age: Option<Duration>,
}

/// The asked-for revision is no longer in the history; `oldest` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Forgotten {
    pub(crate) oldest: u64,
}

/// What has happened in a collection, as far as it is remembered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    /// Events in order of their revisions.
    events: VecDeque<Arc<Event>>,
    /// The revision of the last event that was forgotten: a watch that has seen it has missed nothing.
    last_forgotten: u64,
}

impl Log {
    /// Up to `max` events after `revision`, in order.
    pub(crate) fn unseen(&self, revision: u64, max: usize) -> Vec<Arc<Event>> {
        self.events.range(self.first_after(revision)..).take(max).cloned().collect()
    }

    /// Whether an event after `revision` has been forgotten.
    pub(crate) fn has_lost(&self, revision: u64) -> bool {
        revision < self.last_forgotten
    }

    /// How many events there are after `revision`.
    pub(crate) fn count_after(&self, revision: u64) -> usize {
        self.events.len() - self.first_after(revision)
    }

    fn first_after(&self, revision: u64) -> usize {
        self.events.partition_point(|event| event.revision <= revision)
    }
}

/// What a collection leaves to its watches when it is closed, which read it to the end. It is there as long as one of them is.
pub(crate) type Legacy = Arc<Mutex<Option<Arc<Log>>>>;

/// Objects as they are, and as they are to be under another version of their resource or with other fields.
#[derive(Debug, Default)]
pub(crate) struct Recoding {
    from: Objects,
    to: Objects,
}

impl Recoding {
    /// Follows what has changed since it was last called; the first time that is everything.
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
            let encoded = Draft::encode(resource, key.clone(), &value, Change::Modified, revision);
            self.to.insert(key.clone(), Arc::new(encoded.at(revision, Change::Modified)));
        }
        self.from = now.clone();
    }

    /// Whether it has followed all that these have become.
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
    /// Tells it from those that had or will have its name.
    pub(crate) id: u64,
    objects: Objects,
    /// All its events are newer than `horizon`.
    log: Log,
    /// The sizes of all events together.
    bytes: usize,
    /// States right after some of the events, oldest first.
    checkpoints: VecDeque<(u64, Objects)>,
    since_checkpoint: usize,
    /// The oldest revision that can be listed exactly or watched from.
    horizon: u64,
    /// Woken by each event, and when watches must look up for another reason.
    changed: Arc<Notify>,
    legacy: Legacy,
}

impl Collection {
    /// An empty collection in which nothing older than `horizon` is known.
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

    /// Ends it: its watches read what is left, and end too.
    pub(crate) fn close(self) {
        *self.legacy.lock() = Some(Arc::new(self.log));
        self.changed.notify_waiters();
    }

    /// Detaches all watches. Their end is reported elsewhere.
    pub(crate) fn part_from_watches(&mut self) {
        (self.changed, self.legacy) = (Arc::default(), Legacy::default());
    }

    /// Applies one write and remembers it.
    pub(crate) fn record(&mut self, key: &Key, event: Event, limits: HistoryLimits) -> Arc<Event> {
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

    /// The objects as they were right after `revision`.
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

    /// Forgets everything up to and including `revision`.
    pub(crate) fn compact(&mut self, revision: u64) {
        self.horizon = self.horizon.max(revision);
        while let Some(event) = self.log.events.pop_front_if(|event| event.revision <= self.horizon) {
            self.bytes -= event.size();
            self.log.last_forgotten = event.revision;
        }
        while self.checkpoints.front().is_some_and(|(checkpoint, _)| *checkpoint < self.horizon) {
            self.checkpoints.pop_front();
        }
    }

    /// Forgets what exceeds the limits.
    pub(crate) fn trim(&mut self, limits: HistoryLimits, now: Instant) {
        let too_many = self.log.events.len().saturating_sub(limits.max_events);
        let too_old = limits
            .max_age
            .map_or(0, |age| self.log.events.partition_point(|event| now.saturating_duration_since(event.at) > age));
        let dropped = too_many.max(too_old).max(self.too_large(limits.max_bytes));
        if dropped == 0 {
            return;
        }
        // The next event kept can still be watched from the revision just before it.
        let last_dropped = self.log.events[dropped - 1].revision;
        let horizon = self.log.events.get(dropped).map_or(last_dropped, |kept| kept.revision - 1);
        self.compact(horizon);
    }

    /// How many events must go for the rest to fit; the newest one never must.
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

    /// Forgets all history, and goes on with these objects. Returns the collection as it was.
    pub(crate) fn reopen(&mut self, id: u64, objects: Objects, revision: u64) -> Self {
        let closed = std::mem::replace(self, Self::new(id, revision));
        self.objects = objects;
        closed
    }

    /// Wakes every watch of this collection, so that it looks up.
    pub(crate) fn wake(&self) {
        self.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
