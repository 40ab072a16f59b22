//! Compares a cache with its server, and asks a server how far it is.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::Instant;

use super::InformerShared;
use super::error::VerifyError;
use crate::object::{Id, Object, ObjectKey, ResourceVersion, Scope, in_scope, is_older};
use crate::reflector::{MOST_PAGES, answered, read_page};
use crate::representation::Identity;
use crate::source::feed::Feed;
use crate::source::{Decoded, ListOptions, SourceError, WatchEvent, WatchOptions};
use crate::store::Snapshot;
use crate::time::after;

/// How long a cache that differs may take to catch up with the list it is compared with.
const CATCH_UP: Duration = Duration::from_secs(5);
/// How long a version may not be reached after a restore before the server is asked whether it ever will be.
pub(super) const DOUBT: Duration = Duration::from_secs(10);
/// How long a cache may take to get to where the server is, before everything is asked for again.
const SOON: Duration = Duration::from_secs(1);
/// How long the watch lasts that shows whether anything changed. A server sends its last bookmark two seconds before the end.
const SHORT_WATCH: Duration = Duration::from_secs(3);
/// How long after one list of everything for this reason the next one may come, if a cache does not get there by itself.
const SELDOM: Duration = Duration::from_secs(30);
/// How many identities are asked for at a time.
const PAGE: usize = 5000;

/// One object that is not the same in the cache and on the server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Difference {
    /// The server has it, the cache does not.
    Missing {
        /// Which one.
        key: ObjectKey,
        /// The server's version of it.
        version: String,
    },
    /// The cache holds another state than the server, or another object of that name.
    Different {
        /// Which one.
        key: ObjectKey,
        /// The version in the cache.
        cached: String,
        /// The server's version.
        version: String,
    },
    /// The cache has it, the server does not.
    Extra {
        /// Which one.
        key: ObjectKey,
        /// The version in the cache.
        cached: String,
    },
}

impl Difference {
    /// Which object.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Missing { key, .. } | Self::Different { key, .. } | Self::Extra { key, .. } => key,
        }
    }
}

/// What can be asked of the source of one scope.
#[derive(Clone)]
pub(super) struct Questions {
    pub(super) scope: Scope,
    pub(super) source: Arc<dyn Feed<dyn Object>>,
    /// How long an answer may bring next to nothing.
    pub(super) deadline: Duration,
}

/// What a server has of one scope.
pub(super) struct Inventory {
    version: Option<ResourceVersion>,
    objects: BTreeMap<ObjectKey, Identity>,
}

impl Questions {
    async fn newest_version(&self) -> Result<Option<ResourceVersion>, SourceError> {
        answered(self.deadline, self.source.newest_version()).await
    }

    /// Returns true if a short watch shows that nothing changed between two versions: its first event is a bookmark of the later version.
    ///
    /// A watch from the first version brings every change, and then a bookmark. That is much cheaper than a list of everything.
    async fn is_unchanged(&self, since: &ResourceVersion, until: &ResourceVersion) -> bool {
        let options = WatchOptions { version: Some(since.clone()), initial_events: false, timeout: SHORT_WATCH };
        let bookmark = async {
            let mut watch = self.source.watch(options).await.ok()?;
            while let Some(Ok(WatchEvent::Bookmark { version, .. })) = watch.next().await {
                if version.is_at_least(until) {
                    return Some(());
                }
            }
            None
        };
        within(SHORT_WATCH, bookmark).await.flatten().is_some()
    }

    async fn inventory(&self) -> Result<Inventory, VerifyError> {
        let mut inventory = Inventory { version: None, objects: BTreeMap::new() };
        let mut options = ListOptions { limit: PAGE, ..ListOptions::default() };
        let mut tokens = HashSet::new();
        loop {
            let list = self.source.list_identities(options.clone());
            let end = read_page(self.deadline, list, |item, _| {
                // An object without a name cannot be compared.
                if let Decoded::Object(object) = item {
                    inventory.objects.insert(object.key.clone(), object);
                }
            })
            .await?;
            inventory.version = inventory.version.or(end.version);
            match end.continue_token {
                None => return Ok(inventory),
                Some(token) if tokens.len() < MOST_PAGES && tokens.insert(token.clone()) => {
                    options.continue_token = Some(token);
                }
                Some(_) => return Err(VerifyError::Incomplete),
            }
        }
    }
}

/// What is not the same in the cache and on the server, twice in a row.
pub(super) async fn verify(informer: &InformerShared) -> Result<Vec<Difference>, VerifyError> {
    let first = differences(informer).await?;
    if first.is_empty() {
        return Ok(first);
    }
    let second = differences(informer).await?;
    // Both are sorted.
    Ok(first.into_iter().filter(|difference| second.binary_search(difference).is_ok()).collect())
}

