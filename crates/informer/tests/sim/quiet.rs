//! After the last fault the cache must become correct in time, stay correct, and mark what it cannot know.

use std::collections::BTreeSet;
use std::time::Duration;

use kube_informer::ObjectKey;
use tokio::time::Instant;

use crate::oracle::{Truth, handle_difference, index_difference};
use crate::subject::Subject;
use crate::world::World;
use crate::{faults, log};

/// The time in which the cache must be correct after the last fault, if the bookmark interval is known. A silent watch
/// lasts up to two and a half minutes. Then follow two delays of up to a minute each, and a list.
const RECOVERY: Duration = Duration::from_secs(300);
/// The same if the bookmark interval is unknown: a silent watch lasts up to ten minutes.
const SLOW_RECOVERY: Duration = Duration::from_secs(900);
/// An informer that receives events must not be wrong for longer than this.
const WRONG_THOUGH_FRESH: Duration = Duration::from_secs(180);
const SLOWLY_WRONG: Duration = Duration::from_secs(660);
const FRESH: Duration = Duration::from_secs(10);

impl<T: Subject> World<T> {
    /// Ends the faults, and waits until the cache is correct, within the time limit.
    pub(crate) async fn calm_down(&mut self) {
        // After an inconclusive list the informer lists again within ten minutes.
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
            // A part that reports an error knows that its cache may be wrong.
            let no_errors = health.parts.iter().all(|part| part.last_error.is_none());
            let fresh = health.is_watching() && health.is_fresh(FRESH) && no_errors;
            let wrong = fresh && start.elapsed() > wrong && self.cache_difference(&truth).is_some();
            assert!(!wrong, "wrong although fresh: {difference}\n{health:#?}");
            assert!(start.elapsed() < recovery, "not recovered: {difference}\n{health:#?}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        log::note(|| "recovered".to_owned());
        // Handlers may still receive the last changes. After that they must receive nothing, and the cache must stay
        // correct.
        tokio::time::sleep(SLOW_RECOVERY).await;
        let changes = self.changes();
        tokio::time::sleep(Duration::from_secs(1500)).await;
        assert_eq!(self.difference(&truth), None);
        assert_eq!(self.changes(), changes, "a handler received an event although nothing changed");
        self.check_members();
        self.check_marks(&truth).await;
    }

    /// Checks that every marked object is undecodable on the server, or was named by an inserted line. After a relist
    /// only undecodable objects on the server are marked.
    async fn check_marks(&self, truth: &Truth) {
        let inserted = faults::INSERTED.map(|key| key.parse::<ObjectKey>().unwrap());
        let marked = self.informer.health().undecodable;
        let unexpected = |key: &&ObjectKey| !truth.unreadable().contains(*key) && !inserted.contains(key);
        assert_eq!(marked.keys().find(unexpected), None, "marked {marked:?}");
        let found = self.informer.verify().await.unwrap();
        assert!(found.iter().all(|found| marked.contains_key(found.key())), "verify found {found:?}");
        self.informer.relist().within(RECOVERY).await.unwrap();
        let marked: BTreeSet<ObjectKey> = self.informer.health().undecodable.into_keys().collect();
        assert_eq!(
            marked,
            *truth.unreadable(),
            "the objects that are marked after a relist are those that are undecodable on the server"
        );
        let found = self.informer.verify().await.unwrap();
        assert!(found.iter().all(|found| marked.contains(found.key())), "verify found {found:?}");
    }

    /// Returns the first difference of the cache, an index or a handler.
    pub(crate) fn difference(&self, truth: &Truth) -> Option<String> {
        self.cache_difference(truth).or_else(|| self.members_differ())
    }

    /// Returns the first difference between the cache and the server.
    pub(crate) fn cache_difference(&self, truth: &Truth) -> Option<String> {
        if !self.informer.health().is_ready() {
            return Some("not synced".to_owned());
        }
        let cache = self.informer.store().snapshot();
        let data_differs = || {
            truth.readable().iter().find_map(|(key, there)| {
                let here = serde_json::to_value(cache.get(key)?.data()).unwrap();
                (here != there["data"]).then(|| format!("{key}: cache {here}, server {}", there["data"]))
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
