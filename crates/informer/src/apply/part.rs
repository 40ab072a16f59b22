//! How far each part of a collection has come.

use std::collections::HashSet;

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
    /// What is known from before the server was restored to an older state: its versions mean nothing.
    pub(super) outdated: HashSet<ObjectKey>,
    /// The last request for a relist that has been answered.
    pub(super) relists: u64,
}

impl Part {
    /// True if what is known of an object is outdated; it no longer is.
    pub(super) fn replaces_outdated(&mut self, key: KeyRef<'_>) -> bool {
        !self.outdated.is_empty() && self.outdated.remove(&ObjectKey::from(key))
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
