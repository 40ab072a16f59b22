//! How far each scope of a collection has come.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::fast::RandomState;

use crate::lock::Mutex;
use crate::object::{KeyRef, ObjectKey, ResourceVersion, Scope};
use crate::queue::ListMark;

/// How far the scope of one reflector has come.
#[derive(Debug, Default)]
struct ScopeProgress {
    scope: Scope,
    /// The store has every change up to this version.
    version: Option<ResourceVersion>,
    /// The newest version that left the queue.
    seen: Option<ResourceVersion>,
    /// True if `seen` has changed since the last settled batch.
    unsettled: bool,
    /// True once a list was applied.
    listed: bool,
    /// The number of the last relist request that is answered.
    relists: u64,
}

/// How far all scopes of an informer have come: one entry for all namespaces, or one for each selected namespace.
///
/// The cost of a change does not depend on the number of namespaces.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The entry of an informer that follows all namespaces.
    all: Option<ScopeProgress>,
    namespaces: HashMap<Arc<str>, ScopeProgress, RandomState>,
    /// The scopes with changes since the last settled batch.
    unsettled: Vec<Scope>,
    /// The lowest version of all scopes; `None` if it must be computed again.
    lowest: Option<Option<ResourceVersion>>,
    /// How many scopes have not been listed.
    unlisted: usize,
    /// The number of the last relist request that every scope has answered.
    relists: u64,
}

impl Parts {
    pub(super) fn new(scopes: impl IntoIterator<Item = Scope>) -> Self {
        let mut parts = Self::default();
        scopes.into_iter().for_each(|scope| parts.add(scope));
        parts
    }

    /// Adds a scope, which is not listed yet.
    pub(super) fn add(&mut self, scope: Scope) {
        self.remove(&scope);
        let progress = ScopeProgress { scope: scope.clone(), relists: self.relists, ..ScopeProgress::default() };
        match scope {
            None => self.all = Some(progress),
            Some(namespace) => drop(self.namespaces.insert(namespace, progress)),
        }
        self.unlisted += 1;
        self.lowest = None;
    }

    /// Removes a scope. Changes of its objects that arrive later are ignored.
    pub(super) fn remove(&mut self, scope: &Scope) {
        let removed = match scope {
            None => self.all.take(),
            Some(namespace) => self.namespaces.remove(namespace),
        };
        if let Some(removed) = removed {
            self.unlisted -= usize::from(!removed.listed);
            self.lowest = None;
            self.count_relists();
        }
    }

    /// Returns the progress of the scope that objects of a namespace belong to; `None` if it is not selected.
    fn of(&mut self, namespace: Option<&str>) -> Option<&mut ScopeProgress> {
        match &mut self.all {
            Some(all) => Some(all),
            None => self.namespaces.get_mut(namespace?),
        }
    }

    /// Returns the progress of exactly this scope.
    fn exactly(&mut self, scope: &Scope) -> Option<&mut ScopeProgress> {
        match scope {
            None => self.all.as_mut(),
            Some(namespace) => self.namespaces.get_mut(namespace),
        }
    }

    /// Returns true if objects of a namespace are selected.
    pub(super) fn selects(&self, namespace: Option<&str>) -> bool {
        self.all.is_some() || namespace.is_some_and(|namespace| self.namespaces.contains_key(namespace))
    }

    /// Returns true if the scope of these objects was listed; `None` if it is not selected.
    pub(super) fn is_listed(&mut self, namespace: Option<&str>) -> Option<bool> {
        self.of(namespace).map(|part| part.listed)
    }

    /// Returns true if every scope was listed.
    pub(super) fn all_listed(&self) -> bool {
        self.unlisted == 0
    }

    /// Returns the number of the last relist request that every scope has answered.
    pub(super) fn relists(&self) -> u64 {
        // Without a scope nothing is left to list.
        let none = self.all.is_none() && self.namespaces.is_empty();
        if none { u64::MAX } else { self.relists }
    }

