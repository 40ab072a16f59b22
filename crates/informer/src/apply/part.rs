//! How far each part of a collection has come.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::object::{KeyRef, ObjectKey, ResourceVersion, Scope};

/// What is known of the part of a collection that one reflector follows.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) scope: Scope,
    /// The store reflects every change up to this version.
    pub(super) version: Option<ResourceVersion>,
    /// The newest version that came out of the queue.
    pub(super) seen: Option<ResourceVersion>,
    /// True once a list was applied in full.
    pub(super) listed: bool,
    /// The last request for a relist that has been answered.
    pub(super) relists: u64,
}

/// What is known from before the server was restored to an older state: its versions mean nothing, and none of it is reused.
/// Cloning gives another handle to the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outdated(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Read with each change, and therefore without the lock.
    any: AtomicBool,
    keys: Mutex<HashSet<ObjectKey>>,
}

impl Outdated {
    /// True if what is known of an object is outdated.
    pub(crate) fn contains(&self, key: KeyRef<'_>) -> bool {
        self.0.any.load(Ordering::Relaxed) && self.0.keys.lock().contains(&ObjectKey::from(key))
    }

    /// True if what is known of an object is outdated; it no longer is.
    pub(super) fn remove(&self, key: KeyRef<'_>) -> bool {
        self.0.any.load(Ordering::Relaxed) && self.change(|keys| keys.remove(&ObjectKey::from(key)))
    }

    /// Adds more.
    pub(super) fn extend(&self, more: HashSet<ObjectKey>) {
        self.change(|keys| if keys.is_empty() { *keys = more } else { keys.extend(more) });
    }

    /// Keeps those of which it is said.
    pub(super) fn retain(&self, stays: impl FnMut(&ObjectKey) -> bool) {
        if self.0.any.load(Ordering::Relaxed) {
            self.change(|keys| keys.retain(stays));
        }
    }

    fn change<R>(&self, change: impl FnOnce(&mut HashSet<ObjectKey>) -> R) -> R {
        let mut keys = self.0.keys.lock();
        let outcome = change(&mut keys);
        self.0.any.store(!keys.is_empty(), Ordering::Relaxed);
        outcome
    }
}

/// The part that objects of a namespace belong to.
pub(super) fn part_of<'p>(parts: &'p mut [Part], namespace: Option<&str>) -> Option<&'p mut Part> {
    parts.iter_mut().find(|part| part.scope.is_none() || part.scope.as_deref() == namespace)
}

/// Moves a version on; it never goes back.
pub(super) fn advance(version: &mut Option<ResourceVersion>, to: Option<ResourceVersion>) {
    let Some(to) = to else { return };
    if !version.as_ref().is_some_and(|known| to.is_older_than(known)) {
        *version = Some(to);
    }
}

/// The store reflects everything up to the lowest version of its parts.
pub(super) fn lowest_version(parts: &[Part]) -> Option<ResourceVersion> {
    let mut versions = parts.iter().map(|part| part.version.as_ref());
    let first = versions.next()??;
    let lowest = versions.try_fold(first, |lowest, version| {
        let version = version?;
        Some(if version.is_older_than(lowest) { version } else { lowest })
    });
    lowest.cloned()
}
