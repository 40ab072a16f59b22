//! Validation of persistent volume claims, and of their updates.

use kube_structural_schema::Quantity;
use serde_json::Value;

use super::Cause;
use crate::kinds::rules::equal::same;
use crate::kinds::rules::json::{Object, at, copy, copy_at, is_there, length, object_at, object_at_mut, text};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(super) fn claim(claim: &Value, causes: &mut Vec<Cause>) {
    let nothing = Object::new();
    let spec = object_at(claim, "spec").unwrap_or(&nothing);
    if length(spec, "accessModes") == 0 {
        causes.push(Cause::required("spec.accessModes", "at least 1 access mode is required"));
    }
    let modes = spec.get("accessModes").and_then(Value::as_array).into_iter().flatten();
    for mode in modes.filter(|mode| !MODES.iter().any(|known| mode.as_str() == Some(known))) {
        causes.push(Cause::unsupported("spec.accessModes", Some(mode), &MODES));
    }
    match size(claim, "spec.resources.requests") {
        None => causes.push(Cause::required("spec.resources[storage]", "")),
        Some(size) if size <= Quantity::default() => {
            let shown = at(claim, "spec.resources.requests.storage");
            causes.push(Cause::invalid("spec.resources[storage]", shown, "must be greater than zero"));
        }
        Some(_) => {}
    }
}

fn size(claim: &Value, path: &str) -> Option<Quantity> {
    at(claim, path)
        .and_then(|list| list.get("storage"))
        .and_then(Value::as_str)
        .and_then(|text| Quantity::parse(text).ok())
}

/// Checks an update: a bound claim may only grow.
pub(super) fn check_update(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let (mut before, mut after) = (old.clone(), new.clone());
    if at(old, "spec.volumeName").is_none() {
        copy_at(new, &mut before, "spec.volumeName");
    }
    let is_bound = at(new, "status.phase").and_then(Value::as_str) == Some("Bound");
    if is_bound {
        if at(new, "spec.resources.requests").is_some() {
            copy_at(old, &mut after, "spec.resources.requests.storage");
        }
        copy_at(old, &mut after, "spec.volumeAttributesClassName");
    }
    keep_first_class(old, &mut after);
    if !same(before.get("spec"), after.get("spec")) {
        let detail =
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        causes.push(Cause::forbidden("spec", detail));
    }
    let of = |size: Option<Quantity>| size.unwrap_or_default();
    let (wanted, had) = (of(size(new, "spec.resources.requests")), of(size(old, "spec.resources.requests")));
    if wanted < had && wanted <= of(size(old, "status.capacity")) {
        let detail = "field can not be less than status.capacity";
        causes.push(Cause::forbidden("spec.resources.requests.storage", detail));
    }
    let mode = |claim: &Value| at(claim, "spec.volumeMode").cloned();
    if mode(old) != mode(new) {
        causes.push(Cause::invalid("volumeMode", mode(new).as_ref(), "field is immutable"));
    }
}

/// Allows a claim from before the default class to get a class.
fn keep_first_class(old: &Value, after: &mut Value) {
    let nothing = Object::new();
    let old = object_at(old, "spec").unwrap_or(&nothing);
    let Some(spec) = object_at_mut(after, "spec") else { return };
    if !is_there(old, "storageClassName")
        && is_there(spec, "storageClassName")
        && !text(spec, "storageClassName").is_empty()
    {
        copy(old, spec, "storageClassName");
    }
}
