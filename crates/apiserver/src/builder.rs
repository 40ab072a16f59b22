//! Configures a server.

use jiff::Timestamp;
use serde_json::{Value, json};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::chance::Chance;
use crate::clock::Clock;
use crate::collection::HistoryLimits;
use crate::crd::{DEFINITIONS, definition_of};
use crate::fault::Faults;
use crate::hub::{Hub, Settings};
use crate::resource::{Catalog, Resource};
use crate::server::ApiServer;
use crate::storage::Storage;
use crate::write::{WriteOptions, create};

/// The namespaces every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
/// What the clock of a seeded server shows when it starts: 2026-01-01T00:00:00Z.
const SEEDED_START: i64 = 1_767_225_600;

/// Configures an [`ApiServer`].
#[derive(Debug, Clone)]
#[must_use]
pub struct ApiServerBuilder {
    seed: Option<u64>,
    limits: HistoryLimits,
    settings: Settings,
    custom: Vec<Resource>,
}

impl Default for ApiServerBuilder {
    fn default() -> Self {
        let widgets =
            Resource::custom("demo.example.com", "v1", "widgets", "Widget").scalable().selectable("spec.size");
        Self {
            seed: None,
            limits: HistoryLimits { max_events: 10_000, max_age: None },
            settings: Settings {
                minor_version: 37,
                bookmark_interval: Duration::from_secs(60),
                token: None,
                streaming_lists: true,
                max_watch_lag: None,
                compressed_watches: true,
                settle_delay: Duration::from_millis(100),
            },
            custom: vec![widgets],
        }
    }
}

impl ApiServerBuilder {
    /// Draws all chance from this seed: uids, generated names, the first revision, timeouts and faults. The clock starts
    /// at a fixed time. Two servers with one seed that are asked the same give the same answers.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// How often a watch that takes bookmarks gets one: 60 seconds unless set.
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.settings.bookmark_interval = interval;
        self
    }

    /// Refuses requests that do not carry this bearer token, except for health and version.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.settings.token = Some(token.into());
        self
    }

    /// How many events each resource remembers: 10,000 unless set. Watches from before them are told 410.
    pub fn history(mut self, max_events: usize) -> Self {
        self.limits.max_events = max_events;
        self
    }

    /// How long events are remembered: for ever, within [`history`](Self::history), unless set.
    pub fn history_age(mut self, max_age: Duration) -> Self {
        self.limits.max_age = Some(max_age);
        self
    }

    /// Behaves like Kubernetes 1.`minor` in what clients notice most: whether watches begin with initial events (1.32
    /// and since 1.34), whether those are compressed (since 1.37), and how bookmarks look (since 1.34). 37 unless set.
    pub fn emulate(mut self, minor: u32) -> Self {
        self.settings.minor_version = minor;
        self.settings.streaming_lists = minor == 32 || minor >= 34;
        self.settings.compressed_watches = minor >= 37;
        self
    }

    /// Whether a watch may ask for initial events (`sendInitialEvents`), as servers before 1.34 refuse to: yes unless set.
    pub fn streaming_lists(mut self, enabled: bool) -> Self {
        self.settings.streaming_lists = enabled;
        self
    }

    /// Whether watches with initial events are compressed for clients that accept gzip, each event as a member of its
    /// own, as servers do since 1.37: yes unless set.
    pub fn compressed_watches(mut self, enabled: bool) -> Self {
        self.settings.compressed_watches = enabled;
        self
    }

    /// Closes a watch that leaves more than so many events unread, not counting those from before it was opened. Unless
    /// set, it is closed when its place in the history is gone. Either is on the record of faults as `slow_watch`.
    pub fn max_watch_lag(mut self, events: usize) -> Self {
        self.settings.max_watch_lag = Some(events);
        self
    }

    /// How long after an answer the server empties a deleted namespace or opens a new resource: 100 ms unless set.
    /// What the process itself deletes and creates takes effect at once.
    pub fn settle_delay(mut self, delay: Duration) -> Self {
        self.settings.settle_delay = delay;
        self
    }

    /// Offers one more custom resource beside `widgets.demo.example.com`.
    pub fn with_custom_resource(mut self, resource: Resource) -> Self {
        self.custom.push(resource);
        self
    }

    /// Makes the server. Inside a runtime with a paused clock, time in objects follows that clock.
    #[must_use]
    pub fn build(self) -> ApiServer {
        let seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one("seed"));
        let chance = Chance::new(seed);
        let now = Timestamp::now();
        let (start, base) = match self.seed {
            Some(_) => (Timestamp::from_second(SEEDED_START).unwrap_or(now), chance.within(1_000..1_000_000)),
            // Far above any revision of an earlier server, so that stale versions are too old and never in the future.
            None => (now, u64::try_from(now.as_millisecond()).unwrap_or(1)),
        };
        let storage = Storage::new(base, Catalog::built_in(), self.limits);
        let hub = Hub::new(storage, chance, Clock::starting_at(start), Faults::new(seed), self.settings);
        NAMESPACES.iter().for_each(|name| put(&hub, "namespaces", json!({"metadata": {"name": name}})));
        self.custom.iter().for_each(|resource| put(&hub, DEFINITIONS, definition_of(resource)));
        ApiServer::from_hub(hub)
    }
}

/// Creates an object every server starts with.
fn put(hub: &Hub, resource: &str, object: Value) {
    let resource = hub.storage.lock().catalog.named(resource).cloned();
    // A name that is there twice, or a definition that is none, leaves the first one as it is.
    if let Some(resource) = resource
        && let Err(status) = create(hub, &resource, None, object, WriteOptions::HOST)
    {
        tracing::warn!(%status, "cannot create what the server was to start with");
    }
}
