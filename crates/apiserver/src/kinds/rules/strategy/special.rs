//! What a write does to kinds that have little in common.

use serde_json::{Value, json};

use super::RuleContext;
use crate::kinds::rules::defaults::merge_string_data;
use crate::kinds::rules::equal::same;
use crate::kinds::rules::json::{Object, at, child, copy_at, fill, items, items_mut, object_at_mut, open, text};

/// Where a set says how often its template has changed.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
/// Part of a selector that only an older version of the kind had.
const OLD_BUDGET_LABEL: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";

/// A namespace goes only when the server has emptied it.
pub(super) fn namespace(namespace: &mut Value, write: &RuleContext<'_>) {
    if let Some(old) = write.old {
        return copy_at(old, namespace, "spec.finalizers");
    }
    let Some(namespace) = namespace.as_object_mut() else { return };
    let spec = open(namespace, "spec");
    match spec.get_mut("finalizers").and_then(Value::as_array_mut) {
        Some(finalizers) if finalizers.iter().any(|name| name == "kubernetes") => {}
        Some(finalizers) => finalizers.push("kubernetes".into()),
        None => drop(spec.insert("finalizers".into(), json!(["kubernetes"]))),
    }
}

/// A namespace can always be selected by its name.
pub(super) fn namespace_label(namespace: &mut Value) {
    let name = at(namespace, "metadata.name").cloned().unwrap_or_else(|| json!(""));
    let Some(namespace) = namespace.as_object_mut() else { return };
    open(open(namespace, "metadata"), "labels").insert("kubernetes.io/metadata.name".into(), name);
}

/// Keeps the one range of addresses and the list of ranges in step; the one counts.
pub(super) fn node_addresses(node: &mut Value) {
    let Some(spec) = object_at_mut(node, "spec") else { return };
    let one = text(spec, "podCIDR").to_owned();
    let first = spec.get("podCIDRs").and_then(|list| list.get(0)).and_then(Value::as_str).map(str::to_owned);
    match first {
        Some(first) if one.is_empty() && !first.is_empty() => drop(spec.insert("podCIDR".into(), first.into())),
        Some(first) if first == one || one.is_empty() => {}
        None if one.is_empty() => {}
        _ => drop(spec.insert("podCIDRs".into(), json!([one]))),
    }
}

pub(super) fn string_data(secret: &mut Value) {
    if let Some(secret) = secret.as_object_mut() {
        merge_string_data(secret);
    }
}

/// A secret that says no type keeps the one it has.
pub(super) fn secret(secret: &mut Value, write: &RuleContext<'_>) {
    if let (Some(secret), Some(old)) = (secret.as_object_mut(), write.old)
        && text(secret, "type").is_empty()
        && let Some(kind) = old.get("type")
    {
        secret.insert("type".into(), kind.clone());
    }
}

/// An account refers to secrets of its own namespace by name, and by nothing else.
pub(super) fn service_account(account: &mut Value, _: &RuleContext<'_>) {
    let Some(account) = account.as_object_mut() else { return };
    for secret in items_mut(account, "secrets") {
        secret.retain(|key, _| key == "name");
    }
}

/// Limits are the only objects that need no name.
pub(super) fn limit_range(range: &mut Value, write: &RuleContext<'_>) {
    let Some(metadata) = object_at_mut(range, "metadata") else { return };
    if write.old.is_none() && text(metadata, "name").is_empty() {
        let name = text(metadata, "uid").to_owned();
        metadata.insert("name".into(), name.into());
    }
}

/// What a strategy says about updates it does without is zero.
fn fill_update(object: &mut Value, path: &str, keys: &[&str]) {
    if let Some(update) = object_at_mut(object, path) {
        keys.iter().for_each(|key| fill(update, key, 0));
    }
}

pub(super) fn deployment_update(deployment: &mut Value) {
    fill_update(deployment, "spec.strategy.rollingUpdate", &["maxUnavailable", "maxSurge"]);
}

pub(super) fn daemon_update(set: &mut Value) {
    fill_update(set, "spec.updateStrategy.rollingUpdate", &["maxUnavailable", "maxSurge"]);
}

/// Claims in a set are whole objects, and say so.
pub(super) fn claim_templates(set: &mut Value) {
    fill_update(set, "spec.updateStrategy.rollingUpdate", &["partition"]);
    let Some(spec) = object_at_mut(set, "spec") else { return };
    for claim in items_mut(spec, "volumeClaimTemplates") {
        claim.insert("apiVersion".into(), "v1".into());
        claim.insert("kind".into(), "PersistentVolumeClaim".into());
    }
}

