//! What the server does to an object between receiving and storing it: it sets its own fields, keeps immutable fields,
//! and refuses invalid objects.

use kube_field_manager::keep_times;
use parking_lot::MutexGuard;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

use super::marks::wrong_marks;
use super::metadata::{bump_generation, finalizers, keep_identity, keep_member, keep_place, metadata_mut, seal};
use super::ownership::track;
use super::pool::pool;
use super::receive::formed;
use super::{Subresource, Trust, WriteFailure, WriteOptions};
use crate::api::crd;
use crate::api::webhook::{self, Asked, Caller, Converted};
use crate::hub::Hub;
use crate::hub::admission::Admission;
use crate::kinds::Resource;
use crate::kinds::rules::defaults::fill_defaults;
use crate::kinds::rules::service::{ServicePool, allocate};
use crate::kinds::rules::strategy;
use crate::kinds::rules::validation::{self, Cause};
use crate::message::verb::Verb;
use crate::status::{Status, StatusCause};
use crate::storage::key::StoreKey;
use crate::storage::object::{Draft, WriteKind};

/// The maximum size of an object in kube-apiserver's storage, in bytes.
const LARGEST: usize = 1536 * 1024;

/// Whether field managers are still to be recorded, or an apply has recorded them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    Due,
    Done,
}

/// One write: its target, the subresource and the options.
#[derive(Debug, Clone, Copy)]
pub(super) struct PreparedWrite<'a> {
    pub(super) hub: &'a Hub,
    pub(super) resource: &'a Resource,
    pub(super) key: &'a StoreKey,
    pub(super) part: Subresource,
    pub(super) options: &'a WriteOptions,
    pub(super) ownership: Ownership,
}

/// A lock that is held until a service with new addresses or ports is stored. The remaining work under the lock is a
/// single pass over the object.
pub(super) type Giving<'a> = MutexGuard<'a, ()>;

