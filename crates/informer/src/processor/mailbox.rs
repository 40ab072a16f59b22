//! The events that wait for one handler.
//!
//! A mailbox has three zones, oldest first: parcels as they came (`waiting`), the latest state of each object (`folded`), and parcels
//! that have yet to be folded (`unfolded`). The last two exist only while the handler is behind its bound. Putting a parcel in takes
//! constant time in every state, because the applier does it inside its commit. Folding is done afterwards, a piece at a time: by the
//! applier before its next batch, since the handler may be stuck, and by the task that delivers if it comes first.

mod folded;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use self::folded::Folded;
use super::Event;
use crate::lock::Mutex;
use crate::object::Object;
use crate::store::Snapshot;

/// How many events are folded while the lock is held once.
const PIECE: usize = 256;

/// Says which events a handler receives when they come faster than it takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// Every event, one by one, within these bounds. Beyond them only the latest state of each object is kept until the handler
    /// has caught up: memory does not grow because a handler is slow. One batch of any size, such as a first list, is
    /// always let through.
    Every {
        /// How many events may wait beside one for each object in the cache: 100,000 by default.
        max_backlog: usize,
        /// How many bytes of memory, as estimated from the bytes on the wire, may be taken by states that the cache no longer
        /// holds: 64 MiB by default.
        max_bytes: u64,
    },
    /// Only the latest state of each object that waits.
    Latest,
}

impl Default for Delivery {
    fn default() -> Self {
        Self::every(100_000)
    }
}

impl Delivery {
    /// Every event, as long as no more than this many wait beside one for each object in the cache.
    pub fn every(max_backlog: usize) -> Self {
        Self::Every { max_backlog, max_bytes: 64 * 1024 * 1024 }
    }
}

/// Events of one batch, shared by all handlers.
pub(crate) type EventBatch = Arc<Vec<Event<dyn Object>>>;

/// The events that wait for one handler, in order.
///
/// Holds at most one event per live object, `max_backlog` more, and one batch; or, folded, one entry per live object, one per
/// object whose deletion is still owed, and a bounded number of events that have yet to be folded.
pub(crate) struct Mailbox {
    delivery: Delivery,
    state: Mutex<MailboxState>,
    arrived: Notify,
    /// Notified when the applier need not wait for this mailbox any more, if it does.
    attended: Notify,
    waited_for: AtomicBool,
    /// Read with each event, and therefore without the lock.
    discarded: AtomicBool,
}

/// The next thing for a handler.
pub(crate) enum Parcel {
    /// Everything known when the handler was added.
    Replay(Snapshot<dyn Object>),
    /// Everything known when a resync was due.
    Resync(Snapshot<dyn Object>),
    /// Changes.
    Events(EventBatch),
    /// The initial state has been delivered in full.
    Synced,
}

struct WaitingParcel {
    since: Instant,
    parcel: Parcel,
    bytes: u64,
}

#[derive(Default)]
struct MailboxState {
    waiting: VecDeque<WaitingParcel>,
    /// The latest state of each object, once too much waits. It comes after `waiting`.
    folded: Option<Folded>,
    /// Parcels that came after `folded` began, and are to be folded into it.
    unfolded: VecDeque<WaitingParcel>,
    /// How many events of the first of `unfolded` are folded already.
    folded_of_first: usize,
    /// How many events are in `waiting` and `unfolded`.
    events: usize,
    /// How many objects are in the snapshots among `waiting`.
    in_snapshots: usize,
    /// How many bytes of states that are in no store any more are in `waiting`.
    bytes: u64,
    /// True if a resync is among `waiting`.
    resync_waits: bool,
    /// Since when the parcel that was taken out last had waited; `None` once it is delivered.
    in_hand: Option<Instant>,
    /// True while the handler awaits or blocks inside a call.
    awaits: bool,
    /// True if the applier waited in vain. It does not wait again until the mailbox has been empty.
    left_out: bool,
    /// How often the mailbox had to be folded.
    folds: u64,
    /// No more comes; parcels that wait may still be taken out.
    closed: bool,
}

impl Mailbox {
    pub(crate) fn new(delivery: Delivery) -> Self {
        Self {
            delivery,
            state: Mutex::default(),
            arrived: Notify::new(),
            attended: Notify::new(),
            waited_for: AtomicBool::new(false),
            discarded: AtomicBool::new(false),
        }
    }

    /// Puts in everything known when the handler was added.
    pub(crate) fn push_replay(&self, known: Snapshot<dyn Object>) {
        if !known.is_empty() {
            let mut state = self.state.lock();
            state.in_snapshots += known.len();
            state.wait(Parcel::Replay(known), 0, Instant::now());
            drop(state);
            self.arrived.notify_one();
        }
    }

    /// Puts in everything known, to be shown again. Returns false if the mailbox is folded: the handler is so far behind that it has
    /// to catch up first. A resync that still waits stands for this one.
    pub(crate) fn push_resync(&self, known: Snapshot<dyn Object>) -> bool {
        let mut state = self.state.lock();
        if state.folded.is_some() {
            return false;
        }
        if !state.closed && !known.is_empty() && !std::mem::replace(&mut state.resync_waits, true) {
            state.in_snapshots += known.len();
            state.wait(Parcel::Resync(known), 0, Instant::now());
            drop(state);
            self.arrived.notify_one();
        }
        true
    }

