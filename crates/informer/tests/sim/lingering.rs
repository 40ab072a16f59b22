//! Each object that is deleted lingers for a minute.

use std::collections::BTreeSet;
use std::time::Duration;

use kube_informer::{Object, SharedInformer};
use tokio::time::Instant;

/// How long deleted objects linger.
pub(crate) const LINGERS: Duration = Duration::from_secs(60);

/// The uids in the cache when it was last checked, while no namespace is given up.
pub(crate) struct Departed {
    at: Instant,
    uids: BTreeSet<String>,
}

impl Departed {
    pub(crate) fn new() -> Self {
        Self { at: Instant::now(), uids: BTreeSet::new() }
    }

    /// Checks that each object that left the cache since the last check lingers, unless its time is over.
    pub(crate) fn check<T: Object>(&mut self, informer: &SharedInformer<T>) {
        let now = informer.store().snapshot().iter().map(|object| object.id().uid.to_owned()).collect();
        let before = std::mem::replace(&mut self.uids, now);
        let since = std::mem::replace(&mut self.at, Instant::now());
        if since.elapsed() < LINGERS {
            for uid in before.difference(&self.uids) {
                assert!(informer.lingering().by_uid(uid).is_some(), "{uid} left the cache and does not linger");
            }
        }
    }
}

/// Waits until nothing lingers any more. Nothing else happens meanwhile.
pub(crate) async fn end<T: Object>(informer: &SharedInformer<T>) {
    tokio::time::sleep(LINGERS + Duration::from_secs(1)).await;
    assert_eq!(informer.lingering().len(), 0, "objects linger for too long");
}
