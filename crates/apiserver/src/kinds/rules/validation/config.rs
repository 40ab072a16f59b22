//! Validation of config maps, secrets, roles, claims and certificate signing requests.

use kube_structural_schema::Quantity;
use serde_json::Value;

use super::Cause;
use super::path::{each, find};
use crate::kinds::rules::json::{JsonObject, at, items, length, object_at, same, text};

/// The maximum size of a secret or config map, in bytes.
const MOST_BYTES: usize = 1024 * 1024;

pub(super) fn config_map(object: &Value, causes: &mut Vec<Cause>) {
    check_data(object, &["data", "binaryData"], "[]", causes);
    let binary = object_at(object, "binaryData");
    let data = object_at(object, "data").into_iter().flatten();
    for (key, _) in data.filter(|(key, _)| binary.is_some_and(|binary| binary.contains_key(*key))) {
        causes.push(Cause::invalid(format!("data[{key}]"), None, "duplicate of key present in binaryData"));
    }
}

pub(super) fn secret(object: &Value, causes: &mut Vec<Cause>) {
    check_data(object, &["data"], "data", causes);
    let has = |key: &str| object_at(object, "data").is_some_and(|data| data.contains_key(key));
    let needed: &[&str] = match at(object, "type").and_then(Value::as_str).unwrap_or_default() {
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => &["username", "password"],
        _ => &[],
    };
    causes.extend(needed.iter().filter(|key| !has(key)).map(|key| Cause::required(format!("data[{key}]"))));
}

/// Checks the keys in these members, and the size of all values. `whole` is the field of an error about the size.
fn check_data(object: &Value, members: &[&str], whole: &str, causes: &mut Vec<Cause>) {
    let mut size = 0;
    for member in members {
        for (key, value) in object_at(object, member).into_iter().flatten() {
            let has_form = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
            if key.is_empty() || key.len() > 253 || !has_form || key == "." || key.starts_with("..") {
                let detail = "must consist of alphanumeric characters, '-', '_' or '.'";
                causes.push(Cause::invalid(format!("{member}[{key}]"), Some(&key.as_str().into()), detail));
            }
            size += value.as_str().map_or(0, str::len);
        }
    }
    if size > MOST_BYTES * 4 / 3 || size > MOST_BYTES && whole == "[]" {
        let detail = format!("Too long: may not be more than {MOST_BYTES} bytes");
        causes.push(Cause::other("FieldValueTooLong", whole, &detail));
    }
}

/// Checks that an object marked as immutable keeps these fields.
pub(super) fn check_sealed(old: &Value, new: &Value, keys: &[&str], causes: &mut Vec<Cause>) {
    if at(old, "immutable") != Some(&Value::Bool(true)) {
        return;
    }
    let changed = keys.iter().filter(|key| old.get(key) != new.get(key));
    causes.extend(changed.map(|key| Cause::forbidden(*key, "field is immutable when `immutable` is set")));
}

pub(super) fn role(object: &Value, causes: &mut Vec<Cause>) {
    for (field, rule) in each(object, "rules[]") {
        let nothing = JsonObject::new();
        let rule = rule.and_then(Value::as_object).unwrap_or(&nothing);
        let missing = ["apiGroups", "resources"].into_iter().filter(|key| length(rule, key) == 0);
        if length(rule, "nonResourceURLs") == 0 {
            causes.extend(missing.map(|key| Cause::required(format!("{field}.{key}"))));
        }
    }
}

fn size(claim: &Value, path: &str) -> Option<Quantity> {
    at(claim, path).and_then(Value::as_str).and_then(|text| Quantity::parse(text).ok())
}

pub(super) fn claim(claim: &Value, causes: &mut Vec<Cause>) {
    let path = "spec.resources.requests.storage";
    match size(claim, path) {
        None => causes.push(Cause::required("spec.resources[storage]")),
        Some(size) if size <= Quantity::default() => {
            causes.push(Cause::invalid("spec.resources[storage]", at(claim, path), "must be greater than zero"));
        }
        Some(_) => {}
    }
}

/// Checks an update of a claim: its volume and class may be set once, and a bound claim may grow.
pub(super) fn check_claim_update(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let is_bound = find(new, "status.phase").is_some_and(|phase| phase == "Bound");
    let rest = |claim: &Value| {
        let mut spec = object_at(claim, "spec").cloned().unwrap_or_default();
        let set_once =
            ["volumeName", "storageClassName"].into_iter().filter(|key| at(old, &format!("spec.{key}")).is_none());
        let of_bound = ["resources", "volumeAttributesClassName"].into_iter().filter(|_| is_bound);
        set_once.chain(of_bound).for_each(|key| drop(spec.remove(key)));
        Value::Object(spec)
    };
    if !same(Some(&rest(old)), Some(&rest(new))) {
        let detail = "spec is immutable after creation except resources.requests for bound claims";
        causes.push(Cause::forbidden("spec", detail));
    }
    let path = "spec.resources.requests.storage";
    if size(new, path) < size(old, path) && size(new, path) <= size(old, "status.capacity.storage") {
        causes.push(Cause::forbidden(path, "field can not be less than status.capacity"));
    }
}

/// Checks a decision about a certificate signing request. Only the subresource `approval` makes one, and none is undone.
pub(super) fn check_decision(subresource: &str, old: &Value, new: &Value) -> Vec<Cause> {
    let decisions = |request| -> Vec<JsonObject> {
        let conditions = object_at(request, "status").into_iter().flat_map(|status| items(status, "conditions"));
        conditions.filter(|one| matches!(text(one, "type"), "Approved" | "Denied")).cloned().collect()
    };
    let (before, after) = (decisions(old), decisions(new));
    let is_undone = before.iter().any(|old| !after.iter().any(|new| text(new, "type") == text(old, "type")));
    let (mut causes, field) = (Vec::new(), "status.conditions");
    if is_undone || subresource != "approval" && before != after {
        causes
            .push(Cause::forbidden(field, "updates may not add or remove a condition of type Approved or Denied here"));
    }
    if after.iter().any(|one| text(one, "type") != text(&after[0], "type")) {
        causes.push(Cause::invalid(field, None, "Approved and Denied conditions are mutually exclusive"));
    }
    causes
}
