//! After the last fault: the cache must become right in time, stay right, and know what it does not know.

use std::collections::BTreeSet;
use std::time::Duration;

use kube_informer::ObjectKey;
use tokio::time::Instant;

use crate::oracle::{Truth, handle_difference, index_difference};
use crate::subject::Subject;
use crate::world::World;
use crate::{faults, log};

/// Faults are over: within this time the cache must be right, where the rhythm of bookmarks is known. Silence is believed for
/// two and a half minutes; then come two delays of up to a minute, and a list.
const RECOVERY: Duration = Duration::from_secs(300);
/// Where it is not known, a watch that has fallen silent lasts up to ten minutes.
const SLOW_RECOVERY: Duration = Duration::from_secs(900);
/// An informer that hears from its server must not be wrong for longer than this.
const WRONG_THOUGH_FRESH: Duration = Duration::from_secs(180);
const SLOWLY_WRONG: Duration = Duration::from_secs(660);
const FRESH: Duration = Duration::from_secs(10);

impl<T: Subject> World<T> {
    /// No more faults: waits until the cache is right, for as long as it may take at most.
    pub(crate) async fn calm_down(&mut self) {
        // A list that could not be read in full says so, and is asked for again after ten minutes at most.
        let inconclusive = self.informer.health().parts.iter().any(|part| part.inconclusive);
        let known = self.rhythm.is_known() && !inconclusive;
        log::note(|| {
            format!("no more faults; the server is at {}, rhythm known: {known}", self.plan.server.revision())
        });
        self.plan.server.faults().clear();
        let (recovery, wrong) = if known { (RECOVERY, WRONG_THOUGH_FRESH) } else { (SLOW_RECOVERY, SLOWLY_WRONG) };
        let (start, truth) = (Instant::now(), self.truth());
        while let Some(difference) = self.difference(&truth) {
            let health = self.informer.health();
            // One that has just said what went wrong knows that it is not right.
            let no_errors = health.parts.iter().all(|part| part.last_error.is_none());
            let fresh = health.is_watching() && health.is_fresh(FRESH) && no_errors;
            let wrong = fresh && start.elapsed() > wrong && self.cache_difference(&truth).is_some();
            assert!(!wrong, "wrong though fresh: {difference}\n{health:#?}");
            assert!(start.elapsed() < recovery, "not recovered: {difference}\n{health:#?}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        log::note(|| "recovered".to_owned());
        // What came and went in the end may still be told; after that nothing, and what is right must stay right.
        tokio::time::sleep(SLOW_RECOVERY).await;
        let changes = self.changes();
        tokio::time::sleep(Duration::from_secs(1500)).await;
        assert_eq!(self.difference(&truth), None);
        assert_eq!(self.changes(), changes, "told of a change though nothing changed");
        self.check_members();
        self.check_marks(&truth).await;
    }

    /// What is marked as unreadable is unreadable on the server, or a line that nobody could read said so; and after a relist
    /// only what is unreadable on the server is.
    async fn check_marks(&self, truth: &Truth) {
        let inserted = faults::INSERTED.map(|key| key.parse::<ObjectKey>().unwrap());
        let marked = self.informer.health().undecodable;
        let unexpected = |key: &&ObjectKey| !truth.unreadable().contains(*key) && !inserted.contains(key);
        assert_eq!(marked.keys().find(unexpected), None, "marked {marked:?}");
        let found = self.informer.verify().await.unwrap();
        assert!(found.iter().all(|found| marked.contains_key(found.key())), "verify found {found:?}");
        self.informer.relist().within(RECOVERY).await.unwrap();
        let marked: BTreeSet<ObjectKey> = self.informer.health().undecodable.into_keys().collect();
        assert_eq!(marked, *truth.unreadable(), "marked after a relist, and unreadable on the server");
        let found = self.informer.verify().await.unwrap();
        assert!(found.iter().all(|found| marked.contains(found.key())), "verify found {found:?}");
    }

    /// The first thing that is not as it should be.
    pub(crate) fn difference(&self, truth: &Truth) -> Option<String> {
        self.cache_difference(truth).or_else(|| self.members_differ())
    }

    /// The first thing in the cache that is not as it should be.
    pub(crate) fn cache_difference(&self, truth: &Truth) -> Option<String> {
        if !self.informer.health().is_ready() {
            return Some("not synced".to_owned());
        }
        let cache = self.informer.store().snapshot();
        let data_differs = || {
            truth.readable().iter().find_map(|(key, there)| {
                let here = serde_json::to_value(cache.get(key)?.data()).unwrap();
                (here != there["data"]).then(|| format!("{key}: here {here}, there {}", there["data"]))
            })
        };
        let index_differs = || {
            let values = |object: &T| object.label("l").map(ToOwned::to_owned).into_iter().collect();
            let index = self.by_label.as_ref()?;
            index_difference(&cache, index, values).or_else(|| handle_difference(&cache, index))
        };
        let marked = self.informer.health().undecodable;
        truth.difference(&cache, &marked).or_else(data_differs).or_else(index_differs)
    }
}
