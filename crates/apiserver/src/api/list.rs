//! Lists and single reads.

mod body;
mod options;
mod page;
mod plan;
mod token;

pub(crate) use body::{ListHead, list_body};
pub(crate) use options::ListQuery;
pub(crate) use page::{Page, page};
pub(crate) use plan::{At, ListPlan, parse_version, plan};
pub(crate) use token::ContinueToken;

use std::sync::Arc;
use std::time::Duration;

use crate::api::selector::ObjectSelector;
use crate::hub::Hub;
use crate::kinds::Resource;
use crate::status::Status;
use crate::storage::key::StoreKey;
use crate::storage::object::StoredObject;

/// For how long a read of a future version waits before it is refused.
pub(crate) const FRESHNESS_WAIT: Duration = Duration::from_secs(3);

/// A page of a list, and its revision.
#[derive(Debug)]
pub(crate) struct ListedObjects {
    pub(crate) revision: u64,
    pub(crate) page: Page,
}

/// Answers a list from the state that its plan names.
pub(crate) async fn list(
    hub: &Hub,
    resource: &Resource,
    selector: &ObjectSelector,
    plan: &ListPlan,
) -> Result<ListedObjects, Status> {
    if let At::NotOlderThan(revision) | At::Exactly(revision) = plan.at {
        wait_until_fresh(hub, revision).await?;
    }
    let (revision, objects) = {
        let mut state = hub.storage.lock();
        let current = state.revision;
        let collection = state.collection_now(resource);
        match plan.at {
            At::Exactly(revision) => (revision, collection.at(revision).map_err(|_| expired(plan))?),
            At::Latest | At::Any | At::NotOlderThan(_) => (current, collection.objects().clone()),
        }
    };
    Ok(ListedObjects { revision, page: page(&objects, selector, plan.start.as_deref(), plan.limit) })
}

/// Reads one object, at least as new as the requested version.
pub(crate) async fn get(
    hub: &Hub,
    resource: &Resource,
    key: &StoreKey,
    resource_version: &str,
) -> Result<Arc<StoredObject>, Status> {
    let revision = parse_version(resource_version).map_err(|invalid| Status::failure(500, "", invalid))?;
    if let Some(revision) = revision {
        wait_until_fresh(hub, revision).await?;
    }
    hub.storage.lock().object(resource, key).ok_or_else(|| Status::not_found(resource, key.name()))
}

/// Waits up to 3 seconds for a future revision.
pub(crate) async fn wait_until_fresh(hub: &Hub, revision: u64) -> Result<(), Status> {
    match tokio::time::timeout(FRESHNESS_WAIT, hub.storage.reached(revision)).await {
        Ok(()) => Ok(()),
        Err(_) => Err(Status::version_too_large(revision, hub.storage.revision())),
    }
}

fn expired(plan: &ListPlan) -> Status {
    let Some(start) = &plan.start else { return Status::list_expired() };
    let message = "The provided continue parameter is too old to display a consistent list result. \
        You can start a new list without the continue parameter, or use the continue token in this response to \
        retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - \
        objects that were created, modified, or deleted between the time the first chunk was returned and now may \
        show up in the list.";
    let mut status = Status::failure(410, "Expired", message);
    status.continue_token = Some(ContinueToken { revision: -1, start: start.clone() }.encode());
    status
}
