//! What one handler has still to be told.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Event;
use crate::object::{Object, ObjectKey};
use crate::queue::Deleted;
use crate::store::Snapshot;

/// How a handler is told of changes when they come faster than it takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// Every change, one by one, within these bounds. Beyond them only the latest of each object is kept until the handler
    /// has caught up: memory does not grow because a handler is slow. One batch of any size, such as a first list, is
    /// always let through.
    Every {
        /// How many may wait beside one for each object in the cache: 100,000 unless said otherwise.
        max_backlog: usize,
        /// How many bytes, as they came over the wire, of states that the cache no longer holds: 64 MiB.
        max_bytes: u64,
    },
    /// Only the latest of each object that waits.
    Latest,
}

impl Default for Delivery {
    fn default() -> Self {
        Self::every(100_000)
    }
}

impl Delivery {
    /// Every change, as long as no more than this many wait beside one for each object in the cache.
    pub fn every(max_backlog: usize) -> Self {
        Self::Every { max_backlog, max_bytes: 64 * 1024 * 1024 }
    }
}

/// What waits for one handler, in order.
///
/// Holds at most one event per live object, `max_backlog` more, and one batch; or, folded, one entry per live object plus one per object whose
/// deletion is still owed.
pub(crate) struct Mailbox<T> {
    delivery: Delivery,
    state: Mutex<State<T>>,
    arrived: Notify,
    /// Read with each event, and therefore without the lock.
    discarded: AtomicBool,
}

/// The next thing for a handler.
pub(crate) enum Parcel<T> {
    /// Everything known when the handler was added.
    Replay(Snapshot<T>),
    /// Changes.
    Events(Arc<[Event<T>]>),
    /// The initial state has been told in full.
    Synced,
}

struct Waiting<T> {
    since: Instant,
    parcel: Parcel<T>,
    bytes: u64,
}

struct State<T> {
    waiting: VecDeque<Waiting<T>>,
    /// Since when what was taken out last had waited; `None` once that has been dealt with.
    in_hand: Option<Instant>,
    /// How many events wait in `waiting`, and how many bytes of states that are in no store any more.
    events: usize,
    bytes: u64,
    /// In place of more of `waiting`, once too much waits. What is there comes behind what is in `waiting`.
    folded: Option<Folded<T>>,
    /// How often the mailbox had to be folded.
    folds: u64,
    /// No more comes; what waits may still be taken out.
    closed: bool,
}

impl<T: Object> Mailbox<T> {
    pub(crate) fn new(delivery: Delivery) -> Self {
        let state = State {
            waiting: VecDeque::new(),
            in_hand: None,
            events: 0,
            bytes: 0,
            folded: None,
            folds: 0,
            closed: false,
        };
        Self { delivery, state: Mutex::new(state), arrived: Notify::new(), discarded: AtomicBool::new(false) }
    }

    pub(crate) fn replay(&self, known: Snapshot<T>) {
        if !known.is_empty() {
            self.state.lock().wait(Parcel::Replay(known), 0);
            self.arrived.notify_one();
        }
    }

    /// Takes events in, which keep so many bytes alive that are in no store any more. So many objects are in the store.
    pub(crate) fn push(&self, events: &Arc<[Event<T>]>, bytes: u64, live: usize) {
        let mut state = self.state.lock();
        if state.closed || events.is_empty() {
            return;
        }
        let too_much = match self.delivery {
            Delivery::Every { max_backlog, max_bytes } => {
                state.events > max_backlog.saturating_add(live) || state.bytes > max_bytes
            }
            Delivery::Latest => true,
        };
        if state.folded.is_none() && too_much {
            state.fold();
            state.folds += u64::from(self.delivery != Delivery::Latest);
        }
        let now = Instant::now();
        match &mut state.folded {
            Some(folded) => events.iter().cloned().for_each(|event| folded.add(now, event)),
            None => {
                state.events += events.len();
                state.bytes += bytes;
                state.wait(Parcel::Events(events.clone()), bytes);
            }
        }
        drop(state);
        self.arrived.notify_one();
    }