/// Which version the server is at; `None` if nobody can tell.
pub(super) async fn newest_version(informer: &InformerShared) -> Option<ResourceVersion> {
    let questions = informer.core.questions.lock().first().cloned()?;
    questions.newest_version().await.ok().flatten()
}

/// True once the cache has got to where the server is now; false if everything has to be asked for, since it does not get
/// there, or nobody can tell.
pub(super) async fn is_up_to_date(informer: &InformerShared) -> bool {
    let all = informer.core.questions.lock().clone();
    // A list that could not be read as a whole may be all that a version stands for.
    if informer.core.health().parts.iter().any(|part| part.inconclusive) && may_list(informer) {
        return false;
    }
    for questions in &all {
        let before = informer.core.store.version();
        let Ok(Some(newest)) = questions.newest_version().await else { return false };
        // No server is behind what it has told before, unless it was restored to an older state.
        let Some(before) = before.filter(|before| !newest.is_older_than(before)) else { return false };
        tokio::select! {
            biased;
            reached = informer.reach_version(&newest) => if reached.is_err() { return false },
            unchanged = questions.is_unchanged(&before, &newest) => if !unchanged && !gets_to(informer, &newest).await {
                return false;
            },
        }
    }
    // Nobody can be asked of an informer that has stopped.
    !all.is_empty()
}

/// True once the cache has got to a version; false if it does not soon, and everything has not been asked for lately: a server
/// that fails on writes must not be asked for everything with each of them.
async fn gets_to(informer: &InformerShared, version: &ResourceVersion) -> bool {
    match within(SOON, informer.reach_version(version)).await {
        Some(Ok(())) => return true,
        None => {}
        Some(Err(_)) => return false,
    }
    while !may_list(informer) {
        let Some(listed) = *informer.core.listed_for_latest.lock() else { continue };
        match within(after(listed, SELDOM) - Instant::now(), informer.reach_version(version)).await {
            Some(Ok(())) => return true,
            None => {}
            Some(Err(_)) => return false,
        }
    }
    false
}

/// True if everything has not been asked for lately. Then it is about to be.
fn may_list(informer: &InformerShared) -> bool {
    let mut listed = informer.core.listed_for_latest.lock();
    let now = Instant::now();
    let may = listed.is_none_or(|listed| after(listed, SELDOM) <= now);
    if may {
        *listed = Some(now);
    }
    may
}

/// The outcome of a wait; `None` if it took longer than this.
async fn within<R>(limit: Duration, wait: impl Future<Output = R>) -> Option<R> {
    tokio::time::timeout(limit, wait).await.ok()
}

async fn differences(informer: &InformerShared) -> Result<Vec<Difference>, VerifyError> {
    let mut differences = Vec::new();
    let all = informer.core.questions.lock().clone();
    if informer.is_stopped() {
        return Err(VerifyError::Stopped(informer.core.name.clone()));
    }
    for questions in all {
        // A list is not older than what was known before it was asked for.
        let before = informer.core.store.snapshot();
        let inventory = questions.inventory().await?;
        let mut found = inventory.compare(&questions.scope, &before, &informer.core.store.snapshot());
        if let (false, Some(version)) = (found.is_empty(), &inventory.version) {
            // It may only be behind. A cache that does not catch up is compared as it is.
            let _ = within(CATCH_UP, informer.reach_version(version)).await;
            found = inventory.compare(&questions.scope, &before, &informer.core.store.snapshot());
        }
        differences.append(&mut found);
    }
    differences.sort_unstable();
    Ok(differences)
}

impl Inventory {
    /// What is not the same in a cache that should be at least as new; `before` is what it held before the list was asked
    /// for.
    fn compare(&self, scope: &Scope, before: &Snapshot<dyn Object>, now: &Snapshot<dyn Object>) -> Vec<Difference> {
        // What is newer than the list was made since, unless it was there before the list.
        let since = |id: &Id<'_>| {
            let list = self.version.as_ref().map(ResourceVersion::as_str);
            let newer = list.is_some_and(|list| is_older(list, id.version));
            newer && !before.get(id.key).is_some_and(|before| before.id() == *id)
        };
        let listed = self.objects.values().filter_map(|object| {
            let (key, version) = (object.key.clone(), object.version.clone());
            let Some(cached) = now.get(&object.key) else { return Some(Difference::Missing { key, version }) };
            let same = cached.id() == object.id() || since(&cached.id());
            (!same).then(|| Difference::Different { key, cached: cached.id().version.to_owned(), version })
        });
        let extra = now.iter().map(|object| object.id()).filter(|id| in_scope(scope, id.key)).filter_map(|id| {
            let (key, cached) = (ObjectKey::from(id.key), id.version.to_owned());
            (!self.objects.contains_key(&key) && !since(&id)).then_some(Difference::Extra { key, cached })
        });
        listed.chain(extra).collect()
    }
}
