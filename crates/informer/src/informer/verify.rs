//! Compares a cache with its server.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;

use super::error::VerifyError;
use crate::object::{Object, ObjectKey, ResourceVersion, compare_versions};
use crate::queue::{Scope, in_scope};
use crate::source::{Decoded, Identity, ListOptions, ListPart, ListWatch};
use crate::store::Snapshot;

/// How many identities are asked for at a time.
const PAGE: usize = 5000;

/// One object that is not the same in the cache and on the server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// The server has it, the cache does not.
    Missing {
        /// Which one.
        key: ObjectKey,
        /// The server's version of it.
        version: String,
    },
    /// The cache holds an older state, or another object of that name.
    Stale {
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

/// What a server has of one scope.
pub(super) struct Inventory {
    scope: Scope,
    pub(super) version: Option<ResourceVersion>,
    objects: BTreeMap<ObjectKey, Identity>,
}

/// Asks a server what it has, whatever the type of the source.
pub(super) type TakeInventory = Arc<dyn Fn() -> BoxFuture<'static, Result<Inventory, VerifyError>> + Send + Sync>;

pub(super) fn take_inventory<T: Object, L: ListWatch<T>>(source: Arc<L>, scope: Scope) -> TakeInventory {
    Arc::new(move || {
        let (source, scope) = (source.clone(), scope.clone());
        Box::pin(async move {
            let mut inventory = Inventory { scope, version: None, objects: BTreeMap::new() };
            let mut options = ListOptions { limit: PAGE, ..ListOptions::default() };
            loop {
                let mut items = source.list_identities(options.clone()).await?;
                let end = loop {
                    match items.next().await.ok_or(VerifyError::Incomplete)?? {
                        ListPart::Item(Decoded::Object(object)) => {
                            inventory.objects.insert(object.key.clone(), Arc::unwrap_or_clone(object));
                        }
                        // What has no name cannot be compared.
                        ListPart::Item(Decoded::Bad(_)) => {}
                        ListPart::End(end) => break end,
                    }
                };
                inventory.version = inventory.version.or(end.version);
                match end.continue_token {
                    Some(token) if options.continue_token.as_ref() != Some(&token) => {
                        options.continue_token = Some(token)
                    }
                    Some(_) => return Err(VerifyError::Incomplete),
                    None => return Ok(inventory),
                }
            }
        })
    })
}

impl Inventory {
    /// What is not the same in a cache that should be at least as new.
    pub(super) fn compare<T: Object>(&self, cache: &Snapshot<T>) -> Vec<Difference> {
        let older = |left: &str, right: &str| compare_versions(left, right).is_some_and(std::cmp::Ordering::is_lt);
        let listed = self.objects.values().filter_map(|object| {
            let (key, version) = (object.key.clone(), object.version.clone());
            match cache.get(&object.key) {
                None => Some(Difference::Missing { key, version }),
                Some(cached) if older(cached.id().version, &version) => {
                    Some(Difference::Stale { key, cached: cached.id().version.to_owned(), version })
                }
                Some(_) => None,
            }
        });
        // What is newer than the list may have been made since.
        let since = |version: &str| self.version.as_ref().is_some_and(|list| older(list.as_str(), version));
        let extra = cache.iter().filter(|object| in_scope(&self.scope, object.id().key)).filter_map(|object| {
            let (key, cached) = (ObjectKey::from(object.id().key), object.id().version.to_owned());
            (!self.objects.contains_key(&key) && !since(&cached)).then_some(Difference::Extra { key, cached })
        });
        listed.chain(extra).collect()
    }
}