    pub(crate) fn push_synced(&self) {
        let mut state = self.state.lock();
        match &mut state.folded {
            Some(folded) => folded.mark(Instant::now()),
            None => state.wait(Parcel::Synced, 0),
        }
        drop(state);
        self.arrived.notify_one();
    }

    /// Ends it: nothing more is taken in, and what waits is kept or thrown away.
    pub(crate) fn close(&self, keep: bool) {
        let mut state = self.state.lock();
        state.closed = true;
        if !keep {
            self.discarded.store(true, Ordering::Relaxed);
            state.waiting.clear();
            state.folded = None;
            (state.events, state.bytes) = (0, 0);
        }
        drop(state);
        self.arrived.notify_one();
    }

    /// True if what waits was thrown away.
    pub(crate) fn is_discarded(&self) -> bool {
        self.discarded.load(Ordering::Relaxed)
    }

    /// The next parcel, once there is one; `None` at the end. Whoever asks has dealt with the one before.
    ///
    /// # Cancel safety
    ///
    /// Nothing is taken out unless it is returned.
    pub(crate) async fn next(&self) -> Option<Parcel<T>> {
        loop {
            {
                let mut state = self.state.lock();
                state.in_hand = None;
                if let Some(parcel) = state.take() {
                    return Some(parcel);
                }
                if state.closed {
                    return None;
                }
            }
            self.arrived.notified().await;
        }
    }

    /// How many events wait.
    pub(crate) fn len(&self) -> usize {
        let state = self.state.lock();
        // A replay comes before everything else.
        let replay = match state.waiting.front() {
            Some(Waiting { parcel: Parcel::Replay(known), .. }) => known.len(),
            _ => 0,
        };
        replay + state.events + state.folded.as_ref().map_or(0, Folded::len)
    }

    /// How long the oldest event has waited that has not been dealt with.
    pub(crate) fn lag(&self) -> Duration {
        let state = self.state.lock();
        let waiting = || state.waiting.front().map(|waiting| waiting.since);
        let folded = || state.folded.as_ref().and_then(Folded::since);
        state.in_hand.or_else(waiting).or_else(folded).map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// How often it had to be folded because the handler was too slow.
    pub(crate) fn folds(&self) -> u64 {
        self.state.lock().folds
    }
}

impl<T: Object> State<T> {
    fn wait(&mut self, parcel: Parcel<T>, bytes: u64) {
        self.waiting.push_back(Waiting { since: Instant::now(), parcel, bytes });
    }

    fn take(&mut self) -> Option<Parcel<T>> {
        if let Some(Waiting { since, parcel, bytes }) = self.waiting.pop_front() {
            self.in_hand = Some(since);
            self.bytes -= bytes;
            if let Parcel::Events(events) = &parcel {
                self.events -= events.len();
            }
            return Some(parcel);
        }
        let folded = self.folded.as_mut()?;
        self.in_hand = folded.since();
        let parcel = folded.take();
        if folded.is_empty() {
            // It has caught up: every change counts again.
            self.folded = None;
        }
        parcel
    }

    /// Keeps the latest of each object of what waits, and of what is to come.
    fn fold(&mut self) {
        let mut folded = Folded::new();
        // A replay is a snapshot, of one entry per object by nature; it stays in front.
        let first = self.waiting.iter().position(|waiting| !matches!(waiting.parcel, Parcel::Replay(_)));
        let rest = self.waiting.split_off(first.unwrap_or(self.waiting.len()));
        for Waiting { since, parcel, .. } in rest {
            match parcel {
                Parcel::Events(events) => events.iter().cloned().for_each(|event| folded.add(since, event)),
                Parcel::Synced => folded.mark(since),
                Parcel::Replay(_) => {}
            }
        }
        (self.events, self.bytes) = (0, 0);
        self.folded = Some(folded);
    }
}

/// The latest of each object, in the order in which they first changed.
struct Folded<T> {
    /// Events and marks by order of arrival; `None` is the mark behind the initial state.
    entries: BTreeMap<u64, (Instant, Option<Event<T>>)>,
    /// Where the newest entry of each object stands.
    newest: HashMap<ObjectKey, u64>,
    /// How many of the entries are marks.
    marks: usize,
    next: u64,
}

impl<T: Object> Folded<T> {
    /// How many entries one parcel takes out.
    const PARCEL: usize = 64;

