//! A cache of recently decoded objects.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;

use crate::lock::Mutex;

/// The limit of its memory in bytes, as estimated.
const BYTES: usize = 16 * 1024 * 1024;
/// An estimate of how many times larger a decoded object is than its JSON.
const LARGER: usize = 6;

/// Recently decoded objects by number, in two halves. An object that is read moves to the young half. When that is
/// full, it becomes the old half, and the objects of the old half are dropped.
pub(super) struct RecentlyDecoded<K> {
    numbers: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    halves: Mutex<Halves<K>>,
}

struct Halves<K> {
    young: HashMap<u64, RecentEntry<K>, RandomState>,
    old: HashMap<u64, RecentEntry<K>, RandomState>,
    /// How many bytes the young half takes.
    bytes: usize,
}

struct RecentEntry<K> {
    object: Arc<K>,
    bytes: usize,
}

impl<K> Default for RecentlyDecoded<K> {
    fn default() -> Self {
        let halves = Halves { young: HashMap::default(), old: HashMap::default(), bytes: 0 };
        Self {
            numbers: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            halves: Mutex::new(halves),
        }
    }
}

impl<K> RecentlyDecoded<K> {
    /// Returns a number that no other object has.
    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn get(&self, number: u64) -> Option<Arc<K>> {
        let mut halves = self.halves.lock();
        if let Some(entry) = halves.young.get(&number) {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Some(entry.object.clone());
        }
        let Some(entry) = halves.old.remove(&number) else {
            self.misses.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        self.hits.fetch_add(1, Ordering::Relaxed);
        let object = entry.object.clone();
        let gone = halves.insert(number, entry);
        drop(halves);
        drop(gone); // Outside the lock: these may be many objects.
        Some(object)
    }

    /// Keeps an object that was decoded from this many bytes of JSON.
    pub(super) fn put(&self, number: u64, object: Arc<K>, json: usize) {
        let gone = self.halves.lock().insert(number, RecentEntry { object, bytes: size_of::<K>() + json * LARGER });
        drop(gone);
    }

    pub(super) fn figures(&self) -> Vec<(&'static str, f64)> {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed) as f64;
        vec![("decoded_hits", count(&self.hits)), ("decoded_misses", count(&self.misses))]
    }
}

impl<K> Halves<K> {
    /// Inserts an object, and returns the objects to drop. An object that does not fit into a half is not kept: it
    /// would displace all others.
    fn insert(&mut self, number: u64, entry: RecentEntry<K>) -> HashMap<u64, RecentEntry<K>, RandomState> {
        let mut gone = HashMap::default();
        if entry.bytes > BYTES / 2 {
            return gone;
        }
        if self.bytes + entry.bytes > BYTES / 2 {
            self.bytes = 0;
            gone = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
        }
        self.bytes += entry.bytes;
        if let Some(same) = self.young.insert(number, entry) {
            self.bytes -= same.bytes;
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many bytes all objects take, as estimated.
    fn held(decoded: &RecentlyDecoded<usize>) -> usize {
        let halves = decoded.halves.lock();
        halves.young.values().chain(halves.old.values()).map(|entry| entry.bytes).sum()
    }

    #[test]
    fn the_cache_never_exceeds_its_limit() {
        let decoded = RecentlyDecoded::default();
        for number in 0..1000 {
            let bytes = (number * 7919) % (BYTES / 2);
            decoded.put(number as u64, Arc::new(number), bytes / LARGER);
            decoded.get(number as u64 / 2);
            assert!(held(&decoded) <= BYTES, "{} bytes after {number}", held(&decoded));
        }
        assert!(decoded.get(999).is_some() && held(&decoded) > BYTES / 4);
    }

    #[test]
    fn an_object_that_is_too_large_is_not_kept_and_displaces_nothing() {
        let decoded = RecentlyDecoded::default();
        decoded.put(1, Arc::new(1), 100);
        decoded.put(2, Arc::new(2), BYTES);
        assert_eq!((decoded.get(2), decoded.get(1)), (None, Some(Arc::new(1))));
        assert_eq!(held(&decoded), size_of::<usize>() + 100 * LARGER);
    }
}
