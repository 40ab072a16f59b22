//! Compares a cache with the API server, and requests the current version of the API server.

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

/// How long a cache with differences may take to reach the version of the list.
const CATCH_UP: Duration = Duration::from_secs(5);
/// How long a version may stay unreached after a restore, before the API server is asked for its current version.
pub(super) const DOUBT: Duration = Duration::from_secs(10);
/// How long a cache may take to reach the current version of the API server, before the informer lists again.
const SOON: Duration = Duration::from_secs(1);
/// The timeout of the watch that shows whether anything changed. The API server sends its last bookmark two seconds
/// before the end.
const SHORT_WATCH: Duration = Duration::from_secs(3);
/// The shortest time between two lists for this reason.
const SELDOM: Duration = Duration::from_secs(30);
/// How many identities are requested per page.
const PAGE: usize = 5000;

/// A difference between the cache and the API server in one object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Difference {
    /// The API server has the object, the cache does not.
    Missing {
        /// The key.
        key: ObjectKey,
        /// The version on the API server.
        version: String,
    },
    /// The cache holds another state than the API server, or another object of that name.
    Different {
        /// The key.
        key: ObjectKey,
        /// The version in the cache.
        cached: String,
        /// The version on the API server.
        version: String,
    },
    /// The cache has the object, the API server does not.
    Extra {
        /// The key.
        key: ObjectKey,
        /// The version in the cache.
        cached: String,
    },
}

impl Difference {
    /// Returns the key of the object.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Missing { key, .. } | Self::Different { key, .. } | Self::Extra { key, .. } => key,
        }
    }
}

/// The requests about the current state that the source of one scope supports.
#[derive(Clone)]
pub(super) struct Questions {
    pub(super) scope: Scope,
    pub(super) source: Arc<dyn Feed<dyn Object>>,
    /// How long too little data may arrive before the request fails.
    pub(super) deadline: Duration,
}

/// The identities of all objects that the API server has in one scope.
pub(super) struct Inventory {
    version: Option<ResourceVersion>,
    objects: BTreeMap<ObjectKey, Identity>,
}

impl Questions {
    async fn newest_version(&self) -> Result<Option<ResourceVersion>, SourceError> {
        answered(self.deadline, self.source.newest_version()).await
    }

    /// Returns true if a short watch shows that nothing changed between two versions: its first event is a bookmark of
    /// the later version.
    ///
    /// A watch from the first version sends every change and then a bookmark. That is much cheaper than a list.
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

/// Returns the differences between the cache and the API server that two comparisons in a row found.
pub(super) async fn verify(informer: &InformerShared) -> Result<Vec<Difference>, VerifyError> {
    let first = differences(informer).await?;
    if first.is_empty() {
        return Ok(first);
    }
    let second = differences(informer).await?;
    // Both lists are sorted.
    Ok(first.into_iter().filter(|difference| second.binary_search(difference).is_ok()).collect())
}

/// Returns the current version of the API server; `None` if the API server does not return one.
pub(super) async fn newest_version(informer: &InformerShared) -> Option<ResourceVersion> {
    let questions = informer.core.scopes.first_question()?;
    questions.newest_version().await.ok().flatten()
}

/// Returns true once the cache has the current version of the API server. Returns false if the informer must list
/// again: the cache does not reach the version, or the version is unknown.
pub(super) async fn is_up_to_date(informer: &InformerShared) -> bool {
    let all = informer.core.scopes.questions();
    // A list may lack an object whose key could not be decoded, whatever its version is.
    if informer.core.health().parts.iter().any(|part| part.inconclusive) && may_list(informer) {
        return false;
    }
    for questions in &all {
        let before = informer.core.store.version();
        let Ok(Some(newest)) = questions.newest_version().await else { return false };
        // The API server never returns an older version than before, unless it was restored to an older state.
        let Some(before) = before.filter(|before| !newest.is_older_than(before)) else { return false };
        tokio::select! {
            biased;
            reached = informer.reach_version(&newest) => if reached.is_err() { return false },
            unchanged = questions.is_unchanged(&before, &newest) => if !unchanged && !gets_to(informer, &newest).await {
                return false;
            },
        }
    }
    // An informer that has stopped has no sources.
    !all.is_empty()
}

/// Returns true once the cache has reached a version, and false if the caller must list again. Such lists are limited,
/// because a server that fails on writes would otherwise receive a list after each failed write.
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

/// Returns true if no list for this reason was made recently, and records that the caller makes one.
fn may_list(informer: &InformerShared) -> bool {
    let mut listed = informer.core.listed_for_latest.lock();
    let now = Instant::now();
    let may = listed.is_none_or(|listed| after(listed, SELDOM) <= now);
    if may {
        *listed = Some(now);
    }
    may
}

/// Returns the output of a future, or `None` if it takes longer than this.
async fn within<R>(limit: Duration, wait: impl Future<Output = R>) -> Option<R> {
    tokio::time::timeout(limit, wait).await.ok()
}

async fn differences(informer: &InformerShared) -> Result<Vec<Difference>, VerifyError> {
    let mut differences = Vec::new();
    let all = informer.core.scopes.questions();
    if informer.is_stopped() {
        return Err(VerifyError::Stopped(informer.core.name.clone()));
    }
    for questions in all {
        // The list is not older than this snapshot.
        let before = informer.core.store.snapshot();
        let inventory = match questions.inventory().await {
            Err(VerifyError::List(error))
                if error.has_code(&[404]) && informer.core.health().absent_since().is_some() =>
            {
                Inventory { version: None, objects: BTreeMap::new() }
            }
            inventory => inventory?,
        };
        let mut found = inventory.compare(&questions.scope, &before, &informer.core.store.snapshot());
        if let (false, Some(version)) = (found.is_empty(), &inventory.version) {
            // The cache may only lag. A cache that does not catch up is compared as it is.
            let _ = within(CATCH_UP, informer.reach_version(version)).await;
            found = inventory.compare(&questions.scope, &before, &informer.core.store.snapshot());
        }
        differences.append(&mut found);
    }
    differences.sort_unstable();
    Ok(differences)
}

impl Inventory {
    /// Returns the differences between the API server and a cache that should be at least as new. `before` is the
    /// content of the cache before the list was requested.
    fn compare(&self, scope: &Scope, before: &Snapshot<dyn Object>, now: &Snapshot<dyn Object>) -> Vec<Difference> {
        // A state that is newer than the list was made after it, unless the cache held it before.
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