    fn new() -> Self {
        Self { entries: BTreeMap::new(), newest: HashMap::new(), marks: 0, next: 0 }
    }

    /// How many events there are.
    fn len(&self) -> usize {
        self.entries.len() - self.marks
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Since when the first of them has waited.
    fn since(&self) -> Option<Instant> {
        self.entries.first_key_value().map(|(_, (since, _))| *since)
    }

    fn mark(&mut self, now: Instant) {
        self.entries.insert(self.next, (now, None));
        self.marks += 1;
        self.next += 1;
    }

    fn add(&mut self, now: Instant, event: Event<T>) {
        let key = event.key();
        let Some(&at) = self.newest.get(&key) else { return self.append(key, now, event) };
        let Some((since, Some(waiting))) = self.entries.remove(&at) else { return self.append(key, now, event) };
        match fold(waiting, event) {
            Folding::One(event) => {
                self.entries.insert(at, (since, Some(event)));
            }
            Folding::Nothing => {
                self.newest.remove(&key);
            }
            Folding::Both(first, second) => {
                self.entries.insert(at, (since, Some(first)));
                self.append(key, now, second);
            }
        }
    }

    fn append(&mut self, key: ObjectKey, now: Instant, event: Event<T>) {
        self.newest.insert(key, self.next);
        self.entries.insert(self.next, (now, Some(event)));
        self.next += 1;
    }

    fn take(&mut self) -> Option<Parcel<T>> {
        if let Some((_, (_, None))) = self.entries.first_key_value() {
            self.entries.pop_first();
            self.marks -= 1;
            return Some(Parcel::Synced);
        }
        let mut events = Vec::new();
        while events.len() < Self::PARCEL
            && let Some(entry) = self.entries.first_entry()
            && entry.get().1.is_some()
        {
            let at = *entry.key();
            let (_, Some(event)) = entry.remove() else { break };
            let key = event.key();
            if self.newest.get(&key) == Some(&at) {
                self.newest.remove(&key);
            }
            events.push(event);
        }
        if events.is_empty() { None } else { Some(Parcel::Events(events.into())) }
    }
}

enum Folding<T> {
    One(Event<T>),
    Nothing,
    Both(Event<T>, Event<T>),
}

/// What is left to tell of two changes of one object, the second right behind the first.
fn fold<T>(first: Event<T>, second: Event<T>) -> Folding<T> {
    use Event::{Added, Deleted as Gone, Resynced, Updated};
    match (first, second) {
        // To a handler that was not told of the object yet, it appears as it is now, or not at all.
        (Added { initial, .. }, Added { object, .. } | Updated { new: object, .. }) => {
            Folding::One(Added { object, initial })
        }
        (Added { .. }, Gone(_)) => Folding::Nothing,
        // The oldest state is the one that was told last.
        (Updated { old, .. }, Updated { new, .. } | Added { object: new, .. }) => Folding::One(Updated { old, new }),
        // A resync never replaces a change.
        (change @ (Added { .. } | Updated { .. }), Resynced(_)) => Folding::One(change),
        (Resynced(_), second) => Folding::One(second),
        (Updated { .. }, gone @ Gone(_)) => Folding::One(gone),
        (first @ Gone(_), second @ (Added { .. } | Updated { .. })) => Folding::Both(first, second),
        (Gone(first), Gone(second)) => Folding::One(Gone(match first {
            Deleted::Final(_) => first,
            Deleted::Unknown(_) => second,
        })),
        (gone @ Gone(_), Resynced(_)) => Folding::One(gone),
    }
}

#[cfg(test)]
mod tests;
