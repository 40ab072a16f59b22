//! The controllers: the leader writes a plan for each backup and reports invalid ones, and every replica counts the
//! backups of each schedule.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use kube_client::api::{Patch, PatchParams};
use kube_client::core::{ApiResource, DynamicObject};
use kube_client::{Api, Client, Resource as _};
use kube_controller::condition::condition;
use kube_controller::controller::{BoxError, Outcome};
use kube_controller::{Action, EventRecorder, EventType, Request};
use kube_informer::{Index, SharedInformer, Undecodable};
use serde_json::json;

use crate::backup::Backup;
use crate::connect;

pub const MANAGER: &str = "guarded-operator";

/// What a reconcile needs.
pub struct Context {
    pub client: Client,
    pub plans: SharedInformer<ConfigMap>,
    pub recorder: EventRecorder,
}

/// The outcomes of all reconciles. A program with a metrics library has a counter here.
#[derive(Default)]
pub struct Outcomes {
    pub succeeded: AtomicU64,
    pub failed: AtomicU64,
}

impl Outcomes {
    pub fn count(&self, outcome: &Outcome) {
        let counter = if outcome.result.is_ok() { &self.succeeded } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes the plan of a backup, on the leader.
pub async fn write_plan(request: Request<Backup>, context: Arc<Context>) -> Result<Action, BoxError> {
    if let Some(invalid) = request.invalid() {
        return report(&request, &context, invalid).await;
    }
    // The owner reference deletes the plan of a deleted backup.
    let Some(backup) = request.object() else { return Ok(Action::await_change()) };
    let plans = Api::namespaced(context.client.clone(), request.key().namespace().unwrap_or_default());
    let mut plan = ConfigMap::default();
    plan.metadata.name = backup.metadata.name.clone();
    plan.metadata.owner_references = backup.controller_owner_ref(&()).map(|owner| vec![owner]);
    let (schedule, keep) = (backup.spec.schedule.clone(), backup.spec.keep.to_string());
    plan.data = Some(BTreeMap::from([("schedule".to_owned(), schedule), ("keep".to_owned(), keep)]));
    request.apply(&context.plans, &plans, MANAGER, &plan).await?;
    patch_condition(&request, &context, true, "Planned", "the plan is current").await?;
    Ok(Action::await_change())
}

/// Reports an invalid spec where its author looks: in an Event and a condition of the object.
async fn report(request: &Request<Backup>, context: &Context, invalid: &Undecodable) -> Result<Action, BoxError> {
    let (key, resource) = (request.key(), ApiResource::erase::<Backup>(&()));
    let about = ObjectReference {
        api_version: Some(resource.api_version),
        kind: Some(resource.kind),
        namespace: key.namespace().map(str::to_owned),
        name: Some(key.name().to_owned()),
        uid: invalid.uid.clone(),
        ..ObjectReference::default()
    };
    context.recorder.record(&about, EventType::Warning, "InvalidSpec", "Decode", &invalid.error);
    patch_condition(request, context, false, "InvalidSpec", &invalid.error).await?;
    say!("{key} is invalid: {invalid}");
    Ok(Action::await_change())
}

/// Writes the condition without decoding the object, which may be invalid.
async fn patch_condition(
    request: &Request<Backup>,
    context: &Context,
    ready: bool,
    reason: &str,
    message: &str,
) -> Result<(), kube_client::Error> {
    let resource = ApiResource::erase::<Backup>(&());
    let namespace = request.key().namespace().unwrap_or_default();
    let api = Api::<DynamicObject>::namespaced_with(context.client.clone(), namespace, &resource);
    let now = api.get(request.key().name()).await?;
    let known = &now.data["status"]["conditions"][0];
    if known["reason"] == reason && known["message"] == message {
        return Ok(()); // Only a change is written, and so the transition time stays.
    }
    let patch = Patch::Merge(json!({"status": {"conditions": [condition(&now, "Ready", ready, reason, message)]}}));
    api.patch_status(request.key().name(), &PatchParams::default(), &patch).await.map(drop)
}

/// Reads the index that the webhook uses, on every replica.
pub async fn observe(request: Request<Backup>, by_schedule: Arc<Index<Backup>>) -> Result<Action, BoxError> {
    if let Some(backup) = request.object() {
        let count = by_schedule.count(&backup.spec.schedule);
        say!("{} of the valid backups run at {:?}", count, backup.spec.schedule);
    }
    Ok(Action::await_change())
}