fn template_generation(set: &Value) -> i64 {
    let annotation = at(set, "metadata.annotations").and_then(|annotations| annotations.get(TEMPLATE_GENERATION));
    annotation.and_then(Value::as_str).and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn set_template_generation(set: &mut Value, generation: i64) {
    let Some(set) = set.as_object_mut() else { return };
    let annotations = open(open(set, "metadata"), "annotations");
    annotations.insert(TEMPLATE_GENERATION.into(), generation.to_string().into());
}

/// Counts the changes of the template. Only the server sets this number.
pub(super) fn daemon_set(set: &mut Value, write: &RuleContext<'_>) {
    let generation = match write.old {
        None => template_generation(set).max(1),
        Some(old) if same(at(old, "spec.template"), at(set, "spec.template")) => template_generation(old),
        Some(old) => template_generation(old).saturating_add(1),
    };
    set_template_generation(set, generation);
}

pub(super) fn daemon_set_status(set: &mut Value, write: &RuleContext<'_>) {
    set_template_generation(set, write.old.map(template_generation).unwrap_or_default());
}

/// Sets the selector of a new job to its own uid, unless `manualSelector` is set.
pub(super) fn job(job: &mut Value, write: &RuleContext<'_>) {
    if write.old.is_none() && at(job, "spec.manualSelector") != Some(&Value::Bool(true)) {
        select_own_pods(job);
    }
}

fn select_own_pods(job: &mut Value) {
    let meta = |key: &str| at(job, "metadata").and_then(|metadata| metadata.get(key)).cloned().unwrap_or(json!(""));
    let (name, uid) = (meta("name"), meta("uid"));
    let Some(job) = job.as_object_mut() else { return };
    let spec = open(job, "spec");
    let labels = open(open(open(spec, "template"), "metadata"), "labels");
    for prefix in ["", "batch.kubernetes.io/"] {
        fill(labels, &format!("{prefix}job-name"), name.clone());
        fill(labels, &format!("{prefix}controller-uid"), uid.clone());
    }
    fill(open(open(spec, "selector"), "matchLabels"), "batch.kubernetes.io/controller-uid", uid);
}

/// The old way of saying where an endpoint is, which this version of the kind only lets stay as it is.
pub(super) fn endpoint_slice(slice: &mut Value, write: &RuleContext<'_>) {
    if write.old.is_some_and(|old| same(old.get("endpoints"), slice.get("endpoints"))) {
        return;
    }
    let Some(slice) = slice.as_object_mut() else { return };
    items_mut(slice, "endpoints").for_each(|endpoint| drop(endpoint.remove("deprecatedTopology")));
}

/// Drops what an older version of the kind added to selectors, unless the selector is that alone.
pub(super) fn disruption_budget(budget: &mut Value, write: &RuleContext<'_>) {
    let selector = at(budget, "spec.selector");
    if write.old.is_some_and(|old| same(at(old, "spec.selector"), selector)) {
        return;
    }
    if selector == Some(&json!({"matchExpressions": [{"key": OLD_BUDGET_LABEL, "operator": "Exists"}]})) {
        return;
    }
    let Some(selector) = object_at_mut(budget, "spec.selector") else { return };
    let Some(expressions) = selector.get_mut("matchExpressions").and_then(Value::as_array_mut) else { return };
    expressions.retain(|expression| expression.get("key").and_then(Value::as_str) != Some(OLD_BUDGET_LABEL));
    if expressions.is_empty() {
        selector.remove("matchExpressions");
    }
}

/// A way to convert objects that says nothing is none.
pub(super) fn conversion(definition: &mut Value) {
    if let Some(conversion) = object_at_mut(definition, "spec.conversion")
        && conversion.get("webhook") == Some(&json!({}))
    {
        conversion.remove("webhook");
    }
}

/// A version in which objects are stored has been one in which objects are stored ever after.
pub(super) fn definition(definition: &mut Value, _: &RuleContext<'_>) {
    let stored = |spec: &Object| {
        let version = items(spec, "versions").find(|version| version.get("storage") == Some(&Value::Bool(true)))?;
        Some(text(version, "name").to_owned())
    };
    let Some(definition) = definition.as_object_mut() else { return };
    let Some(name) = child(definition, "spec").and_then(stored) else { return };
    let status = open(definition, "status");
    match status.get_mut("storedVersions").and_then(Value::as_array_mut) {
        Some(versions) if versions.iter().any(|version| *version == name) => {}
        Some(versions) => versions.push(name.into()),
        None => drop(status.insert("storedVersions".into(), json!([name]))),
    }
}
