//! The queue that all handles of all layers share: what it holds, under one lock, and the waiting.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::delayed::{Delayed, Due};
use super::ready::{Added, Ready};
use super::{Key, Priority, QueuePhase, QueueStatus};
use crate::metrics::QueueMetrics;
use crate::time::after;

pub(super) struct Shared<T> {
    name: Option<String>,
    metrics: Option<QueueMetrics>,
    began: Instant,
    state: Mutex<State<T>>,
    /// Something can be taken, or somebody has to look at the time; when all are told, nothing more comes.
    arrived: Notify,
    /// Something is due before what the timekeeper waits for.
    earlier: Notify,
    /// All is done, and the queue is shut down.
    drained: Notify,
}

struct State<T> {
    ready: Ready<T>,
    delayed: Delayed<T>,
    /// Nothing more is taken in, and nothing comes due.
    closed: bool,
    /// One of those who wait sleeps until the next item is due. As long as something is delayed, either this holds, or
    /// nobody waits, or somebody has been told to look.
    timed: bool,
}

impl<T: Key> Shared<T> {
    pub(super) fn new(name: Option<String>) -> Arc<Self> {
        let state = State { ready: Ready::new(), delayed: Delayed::new(), closed: false, timed: false };
        Arc::new(Self {
            metrics: name.as_deref().map(QueueMetrics::new),
            name,
            began: Instant::now(),
            state: Mutex::new(state),
            arrived: Notify::new(),
            earlier: Notify::new(),
            drained: Notify::new(),
        })
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Puts an item in; false if the queue is shut down.
    pub(super) fn add(&self, item: T, priority: Priority) -> bool {
        let mut state = self.look();
        if !state.closed {
            // Only metrics ask how long an item waited.
            let now = self.metrics.as_ref().map_or(self.began, |_| Instant::now());
            self.put(&mut state, item, priority, now);
        }
        !state.closed
    }

    /// Puts an item in for later; false if the queue is shut down.
    pub(super) fn add_after(&self, item: T, delay: Duration, priority: Priority) -> bool {
        let mut state = self.look();
        if !state.closed {
            self.put_after(&mut state, item, delay, priority);
        }
        !state.closed
    }

    /// As [`add_after`](Self::add_after), for an item that its worker still has: once the queue is shut down, it is
    /// kept until somebody asks what is left.
    pub(super) fn retry(&self, item: T, delay: Duration, priority: Priority) {
        let mut state = self.look();
        match state.closed {
            true => state.delayed.insert(item, priority, after(Instant::now(), delay)),
            false => self.put_after(&mut state, item, delay, priority),
        }
    }

    /// The next item, once there is one; `None` once the queue is shut down and none can come.
    pub(super) async fn next(self: &Arc<Self>) -> Option<InHand<T>> {
        // A queue that is never empty must not keep others from running.
        tokio::task::coop::consume_budget().await;
        if let Some(in_hand) = self.take(&mut self.look()) {
            return Some(in_hand);
        }
        let mut timekeeper = None;
        loop {
            // Listened for from before the look. Whoever is told and takes something all the same passes the word on,
            // so that as many are told as there are reasons to look.
            let mut arrived = std::pin::pin!(self.arrived.notified());
            arrived.as_mut().enable();
            let due = {
                let mut state = self.look();
                if let Some(in_hand) = self.take(&mut state) {
                    return Some(in_hand);
                }
                if state.closed && state.ready.depth() == 0 {
                    return None;
                }
                // What is left in a queue that is shut down does not come due.
                let due = if state.closed { None } else { state.delayed.first() };
                if due.is_some() && !state.timed {
                    state.timed = true;
                    timekeeper = Some(Timekeeper { shared: self });
                }
                due
            };
            #[cfg(test)]
            tests::meanwhile();
            match &timekeeper {
                None => arrived.await,
                Some(timekeeper) => tokio::select! {
                    biased;
                    () = arrived => {}
                    () = timekeeper.woken(due) => {}
                },
            }
        }
    }

    /// Takes nothing more in.
    pub(super) fn close(&self) {
        self.look().closed = true;
        self.arrived.notify_waiters();
    }

    /// Waits until nothing waits, no worker has anything, and nothing is taken in.
    pub(super) async fn drained(&self) {
        loop {
            let drained = self.drained.notified();
            {
                let state = self.look();
                if state.closed && state.ready.is_idle() {
                    return;
                }
            }
            drained.await;
        }
    }

    /// Takes out what would have come later, had the queue not been shut down.
    pub(super) fn left(&self) -> Vec<T> {
        self.look().delayed.take_all()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    pub(super) fn len(&self) -> usize {
        self.look().ready.len()
    }

    pub(super) fn status(&self) -> QueueStatus {
        let state = self.look();
        let now = Instant::now();
        self.tell_running(&state, now);
        let phase = match state.closed {
            false => QueuePhase::Open,
            true if state.ready.is_idle() => QueuePhase::Drained,
            true => QueuePhase::ShuttingDown,
        };
        QueueStatus {
            name: self.name.clone(),
            phase,
            waiting: state.ready.len(),
            processing: state.ready.running().len(),
            delayed: state.delayed.len(),
            unfinished: state.ready.running().unfinished(now),
            longest_running: state.ready.running().longest(now),
        }
    }

    /// The state, with everything let in that is due: nobody sees a queue that is behind.
    fn look(&self) -> MutexGuard<'_, State<T>> {
        let mut state = self.state.lock();
        if !state.closed && !state.delayed.is_empty() {
            let now = Instant::now();
            while let Some(Due { item, priority, at }) = state.delayed.pop_due(now) {
                self.put(&mut state, item, priority, at);
            }
        }
        state
    }

    fn put(&self, state: &mut State<T>, item: T, priority: Priority, since: Instant) {
        let added = state.ready.add(item, priority, since);
        if added == Added::Waits {
            self.arrived.notify_one();
        }
        if let Some(metrics) = self.metrics.as_ref().filter(|_| added != Added::Known) {
            metrics.added(state.ready.depth());
        }
    }

    fn put_after(&self, state: &mut State<T>, item: T, delay: Duration, priority: Priority) {
        if let Some(metrics) = &self.metrics {
            metrics.retried();
        }
        let now = Instant::now();
        if delay.is_zero() {
            return self.put(state, item, priority, now);
        }
        let before = state.delayed.first();
        state.delayed.insert(item, priority, after(now, delay));
        if state.delayed.first() != before {
            let somebody = if state.timed { &self.earlier } else { &self.arrived };
            somebody.notify_one();
        }
    }

    fn take(self: &Arc<Self>, state: &mut State<T>) -> Option<InHand<T>> {
        let now = Instant::now();
        let taken = state.ready.take(now)?;
        if let Some(metrics) = &self.metrics {
            metrics.taken(state.ready.depth(), taken.waited);
            self.tell_running(state, now);
        }
        if state.closed && state.ready.depth() == 0 {
            // That was the last, and others may wait for one.
            self.arrived.notify_waiters();
        }
        Some(InHand { shared: self.clone(), item: taken.item, priority: taken.priority, ticket: taken.ticket })
    }

    fn done(&self, item: &T, ticket: u64) {
        let mut state = self.look();
        // Only metrics ask how long it took.
        let now = self.metrics.as_ref().map_or(self.began, |_| Instant::now());
        let done = state.ready.done(item, ticket, now);
        if let Some(metrics) = &self.metrics {
            metrics.done(done.worked);
            self.tell_running(&state, now);
        }
        let drained = state.closed && state.ready.is_idle();
        drop(state);
        if done.waits {
            self.arrived.notify_one();
        }
        if drained {
            self.drained.notify_waiters();
        }
    }

    fn tell_running(&self, state: &State<T>, now: Instant) {
        if let Some(metrics) = &self.metrics {
            metrics.running(state.ready.running().unfinished(now), state.ready.running().longest(now));
        }
    }
}

/// An item that a worker has. Dropping says that it is done.
pub(super) struct InHand<T: Key> {
    shared: Arc<Shared<T>>,
    pub(super) item: T,
    pub(super) priority: Priority,
    ticket: u64,
}

impl<T: Key> InHand<T> {
    /// It is to be done once more, so much later.
    pub(super) fn retry_after(self, delay: Duration) {
        self.shared.retry(self.item.clone(), delay, self.priority);
    }
}

impl<T: Key> Drop for InHand<T> {
    fn drop(&mut self) {
        self.shared.done(&self.item, self.ticket);
    }
}

/// The one of those who wait that sleeps until the next item is due. When it leaves, another one is told to look.
struct Timekeeper<'s, T: Key> {
    shared: &'s Shared<T>,
}

impl<T: Key> Timekeeper<'_, T> {
    /// Waits until then, or until something is due earlier.
    async fn woken(&self, due: Option<Instant>) {
        let time = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.shared.earlier.notified() => {}
            () = time => {}
        }
    }
}

impl<T: Key> Drop for Timekeeper<'_, T> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.timed = false;
        if !state.closed && !state.delayed.is_empty() {
            self.shared.arrived.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
