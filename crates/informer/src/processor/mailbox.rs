//! The events that wait for one handler.
//!
//! A mailbox has three zones, oldest first: parcels in order of arrival (`waiting`), the latest state of each object
//! (`folded`), and parcels that are not folded yet (`unfolded`). The last two exist only while the handler is behind
//! its bound. Putting a parcel in takes constant time in every state, because the applier does it inside its commit.
//! Folding is done later, a piece at a time: by the applier before its next batch, since the handler may be stuck, or
//! by the delivering task if that comes first.

mod folded;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use self::folded::Folded;
use super::{BatchReason, Event};
use crate::lock::Mutex;
use crate::object::Object;
use crate::store::Snapshot;

/// How many events are folded while the lock is held once.
const PIECE: usize = 256;

/// How events are kept for a handler that is slower than the watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// Delivers every event, within these bounds. Beyond them the mailbox keeps only the latest state of each object,
    /// until the handler has caught up. So a slow handler does not make memory grow. One batch of any size, such as a
    /// first list, always fits.
    Every {
        /// How many events may wait in addition to one for each object in the cache. The default is 100,000.
        max_backlog: usize,
        /// How many bytes of memory states may take that the cache no longer holds, estimated from the bytes on the
        /// wire. The default is 64 MiB.
        max_bytes: u64,
    },
    /// Keeps only the latest state of each object that waits.
    Latest,
}

impl Default for Delivery {
    fn default() -> Self {
        Self::every(100_000)
    }
}

impl Delivery {
    /// Delivers every event, as long as no more than `max_backlog` wait in addition to one for each object in the
    /// cache.
    pub fn every(max_backlog: usize) -> Self {
        Self::Every { max_backlog, max_bytes: 64 * 1024 * 1024 }
    }
}

/// The events of one batch, shared by all handlers.
pub(crate) type EventBatch = Arc<Vec<Event<dyn Object>>>;

/// The events that wait for one handler, in order.
///
/// It holds at most one event per live object, `max_backlog` more, and one batch. A folded mailbox holds one entry per
/// live object, one per object whose deletion is not delivered yet, and a bounded number of events that are not folded
/// yet.
pub(crate) struct Mailbox {
    delivery: Delivery,
    state: Mutex<MailboxState>,
    arrived: Notify,
    /// Notified when the applier need not wait for this mailbox any more.
    attended: Notify,
    waited_for: AtomicBool,
    /// Read with each event, and therefore outside the lock.
    discarded: AtomicBool,
}

/// An item of a mailbox.
pub(crate) enum Parcel {
    /// All objects that were known when the handler was added.
    Replay(Snapshot<dyn Object>),
    /// All objects that were known when a resync was due.
    Resync(Snapshot<dyn Object>),
    /// Changes.
    Events(EventBatch, BatchReason),
    /// The mark after the initial state: it has been delivered in full.
    Synced,
}

impl Parcel {
    /// Returns the number of events.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Replay(known) | Self::Resync(known) => known.len(),
            Self::Events(events, _) => events.len(),
            Self::Synced => 0,
        }
    }

    /// Iterates over the events.
    pub(crate) fn events(&self) -> Box<dyn Iterator<Item = Event<dyn Object>> + Send + '_> {
        match self {
            Self::Replay(known) => {
                Box::new(known.objects().cloned().map(|object| Event::Added { object, initial: true }))
            }
            Self::Resync(known) => Box::new(known.objects().cloned().map(Event::Resynced)),
            Self::Events(events, _) => Box::new(events.iter().cloned()),
            Self::Synced => Box::new(std::iter::empty()),
        }
    }
}

struct WaitingParcel {
    since: Instant,
    parcel: Parcel,
    bytes: u64,
}

#[derive(Default)]
struct MailboxState {
    waiting: VecDeque<WaitingParcel>,
    /// The latest state of each object, while the handler is behind its bound. It comes after `waiting`.
    folded: Option<Folded>,
    /// Parcels that arrived after `folded` began and are not folded into it yet.
    unfolded: VecDeque<WaitingParcel>,
    /// How many events of the first parcel in `unfolded` are folded already.
    folded_of_first: usize,
    /// How many events are in `waiting` and `unfolded`.
    events: usize,
    /// How many objects are in the snapshots among `waiting`.
    in_snapshots: usize,
    /// How many bytes the states in `waiting` take that no store holds any more.
    bytes: u64,
    /// True if a resync is in `waiting`.
    resync_waits: bool,
    /// Since when the parcel in delivery has waited; `None` once it is delivered.
    delivering_since: Option<Instant>,
    /// True while the handler awaits or blocks inside a call.
    awaits: bool,
    /// True if the applier reached its time limit. It does not wait again until the mailbox has been empty.
    left_out: bool,
    /// How often the mailbox was folded.
    folds: u64,
    /// True once no more parcels are accepted. Parcels that wait may still be taken out.
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

