//! Keys that wait until the caches show the last writes for them.

use std::collections::HashMap;
use std::time::Duration;

use foldhash::fast::RandomState;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kube_informer::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::writes::WriteSeen;
use crate::queue::{Item, Priority, WorkQueue};

/// Keys that must not be reconciled yet. Each key is there once, because a parked key is not reconciled.
pub(super) struct Parking {
    keys: Mutex<HashMap<ObjectKey, Parked, RandomState>>,
    arrivals: mpsc::UnboundedSender<Arrival>,
}

struct Parked {
    /// The priority with which the key was reconciled.
    priority: Priority,
    /// The highest priority with which the key was added meanwhile, if it was.
    wanted: Option<Priority>,
    /// True if the reconcile succeeded or failed for good, so that it is not tried again.
    settled: bool,
}

type Arrival = (ObjectKey, BoxFuture<'static, WriteSeen>);

/// How a cache failed to show a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotSeen {
    /// The write deadline has passed.
    InTime,
    /// The cache has passed the version of the write.
    AtAll,
}

/// Releases parked keys.
pub(super) struct Keeper {
    arrivals: mpsc::UnboundedReceiver<Arrival>,
}

impl Parking {
    /// Makes an empty parking, and its keeper. The channel holds at most as many arrivals as there are workers, because
    /// each worker parks one key at a time.
    pub(super) fn new() -> (Self, Keeper) {
        let (sender, arrivals) = mpsc::unbounded_channel();
        (Self { keys: Mutex::default(), arrivals: sender }, Keeper { arrivals })
    }

    /// Parks a key until this future ends. When the key is released, its failures are forgotten if it is settled and
    /// the caches show its writes.
    pub(super) fn park(&self, item: &Item<ObjectKey>, settled: bool, until: BoxFuture<'static, WriteSeen>) {
        let key = ObjectKey::clone(item);
        self.keys.lock().insert(key.clone(), Parked { priority: item.priority(), wanted: None, settled });
        // Sending fails only if the keeper has ended. Then the run ends, too.
        let _ = self.arrivals.send((key, until));
    }

    /// Returns true if the key is parked. Then it is added to the queue again when it is released.
    pub(super) fn defers(&self, item: &Item<ObjectKey>) -> bool {
        let mut keys = self.keys.lock();
        let Some(parked) = keys.get_mut(&**item) else { return false };
        parked.wanted = parked.wanted.max(Some(item.priority()));
        true
    }

    pub(super) fn len(&self) -> usize {
        self.keys.lock().len()
    }

    fn leave(&self, key: &ObjectKey) -> Option<Parked> {
        self.keys.lock().remove(key)
    }
}

impl Keeper {
    /// Releases each key when the caches show its writes, or when that takes longer than the limit. Calls `not_seen` if
    /// it takes longer, and if the cache has passed the version of a write without showing it.
    pub(super) async fn run(
        mut self,
        parking: &Parking,
        queue: &WorkQueue<ObjectKey>,
        limit: Duration,
        not_seen: impl Fn(&ObjectKey, NotSeen),
    ) {
        let mut waiting = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                arrival = self.arrivals.recv() => {
                    let Some((key, until)) = arrival else { return };
                    waiting.push(tokio::time::timeout(limit, until).map(move |seen| (key, seen)));
                }
                Some((key, seen)) = waiting.next() => {
                    match seen {
                        Err(_) => not_seen(&key, NotSeen::InTime),
                        Ok(WriteSeen::Missing) => not_seen(&key, NotSeen::AtAll),
                        Ok(WriteSeen::AsWritten | WriteSeen::OutcomeUnknown) => {}
                    }
                    let as_written = seen == Ok(WriteSeen::AsWritten);
                    let Some(Parked { priority, wanted, settled }) = parking.leave(&key) else { continue };
                    if as_written && settled {
                        queue.forget(&key);
                    }
                    if let Some(wanted) = wanted {
                        queue.add_with(key, wanted);
                    } else if !as_written && settled {
                        // Not at once: a cache may never show the written object, for example if it selects others.
                        queue.add_rate_limited_with(key, priority);
                    }
                }
            }
        }
    }
}
