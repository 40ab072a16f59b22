//! The queue that all handles of all layers share: the items, under one lock, and the code that waits for them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::delayed::{Delayed, Due};
use super::ready::{Added, Ready};
use super::{Key, Priority, QueuePhase, QueueStatus};
use crate::metrics::QueueMetrics;
use kube_informer::internal::after;

pub(super) struct SharedQueue<T> {
    name: Option<String>,
    metrics: Option<QueueMetrics>,
    began: Instant,
    state: Mutex<QueueState<T>>,
    /// Wakes one waiter in `next`: an item can be taken, or a waiter must become the timekeeper. Wakes all waiters when
    /// the queue is closed, or when the last item of a closed queue was taken.
    arrived: Notify,
    /// Wakes the timekeeper: an item is due earlier than the one that it waits for.
    earlier: Notify,
    /// Wakes all waiters in `drained`: the queue is closed, and all items are done.
    drained: Notify,
}

struct QueueState<T> {
    ready: Ready<T>,
    delayed: Delayed<T>,
    /// True once the queue is shut down: it accepts no items, and delayed items do not become due.
    closed: bool,
    /// True while one waiter, the timekeeper, sleeps until the next item is due. While an item is delayed, one of these
    /// holds: this flag is set, no caller waits, or a waiter has been woken and will look at the queue.
    timed: bool,
}

impl<T: Key> SharedQueue<T> {
    pub(super) fn new(name: Option<String>) -> Arc<Self> {
        let state = QueueState { ready: Ready::new(), delayed: Delayed::new(), closed: false, timed: false };
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

    /// Adds an item. Returns false if the queue is shut down.
    pub(super) fn add(&self, item: T, priority: Priority) -> bool {
        let mut state = self.look();
        if !state.closed {
            // Only metrics need to know how long an item waited.
            let now = self.metrics.as_ref().map_or(self.began, |_| Instant::now());
            self.put(&mut state, item, priority, now);
        }
        !state.closed
    }

    /// Adds an item after a delay. Returns false if the queue is shut down.
    pub(super) fn add_after(&self, item: T, delay: Duration, priority: Priority) -> bool {
        let mut state = self.look();
        if !state.closed {
            self.put_after(&mut state, item, delay, priority);
        }
        !state.closed
    }

    /// Adds an item after a delay, as [`add_after`](Self::add_after) does, for an item that a worker still has. A queue
    /// that is shut down keeps the item until [`left`](Self::left) is called.
    pub(super) fn retry(&self, item: T, delay: Duration, priority: Priority) {
        let mut state = self.look();
        match state.closed {
            true => state.delayed.insert(item, priority, after(Instant::now(), delay)),
            false => self.put_after(&mut state, item, delay, priority),
        }
    }

    /// Waits for the next item and takes it. Returns `None` once the queue is shut down and has no more items.
    pub(super) async fn next(self: &Arc<Self>) -> Option<ItemGuard<T>> {
        // A queue that is never empty must not keep other tasks from running.
        tokio::task::coop::consume_budget().await;
        if let Some(in_progress) = self.take(&mut self.look()) {
            return Some(in_progress);
        }
        let mut timekeeper = None;
        loop {
            // Enabled before the queue is looked at, so that no notification is lost in between. If this future was
            // notified and then takes an item without waiting, its drop passes the notification on to another waiter.
            let mut arrived = std::pin::pin!(self.arrived.notified());
            arrived.as_mut().enable();
            let due = {
                let mut state = self.look();
                if let Some(in_progress) = self.take(&mut state) {
                    return Some(in_progress);
                }
                if state.closed && state.ready.depth() == 0 {
                    return None;
                }
                // Delayed items of a queue that is shut down do not become due.
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

    /// Shuts the queue down.
    pub(super) fn close(&self) {
        self.look().closed = true;
        self.arrived.notify_waiters();
    }

    /// Waits until the queue is shut down, no item waits, and no worker has an item.
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

    /// Removes and returns the delayed items.
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

    /// Locks the state, and adds all delayed items that are due. So every caller sees a queue that is up to date.
    fn look(&self) -> MutexGuard<'_, QueueState<T>> {
        let mut state = self.state.lock();
        if !state.closed && !state.delayed.is_empty() {
            let now = Instant::now();
            while let Some(Due { item, priority, at }) = state.delayed.pop_due(now) {
                self.put(&mut state, item, priority, at);
            }
        }
        state
    }

    fn put(&self, state: &mut QueueState<T>, item: T, priority: Priority, since: Instant) {
        let added = state.ready.add(item, priority, since);
        if added == Added::Waits {
            self.arrived.notify_one();
        }
        if let Some(metrics) = self.metrics.as_ref().filter(|_| added != Added::Known) {
            metrics.added(state.ready.depth());
        }
    }

    fn put_after(&self, state: &mut QueueState<T>, item: T, delay: Duration, priority: Priority) {
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

    fn take(self: &Arc<Self>, state: &mut QueueState<T>) -> Option<ItemGuard<T>> {
        let now = Instant::now();
        let taken = state.ready.take(now)?;
        if let Some(metrics) = &self.metrics {
            metrics.taken(state.ready.depth(), taken.waited);
            self.tell_running(state, now);
        }
        if state.closed && state.ready.depth() == 0 {
            // That was the last item, and other workers may still wait for one.
            self.arrived.notify_waiters();
        }
        Some(ItemGuard { shared: self.clone(), item: taken.item, priority: taken.priority, ticket: taken.ticket })
    }

    fn done(&self, item: &T, ticket: u64) {
        let mut state = self.look();
        // Only metrics need to know how long the worker had the item.
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

    fn tell_running(&self, state: &QueueState<T>, now: Instant) {
        if let Some(metrics) = &self.metrics {
            metrics.running(state.ready.running().unfinished(now), state.ready.running().longest(now));
        }
    }
}

/// An item that a worker has. Dropping it marks the item as done.
pub(super) struct ItemGuard<T: Key> {
    shared: Arc<SharedQueue<T>>,
    pub(super) item: T,
    pub(super) priority: Priority,
    ticket: u64,
}

impl<T: Key> ItemGuard<T> {
    /// Marks the item as done, and adds it again after a delay.
    pub(super) fn retry_after(self, delay: Duration) {
        self.shared.retry(self.item.clone(), delay, self.priority);
    }
}

impl<T: Key> Drop for ItemGuard<T> {
    fn drop(&mut self) {
        self.shared.done(&self.item, self.ticket);
    }
}

/// The waiter that sleeps until the next item is due. When it is dropped, it wakes another waiter to take its place.
struct Timekeeper<'s, T: Key> {
    shared: &'s SharedQueue<T>,
}

impl<T: Key> Timekeeper<'_, T> {
    /// Waits until this time, or until an item is due earlier.
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