    /// Puts in all objects that were known when the handler was added.
    pub(crate) fn push_replay(&self, known: Snapshot<dyn Object>) {
        if !known.is_empty() {
            let mut state = self.state.lock();
            state.in_snapshots += known.len();
            state.wait(Parcel::Replay(known), 0, Instant::now());
            drop(state);
            self.arrived.notify_one();
        }
    }

    /// Puts in all known objects as a resync. Returns false if the mailbox is folded: the handler must catch up first.
    /// If a resync already waits, this does nothing and returns true.
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

    /// Puts in events. `bytes` estimates the memory of states that only these events keep alive. `live` is the number
    /// of objects in the store, and `since` is when the events began to wait.
    pub(crate) fn push(&self, events: &EventBatch, reason: BatchReason, bytes: u64, live: usize, since: Instant) {
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
        state.wait(Parcel::Events(events.clone(), reason), bytes, since);
        drop(state);
        self.arrived.notify_one();
    }

    /// Puts in the mark after the initial state.
    pub(crate) fn push_synced(&self) {
        self.state.lock().wait(Parcel::Synced, 0, Instant::now());
        self.arrived.notify_one();
    }

    /// Closes the mailbox: it accepts no more parcels. Parcels that wait stay if `keep` is true, and are dropped
    /// otherwise.
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
        drop(dropped); // Outside the lock: freeing many objects may take long.
        self.arrived.notify_one();
        self.wake_applier();
    }

    /// Returns true if the waiting parcels were dropped.
    pub(crate) fn is_discarded(&self) -> bool {
        self.discarded.load(Ordering::Relaxed)
    }

    /// Waits for the next parcel and returns it; `None` at the end. The call marks the parcel before as delivered.
    ///
    /// # Cancel safety
    ///
    /// A parcel is taken out only if it is returned.
    pub(crate) async fn next(&self) -> Option<Parcel> {
        loop {
            // Usually there is nothing to fold.
            let mut dropped = None;
            {
                let mut state = self.state.lock();
                (state.delivering_since, state.awaits) = (None, false);
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
                // Some events were folded: look again.
                Some(dropped) => {
                    dropped.drop_in_pieces().await;
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Returns the events of the next parcel if its reason is [`BatchReason::Live`]; otherwise `None`. The caller adds them
    /// to its batch, so the lag is still measured from the first parcel of that batch.
    pub(crate) fn next_live(&self) -> Option<EventBatch> {
        let mut state = self.state.lock();
        let is_live = match state.waiting.front() {
            Some(waiting) => matches!(waiting.parcel, Parcel::Events(_, BatchReason::Live)),
            None => state.unfolded.is_empty() && state.folded.as_ref().is_some_and(Folded::begins_with_event),
        };
        if !is_live {
            return None;
        }
        let since = state.delivering_since;
        let parcel = state.take();
        state.delivering_since = since;
        if state.is_empty() {
            state.left_out = false;
        }
        drop(state);
        self.wake_applier();
        match parcel {
            Some(Parcel::Events(events, _)) => Some(events),
            _ => None,
        }
    }

    /// Folds a piece, if the handler is behind its bound. Returns true if there is more to fold.
    pub(crate) async fn fold_piece(&self) -> bool {
        let mut dropped = Dropped::default();
        let more_to_fold = self.state.lock().fold(PIECE, &mut dropped);
        dropped.drop_in_pieces().await;
        more_to_fold
    }

    /// Marks the handler as awaiting or blocking inside a call, so that the applier does not wait for it.
    pub(crate) fn awaits(&self) {
        self.state.lock().awaits = true;
        self.wake_applier();
    }

    fn wake_applier(&self) {
        if self.waited_for.load(Ordering::SeqCst) {
            self.attended.notify_waiters();
        }
    }

    /// Waits until the delivering task has been polled since events arrived. There is no limit, because the runtime
    /// polls a woken task at some time. Do not call this for a stream, which is polled only if the program does so.
    pub(crate) async fn polled(&self) {
        self.until(|state| state.delivering_since.is_some() || state.is_attended()).await;
    }

    /// Waits until the handler has taken out all events, or awaits or blocks inside a call.
    ///
    /// Returns at once after [`Mailbox::leave_out`], until the mailbox has been empty.
    pub(crate) async fn attended(&self) {
        self.until(MailboxState::is_attended).await;
    }

    async fn until(&self, condition: impl Fn(&MailboxState) -> bool) {
        // It stays set if this future is dropped: the handler then sends a notification that no task waits for.
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

    /// Returns true if the applier need not wait for the handler, and there is nothing to fold.
    pub(crate) fn is_attended(&self) -> bool {
        let state = self.state.lock();
        state.is_attended() && state.unfolded.is_empty()
    }

    /// Stops waiting for the handler until its mailbox has been empty.
    pub(crate) fn leave_out(&self) {
        let mut state = self.state.lock();
        state.left_out = !state.is_empty();
    }

    /// Returns how many events wait.
    pub(crate) fn len(&self) -> usize {
        let state = self.state.lock();
        state.in_snapshots + state.events + state.folded.as_ref().map_or(0, Folded::len)
    }

    /// Returns how long the oldest undelivered event has waited.
    pub(crate) fn lag(&self) -> Duration {
        let state = self.state.lock();
        let oldest = |waiting: &VecDeque<WaitingParcel>| waiting.front().map(|waiting| waiting.since);
        let folded = || state.folded.as_ref().and_then(Folded::since);
        let since = state.delivering_since.or_else(|| oldest(&state.waiting)).or_else(folded);
        since.or_else(|| oldest(&state.unfolded)).map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Returns how often the mailbox was folded because the handler was too slow.
    pub(crate) fn folds(&self) -> u64 {
        self.state.lock().folds
    }
}

impl MailboxState {
    /// Appends a parcel.
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

    /// Returns true if the applier need not wait for the handler.
    fn is_attended(&self) -> bool {
        self.is_empty() || self.awaits || self.left_out || self.closed
    }

    fn take(&mut self) -> Option<Parcel> {
        if let Some(WaitingParcel { since, parcel, bytes }) = self.waiting.pop_front() {
            self.delivering_since = Some(since);
            self.bytes -= bytes;
            match &parcel {
                Parcel::Events(events, _) => self.events -= events.len(),
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
        self.delivering_since = folded.since();
        let parcel = folded.take();
        if folded.is_empty() && self.unfolded.is_empty() {
            // The handler has caught up: every event is kept again.
            self.folded = None;
        }
        parcel
    }

    /// Begins to keep only the latest state of each object. A snapshot has one entry per object already, and keeps its
    /// position.
    fn begin_folding(&mut self) {
        let is_snapshot = |waiting: &WaitingParcel| matches!(waiting.parcel, Parcel::Replay(_) | Parcel::Resync(_));
        let first = self.waiting.iter().rposition(is_snapshot).map_or(0, |last| last + 1);
        self.unfolded = if first == 0 { std::mem::take(&mut self.waiting) } else { self.waiting.split_off(first) };
        self.bytes = self.waiting.iter().map(|waiting| waiting.bytes).sum();
        self.folded = Some(Folded::new());
    }

    /// Folds up to `most` events. Returns true if there is more to fold. The caller must release the lock before it
    /// drops `dropped`.
    fn fold(&mut self, most: usize, dropped: &mut Dropped) -> bool {
        let Some(folded) = &mut self.folded else { return false };
        let mut left = most;
        while let Some(WaitingParcel { since, parcel, .. }) = self.unfolded.front() {
            match parcel {
                Parcel::Events(events, _) => {
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
                Parcel::Replay(_) | Parcel::Resync(_) => {} // Snapshots come before folding begins.
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

/// Events that were folded into others. Freeing their objects may take long and run user code, so the lock is released
/// first.
#[derive(Default)]
struct Dropped {
    parcels: Vec<WaitingParcel>,
    events: Vec<Event<dyn Object>>,
}

impl Dropped {
    /// Returns true if the events are dropped in pieces, before the next parcel is taken out.
    fn is_long(&self) -> bool {
        self.parcels
            .iter()
            .any(|WaitingParcel { parcel, .. }| matches!(parcel, Parcel::Events(events, _) if events.len() > PIECE))
    }

    async fn drop_in_pieces(self) {
        drop(self.events);
        for WaitingParcel { parcel, .. } in self.parcels {
            if let Parcel::Events(events, _) = parcel {
                drop_in_pieces(events).await;
            }
        }
    }
}

/// Drops the events of a batch, if this is its last owner, and lets other tasks run in between. This may free the last
/// references to a long list of objects.
pub(crate) async fn drop_in_pieces(events: EventBatch) {
    let Some(mut events) = Arc::into_inner(events) else { return };
    while events.len() > PIECE {
        events.truncate(events.len() - PIECE);
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests;
