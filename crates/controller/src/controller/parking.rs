//! Keys whose last writes the caches have not seen yet.

use std::collections::HashMap;
use std::time::Duration;

use foldhash::fast::RandomState;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use kube_informer::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::writes::Seen;
use crate::queue::{Item, Priority, WorkQueue};

/// Keys that are not to be reconciled yet. Each is there once, since what is parked is not reconciled.
pub(super) struct Parking {
    keys: Mutex<HashMap<ObjectKey, Parked, RandomState>>,
    arrivals: mpsc::UnboundedSender<Arrival>,
}

struct Parked {
    /// What it was reconciled with.
    priority: Priority,
    /// Somebody wanted it meanwhile.
    wanted: Option<Priority>,
    /// All went well, and nobody has it tried again.
    settled: bool,
}

type Arrival = (ObjectKey, BoxFuture<'static, Seen>);

/// How a cache failed to show a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotSeen {
    /// The write deadline has passed.
    InTime,
    /// The cache has passed the version of the write.
    AtAll,
}

/// Lets keys go when their time has come.
pub(super) struct Keeper {
    arrivals: mpsc::UnboundedReceiver<Arrival>,
}

impl Parking {
    /// As many arrivals wait as there are workers: each brings one key at a time.
    pub(super) fn new() -> (Self, Keeper) {
        let (sender, arrivals) = mpsc::unbounded_channel();
        (Self { keys: Mutex::default(), arrivals: sender }, Keeper { arrivals })
    }

    /// Keeps a key until this future ends. If all went well, what is remembered of its failures goes when it is let go.
    pub(super) fn park(&self, item: &Item<ObjectKey>, settled: bool, until: BoxFuture<'static, Seen>) {
        let key = ObjectKey::clone(item);
        self.keys.lock().insert(key.clone(), Parked { priority: item.priority(), wanted: None, settled });
        // Without a keeper nothing is handed out any more.
        let _ = self.arrivals.send((key, until));
    }

    /// True if the key is parked: then it comes again when it is let go.
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
    /// Lets each key go when its writes have been seen, or when that takes too long. Calls `not_seen` for the latter, and for writes that
    /// the cache has passed without showing them.
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
                        Ok(Seen::Missing) => not_seen(&key, NotSeen::AtAll),
                        Ok(Seen::AsWritten | Seen::Otherwise) => {}
                    }
                    let as_written = seen == Ok(Seen::AsWritten);
                    let Some(Parked { priority, wanted, settled }) = parking.leave(&key) else { continue };
                    if as_written && settled {
                        queue.forget(&key);
                    }
                    if let Some(wanted) = wanted {
                        queue.add_with(key, wanted);
                    } else if !as_written && settled {
                        // Not at once: a cache may never show what was written, say because it selects something else.
                        queue.add_rate_limited_with(key, priority);
                    }
                }
            }
        }
    }
}
