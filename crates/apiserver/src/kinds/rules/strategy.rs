//! The write strategies of kinds: which fields are reset, kept or counted when an object is written.
//!
//! An object has its name, uid and defaults before it is prepared.

use serde_json::{Value, json};

use super::defaults::merge_string_data;
use super::json::{
    JsonObject, at, child, copy, copy_at, fill, is_zero, items, items_mut, object_at, object_at_mut, open, same, text,
};
use super::service;
use crate::kinds::Resource;
use crate::kinds::form::zero_of;
use crate::kinds::user::user;

const CERTIFICATES: &str = "certificatesigningrequests.certificates.k8s.io";

/// Prepares a created object.
pub(crate) fn prepare_create(resource: &Resource, object: &mut Value) {
    let selects_own_pods = at(object, "spec.manualSelector") != Some(&Value::Bool(true));
    let Some(members) = object.as_object_mut() else { return };
    // A node brings its own status.
    if resource.rules.status && resource.id != "nodes" {
        let of = resource.of.and_then(|of| of.member("status")?.of.as_struct());
        members.insert("status".into(), of.map_or_else(|| json!({}), zero_of));
    }
    if counted(resource).is_some() {
        open(members, "metadata").insert("generation".into(), json!(1));
    }
    match resource.id.as_str() {
        "pods" => {
            let class = quality_of_service(members);
            let status = open(members, "status");
            status.insert("phase".into(), "Pending".into());
            status.insert("qosClass".into(), class.into());
        }
        "namespaces" => {
            let spec = open(members, "spec");
            match spec.get_mut("finalizers").and_then(Value::as_array_mut) {
                Some(finalizers) if finalizers.iter().any(|name| name == "kubernetes") => {}
                Some(finalizers) => finalizers.push("kubernetes".into()),
                None => drop(spec.insert("finalizers".into(), json!(["kubernetes"]))),
            }
        }
        "jobs.batch" if selects_own_pods => select_own_pods(members),
        CERTIFICATES => {
            // The user in the spec is that of the request.
            let spec = open(members, "spec");
            ["uid", "extra"].iter().for_each(|member| drop(spec.remove(*member)));
            spec.extend(user().as_object().cloned().unwrap_or_default());
        }
        _ => {}
    }
    settle(resource, object);
}

/// Prepares an updated object.
pub(crate) fn prepare_update(resource: &Resource, old: &Value, new: &mut Value) {
    keep_generation(old, new);
    if resource.rules.status {
        copy_at(old, new, "status");
    }
    match resource.id.as_str() {
        "namespaces" => copy_at(old, new, "spec.finalizers"),
        "services" => service::drop_old_type(old, new),
        "secrets" if at(new, "type").is_none_or(|kind| kind == "") => copy_at(old, new, "type"),
        CERTIFICATES => copy_at(old, new, "spec"),
        _ => {}
    }
    settle(resource, new);
    let content = |value: &Value| {
        let mut content = value.clone();
        content.as_object_mut().map(|members| members.remove("metadata"));
        content
    };
    let is_raised = counted(resource).unwrap_or_default().split_whitespace().any(|path| match path {
        "*" => !same(Some(&content(old)), Some(&content(new))),
        path => !same(at(old, path), at(new, path)),
    });
    if is_raised {
        raise_generation(old, new);
    }
}

/// Prepares an object whose status is updated.
pub(crate) fn prepare_status_update(resource: &Resource, old: &Value, new: &mut Value) {
    keep_generation(old, new);
    for path in reset_status_fields(resource) {
        match *path {
            "status.conditions" => {}
            path => copy_at(old, new, path),
        }
    }
    if resource.id == "pods"
        && let Some(before) = object_at(old, "status")
        && let Some(members) = new.as_object_mut()
    {
        // A writer of an older version may omit the class; it is kept.
        let status = open(members, "status");
        if is_zero(status.get("qosClass")) {
            copy(before, status, "qosClass");
        }
    }
    settle(resource, new);
}

/// Prepares a namespace whose finalizers are written: status is kept.
pub(crate) fn prepare_finalize(old: &Value, new: &mut Value) {
    keep_generation(old, new);
    copy_at(old, new, "status");
}

/// Prepares a certificate signing request whose decision is written: only the conditions change.
pub(crate) fn prepare_approval(old: &Value, request: &mut Value, now: &str) {
    keep_generation(old, request);
    let conditions = at(request, "status.conditions").cloned();
    copy_at(old, request, "spec");
    copy_at(old, request, "status");
    let Some(members) = request.as_object_mut() else { return };
    let status = open(members, "status");
    status.insert("conditions".into(), conditions.unwrap_or_else(|| json!([])));
    for condition in items_mut(status, "conditions") {
        for time in ["lastUpdateTime", "lastTransitionTime"] {
            fill(condition, time, now);
        }
    }
}