impl<'a> PreparedWrite<'a> {
    /// Prepares an object that is to be created.
    pub(super) fn prepare_new(&self, object: &mut Value) -> Result<Option<Giving<'a>>, WriteFailure> {
        let Self { hub, resource, options, .. } = *self;
        let now = hub.clock.now_text();
        let metadata = metadata_mut(object);
        for member in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"] {
            metadata.remove(member);
        }
        metadata.insert("uid".into(), hub.chance.uid().into());
        metadata.insert("creationTimestamp".into(), now.clone().into());
        let identity = identity_of(object);
        let status = object.get("status").cloned().filter(|_| options.trust == Trust::Host);
        let mut giving = None;
        self.fill(object);
        if self.ownership == Ownership::Due {
            track(resource, None, object, self.part, options, &now);
        }
        self.admit(None, object)?;
        if resource.rules.custom {
            metadata_mut(object).insert("generation".into(), 1.into());
            if resource.rules.status
                && let Some(members) = object.as_object_mut()
            {
                members.remove("status");
            }
        } else {
            if resource.id == "services" {
                self.validate_by_webhooks(None, object)?;
                giving = Some(hub.giving.lock());
                self.give(None, object)?;
            }
            strategy::prepare_create(resource, object);
        }
        if let Some(status) = status {
            lay_over(&mut object["status"], status);
        }
        if resource.id == crd::DEFINITIONS {
            crd::prepare(hub, object, None, options)?;
        }
        self.fill(object);
        let mut causes = wrong_marks(object);
        if options.trust == Trust::Client {
            causes.extend(told(validation::validate_create(&resource.id, &as_judged(object))));
        }
        if let Some(schema) = &resource.schema {
            causes.extend(schema.validate(object, None).into_iter().map(StatusCause::from));
        }
        self.refuse(causes)?;
        self.check_size(object)?;
        seal(resource, self.key, &identity, object);
        if giving.is_none() {
            self.validate_by_webhooks(None, object)?;
        }
        Ok(giving)
    }

    /// Prepares the result of an update: takes over the fields that a write to this subresource may change.
    pub(super) fn prepare_changed(
        &self,
        before: &Value,
        mut after: Value,
    ) -> Result<(Value, Option<Giving<'a>>), WriteFailure> {
        let Self { hub, resource, part, options, .. } = *self;
        let now = hub.clock.now_text();
        let mut giving = None;
        self.fill(&mut after);
        if self.ownership == Ownership::Due {
            track(resource, Some(before), &mut after, part, options, &now);
        }
        self.admit(Some(before), &mut after)?;
        keep_identity(before, &mut after);
        let status = after.get("status").cloned().filter(|_| options.trust == Trust::Host && part == Subresource::Main);
        if resource.rules.custom {
            after = self.restrict_custom(before, after);
        } else {
            match part {
                Subresource::Main | Subresource::Scale => {
                    if resource.id == "services" {
                        self.validate_by_webhooks(Some(before), &after)?;
                        giving = Some(hub.giving.lock());
                        self.give(Some(before), &mut after)?;
                    }
                    strategy::prepare_update(resource, before, &mut after);
                }
                Subresource::Status => strategy::prepare_status_update(resource, before, &mut after),
                Subresource::Finalize => strategy::prepare_finalize(before, &mut after),
                Subresource::Approval => strategy::prepare_approval(before, &mut after, &now),
                Subresource::EphemeralContainers => strategy::prepare_ephemeral_containers(before, &mut after),
            }
        }
        if let (Some(status), Some(members)) = (status, after.as_object_mut()) {
            members.insert("status".into(), status);
        }
        if resource.id == crd::DEFINITIONS {
            crd::prepare(hub, &mut after, Some(before), options)?;
        }
        let mut causes = wrong_marks(&after);
        if resource.rules.custom {
            // Three times, as in kube-apiserver: each of its layers reports them.
            causes = [causes.clone(), causes.clone(), causes].concat();
        }
        causes.extend(new_finalizers(before, &after));
        if options.trust == Trust::Client && part == Subresource::Main {
            let refused = validation::validate_update(&resource.id, &as_judged(before), &as_judged(&after));
            causes.extend(told(refused));
        } else if let Some(name) = part.name().filter(|_| options.trust == Trust::Client) {
            let (before, after) = (as_judged(before), as_judged(&after));
            causes.extend(told(validation::validate_subresource_update(&resource.id, name, &before, &after)));
        }
        if let Some(schema) = &resource.schema {
            let wrong = match part {
                Subresource::Status => schema.validate_status(&after, before),
                _ => schema.validate(&after, Some(before)),
            };
            causes.extend(wrong.into_iter().map(StatusCause::from));
        }
        self.refuse(causes)?;
        self.check_size(&after)?;
        // A field that a rule has removed gets its default again when the object is read.
        self.fill(&mut after);
        seal(resource, self.key, before, &mut after);
        // The version is not part of the content. The write sets it.
        after["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        keep_times(before, &mut after);
        if giving.is_none() {
            self.validate_by_webhooks(Some(before), &after)?;
        }
        Ok((after, giving))
    }

    /// Encodes an object that is to be stored. A conversion webhook may be called for that.
    pub(super) fn draft(&self, object: &Value, change: WriteKind) -> Result<Draft, Status> {
        let Self { hub, resource, key, options, .. } = *self;
        let converted = options.caller.as_ref().map(|caller| webhook::convert(hub, caller, resource, object));
        let Some(Converted { stored, variants }) = converted.transpose()?.flatten() else {
            return Ok(hub.storage.draft(resource, key, object, change));
        };
        let storage = hub.storage.lock().catalog.stored_in(&resource.storage).cloned();
        let draft = hub.storage.draft(storage.as_deref().unwrap_or(resource), key, &stored, change);
        Ok(draft.with_variants(Some(variants)))
    }

    /// Fills in defaults.
    fn fill(&self, object: &mut Value) {
        if let Some(of) = self.resource.of {
            fill_defaults(of, object);
        }
    }

    /// Returns the object with the changes that are allowed for a custom object.
    fn restrict_custom(&self, before: &Value, mut after: Value) -> Value {
        let Self { resource, part, options, .. } = *self;
        let mut next = match part {
            Subresource::Status => {
                let mut next = before.clone();
                keep_member(&after, &mut next, "status");
                next["metadata"]["managedFields"] = after["metadata"]["managedFields"].take();
                next
            }
            _ => {
                if resource.rules.status && options.trust == Trust::Client {
                    keep_member(before, &mut after, "status");
                }
                after
            }
        };
        bump_generation(resource, before, &mut next);
        next
    }

    /// Runs admission: first closures, then mutating webhooks. They may change the content of the object, but not its
    /// identity.
    fn admit(&self, before: Option<&Value>, object: &mut Value) -> Result<(), WriteFailure> {
        let Self { hub, resource, key, part, options, .. } = *self;
        if hub.settings.admission.is_empty() && options.caller.is_none() {
            return Ok(());
        }
        let identity = identity_of(object);
        let mut admission = Admission {
            verb: if before.is_some() { Verb::Update } else { Verb::Create },
            resource,
            namespace: key.namespace(),
            name: key.name(),
            part: part.name(),
            before,
            object,
            dry_run: options.dry_run,
        };
        hub.settings.admission.iter().try_for_each(|admit| admit.ask(&mut admission))?;
        if let Some((caller, asked)) = self.webhook_request(before) {
            let mut shown = object.clone();
            if before.is_none() {
                // As in kube-apiserver, mutating webhooks see no uid and no time of a new object.
                let metadata = metadata_mut(&mut shown);
                ["uid", "creationTimestamp"].iter().for_each(|member| drop(metadata.remove(*member)));
            }
            let mut shown = Some(shown);
            asked.mutate(caller, &mut shown)?;
            *object = shown.unwrap_or_default();
        }
        if !object.is_object() {
            let message =
                format!("Internal error occurred: admission made no object of {} {:?}", resource.id, key.name());
            return Err(Status::failure(500, "InternalError", message).into());
        }
        keep_identity(&identity, object);
        keep_place(resource, key, object);
        let mut flaws = Vec::new();
        *object = formed(resource, std::mem::take(object), &mut flaws)?;
        Ok(())
    }

    /// Calls the validating webhooks.
    fn validate_by_webhooks(&self, before: Option<&Value>, object: &Value) -> Result<(), Status> {
        self.webhook_request(before).map_or(Ok(()), |(caller, asked)| asked.validate(caller, Some(object)))
    }

    /// Returns the request for webhooks. There is none for direct writes and for `/scale`.
    fn webhook_request<'r>(&'r self, before: Option<&'r Value>) -> Option<(&'r Caller, Asked<'r>)> {
        let caller = self.options.caller.as_ref().filter(|_| self.part != Subresource::Scale)?;
        let (operation, kind) =
            if before.is_some() { ("UPDATE", "UpdateOptions") } else { ("CREATE", "CreateOptions") };
        let asked = Asked {
            hub: self.hub,
            resource: self.resource,
            key: self.key,
            name: self.key.name(),
            subresource: self.part.name(),
            operation,
            before,
            dry_run: self.options.dry_run,
            options: self.options.to_value(kind),
        };
        Some((caller, asked))
    }

    /// Refuses an object that is too large. Direct writes have no size limit.
    fn check_size(&self, object: &Value) -> Result<(), Status> {
        if self.options.trust == Trust::Host || weight(object) <= LARGEST {
            return Ok(());
        }
        Err(Status::failure(500, "", "etcdserver: request is too large"))
    }

    fn refuse(&self, causes: Vec<StatusCause>) -> Result<(), Status> {
        if causes.is_empty() {
            return Ok(());
        }
        let Resource { group, kind, .. } = self.resource;
        Err(Status::invalid(group, kind, self.key.name(), causes))
    }

    /// Gives a service the addresses and ports that it lacks.
    fn give(&self, before: Option<&Value>, service: &mut Value) -> Result<(), Status> {
        let chance = &self.hub.chance;
        // A dry run takes nothing from the pool, and always shows the same values.
        let draw = |below| if self.options.dry_run { 0 } else { chance.within(0..below) };
        let (addresses, ports) = pool(self.hub);
        let given = allocate(before, service, &mut ServicePool { addresses, ports, draw: &draw });
        given.or_else(|causes| self.refuse(told(causes).collect()))
    }
}

