//! Defaults of kinds with few rules.

use serde_json::{Value, json};

use crate::kinds::rules::json::{Object, child, child_mut, fill, fill_zero, is_there, items, length, open, text};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Adds the label by which a namespace can be selected by its name.
pub(super) fn namespace(namespace: &mut Object) {
    let name = child(namespace, "metadata").map(|metadata| text(metadata, "name").to_owned()).unwrap_or_default();
    if !name.is_empty() {
        open(open(namespace, "metadata"), "labels").insert("kubernetes.io/metadata.name".into(), name.into());
    }
}

pub(super) fn namespace_status(status: &mut Object) {
    fill_zero(status, "phase", "Active");
}

pub(super) fn node_status(status: &mut Object) {
    if !is_there(status, "allocatable")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        status.insert("allocatable".into(), capacity);
    }
}

pub(super) fn secret(secret: &mut Object) {
    fill_zero(secret, "type", "Opaque");
}

/// Moves `stringData` of a secret to `data`. It replaces existing keys.
pub(crate) fn merge_string_data(secret: &mut Object) {
    let Some(Value::Object(plain)) = secret.remove("stringData") else { return };
    if plain.is_empty() {
        return;
    }
    let data = open(secret, "data");
    for (key, value) in plain {
        data.insert(key, Value::String(base64(value.as_str().unwrap_or_default().as_bytes())));
    }
}

/// Encodes bytes with the standard alphabet and padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for position in 0..4 {
            let index = (bits >> (18 - 6 * position)) as usize & 63;
            text.push(if position <= chunk.len() { char::from(ALPHABET[index]) } else { '=' });
        }
    }
    text
}

pub(super) fn limit_range_item(item: &mut Object) {
    if text(item, "type") != "Container" {
        return;
    }
    // The default limit is the maximum. The default request is the limit, or else the minimum.
    inherit(item, "max", "default");
    inherit(item, "default", "defaultRequest");
    inherit(item, "min", "defaultRequest");
}

fn inherit(item: &mut Object, from: &str, into: &str) {
    let Some(amounts) = child(item, from).filter(|amounts| !amounts.is_empty()).cloned() else { return };
    let target = open(item, into);
    for (name, amount) in amounts {
        target.entry(name).or_insert(amount);
    }
}

pub(super) fn storage_class(class: &mut Object) {
    fill(class, "reclaimPolicy", "Delete");
    fill(class, "volumeBindingMode", "Immediate");
}

pub(super) fn csi_driver(driver: &mut Object) {
    let spec = open(driver, "spec");
    fill(spec, "attachRequired", true);
    fill(spec, "podInfoOnMount", false);
    fill(spec, "storageCapacity", false);
    fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    if length(spec, "volumeLifecycleModes") == 0 {
        spec.insert("volumeLifecycleModes".into(), json!(["Persistent"]));
    }
    fill(spec, "requiresRepublish", false);
    fill(spec, "seLinuxMount", false);
    fill(spec, "preventPodSchedulingIfMissing", false);
}

pub(super) fn binding(binding: &mut Object) {
    fill_zero(open(binding, "roleRef"), "apiGroup", RBAC);
}

pub(super) fn subject(subject: &mut Object) {
    if matches!(text(subject, "kind"), "User" | "Group") {
        fill_zero(subject, "apiGroup", RBAC);
    }
}

pub(super) fn priority_class(class: &mut Object) {
    fill(class, "preemptionPolicy", "PreemptLowerPriority");
}

pub(super) fn validating_webhook(webhook: &mut Object) {
    fill(webhook, "failurePolicy", "Fail");
    fill(webhook, "matchPolicy", "Equivalent");
    fill(webhook, "namespaceSelector", json!({}));
    fill(webhook, "objectSelector", json!({}));
    fill(webhook, "timeoutSeconds", 10);
}

pub(super) fn mutating_webhook(webhook: &mut Object) {
    validating_webhook(webhook);
    fill(webhook, "reinvocationPolicy", "Never");
}

pub(super) fn rule(rule: &mut Object) {
    fill(rule, "scope", "*");
}

pub(super) fn admission_policy(policy: &mut Object) {
    fill(policy, "failurePolicy", "Fail");
}

pub(super) fn match_resources(resources: &mut Object) {
    fill(resources, "matchPolicy", "Equivalent");
    fill(resources, "namespaceSelector", json!({}));
    fill(resources, "objectSelector", json!({}));
}

pub(super) fn flow_schema(schema: &mut Object) {
    fill_zero(schema, "matchingPrecedence", 1000);
}

pub(super) fn exempt_priority_level(level: &mut Object) {
    fill(level, "nominalConcurrencyShares", 0);
    fill(level, "lendablePercent", 0);
}

pub(super) fn limited_priority_level(level: &mut Object) {
    fill(level, "nominalConcurrencyShares", 30);
    fill(level, "lendablePercent", 0);
}

pub(super) fn queuing(queuing: &mut Object) {
    for (member, default) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)] {
        fill_zero(queuing, member, default);
    }
}

pub(super) fn device_toleration(toleration: &mut Object) {
    fill_zero(toleration, "operator", "Equal");
}

pub(super) fn device_request(request: &mut Object) {
    fill_zero(request, "allocationMode", "ExactCount");
    if text(request, "allocationMode") == "ExactCount" {
        fill_zero(request, "count", 1);
    }
}

pub(super) fn service_reference(reference: &mut Object) {
    fill(reference, "port", 443);
}

pub(super) fn custom_resource_definition(definition: &mut Object) {
    let spec = open(definition, "spec");
    if let Some(names) = child_mut(spec, "names") {
        let kind = text(names, "kind").to_owned();
        if !kind.is_empty() {
            fill_zero(names, "singular", kind.to_lowercase());
            fill_zero(names, "listKind", format!("{kind}List"));
        }
    }
    fill(spec, "conversion", json!({"strategy": "None"}));
    let stored = items(spec, "versions").find(|version| version.get("storage") == Some(&Value::Bool(true)));
    let name = stored.map(|version| text(version, "name").to_owned());
    let status = open(definition, "status");
    if let Some(name) = name
        && length(status, "storedVersions") == 0
    {
        status.insert("storedVersions".into(), json!([name]));
    }
}
