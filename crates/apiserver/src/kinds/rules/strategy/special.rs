//! Write strategies of kinds with few rules.

use serde_json::{Value, json};

use super::RuleContext;
use crate::kinds::rules::defaults::merge_string_data;
use crate::kinds::rules::equal::same;
use crate::kinds::rules::json::{Object, at, child, copy_at, fill, items, items_mut, object_at_mut, open, text};

/// The deprecated annotation with the template generation.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
/// The label that only an older version of disruption budgets used.
const OLD_BUDGET_LABEL: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";

/// Keeps the finalizers in the spec: only the server removes them.
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

/// Sets the label by which a namespace can be selected by its name.
pub(super) fn namespace_label(namespace: &mut Value) {
    let name = at(namespace, "metadata.name").cloned().unwrap_or_else(|| json!(""));
    let Some(namespace) = namespace.as_object_mut() else { return };
    open(open(namespace, "metadata"), "labels").insert("kubernetes.io/metadata.name".into(), name);
}

/// Keeps `podCIDR` and `podCIDRs` equal; `podCIDR` has precedence.
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

/// Keeps the type of a secret if the update omits it.
pub(super) fn secret(secret: &mut Value, write: &RuleContext<'_>) {
    if let (Some(secret), Some(old)) = (secret.as_object_mut(), write.old)
        && text(secret, "type").is_empty()
        && let Some(kind) = old.get("type")
    {
        secret.insert("type".into(), kind.clone());
    }
}

/// Keeps only the names in the secret references of a service account.
pub(super) fn service_account(account: &mut Value, _: &RuleContext<'_>) {
    let Some(account) = account.as_object_mut() else { return };
    for secret in items_mut(account, "secrets") {
        secret.retain(|key, _| key == "name");
    }
}

/// Sets the name of a LimitRange without a name to its uid. No other kind may omit the name.
pub(super) fn limit_range(range: &mut Value, write: &RuleContext<'_>) {
    let Some(metadata) = object_at_mut(range, "metadata") else { return };
    if write.old.is_none() && text(metadata, "name").is_empty() {
        let name = text(metadata, "uid").to_owned();
        metadata.insert("name".into(), name.into());
    }
}

/// Sets missing numbers of an update strategy to zero.
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

/// Sets kind and version of the claims in a stateful set.
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

/// Counts the changes of the template. Only the server sets this annotation.
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

/// Removes the deprecated topology of endpoints, unless the endpoints are unchanged.
pub(super) fn endpoint_slice(slice: &mut Value, write: &RuleContext<'_>) {
    if write.old.is_some_and(|old| same(old.get("endpoints"), slice.get("endpoints"))) {
        return;
    }
    let Some(slice) = slice.as_object_mut() else { return };
    items_mut(slice, "endpoints").for_each(|endpoint| drop(endpoint.remove("deprecatedTopology")));
}

/// Drops the label of an older version from selectors, unless it is the only requirement.
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

/// Removes an empty webhook from the conversion of a CRD.
pub(super) fn conversion(definition: &mut Value) {
    if let Some(conversion) = object_at_mut(definition, "spec.conversion")
        && conversion.get("webhook") == Some(&json!({}))
    {
        conversion.remove("webhook");
    }
}

/// Adds the storage version to the stored versions of a CRD.
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

/// Marks a new API service without a Service as available: this server is its own backend.
pub(super) fn api_service(service: &mut Value, write: &RuleContext<'_>) {
    if write.old.is_some() || at(service, "spec.service").is_some_and(|service| !service.is_null()) {
        return;
    }
    let available = json!({
        "type": "Available", "status": "True", "lastTransitionTime": write.now, "reason": "Local",
        "message": "Local APIServices are always available",
    });
    if let Some(service) = service.as_object_mut() {
        open(service, "status").insert("conditions".into(), json!([available]));
    }
}