/// Returns the object for validation: null members are removed, except in `data` and `binaryData`, where null means
/// empty bytes.
fn as_judged(object: &Value) -> Value {
    let mut judged = without_nulls(object);
    for member in ["data", "binaryData"] {
        let members = object.get(member).and_then(Value::as_object).into_iter().flatten();
        for (name, _) in members.filter(|(_, value)| value.is_null()) {
            judged[member][name.as_str()] = "".into();
        }
    }
    judged
}

/// Returns the value without null members.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let set = members.iter().filter(|(_, value)| !value.is_null());
            set.map(|(name, value)| (name.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// Returns an object with only the metadata.
fn identity_of(object: &Value) -> Value {
    json!({"metadata": object["metadata"]})
}

/// Puts the members of `above` over those of `below`.
fn lay_over(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => below.extend(above),
        (below, above) => *below = above,
    }
}

/// Converts the causes of a kind's rules to status causes.
fn told(causes: Vec<Cause>) -> impl Iterator<Item = StatusCause> {
    causes.into_iter().map(|cause| StatusCause::new(cause.reason, cause.field, cause.message))
}

/// Returns an error if finalizers are added to an object that is being deleted.
fn new_finalizers(before: &Value, after: &Value) -> Option<StatusCause> {
    if before["metadata"]["deletionTimestamp"].is_null() {
        return None;
    }
    // There may be tens of thousands of finalizers.
    let held: BTreeSet<_> = finalizers(before).into_iter().collect();
    let added: BTreeSet<_> = finalizers(after).into_iter().filter(|name| !held.contains(name)).collect();
    if added.is_empty() {
        return None;
    }
    let added: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
    let message = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    Some(StatusCause::forbidden("metadata.finalizers", &message))
}

/// Returns the approximate encoded size of a value, in bytes.
fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| weight(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => weight_of(members),
    }
}

fn weight_of(members: &Map<String, Value>) -> usize {
    members.iter().map(|(name, value)| name.len() + weight(value) + 4).sum::<usize>() + 2
}
