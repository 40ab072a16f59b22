//! Validation of pod updates: which fields may change.

use serde_json::{Value, json};

use super::Cause;
use crate::kinds::rules::equal::same;
use crate::kinds::rules::json::{Object, copy, is_there, items, items_mut, length, number, object_at, text};

const SENTENCE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn check(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let nothing = Object::new();
    let (old, new) = (object_at(old, "spec").unwrap_or(&nothing), object_at(new, "spec").unwrap_or(&nothing));
    for list in ["containers", "initContainers"] {
        if !check_containers(old, new, list, causes) {
            return;
        }
    }
    if !check_deadline(old, new, causes) {
        return;
    }
    check_tolerations(old, new, causes);
    check_gates(old, new, causes);
    let rest = without_changeable(old, new);
    if !same(Some(&Value::Object(old.clone())), Some(&Value::Object(rest))) {
        causes.push(Cause::forbidden("spec", SENTENCE));
    }
}

/// Checks that no ephemeral container is removed or changed.
pub(super) fn check_ephemeral_containers(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let of = |pod: &Value| -> Vec<Object> {
        let spec = object_at(pod, "spec").cloned().unwrap_or_default();
        items(&spec, "ephemeralContainers").cloned().collect()
    };
    let after = of(new);
    for before in of(old) {
        let name = text(&before, "name");
        let forbidden = |what: &str| {
            let detail = format!("existing ephemeral containers {name:?} may not be {what}\n");
            Cause::forbidden("spec.ephemeralContainers", &detail)
        };
        match after.iter().find(|container| text(container, "name") == name) {
            None => causes.push(forbidden("removed")),
            Some(container) if *container != before => causes.push(forbidden("changed")),
            Some(_) => {}
        }
    }
}

/// Checks the containers, and returns whether further checks make sense.
fn check_containers(old: &Object, new: &Object, list: &str, causes: &mut Vec<Cause>) -> bool {
    let field = format!("spec.{list}");
    if length(old, list) != length(new, list) {
        causes.push(Cause::forbidden(field, "pod updates may not add or remove containers"));
        return false;
    }
    for (index, container) in items(new, list).enumerate() {
        let (image, field) = (text(container, "image"), format!("{field}[{index}].image"));
        if image.is_empty() {
            causes.push(Cause::required(&field, ""));
        }
        if image.trim().len() != image.len() {
            let detail = "must not have leading or trailing whitespace";
            causes.push(Cause::invalid(&field, Some(&json!(image)), detail));
        }
    }
    true
}

/// Checks that the deadline is only shortened. Returns whether further checks make sense.
fn check_deadline(old: &Object, new: &Object, causes: &mut Vec<Cause>) -> bool {
    let key = "activeDeadlineSeconds";
    let (field, value) = (format!("spec.{key}"), number(new, key));
    if !is_there(new, key) {
        if is_there(old, key) {
            causes.push(Cause::invalid(field, None, "must not update from a positive integer to nil value"));
        }
        return true;
    }
    let detail = if !(0..=i64::from(i32::MAX)).contains(&value) {
        "must be between 0 and 2147483647, inclusive"
    } else if is_there(old, key) && number(old, key) < value {
        "must be less than or equal to previous value"
    } else {
        return true;
    };
    causes.push(Cause::invalid(field, Some(&json!(value)), detail));
    false
}

fn check_tolerations(old: &Object, new: &Object, causes: &mut Vec<Cause>) {
    let timeless = |toleration: &Object| {
        let mut toleration = toleration.clone();
        toleration.remove("tolerationSeconds");
        toleration
    };
    let kept = |toleration: &Object| items(new, "tolerations").any(|new| timeless(new) == timeless(toleration));
    if !items(old, "tolerations").all(kept) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        causes.push(Cause::forbidden("spec.tolerations", detail));
    }
}

fn check_gates(old: &Object, new: &Object, causes: &mut Vec<Cause>) {
    for (index, gate) in items(new, "schedulingGates").enumerate() {
        let name = text(gate, "name");
        // The last of several gates with the same name counts.
        if items(new, "schedulingGates").skip(index + 1).any(|gate| text(gate, "name") == name) {
            continue;
        }
        if !items(old, "schedulingGates").any(|gate| text(gate, "name") == name) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            causes.push(Cause::forbidden(format!("spec.schedulingGates[{index}].name"), &detail));
        }
    }
}

/// Returns the new spec with the old values of the mutable fields.
fn without_changeable(old: &Object, new: &Object) -> Object {
    let mut rest = new.clone();
    for list in ["containers", "initContainers"] {
        for (container, old) in items_mut(&mut rest, list).zip(items(old, list)) {
            copy(old, container, "image");
        }
    }
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        copy(old, &mut rest, key);
    }
    if number(old, "terminationGracePeriodSeconds") < 0 && number(&rest, "terminationGracePeriodSeconds") == 1 {
        copy(old, &mut rest, "terminationGracePeriodSeconds");
    }
    // While the pod has scheduling gates, its node selector and affinity may become narrower.
    if length(old, "schedulingGates") > 0 {
        copy(old, &mut rest, "nodeSelector");
        keep_node_affinity(old, &mut rest);
    }
    rest
}

fn keep_node_affinity(old: &Object, rest: &mut Object) {
    let before = old.get("affinity").and_then(|affinity| affinity.get("nodeAffinity")).cloned();
    let after = rest.get("affinity").and_then(|affinity| affinity.get("nodeAffinity")).cloned();
    if before == after {
        return;
    }
    let affinity = crate::kinds::rules::json::open(rest, "affinity");
    match before {
        Some(before) => affinity.insert("nodeAffinity".to_owned(), before),
        None => affinity.remove("nodeAffinity"),
    };
    if affinity.is_empty() && !old.contains_key("affinity") {
        rest.remove("affinity");
    }
}
