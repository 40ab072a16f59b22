//! Whether the informer can know the bookmark interval of its server ("rhythm"). Then it notices a dead connection
//! within minutes, otherwise only after the timeout of the watch.

use kube_embedded_apiserver::{ApiServer, Verb};
use kube_informer::{Health, Object, SharedInformer};
use tokio::time::Instant;

use crate::log;

/// What can be observed of the rhythm from outside, for one informer.
#[derive(Default)]
pub(crate) struct Rhythm {
    /// The last request before the informer was created.
    began: u64,
    /// True if streams synced the informer, false if a list did. `None` before the sync.
    synced_by_stream: Option<bool>,
    /// True once one watch has received several bookmarks.
    heard: bool,
}

/// The number of watches and of lists, and the last contact of each part of the informer with the server.
pub(crate) type Sample = (u64, u64, Vec<Option<Instant>>);

impl Rhythm {
    /// Creates it for an informer that has just been created.
    pub(crate) fn of<T: Object>(informer: &SharedInformer<T>, server: &ApiServer) -> Self {
        let began = server.requests().last().map_or(0, |request| request.id);
        informer.on_error(|error| log::note(|| format!("error: {error}")));
        Self { began, ..Self::default() }
    }

    /// Records the first sync. A sync without a list came from streams that ended with a bookmark.
    pub(crate) fn look(&mut self, is_synced: bool, server: &ApiServer, page_size: Option<usize>) {
        if self.synced_by_stream.is_none() && is_synced {
            // The version request is a list of one object.
            let question = |query: &str| query == "limit=1" && page_size != Some(1);
            let requests = server.requests();
            let mut since = requests.iter().filter(|request| request.id > self.began);
            self.synced_by_stream = Some(!since.any(|request| request.verb == Verb::List && !question(&request.query)));
        }
    }

    /// Forgets the rhythm: new watches follow other namespaces.
    pub(crate) fn forget(&mut self) {
        *self = Self { began: self.began, synced_by_stream: Some(false), heard: false };
    }

    pub(crate) fn sample(health: &Health) -> Sample {
        let contacts = health.parts.iter().map(|part| part.last_contact).collect();
        (health.counts.watches, health.counts.lists.values().sum(), contacts)
    }

    /// Compares samples between which there were no writes and no faults, so that only bookmarks can have arrived. If
    /// the watches are the same, and each part had contact before and after the middle sample, each received two
    /// bookmarks or more.
    pub(crate) fn quiet_between(&mut self, samples: &[Sample; 3]) {
        let [before, middle, after] = samples;
        let same = |left: &Sample, right: &Sample| (left.0, left.1) == (right.0, right.1);
        let all_heard = |left: &Sample, right: &Sample| left.2.iter().zip(&right.2).all(|(left, right)| left < right);
        self.heard |= same(before, after) && all_heard(before, middle) && all_heard(middle, after);
    }

    /// Returns true if the rhythm was observed, or if an initial stream announced bookmarks.
    pub(crate) fn is_known(&self) -> bool {
        self.heard || self.synced_by_stream == Some(true)
    }
}