    /// Records the version of a change that left the queue.
    pub(super) fn saw(&mut self, namespace: Option<&str>, version: Option<ResourceVersion>) {
        let unsettled = self.of(namespace).and_then(|part| {
            advance(&mut part.seen, version);
            (!std::mem::replace(&mut part.unsettled, true)).then(|| part.scope.clone())
        });
        self.unsettled.extend(unsettled);
    }

    /// Advances the version of a scope.
    pub(super) fn reached(&mut self, scope: &Scope, version: ResourceVersion) {
        let part = match scope {
            None => self.all.as_mut(),
            Some(namespace) => self.namespaces.get_mut(namespace),
        };
        if let Some(part) = part {
            // The lowest version changes only if the scope that has it moves.
            if self.lowest.as_ref() == Some(&part.version) {
                self.lowest = None;
            }
            advance(&mut part.version, Some(version));
        }
    }

    /// Advances the scopes with changes: no older change waits in the queue.
    pub(super) fn settle(&mut self) {
        let mut unsettled = std::mem::take(&mut self.unsettled);
        for scope in unsettled.drain(..) {
            let Some(part) = self.exactly(&scope) else { continue };
            part.unsettled = false;
            // A list without a version has no known order, so that changes since then may be missing.
            if let (Some(_), Some(seen)) = (&part.version, part.seen.clone()) {
                self.reached(&scope, seen);
            }
        }
        self.unsettled = unsettled; // Its memory is reused.
    }

    /// Sets the version of a scope to that of its list. Returns true if this is its first list, and `None` if the scope
    /// is not selected.
    pub(super) fn begin_list(&mut self, mark: &ListMark) -> Option<bool> {
        let part = self.exactly(&mark.scope)?;
        part.version = mark.version.clone();
        part.seen = None;
        let first = !part.listed;
        self.lowest = None;
        Some(first)
    }

    /// Records that a list is complete.
    pub(super) fn listed(&mut self, mark: &ListMark) {
        let Some(part) = self.exactly(&mark.scope) else { return };
        let first = !std::mem::replace(&mut part.listed, true);
        part.version = mark.version.clone();
        part.relists = part.relists.max(mark.request);
        match mark.version {
            None => part.seen = None,
            // Newer changes may have left the queue before the end of the list did.
            Some(_) => self.saw(mark.scope.as_deref(), mark.version.clone()),
        }
        self.unlisted -= usize::from(first);
        self.lowest = None;
        self.count_relists();
    }

    /// Forgets the versions of a scope: the API server was restored to an older state.
    pub(super) fn restart(&mut self, scope: &Scope) {
        if let Some(part) = self.exactly(scope) {
            (part.version, part.seen) = (None, None);
        }
        self.lowest = None;
    }

    fn count_relists(&mut self) {
        let all = self.all.iter().chain(self.namespaces.values());
        self.relists = all.map(|part| part.relists).min().unwrap_or(self.relists);
    }

    /// Returns the lowest version of all scopes: the store has every change up to that version.
    pub(super) fn lowest_version(&mut self) -> Option<ResourceVersion> {
        if let Some(all) = &self.all {
            return all.version.clone();
        }
        let namespaces = &self.namespaces;
        self.lowest
            .get_or_insert_with(|| lowest(namespaces.values().map(|part| part.version.as_ref())).cloned())
            .clone()
    }
}

/// Returns the lowest of some versions, or `None` if one of them is unknown.
fn lowest<'v>(mut versions: impl Iterator<Item = Option<&'v ResourceVersion>>) -> Option<&'v ResourceVersion> {
    let first = versions.next()??;
    versions.try_fold(first, |lowest, version| {
        let version = version?;
        Some(if version.is_older_than(lowest) { version } else { lowest })
    })
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

/// Advances a version. It never goes back.
fn advance(version: &mut Option<ResourceVersion>, to: Option<ResourceVersion>) {
    let Some(to) = to else { return };
    if !version.as_ref().is_some_and(|known| to.is_older_than(known)) {
        *version = Some(to);
    }
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
