//! All objects of one resource, and the history by which older states and missed events are found again.

use imbl::OrdMap;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::kinds::Resource;
use crate::storage::event::Event;
use crate::storage::object::{Change, Key, StoredObject};

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

/// One resource's objects and events.
#[derive(Debug, Clone)]
pub(crate) struct Collection {
    /// Tells it from those that had or will have its name.
    pub(crate) id: u64,
    objects: Objects,
    /// Events in order of their revisions; all are newer than `horizon`.
    events: VecDeque<Arc<Event>>,
    /// The sizes of all events together.
    bytes: usize,
    /// States right after some of the events, oldest first.
    checkpoints: VecDeque<(u64, Objects)>,
    since_checkpoint: usize,
    /// The oldest revision that can be listed exactly or watched from.
    horizon: u64,
    /// The revision of the last event that was forgotten: a watch that has seen it has missed nothing.
    last_forgotten: u64,
    /// Woken by each event, and when watches must look up for another reason.
    changed: Arc<Notify>,
}

impl Collection {
    /// An empty collection in which nothing older than `horizon` is known.
    pub(crate) fn new(id: u64, horizon: u64) -> Self {
        Self {
            id,
            objects: Objects::new(),
            events: VecDeque::new(),
            bytes: 0,
            checkpoints: VecDeque::new(),
            since_checkpoint: 0,
            horizon,
            last_forgotten: 0,
            changed: Arc::new(Notify::new()),
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

    /// Applies one write and remembers it.
    pub(crate) fn record(&mut self, key: &Key, event: Event, limits: HistoryLimits) -> Arc<Event> {
        let event = Arc::new(event);
        match &event.after {
            Some(after) => self.objects.insert(key.clone(), after.clone()),
            None => self.objects.remove(key),
        };
        self.bytes += event.size();
        self.events.push_back(event.clone());
        self.since_checkpoint += 1;
        if self.since_checkpoint >= CHECKPOINT {
            self.since_checkpoint = 0;
            self.checkpoints.push_back((event.revision, self.objects.clone()));
        }
        self.trim(limits, event.at);
        self.changed.notify_waiters();
        event
    }

    /// Up to `max` events after `revision`, in order.
    pub(crate) fn unseen(&self, revision: u64, max: usize) -> Vec<Arc<Event>> {
        let first = self.events.partition_point(|event| event.revision <= revision);
        self.events.range(first..).take(max).cloned().collect()
    }

    /// Whether an event after `revision` has been forgotten.
    pub(crate) fn has_lost(&self, revision: u64) -> bool {
        revision < self.last_forgotten
    }

    /// How many events there are after `revision`.
    pub(crate) fn count_after(&self, revision: u64) -> usize {
        self.events.len() - self.events.partition_point(|event| event.revision <= revision)
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
        let undone = self.events.iter().rev().skip_while(|event| event.revision > from);
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
        while let Some(event) = self.events.pop_front_if(|event| event.revision <= self.horizon) {
            self.bytes -= event.size();
            self.last_forgotten = event.revision;
        }
        while self.checkpoints.front().is_some_and(|(checkpoint, _)| *checkpoint < self.horizon) {
            self.checkpoints.pop_front();
        }
    }

    /// Forgets what exceeds the limits.
    pub(crate) fn trim(&mut self, limits: HistoryLimits, now: Instant) {
        let too_many = self.events.len().saturating_sub(limits.max_events);
        let too_old = limits
            .max_age
            .map_or(0, |age| self.events.partition_point(|event| now.saturating_duration_since(event.at) > age));
        let dropped = too_many.max(too_old).max(self.too_large(limits.max_bytes));
        if dropped == 0 {
            return;
        }
        // The next event kept can still be watched from the revision just before it.
        let last_dropped = self.events[dropped - 1].revision;
        let horizon = self.events.get(dropped).map_or(last_dropped, |kept| kept.revision - 1);
        self.compact(horizon);
    }

    /// How many events must go for the rest to fit; the newest one never must.
    fn too_large(&self, max_bytes: usize) -> usize {
        let (mut bytes, mut dropped) = (self.bytes, 0);
        for event in self.events.iter().take(self.events.len().saturating_sub(1)) {
            if bytes <= max_bytes {
                break;
            }
            bytes -= event.size();
            dropped += 1;
        }
        dropped
    }

    /// Forgets all history, and encodes every object anew if it is to be one of this version and these fields. Returns the collection
    /// as it was.
    pub(crate) fn reopen(&mut self, id: u64, anew: Option<&Resource>, revision: u64) -> Self {
        let encode = |resource: &Resource, (key, object): (&Key, &Arc<StoredObject>)| {
            let (mut value, revision) = (object.value(), object.revision);
            value["apiVersion"] = resource.api_version().into();
            let encoded = StoredObject::encode(resource, key.clone(), &value, revision, Change::Modified);
            (key.clone(), Arc::new(encoded))
        };
        let objects = match anew {
            Some(resource) => self.objects.iter().map(|object| encode(resource, object)).collect(),
            None => self.objects.clone(),
        };
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
