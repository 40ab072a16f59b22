//! Calls webhooks: mutating ones before an object is validated, validating ones after, and conversion webhooks before it
//! is stored.
//!
//! `configuration` reads admission webhooks from their configurations and decides which ones a write matches, `review`
//! builds the `AdmissionReview` and reads its response. `conversion` converts custom objects. `client` sends requests.

mod client;
mod configuration;
mod conversion;
mod review;

pub(crate) use conversion::{Converted, complete, convert};

use futures_util::future::join_all;
use parking_lot::Mutex;
use serde_json::Value;
use std::sync::Arc;
use tokio::runtime::Handle;

use crate::hub::Hub;
use crate::kinds::Resource;
use crate::status::Status;
use crate::storage::key::StoreKey;
use configuration::{MUTATING, VALIDATING, Webhook, webhooks};
use review::Review;

/// Lets a write call webhooks. A write does not await, so a thread that may block runs it.
#[derive(Debug, Clone)]
pub(crate) struct Caller(Arc<CallerContext>);

#[derive(Debug)]
struct CallerContext {
    runtime: Handle,
    /// The warnings of webhooks, for the client.
    warnings: Mutex<Vec<String>>,
}

impl PartialEq for Caller {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Caller {}

impl Caller {
    pub(crate) fn new(runtime: Handle) -> Self {
        Self(Arc::new(CallerContext { runtime, warnings: Mutex::default() }))
    }

    /// Takes the warnings of the webhooks that were called.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.0.warnings.lock())
    }

    /// Waits for webhooks on this thread.
    fn wait<T>(&self, calls: impl Future<Output = T>) -> T {
        self.0.runtime.block_on(calls)
    }

    fn warn(&self, warnings: Vec<String>) {
        self.0.warnings.lock().extend(warnings);
    }
}

/// Returns whether a write to this resource may have to call a webhook.
pub(crate) fn are_configured(hub: &Hub, resource: &Resource) -> bool {
    if resource.rules.conversion.is_some() {
        return true;
    }
    let mut state = hub.storage.lock();
    [MUTATING, VALIDATING].into_iter().any(|id| {
        let resource = state.catalog.named(id).cloned();
        resource.is_some_and(|resource| !state.collection(&resource).objects().is_empty())
    })
}

/// A write that webhooks are asked about.
pub(crate) struct Asked<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) resource: &'a Resource,
    pub(crate) key: &'a StoreKey,
    /// The name in the request; empty for deletes of a collection.
    pub(crate) name: &'a str,
    pub(crate) subresource: Option<&'static str>,
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub(crate) operation: &'static str,
    /// The stored object; `None` for a create.
    pub(crate) before: Option<&'a Value>,
    pub(crate) dry_run: bool,
    /// The options of the request.
    pub(crate) options: Value,
}

impl Asked<'_> {
    /// Calls the mutating webhooks one after the other. Each one gets the object with the changes of those before it.
    ///
    /// # Errors
    ///
    /// A webhook refused the write, or it failed and its failure policy is `Fail`.
    pub(crate) fn mutate(&self, caller: &Caller, object: &mut Option<Value>) -> Result<(), Status> {
        let webhooks = webhooks(self.hub, MUTATING);
        // For each webhook that may be called again: the object after its call.
        let mut called: Vec<Option<Option<Value>>> = Vec::new();
        for webhook in &webhooks {
            let shown = self.mutate_by(caller, webhook, object)?;
            called.push(shown.then(|| object.clone()));
        }
        for (webhook, seen) in webhooks.iter().zip(called) {
            if webhook.is_reinvoked && seen.is_some_and(|seen| seen != *object) {
                self.mutate_by(caller, webhook, object)?;
            }
        }
        Ok(())
    }

    /// Calls one mutating webhook, and returns whether the write matched it.
    fn mutate_by(&self, caller: &Caller, webhook: &Webhook, object: &mut Option<Value>) -> Result<bool, Status> {
        let Some(call) = webhook.matches(self, object.as_ref())? else { return Ok(false) };
        let review = Review::new(self, &call, object.as_ref());
        if let Some(patched) = caller.wait(self.ask(caller, webhook, &review, true))? {
            if object.is_none() {
                let name = &webhook.name;
                let why = "attempted to modify the object, which is not supported for this operation";
                return Err(Status::internal(format!("admission webhook {name:?} {why}")));
            }
            *object = Some(review::changed_as(self.resource, patched));
        }
        Ok(true)
    }

    /// Calls all validating webhooks at once.
    ///
    /// # Errors
    ///
    /// The first refusal or failure, in the order of the configurations.
    pub(crate) fn validate(&self, caller: &Caller, object: Option<&Value>) -> Result<(), Status> {
        let webhooks = webhooks(self.hub, VALIDATING);
        let mut calls = Vec::new();
        for webhook in &webhooks {
            if let Some(call) = webhook.matches(self, object)? {
                let review = Review::new(self, &call, object);
                calls.push(async move { self.ask(caller, webhook, &review, false).await.map(drop) });
            }
        }
        if calls.is_empty() { Ok(()) } else { caller.wait(join_all(calls)).into_iter().collect() }
    }

    /// Calls a webhook. Returns the patched object, if the response has a patch.
    async fn ask(
        &self,
        caller: &Caller,
        webhook: &Webhook,
        review: &Review,
        mutates: bool,
    ) -> Result<Option<Value>, Status> {
        let sent = client::post(self.hub, &webhook.client, review.body(), webhook.timeout).await;
        let answer = match sent.and_then(|body| review.read(&body, mutates)) {
            Ok(answer) => answer,
            Err(why) if webhook.fails_open => {
                tracing::warn!(webhook = webhook.name, error = why, "webhook failed, and its failure policy is Ignore");
                return Ok(None);
            }
            Err(why) => return Err(webhook.failed(&why)),
        };
        caller.warn(answer.warnings);
        if let Some(refusal) = answer.refusal {
            return Err(review::denied(&webhook.name, refusal));
        }
        answer.patch.map(|patch| review.patched(&patch)).transpose()
    }
}