    /// Puts in events, which keep about `bytes` bytes of states in memory that the store no longer holds. The store has `live` objects.
    /// The events wait since `since`.
    pub(crate) fn push(&self, events: &EventBatch, bytes: u64, live: usize, since: Instant) {
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
            state.begin_folding();
            state.folds += u64::from(self.delivery != Delivery::Latest);
        }
        state.events += events.len();
        state.wait(Parcel::Events(events.clone()), bytes, since);
        drop(state);
        self.arrived.notify_one();
    }

    /// Puts in the mark behind the initial state.
    pub(crate) fn push_synced(&self) {
        self.state.lock().wait(Parcel::Synced, 0, Instant::now());
        self.arrived.notify_one();
    }

    /// Ends it: nothing more is taken in, and parcels that wait are kept or thrown away.
    pub(crate) fn close(&self, keep: bool) {
        let mut state = self.state.lock();
        state.closed = true;
        let mut dropped = MailboxState::default();
        if !keep {
            self.discarded.store(true, Ordering::Relaxed);
            dropped.waiting = std::mem::take(&mut state.waiting);
            dropped.unfolded = std::mem::take(&mut state.unfolded);
            dropped.folded = state.folded.take();
            (state.events, state.bytes, state.in_snapshots) = (0, 0, 0);
        }
        drop(state);
        drop(dropped); // Outside the lock: it may be many objects.
        self.arrived.notify_one();
        self.wake_applier();
    }

    /// True if the parcels that waited were thrown away.
    pub(crate) fn is_discarded(&self) -> bool {
        self.discarded.load(Ordering::Relaxed)
    }

    /// Returns the next parcel, once there is one; `None` at the end. The caller has delivered the one before.
    ///
    /// # Cancel safety
    ///
    /// Nothing is taken out unless it is returned.
    pub(crate) async fn next(&self) -> Option<Parcel> {
        loop {
            // Mostly there is nothing to fold.
            let mut dropped = None;
            {
                let mut state = self.state.lock();
                (state.in_hand, state.awaits) = (None, false);
                let more_to_fold = state.folded.is_some() && state.fold(PIECE, dropped.get_or_insert_default());
                if !more_to_fold && !dropped.as_ref().is_some_and(Dropped::is_long) {
                    let next = state.take();
                    if state.is_empty() {
                        state.left_out = false;
                    }
                    let closed = state.closed;
                    drop(state);
                    self.wake_applier();
                    if next.is_some() || closed {
                        return next;
                    }
                }
            }
            match dropped {
                None => self.arrived.notified().await,
                // Something was folded: look again.
                Some(dropped) => {
                    dropped.drop_in_pieces().await;
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Folds a piece, if the handler is behind its bound. Returns true if there is more to fold.
    pub(crate) async fn fold_piece(&self) -> bool {
        let mut dropped = Dropped::default();
        let more_to_fold = self.state.lock().fold(PIECE, &mut dropped);
        dropped.drop_in_pieces().await;
        more_to_fold
    }

    /// Says that the handler awaits or blocks inside a call, so that nothing waits for it.
    pub(crate) fn awaits(&self) {
        self.state.lock().awaits = true;
        self.wake_applier();
    }

    fn wake_applier(&self) {
        if self.waited_for.load(Ordering::SeqCst) {
            self.attended.notify_waiters();
        }
    }

    /// Waits until the task that delivers has been polled since events arrived. A task that was woken is polled sooner or later, so
    /// there is no limit; a stream is polled only if the program does so, and is not to be waited for here.
    pub(crate) async fn polled(&self) {
        self.until(|state| state.in_hand.is_some() || state.is_attended()).await;
    }

    /// Waits until the handler has taken out everything, or is found to await or block.
    ///
    /// Returns at once for a handler that was given up by [`Mailbox::leave_out`], until its mailbox has been empty.
    pub(crate) async fn attended(&self) {
        self.until(MailboxState::is_attended).await;
    }

    async fn until(&self, condition: impl Fn(&MailboxState) -> bool) {
        // Left set if this is dropped: the handler then notifies in vain.
        self.waited_for.store(true, Ordering::SeqCst);
        loop {
            let mut attended = std::pin::pin!(self.attended.notified());
            attended.as_mut().enable();
            if condition(&self.state.lock()) {
                break;
            }
            attended.await;
        }
        self.waited_for.store(false, Ordering::SeqCst);
    }

    /// True if nothing need wait for the handler, and there is nothing to fold for it.
    pub(crate) fn is_attended(&self) -> bool {
        let state = self.state.lock();
        state.is_attended() && state.unfolded.is_empty()
    }

    /// Gives up waiting for the handler until its mailbox has been empty.
    pub(crate) fn leave_out(&self) {
        let mut state = self.state.lock();
        state.left_out = !state.is_empty();
    }

    /// How many events wait.
    pub(crate) fn len(&self) -> usize {
        let state = self.state.lock();
        state.in_snapshots + state.events + state.folded.as_ref().map_or(0, Folded::len)
    }

    /// How long the oldest event has waited that is not delivered.
    pub(crate) fn lag(&self) -> Duration {
        let state = self.state.lock();
        let oldest = |waiting: &VecDeque<WaitingParcel>| waiting.front().map(|waiting| waiting.since);
        let folded = || state.folded.as_ref().and_then(Folded::since);
        let since = state.in_hand.or_else(|| oldest(&state.waiting)).or_else(folded);
        since.or_else(|| oldest(&state.unfolded)).map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// How often it had to be folded because the handler was too slow.
    pub(crate) fn folds(&self) -> u64 {
        self.state.lock().folds
    }
}

impl MailboxState {
    /// Appends a parcel behind all others.
    fn wait(&mut self, parcel: Parcel, bytes: u64, since: Instant) {
        let waiting = WaitingParcel { since, parcel, bytes };
        if self.folded.is_some() {
            self.unfolded.push_back(waiting);
        } else {
            self.bytes += bytes;
            self.waiting.push_back(waiting);
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.unfolded.is_empty() && self.folded.as_ref().is_none_or(Folded::is_empty)
    }

    /// True if nothing need wait for the handler.
    fn is_attended(&self) -> bool {
        self.is_empty() || self.awaits || self.left_out || self.closed
    }

    fn take(&mut self) -> Option<Parcel> {
        if let Some(WaitingParcel { since, parcel, bytes }) = self.waiting.pop_front() {
            self.in_hand = Some(since);
            self.bytes -= bytes;
            match &parcel {
                Parcel::Events(events) => self.events -= events.len(),
                Parcel::Replay(known) => self.in_snapshots -= known.len(),
                Parcel::Resync(known) => {
                    self.in_snapshots -= known.len();
                    self.resync_waits = false;
                }
                Parcel::Synced => {}
            }
            return Some(parcel);
        }
        let folded = self.folded.as_mut()?;
        self.in_hand = folded.since();
        let parcel = folded.take();
        if folded.is_empty() && self.unfolded.is_empty() {
            // It has caught up: every event counts again.
            self.folded = None;
        }
        parcel
    }

    /// From now on only the latest state of each object is kept. A snapshot holds one entry per object by nature, and keeps its place.
    fn begin_folding(&mut self) {
        let is_snapshot = |waiting: &WaitingParcel| matches!(waiting.parcel, Parcel::Replay(_) | Parcel::Resync(_));
        let first = self.waiting.iter().rposition(is_snapshot).map_or(0, |last| last + 1);
        self.unfolded = if first == 0 { std::mem::take(&mut self.waiting) } else { self.waiting.split_off(first) };
        self.bytes = self.waiting.iter().map(|waiting| waiting.bytes).sum();
        self.folded = Some(Folded::new());
    }

    /// Folds up to `most` events. Returns true if there is more to fold. The caller drops `dropped` once the lock is released.
    fn fold(&mut self, most: usize, dropped: &mut Dropped) -> bool {
        let Some(folded) = &mut self.folded else { return false };
        let mut left = most;
        while let Some(WaitingParcel { since, parcel, .. }) = self.unfolded.front() {
            match parcel {
                Parcel::Events(events) => {
                    let rest = &events[self.folded_of_first..];
                    let piece = &rest[..rest.len().min(left)];
                    piece.iter().cloned().for_each(|event| folded.add(*since, event, &mut dropped.events));
                    self.events -= piece.len();
                    left -= piece.len();
                    if piece.len() < rest.len() {
                        self.folded_of_first += piece.len();
                        return true;
                    }
                }
                Parcel::Synced => folded.mark(*since),
                Parcel::Replay(_) | Parcel::Resync(_) => {} // These come before folding begins.
            }
            self.folded_of_first = 0;
            dropped.parcels.extend(self.unfolded.pop_front());
            if left == 0 {
                break;
            }
        }
        !self.unfolded.is_empty()
    }
}

/// Events that are folded into others. Freeing their objects may take long and run the program's code, so no lock is held then.
#[derive(Default)]
struct Dropped {
    parcels: Vec<WaitingParcel>,
    events: Vec<Event<dyn Object>>,
}

impl Dropped {
    /// True if it is dropped in pieces, before the next parcel is taken out.
    fn is_long(&self) -> bool {
        self.parcels
            .iter()
            .any(|WaitingParcel { parcel, .. }| matches!(parcel, Parcel::Events(events) if events.len() > PIECE))
    }

    async fn drop_in_pieces(self) {
        drop(self.events);
        for WaitingParcel { parcel, .. } in self.parcels {
            if let Parcel::Events(events) = parcel {
                drop_in_pieces(events).await;
            }
        }
    }
}

/// Drops the events of a batch, if nothing else holds it, and lets other tasks run in between: the last of a long list of objects may be
/// freed here.
pub(crate) async fn drop_in_pieces(events: EventBatch) {
    let Some(mut events) = Arc::into_inner(events) else { return };
    while events.len() > PIECE {
        events.truncate(events.len() - PIECE);
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests;
