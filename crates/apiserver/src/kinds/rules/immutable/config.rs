//! Validation of config maps, secrets, roles, classes and leases.

use serde_json::{Value, json};

use super::{Cause, name};
use crate::kinds::rules::json::{Object, at, child, is_there, items, length, number, object_at, text};

const RBAC: &str = "rbac.authorization.k8s.io";
/// The maximum size of a secret or config map, in bytes.
const MOST_BYTES: usize = 1024 * 1024;

pub(super) fn config_map(object: &Value, causes: &mut Vec<Cause>) {
    let Some(map) = object.as_object() else { return };
    let binary = child(map, "binaryData");
    let mut size = 0;
    for (key, value) in child(map, "data").into_iter().flatten() {
        let field = format!("data[{key}]");
        name::check_key(key, &field, causes);
        if binary.is_some_and(|binary| binary.contains_key(key)) {
            causes.push(Cause::invalid(field, Some(&json!(key)), "duplicate of key present in binaryData"));
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in binary.into_iter().flatten() {
        name::check_key(key, &format!("binaryData[{key}]"), causes);
        size += decoded_length(value);
    }
    // kube-apiserver reports a field without a name here.
    check_size(size, "[]", causes);
}

fn check_size(size: usize, field: &str, causes: &mut Vec<Cause>) {
    if size > MOST_BYTES {
        let message = format!("Too long: may not be more than {MOST_BYTES} bytes");
        causes.push(Cause { reason: "FieldValueTooLong", field: field.to_owned(), message });
    }
}

fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    (text.len() / 4 * 3).saturating_sub(text.len() - text.trim_end_matches('=').len())
}

pub(super) fn secret(object: &Value, causes: &mut Vec<Cause>) {
    let Some(secret) = object.as_object() else { return };
    let data = child(secret, "data");
    let mut size = 0;
    for (key, value) in data.into_iter().flatten() {
        name::check_key(key, &format!("data[{key}]"), causes);
        size += decoded_length(value);
    }
    check_size(size, "data", causes);
    let has = |key: &str| data.is_some_and(|data| data.contains_key(key));
    let needed: &[&str] = match text(secret, "type") {
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => &["username", "password"],
        "kubernetes.io/service-account-token" => return check_account(object, causes),
        _ => &[],
    };
    causes.extend(needed.iter().filter(|key| !has(key)).map(|key| Cause::required(format!("data[{key}]"), "")));
}

fn check_account(secret: &Value, causes: &mut Vec<Cause>) {
    let key = "kubernetes.io/service-account.name";
    if object_at(secret, "metadata.annotations").is_none_or(|annotations| text(annotations, key).is_empty()) {
        causes.push(Cause::required(format!("metadata.annotations[{key}]"), ""));
    }
}

pub(super) fn storage_class(object: &Value, causes: &mut Vec<Cause>) {
    let Some(class) = object.as_object() else { return };
    if text(class, "provisioner").is_empty() {
        causes.push(Cause::required("provisioner", ""));
    }
}

pub(super) fn lease(object: &Value, causes: &mut Vec<Cause>) {
    let Some(spec) = object_at(object, "spec") else { return };
    if is_there(spec, "leaseDurationSeconds") && number(spec, "leaseDurationSeconds") <= 0 {
        let value = spec.get("leaseDurationSeconds");
        causes.push(Cause::invalid("spec.leaseDurationSeconds", value, "must be greater than 0"));
    }
    name::check_count(spec.get("leaseTransitions").and_then(Value::as_i64), "spec.leaseTransitions", causes);
}

pub(super) fn binding(object: &Value, is_namespaced: bool, causes: &mut Vec<Cause>) {
    let nothing = Object::new();
    let role = object_at(object, "roleRef").unwrap_or(&nothing);
    let empty = json!("");
    if text(role, "apiGroup") != RBAC {
        causes.push(Cause::unsupported("roleRef.apiGroup", role.get("apiGroup"), &[RBAC]));
    }
    let kinds: &[&str] = if is_namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&text(role, "kind")) {
        causes.push(Cause::unsupported("roleRef.kind", role.get("kind").or(Some(&empty)), kinds));
    }
    if text(role, "name").is_empty() {
        causes.push(Cause::required("roleRef.name", ""));
    }
    let Some(binding) = object.as_object() else { return };
    for (index, subject) in items(binding, "subjects").enumerate() {
        check_subject(subject, is_namespaced, &format!("subjects[{index}]"), causes);
    }
}

fn check_subject(subject: &Object, is_namespaced: bool, field: &str, causes: &mut Vec<Cause>) {
    if text(subject, "name").is_empty() {
        causes.push(Cause::required(format!("{field}.name"), ""));
    }
    let group = subject.get("apiGroup");
    match text(subject, "kind") {
        "ServiceAccount" => {
            if !text(subject, "apiGroup").is_empty() {
                causes.push(Cause::unsupported(format!("{field}.apiGroup"), group, &[""]));
            }
            if !is_namespaced && text(subject, "namespace").is_empty() {
                causes.push(Cause::required(format!("{field}.namespace"), ""));
            }
        }
        "User" | "Group" if text(subject, "apiGroup") == RBAC => {}
        "User" | "Group" => causes.push(Cause::unsupported(format!("{field}.apiGroup"), group, &[RBAC])),
        kind => {
            let kinds = ["ServiceAccount", "User", "Group"];
            causes.push(Cause::unsupported(format!("{field}.kind"), Some(&json!(kind)), &kinds));
        }
    }
}

pub(super) fn role(object: &Value, is_namespaced: bool, causes: &mut Vec<Cause>) {
    let Some(role) = object.as_object() else { return };
    for (index, rule) in items(role, "rules").enumerate() {
        let field = format!("rules[{index}]");
        if length(rule, "nonResourceURLs") > 0 {
            check_urls(rule, is_namespaced, &format!("{field}.nonResourceURLs"), causes);
            continue;
        }
        if length(rule, "apiGroups") == 0 {
            let detail = "resource rules must supply at least one api group";
            causes.push(Cause::required(format!("{field}.apiGroups"), detail));
        }
        if length(rule, "resources") == 0 {
            let detail = "resource rules must supply at least one resource";
            causes.push(Cause::required(format!("{field}.resources"), detail));
        }
    }
    // kube-apiserver reports this error last.
    for (index, _) in items(role, "rules").enumerate().filter(|(_, rule)| length(rule, "verbs") == 0) {
        causes.push(Cause::required(format!("rules[{index}].verbs"), ""));
    }
}

fn check_urls(rule: &Object, is_namespaced: bool, field: &str, causes: &mut Vec<Cause>) {
    let urls = rule.get("nonResourceURLs");
    if is_namespaced {
        causes.push(Cause::invalid(field, urls, "namespaced rules cannot apply to non-resource URLs"));
    }
    if ["apiGroups", "resources", "resourceNames"].into_iter().any(|key| length(rule, key) > 0) {
        let detail = "rules cannot apply to both regular resources and non-resource URLs";
        causes.push(Cause::invalid(field, urls, detail));
    }
}

/// Checks that an object marked as immutable keeps these fields.
pub(super) fn check_sealed(old: &Value, new: &Value, keys: &[&str], causes: &mut Vec<Cause>) {
    let is_sealed = |object: &Value| at(object, "immutable") == Some(&Value::Bool(true));
    if !is_sealed(old) {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if !is_sealed(new) {
        causes.push(Cause::forbidden("immutable", detail));
    }
    causes.extend(keys.iter().filter(|key| old.get(key) != new.get(key)).map(|key| Cause::forbidden(*key, detail)));
}
