//! How far each scope of a collection has come.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::lock::Mutex;
use crate::object::{KeyRef, ObjectKey, ResourceVersion, Scope};

/// How far the scope of one reflector has come.
#[derive(Debug, Default)]
pub(super) struct ScopeProgress {
    pub(super) scope: Scope,
    /// The store has every change up to this version.
    pub(super) version: Option<ResourceVersion>,
    /// The newest version that left the queue.
    pub(super) seen: Option<ResourceVersion>,
    /// True once a list was applied.
    pub(super) listed: bool,
    /// The number of the last relist request that is answered.
    pub(super) relists: u64,
}

/// The keys of objects that were cached before the API server was restored to an older state. Their versions are
/// invalid, and their states are not reused. A clone is another handle.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outdated(Arc<OutdatedKeys>);

#[derive(Debug, Default)]
struct OutdatedKeys {
    /// Read with each change, and therefore outside the lock.
    any: AtomicBool,
    /// Only the applier changes this set. It prepares a long change on a copy, and holds the lock only to swap the copy
    /// in.
    keys: Mutex<Arc<HashSet<ObjectKey>>>,
}

impl Outdated {
    /// Returns true if the cached state of an object is outdated.
    pub(crate) fn contains(&self, key: KeyRef<'_>) -> bool {
        self.0.any.load(Ordering::Relaxed) && self.0.keys.lock().contains(&ObjectKey::from(key))
    }

    /// Marks the cached state of an object as current, and returns true if it was outdated.
    pub(super) fn remove(&self, key: KeyRef<'_>) -> bool {
        if !self.0.any.load(Ordering::Relaxed) {
            return false;
        }
        let mut keys = self.0.keys.lock();
        let removed = Arc::make_mut(&mut keys).remove(&ObjectKey::from(key));
        self.0.any.store(!keys.is_empty(), Ordering::Relaxed);
        removed
    }

    /// Adds keys.
    pub(super) fn extend(&self, mut more: HashSet<ObjectKey>) {
        let before = self.0.keys.lock().clone();
        more.extend(before.iter().cloned());
        self.swap(more);
    }

    /// Keeps the keys for which `stays` returns true. No lock is held while it runs.
    pub(super) fn retain(&self, mut stays: impl FnMut(&ObjectKey) -> bool) {
        if self.0.any.load(Ordering::Relaxed) {
            let before = self.0.keys.lock().clone();
            self.swap(before.iter().filter(|key| stays(key)).cloned().collect());
        }
    }

    fn swap(&self, keys: HashSet<ObjectKey>) {
        let any = !keys.is_empty();
        let replaced = std::mem::replace(&mut *self.0.keys.lock(), Arc::new(keys));
        self.0.any.store(any, Ordering::Relaxed);
        drop(replaced); // Outside the lock: freeing many keys may take long.
    }
}

/// Returns the scope that objects of this namespace belong to.
pub(super) fn part_of<'p>(parts: &'p mut [ScopeProgress], namespace: Option<&str>) -> Option<&'p mut ScopeProgress> {
    parts.iter_mut().find(|part| part.scope.is_none() || part.scope.as_deref() == namespace)
}

/// Advances a version. It never goes back.
pub(super) fn advance(version: &mut Option<ResourceVersion>, to: Option<ResourceVersion>) {
    let Some(to) = to else { return };
    if !version.as_ref().is_some_and(|known| to.is_older_than(known)) {
        *version = Some(to);
    }
}

/// Returns the lowest version of all scopes: the store has every change up to that version.
pub(super) fn lowest_version(parts: &[ScopeProgress]) -> Option<ResourceVersion> {
    let mut versions = parts.iter().map(|part| part.version.as_ref());
    let first = versions.next()??;
    let lowest = versions.try_fold(first, |lowest, version| {
        let version = version?;
        Some(if version.is_older_than(lowest) { version } else { lowest })
    });
    lowest.cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> ObjectKey {
        KeyRef::new("web", &number.to_string()).into()
    }

    #[test]
    fn no_lock_is_held_while_outdated_keys_are_checked() {
        let outdated = Outdated::default();
        outdated.extend((0..10).map(key).collect());
        outdated.retain(|key| outdated.0.keys.try_lock().is_some() && key.name() == "3");
        assert!(outdated.contains((&key(3)).into()));
        assert!(!outdated.contains((&key(4)).into()));
        assert!(outdated.remove((&key(3)).into()));
        assert!(!outdated.0.any.load(Ordering::Relaxed));
    }
}
