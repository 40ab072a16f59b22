//! Whether the informer can know how often its server sends bookmarks: then it notices within minutes that a connection is
//! dead, and otherwise only when the watch should have ended.

use kube_embedded_apiserver::{ApiServer, Verb};
use kube_informer::{Health, Object, SharedInformer};
use tokio::time::Instant;

use crate::log;

/// What can be seen of it from outside, for one informer.
#[derive(Default)]
pub(crate) struct Rhythm {
    /// The last request before the informer began.
    began: u64,
    /// How it got synced; `None` if it is not.
    synced_by_stream: Option<bool>,
    /// True once several bookmarks came in one watch.
    heard: bool,
}

/// How many watches and lists there were, and when each part of the informer last heard of the server.
pub(crate) type Sample = (u64, u64, Vec<Option<Instant>>);

impl Rhythm {
    /// That of an informer that has just been made.
    pub(crate) fn of<T: Object>(informer: &SharedInformer<T>, server: &ApiServer) -> Self {
        let began = server.requests().last().map_or(0, |request| request.id);
        informer.on_error(|error| log::note(|| format!("error: {error}")));
        Self { began, ..Self::default() }
    }

    /// Takes note of the first sync: one without a list was by streams that ended with their bookmarks.
    pub(crate) fn look(&mut self, is_synced: bool, server: &ApiServer, page_size: Option<usize>) {
        if self.synced_by_stream.is_none() && is_synced {
            // The question how far the server is looks like a list of one.
            let question = |query: &str| query == "limit=1" && page_size != Some(1);
            let requests = server.requests();
            let mut since = requests.iter().filter(|request| request.id > self.began);
            self.synced_by_stream = Some(!since.any(|request| request.verb == Verb::List && !question(&request.query)));
        }
    }

    pub(crate) fn sample(health: &Health) -> Sample {
        let contacts = health.parts.iter().map(|part| part.last_contact).collect();
        (health.counts.watches, health.counts.lists.values().sum(), contacts)
    }

    /// Nothing was written, and nothing went wrong, between these samples. What came in between, on the same watches all the
    /// while, were bookmarks: two at least, if each part heard something before and behind the one in the middle.
    pub(crate) fn quiet_between(&mut self, samples: &[Sample; 3]) {
        let [before, middle, after] = samples;
        let same = |left: &Sample, right: &Sample| (left.0, left.1) == (right.0, right.1);
        let all_heard = |left: &Sample, right: &Sample| left.2.iter().zip(&right.2).all(|(left, right)| left < right);
        self.heard |= same(before, after) && all_heard(before, middle) && all_heard(middle, after);
    }

    /// True if the rhythm was heard; or is expected, as after each initial stream.
    pub(crate) fn is_known(&self) -> bool {
        self.heard || self.synced_by_stream == Some(true)
    }
}