/// Prepares a pod whose ephemeral containers are written: nothing else changes.
pub(crate) fn prepare_ephemeral_containers(old: &Value, pod: &mut Value) {
    keep_generation(old, pod);
    let containers = at(pod, "spec.ephemeralContainers").cloned();
    copy_at(old, pod, "spec");
    copy_at(old, pod, "status");
    if let Some(spec) = object_at_mut(pod, "spec") {
        match containers {
            Some(containers) => drop(spec.insert("ephemeralContainers".into(), containers)),
            None => drop(spec.remove("ephemeralContainers")),
        }
    }
    if !same(at(old, "spec"), at(pod, "spec")) {
        raise_generation(old, pod);
    }
}

/// Returns the paths that a write of the object itself does not own.
pub(crate) fn reset_fields(resource: &Resource) -> &'static [&'static str] {
    match resource.id.as_str() {
        CERTIFICATES => &["spec", "status"],
        _ if resource.rules.status => &["status"],
        _ => &[],
    }
}

/// Returns the paths that a write of the status does not own, and does not change.
pub(crate) fn reset_status_fields(resource: &Resource) -> &'static [&'static str] {
    match resource.id.as_str() {
        "pods" => &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
        "deployments.apps" => &["spec", "metadata.labels"],
        CERTIFICATES => &["spec", "status.conditions"],
        _ if resource.rules.status => &["spec"],
        _ => &[],
    }
}

/// Returns the paths whose changes increment `metadata.generation`, or `None` for a kind without generations. `*` is
/// everything but the metadata.
fn counted(resource: &Resource) -> Option<&'static str> {
    resource.rules.generation.then_some(match resource.id.as_str() {
        "deployments.apps" => "spec metadata.annotations",
        "endpointslices.discovery.k8s.io" => "* metadata.labels",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io"
        | "validatingwebhookconfigurations.admissionregistration.k8s.io" => "webhooks",
        // Its generation is always one.
        "priorityclasses.scheduling.k8s.io" => "",
        _ => "spec",
    })
}

/// Normalizes an object on every write.
fn settle(resource: &Resource, object: &mut Value) {
    let Some(members) = object.as_object_mut() else { return };
    match resource.id.as_str() {
        "secrets" => merge_string_data(members),
        "statefulsets.apps" => {
            for claim in items_mut(open(members, "spec"), "volumeClaimTemplates") {
                claim.insert("apiVersion".into(), "v1".into());
                claim.insert("kind".into(), "PersistentVolumeClaim".into());
            }
        }
        "customresourcedefinitions.apiextensions.k8s.io" => record_stored_version(members),
        _ => {}
    }
}

/// Adds the storage version to the stored versions of a CRD.
fn record_stored_version(definition: &mut JsonObject) {
    let spec = child(definition, "spec").cloned().unwrap_or_default();
    let stored = items(&spec, "versions").find(|version| version.get("storage") == Some(&Value::Bool(true)));
    let Some(name) = stored.map(|version| text(version, "name")) else { return };
    let versions = open(definition, "status").entry("storedVersions").or_insert_with(|| json!([]));
    if let Value::Array(versions) = versions
        && !versions.iter().any(|version| version == name)
    {
        versions.push(name.into());
    }
}

/// Sets the selector of a new job to its own uid.
fn select_own_pods(job: &mut JsonObject) {
    let meta = |key: &str| child(job, "metadata").and_then(|metadata| metadata.get(key)).cloned().unwrap_or(json!(""));
    let (name, uid) = (meta("name"), meta("uid"));
    let spec = open(job, "spec");
    let labels = open(open(open(spec, "template"), "metadata"), "labels");
    for prefix in ["", "batch.kubernetes.io/"] {
        fill(labels, &format!("{prefix}job-name"), name.clone());
        fill(labels, &format!("{prefix}controller-uid"), uid.clone());
    }
    fill(open(open(spec, "selector"), "matchLabels"), "batch.kubernetes.io/controller-uid", uid);
}

/// Returns the QoS class of a pod: `Guaranteed` if all requests for CPU and memory equal their limits, `BestEffort` if
/// there are none.
fn quality_of_service(pod: &JsonObject) -> &'static str {
    let nothing = JsonObject::new();
    let spec = child(pod, "spec").unwrap_or(&nothing);
    let amount = |container: &JsonObject, list: &str, name: &str| {
        let amount = child(container, "resources").and_then(|resources| child(resources, list)?.get(name)).cloned();
        amount.filter(|amount| amount != "0")
    };
    let (mut is_guaranteed, mut is_best_effort) = (true, true);
    for container in items(spec, "initContainers").chain(items(spec, "containers")) {
        for name in ["cpu", "memory"] {
            let (request, limit) = (amount(container, "requests", name), amount(container, "limits", name));
            is_guaranteed &= request.is_some() && request == limit;
            is_best_effort &= request.is_none() && limit.is_none();
        }
    }
    match () {
        () if is_best_effort => "BestEffort",
        () if is_guaranteed => "Guaranteed",
        () => "Burstable",
    }
}

/// Keeps the generation: only the server sets it.
fn keep_generation(old: &Value, new: &mut Value) {
    copy_at(old, new, "metadata.generation");
}

fn raise_generation(old: &Value, new: &mut Value) {
    let generation = at(old, "metadata.generation").and_then(Value::as_i64).unwrap_or_default();
    if let Some(new) = new.as_object_mut() {
        open(new, "metadata").insert("generation".into(), json!(generation.saturating_add(1)));
    }
}
